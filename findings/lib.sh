# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=bash

set -euo pipefail
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
export GOMODCACHE=$FOLDER/modules GOFLAGS=-modcacherw # modules of Go, too, are removed at the end

# pip_install PACKAGE==VERSION...: a virtual environment in ./v
pip_install() {
    python3 -m venv v
    v/bin/pip --quiet --disable-pip-version-check install "$@"
}

# npm_install PACKAGE@VERSION...
npm_install() {
    npm init --yes >/dev/null
    npm install --silent --no-audit --no-fund "$@"
}

# maven_install GROUP:ARTIFACT:VERSION...: the jars, and those that they need, in ./jars
maven_install() {
    local package group artifact version
    {
        echo '<project><modelVersion>4.0.0</modelVersion>'
        echo '<groupId>a</groupId><artifactId>a</artifactId><version>1</version><dependencies>'
        for package; do
            IFS=: read -r group artifact version <<<"$package"
            echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId>"
            echo "<version>$version</version></dependency>"
        done
        echo '</dependencies></project>'
    } >pom.xml
    mvn --quiet --batch-mode -Dmaven.repo.local="$FOLDER/maven" -DoutputDirectory=jars \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies &>maven.log || cat maven.log
}

# debian_install PACKAGE[=VERSION]...: the files of these packages of Debian 12, and of no others, in ./root
debian_install() {
    local package
    apt-get -o APT::Sandbox::User=root download --quiet=2 "$@" # the folder is closed to _apt
    for package in *.deb; do
        dpkg -x "$package" root
        rm "$package"
    done
    export LD_LIBRARY_PATH=$FOLDER/root/usr/lib/x86_64-linux-gnu:$FOLDER/root/lib/x86_64-linux-gnu
}

# seen WHAT EXPECTED FOUND: prints FOUND, and ends with an error if it is not EXPECTED.
seen() {
    printf '%-44s %s\n' "$1" "$3"
    if [[ $2 != "$3" ]]; then
        echo "changed: it was $2" >&2
        exit 1
    fi
}

# nats_server: a server of NATS with JetStream of Debian 12, at the address $ADDRESS. It ends with the script.
nats_server() {
    debian_install nats-server
    root/usr/sbin/nats-server --version
    root/usr/sbin/nats-server -js -sd "$FOLDER/store" -a 127.0.0.1 -p -1 --ports_file_dir "$FOLDER" 2>/dev/null &
    servers=($!)
    trap 'kill "${servers[@]}"; wait; rm -rf "$FOLDER"' EXIT
    until compgen -G 'nats-server_*.ports' >/dev/null; do sleep 0.1; done
    until grep -o 'nats://127.0.0.1:[0-9]*' nats-server_*.ports >address; do sleep 0.1; done
    ADDRESS=$(<address)
    export ADDRESS
}

# fastcgi_servers: nginx, HAProxy, lighttpd and h2o of Debian 12, each at the socket ./NAME, in front of one FastCGI program.
# Standard input is the program's Python: a function answer(parameters), which returns the output; pairs(parameters) has the
# parameters as lines NAME=VALUE.
fastcgi_servers() {
    {
        cat <<'PY'
import socketserver, struct

def record(kind, number, body):
    return struct.pack(">BBHHBx", 1, kind, number, len(body), 0) + body

def size(data, at):
    return (data[at], at + 1) if data[at] < 128 else (struct.unpack(">I", data[at:at + 4])[0] & 0x7FFFFFFF, at + 4)

def pairs(parameters):
    lines, at = [], 0
    while at < len(parameters):
        name, at = size(parameters, at)
        value, at = size(parameters, at)
        lines.append(parameters[at:at + name] + b"=" + parameters[at + name:at + name + value])
        at += name + value
    return b"\n".join(lines) + b"\n"

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
                self.send(number, answer(parameters))
                if not keep:
                    return

    def send(self, number, output):
        self.wfile.write(record(6, number, output) + record(6, number, b"") + record(3, number, bytes(8)))

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

PY
        cat
        echo 'Server("program", Program).serve_forever()'
    } >serve.py
    debian_install nginx=1.22.1-9+deb12u11 nginx-common haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 \
        libopentracing1 lighttpd=1.4.69-1 libnettle8 libxxhash0 h2o=2.2.5+dfsg2-7 libyaml-0-2
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
    start_four_servers program
}

# start_four_servers BEHIND: ./serve.py with its socket ./BEHIND, then nginx, HAProxy, lighttpd and h2o with their configurations,
# each with its socket ./NAME. They end with the script.
start_four_servers() {
    local server
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
    for server in "$1" nginx haproxy lighttpd h2o; do
        until [[ -S $server ]]; do sleep 0.05; done
    done
}

# proxies: nginx, HAProxy, lighttpd and h2o of Debian 12, each at the socket ./NAME, in front of one server. Standard input is the
# server's Python: a function answer(lines), which returns the answer to a request with these lines.
proxies() {
    {
        cat <<'PY'
import socketserver

class Origin(socketserver.StreamRequestHandler):
    def handle(self):
        lines = []
        while (line := self.rfile.readline().strip()) or not lines:
            lines.append(line)
        self.wfile.write(answer(lines))

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

PY
        cat
        echo 'Server("origin", Origin).serve_forever()'
    } >serve.py
    debian_install nginx=1.22.1-9+deb12u11 nginx-common haproxy=2.6.12-1+deb12u4 liblua5.3-0 libopentracing-c-wrapper0 \
        libopentracing1 lighttpd=1.4.69-1 libnettle8 libxxhash0 h2o=2.2.5+dfsg2-7 libyaml-0-2
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
    start_four_servers origin
}

# caches: nginx, HAProxy and Varnish of Debian 12, each at the socket ./NAME, keep the answers of one server, which counts how often it
# was asked for a path, and sends the fields that the path names.
caches() {
    local server
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
}

# ask SERVER FIELDS: whether the second answer of one of these caches, to an answer with these fields, is the one that it kept
ask() {
    local address=http://a.example/$1%7C${2// /%20}
    address=${address//\"/%22}
    curl -s --unix-socket "$1" "${address//|/%7C}" >first
    sleep 1
    curl -s --unix-socket "$1" "${address//|/%7C}" | sed 's/^1$/kept/; s/^2$/asked again/'
}
