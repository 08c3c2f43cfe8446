#!/usr/bin/env bash
# GET /a%2Fb, through a proxy
#
# RFC 3986, section 2.2: a reserved character means something else when it is encoded: a%2Fb is one part of a path.
# Guess: a proxy passes the path on as it came.
# Seen: mod_proxy of lighttpd 1.4.69 asks for /a/b, and for /c/b in place of /c%2F%2Fb and of /c//b. nginx 1.22.1, HAProxy
# 2.6.12 and h2o 2.2.5 pass all on as they came. lighttpd does this by default (url-path-2f-decode in server.http-parseopts).
# A program behind it that has names with a slash in a part of its paths, as registries of packages have, answers 404.
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
        content = b"\n".join(lines) + b"\n"
        return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)

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
    curl -s --path-as-is --unix-socket "$1" "http://a.example$2" | cut -d ' ' -f 2 | head -1
}
for server in nginx haproxy h2o; do
    for path in /a%2Fb /c%2F%2Fb /c//b; do
        seen "$server: $path" $path "$(ask $server $path)"
    done
done
seen 'lighttpd: /a%2Fb' /a/b "$(ask lighttpd /a%2Fb)"
seen 'lighttpd: /c%2F%2Fb' /c/b "$(ask lighttpd /c%2F%2Fb)"
seen 'lighttpd: /c//b' /c/b "$(ask lighttpd /c//b)"
