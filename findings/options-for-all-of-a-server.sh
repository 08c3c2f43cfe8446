#!/usr/bin/env bash
# OPTIONS *, and GET http://a.example/a, in front of FastCGI
#
# RFC 9112, section 3.2.4: OPTIONS with * asks about the server as a whole. Section 3.2.2: a server accepts a whole address
# from everyone, not from proxies alone.
# Guess: a server answers the first by itself, or passes it on with REQUEST_URI=*; and takes the second for GET /a.
# Seen: nginx 1.22.1 answers the first with 400, HAProxy 2.6.12 (fcgi-app) with 500. h2o 2.2.5 passes it on as the path /*, and
# the second as the path /http://a.example/a. lighttpd 1.4.69 answers the first by itself; it, nginx and HAProxy find the
# path /a in the second.
# A check by OPTIONS * takes two of these servers for broken.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install nginx=1.22.1-9+deb12u11 nginx-common haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 \
    libopentracing1 lighttpd=1.4.69-1 libnettle8 libxxhash0 h2o=2.2.5+dfsg2-7 libyaml-0-2
cat >serve.py <<'PY'
import socketserver, struct

def record(kind, number, body):
    return struct.pack(">BBHHBx", 1, kind, number, len(body), 0) + body

def size(data, at):
    return (data[at], at + 1) if data[at] < 128 else (struct.unpack(">I", data[at:at + 4])[0] & 0x7FFFFFFF, at + 4)

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
        lines, at = [], 0
        while at < len(parameters):
            name, at = size(parameters, at)
            value, at = size(parameters, at)
            lines.append(parameters[at:at + name] + b"=" + parameters[at + name:at + name + value])
            at += name + value
        output = b"Content-Type: text/plain\r\n\r\n" + b"\n".join(lines) + b"\n"
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
    curl -s --unix-socket "$1" -X OPTIONS --request-target '*' -o content -w '%{http_code}' http://a.example/
}
path() {
    curl -s --unix-socket "$1" --request-target http://a.example/a http://a.example/ | sed -n "s/^$2=//p"
}
seen 'nginx: OPTIONS *' 400 "$(status nginx)"
seen 'HAProxy: OPTIONS *' 500 "$(status haproxy)"
seen 'lighttpd: OPTIONS *' 200 "$(status lighttpd)"
seen 'h2o: OPTIONS *' 200 "$(status h2o)"
seen 'h2o: path of that' '/*' "$(sed -n 's/^PATH_INFO=//p' content)"
seen 'h2o: whole address' /http://a.example/a "$(path h2o PATH_INFO)"
for server in nginx haproxy lighttpd; do
    seen "$server: whole address" /a "$(path $server SCRIPT_NAME)"
done
