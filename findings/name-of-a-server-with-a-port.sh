#!/usr/bin/env bash
# Host: A.example:8080, in front of FastCGI
#
# RFC 3875, section 4.1.14: SERVER_NAME is a name or an address; the port is SERVER_PORT. HTTP_HOST is the field as it came
# (section 4.1.18).
# Guess: servers that pass requests on over FastCGI send SERVER_NAME=a.example, and HTTP_HOST=A.example:8080.
# Seen: HAProxy 2.6.12 sends the port in SERVER_NAME, too. nginx 1.22.1, with fastcgi_params of its package in Debian 12, sends
# HTTP_HOST=a.example, without the port; h2o 2.2.5 has SERVER_NAME=default, a name in its configuration. lighttpd 1.4.69 sends
# a.example and a.example:8080.
# A program that writes links by SERVER_NAME has the port twice behind one server, and by HTTP_HOST none behind another.
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
ask() {
    curl -s --unix-socket "$1" -H 'Host: A.example:8080' http://a.example/ |
        grep -E '^(SERVER_NAME|HTTP_HOST)=' | sort -u | cut -d = -f 2 | paste -sd ' '
}
seen 'HAProxy' 'A.example:8080 A.example:8080' "$(ask haproxy)"
seen 'nginx' 'a.example ' "$(ask nginx)"
seen 'h2o' 'A.example:8080 default' "$(ask h2o)"
seen 'lighttpd' 'a.example:8080 a.example' "$(ask lighttpd)"
