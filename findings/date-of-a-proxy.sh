#!/usr/bin/env bash
# Date: Sun, 06 Nov 1994 08:49:37 GMT, through a proxy
#
# RFC 9110, section 6.6.1: Date is when the answer was made; a recipient with a clock adds one where there is none. RFC 9111,
# section 4.2.3, takes the age of an answer from it.
# Guess: a proxy keeps Date.
# Seen: nginx 1.22.1 and h2o 2.2.5 write the time of now. HAProxy 2.6.12 and lighttpd 1.4.69 keep it.
# Behind the first two, an answer that is old seems new to a cache, which keeps it too long.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install nginx=1.22.1-9+deb12u11 nginx-common haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 \
    libopentracing1 lighttpd=1.4.69-1 libnettle8 libxxhash0 h2o=2.2.5+dfsg2-7 libyaml-0-2
cat >serve.py <<'PY'
import socketserver

class Origin(socketserver.StreamRequestHandler):
    def handle(self):
        lines = []
        while (line := self.rfile.readline().strip()) or not lines:
            lines.append(line)
        self.wfile.write(self.answer(lines))

    def answer(self, lines):
        date = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: max-age=3600\r\n"
        return b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + date + b"Content-Length: 5\r\n\r\nhello"

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

Server("origin", Origin).serve_forever()
PY
cat >nginx.conf <<CONF
daemon off;
master_process off;
pid nginx.pid;
error_log nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path a;
    proxy_temp_path b;
    fastcgi_temp_path c;
    uwsgi_temp_path d;
    scgi_temp_path e;
    server {
        listen unix:$FOLDER/nginx;
        location / {
            proxy_http_version 1.1;
            proxy_pass http://unix:$FOLDER/origin:;
        }
    }
}
CONF
cat >haproxy.cfg <<CONF
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend all
    bind unix@$FOLDER/haproxy
    default_backend origin
backend origin
    server origin unix@$FOLDER/origin
CONF
cat >lighttpd.conf <<CONF
server.document-root = "$FOLDER"
server.bind = "$FOLDER/lighttpd"
server.errorlog = "$FOLDER/lighttpd.log"
server.modules = ("mod_proxy")
proxy.server = ("/" => (("socket" => "$FOLDER/origin")))
CONF
cat >h2o.conf <<CONF
user: $(id -un)
listen: {type: unix, port: $FOLDER/h2o}
error-log: $FOLDER/h2o.log
hosts:
  default:
    paths:
      /:
        proxy.reverse.url: "http://[unix:$FOLDER/origin]/"
CONF
python3 serve.py &
servers=($!)
trap 'kill "${servers[@]}"; rm -rf "$FOLDER"' EXIT
root/usr/sbin/nginx -e nginx.log -p "$FOLDER" -c nginx.conf &
servers+=($!)
root/usr/sbin/haproxy -f haproxy.cfg &>haproxy.log &
servers+=($!)
root/usr/sbin/lighttpd -D -m root/usr/lib/lighttpd -f lighttpd.conf 2>lighttpd.errors &
servers+=($!)
root/usr/bin/h2o -c h2o.conf &>h2o.errors &
servers+=($!)
for server in origin nginx haproxy lighttpd h2o; do
    until [[ -S $server ]]; do sleep 0.05; done
done
ask() {
    curl -s --unix-socket "$1" -o content -D - http://a.example/ | tr -d '\r' | sed -n 's/^[Dd]ate: //p' |
        sed 's/^Sun, 06 Nov 1994.*/kept/; t; s/.*/written anew/'
}
seen 'nginx' 'written anew' "$(ask nginx)"
seen 'h2o' 'written anew' "$(ask h2o)"
seen 'HAProxy' kept "$(ask haproxy)"
seen 'lighttpd' kept "$(ask lighttpd)"
