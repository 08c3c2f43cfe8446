#!/usr/bin/env bash
# Cache-Control: max-age=0, s-maxage=60
#
# RFC 9111, section 5.2.2.10: for a shared cache, s-maxage takes the place of max-age.
# Guess: caches of servers keep this one for a minute.
# Seen: HAProxy 2.6.12 does not keep it, in either order, although it keeps s-maxage=60. nginx 1.22.1 and Varnish
# 7.1.1 keep it.
# It is the usual form for "browsers ask each time, caches in front do not": HAProxy passes all of that on.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install nginx=1.22.1-9+deb12u11 haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 \
    varnish=7.1.1-2+deb12u1 libvarnishapi3 libjemalloc2
cat >serve.py <<'PY'
import collections, email.utils, socketserver, urllib.parse

asked = collections.Counter()

class Origin(socketserver.StreamRequestHandler):
    def handle(self):
        target = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        asked[target] += 1
        date = email.utils.formatdate(usegmt=True)
        fields = urllib.parse.unquote(target[1:]).split("|")
        lines = ["HTTP/1.1 200 OK", "Connection: close", "Content-Length: 1", "Date: " + date, *fields[1:]]
        self.wfile.write(("\r\n".join(lines) + f"\r\n\r\n{asked[target]}").encode())

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
    proxy_cache_path kept keys_zone=kept:1m;
    server {
        listen unix:$FOLDER/nginx;
        location / {
            proxy_cache kept;
            proxy_pass http://unix:$FOLDER/origin:;
        }
    }
}
CONF
cat >haproxy.cfg <<CONF
cache kept
    total-max-size 4
    max-age 3600
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend all
    bind unix@$FOLDER/haproxy
    default_backend origin
backend origin
    http-request cache-use kept
    http-response cache-store kept
    server origin unix@$FOLDER/origin
CONF
python3 serve.py &
servers=($!)
trap 'kill "${servers[@]}"; wait; rm -rf "$FOLDER"' EXIT
root/usr/sbin/nginx -e nginx.log -p "$FOLDER" -c nginx.conf &
servers+=($!)
root/usr/sbin/haproxy -f haproxy.cfg &>haproxy.log &
servers+=($!)
until [[ -S origin ]]; do sleep 0.05; done
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$FOLDER/root/usr/lib/x86_64-linux-gnu/varnish root/usr/sbin/varnishd -F -j none \
    -n "$FOLDER/work" -a "$FOLDER/varnish" -b "$FOLDER/origin" -s malloc,16m -T none -p default_grace=0 &>varnish.log &
servers+=($!)
for server in nginx haproxy varnish; do
    until [[ -S $server ]]; do sleep 0.05; done
done
until [[ $(curl -s --unix-socket varnish http://a.example/begin) == 1 ]]; do sleep 0.1; done
# ask SERVER FIELDS: whether its second answer is the one that it kept
ask() {
    local address=http://a.example/$1%7C${2// /%20}
    address=${address//\"/%22}
    curl -s --unix-socket "$1" "${address//|/%7C}" >first
    sleep 1
    curl -s --unix-socket "$1" "${address//|/%7C}" | sed 's/^1$/kept/; s/^2$/asked again/'
}
for field in 'max-age=0, s-maxage=60' 's-maxage=60, max-age=0'; do
    for server in nginx varnish; do
        seen "$server: $field" kept "$(ask $server "Cache-Control: $field")"
    done
    seen "haproxy: $field" 'asked again' "$(ask haproxy "Cache-Control: $field")"
done
seen 'haproxy: s-maxage=60' kept "$(ask haproxy 'Cache-Control: s-maxage=60')"
