#!/usr/bin/env bash
# http_response_code(304); echo "hello";
#
# RFC 9110, sections 15.3.5 and 15.4.5: 204 and 304 have no content. RFC 3875, section 6.3, leaves an answer's content to the
# program, and PHP knows the status, as it leaves Content-Type out of 304.
# Guess: PHP-FPM drops the content for both, as it does for HEAD.
# Seen: PHP-FPM 8.2 gives the content with both, and Content-Type with 204. With HEAD it gives none.
# A gateway has to drop it, or the next answer of the connection begins with it.
# shellcheck disable=SC2016 # PHP, with its own variables
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >ask.py <<'PY'
import os, socket, struct, sys, time

def record(kind, body):
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body

parameters = {"SCRIPT_FILENAME": os.path.abspath("a.php"), "REQUEST_METHOD": sys.argv[2], "SERVER_PROTOCOL": "HTTP/1.1",
              "HTTP_HOST": "a.example", "REQUEST_URI": "/", "QUERY_STRING": sys.argv[1]}
pairs = b"".join(bytes([len(name), len(value)]) + (name + value).encode() for name, value in parameters.items())
while not os.path.exists("fpm"):
    time.sleep(0.05)
connection = socket.socket(socket.AF_UNIX)
connection.connect("fpm")
connection.sendall(record(1, struct.pack(">H6x", 1)) + record(4, pairs) + record(4, b"") + record(5, b""))
received = connection.makefile("rb")
output = b""
while head := received.read(8):
    _, kind, _, size, padding = struct.unpack(">BBHHBx", head)
    body = received.read(size + padding)[:size]
    output += body if kind == 6 else b""
print(output.decode().replace("\r\n", "\n"))
PY

debian_install php8.2-fpm libapparmor1 libacl1 libxml2 libicu72 libsodium23 libargon2-1
cat >fpm.conf <<CONF
[global]
error_log = $FOLDER/fpm.log
daemonize = no
[a]
user = $(id -un)
listen = $FOLDER/fpm
pm = static
pm.max_children = 1
CONF
root/usr/sbin/php-fpm8.2 --version | head -1
root/usr/sbin/php-fpm8.2 --allow-to-run-as-root --no-php-ini --fpm-config fpm.conf 2>/dev/null &
server=$!
trap 'kill $server; rm -rf "$FOLDER"' EXIT
echo '<?php http_response_code((int) $_GET["status"]); header_remove("X-Powered-By"); echo "hello";' >a.php
ask() {
    python3 ask.py "status=$1" "$2" | paste -sd '|'
}
seen 'HEAD, 200' 'Content-type: text/html; charset=UTF-8||' "$(ask 200 HEAD)"
seen 'GET, 200' 'Content-type: text/html; charset=UTF-8||hello' "$(ask 200 GET)"
seen 'GET, 204' 'Status: 204 No Content|Content-type: text/html; charset=UTF-8||hello' "$(ask 204 GET)"
seen 'GET, 304' 'Status: 304 Not Modified||hello' "$(ask 304 GET)"
