#!/usr/bin/env bash
# Status: 301 Moved Permanently, then Location: http://a.example/b, from FastCGI
#
# RFC 3875, section 6.2.4: a program that sends its client elsewhere may state the status. The order of fields has no meaning.
# Section 6.2.3: Location with an address alone, without Status, is 302.
# Guess: a server gives the status that the program states, and 302 where it states none.
# Seen: HAProxy 2.6.12 gives 302 for each status that stands before Location, even for 201; behind it, it gives the one stated.
# h2o 2.2.5 gives 200 for Location without Status. nginx 1.22.1 and lighttpd 1.4.69 do as the RFC says.
# PHP writes Status first: its lasting redirects are temporary behind HAProxy, and a 303 or 308 is lost.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install nginx=1.22.1-9+deb12u11 nginx-common haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 \
    libopentracing1 lighttpd=1.4.69-1 libnettle8 libxxhash0 h2o=2.2.5+dfsg2-7 libyaml-0-2
cat >serve.py <<'PY'
import re, socketserver, struct

def record(kind, number, body):
    return struct.pack(">BBHHBx", 1, kind, number, len(body), 0) + body

class Program(socketserver.StreamRequestHandler):
    def handle(self):
        parameters = b""
        while len(head := self.rfile.read(8)) == 8:
            _, kind, number, length, padding = struct.unpack(">BBHHBx", head)
            body = self.rfile.read(length + padding)[:length]
            if kind == 1:
                parameters, keep = b"", body[2] & 1
            elif kind == 4:
                parameters += body
            elif kind == 5 and not length:
                self.answer(number, parameters)
                if not keep:
                    return

    def answer(self, number, parameters):
        fields = [b"Location: http://a.example/b\r\n"]
        if found := re.search(rb"/(\d+)-(first|behind)", parameters):
            fields.insert(0 if found[2] == b"first" else 1, b"Status: " + found[1] + b" As Stated\r\n")
        output = b"".join(fields) + b"Content-Type: text/plain\r\n\r\nhello"
        self.wfile.write(record(6, number, output) + record(6, number, b"") + record(3, number, bytes(8)))

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

Server("program", Program).serve_forever()
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
        include $FOLDER/root/etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $FOLDER/a.php;
        location / {
            fastcgi_pass unix:$FOLDER/program;
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
    default_backend program
backend program
    use-fcgi-app program
    server program unix@$FOLDER/program proto fcgi
fcgi-app program
    docroot $FOLDER
    index a.php
CONF
cat >lighttpd.conf <<CONF
server.document-root = "$FOLDER"
server.bind = "$FOLDER/lighttpd"
server.errorlog = "$FOLDER/lighttpd.log"
server.modules = ("mod_fastcgi")
fastcgi.server = ("/" => (("socket" => "$FOLDER/program", "check-local" => "disable")))
CONF
cat >h2o.conf <<CONF
user: $(id -un)
listen: {type: unix, port: $FOLDER/h2o}
error-log: $FOLDER/h2o.log
hosts:
  default:
    paths:
      /:
        fastcgi.connect: {type: unix, port: $FOLDER/program}
        fastcgi.document_root: $FOLDER
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
for server in program nginx haproxy lighttpd h2o; do
    until [[ -S $server ]]; do sleep 0.05; done
done
status() {
    curl -s --unix-socket "$1" -o content -w '%{http_code}' "http://a.example/$2"
}
for server in nginx lighttpd; do
    seen "$server: Location" 302 "$(status $server alone)"
    seen "$server: Status, Location" 301 "$(status $server 301-first)"
    seen "$server: Location, Status" 301 "$(status $server 301-behind)"
done
seen 'HAProxy: Location' 302 "$(status haproxy alone)"
for status in 201 301 303 308; do
    seen "HAProxy: Status: $status, Location" 302 "$(status haproxy $status-first)"
    seen "HAProxy: Location, Status: $status" $status "$(status haproxy $status-behind)"
done
seen 'h2o: Location' 200 "$(status h2o alone)"
seen 'h2o: Status, Location' 301 "$(status h2o 301-first)"
