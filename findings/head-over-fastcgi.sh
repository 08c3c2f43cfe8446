#!/usr/bin/env bash
# HEAD, to a program behind FastCGI that gives content all the same
#
# RFC 3875, section 4.3.3: a program answers HEAD as GET, and may give the content; the server has to leave it out.
# Guess: every server for FastCGI leaves it out.
# Seen: HAProxy 2.6.12 answers HEAD with 502, if the program gives content, and with 200, if it does not.
# nginx 1.22.1 and lighttpd 1.4.69 answer 200 without content in all cases.
# net/http/fcgi of Go gives content with HEAD: its pages seem broken to a check by HEAD behind HAProxy.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install nginx=1.22.1-9+deb12u11 nginx-common haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 \
    libopentracing1 lighttpd=1.4.69-1 libnettle8 libxxhash0
cat >serve.py <<'PY'
import socketserver, struct

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
        length = b"Content-Length: 5\r\n" if b"/content-with-length" in parameters else b""
        content = b"hello" if b"/content" in parameters else b""
        output = b"Content-Type: text/plain\r\n" + length + b"\r\n" + content
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
python3 serve.py &
servers=($!)
trap 'kill "${servers[@]}"; rm -rf "$FOLDER"' EXIT
root/usr/sbin/nginx -e nginx.log -p "$FOLDER" -c nginx.conf &
servers+=($!)
root/usr/sbin/haproxy -f haproxy.cfg &>haproxy.log &
servers+=($!)
root/usr/sbin/lighttpd -D -m root/usr/lib/lighttpd -f lighttpd.conf 2>lighttpd.errors &
servers+=($!)
for server in program nginx haproxy lighttpd; do
    until [[ -S $server ]]; do sleep 0.05; done
done
status() {
    curl -s --unix-socket "$1" -I -o head -w '%{http_code}' "http://a.example/$2"
}
for server in nginx lighttpd; do
    for page in none content content-with-length; do
        seen "$server: HEAD /$page" 200 "$(status $server $page)"
    done
done
seen 'HAProxy: HEAD /none' 200 "$(status haproxy none)"
seen 'HAProxy: HEAD /content' 502 "$(status haproxy content)"
seen 'HAProxy: HEAD /content-with-length' 502 "$(status haproxy content-with-length)"
seen 'HAProxy: GET /content' hello "$(curl -s --unix-socket haproxy http://a.example/content)"
