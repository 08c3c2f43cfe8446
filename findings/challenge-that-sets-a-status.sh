#!/usr/bin/env bash
# header("WWW-Authenticate: Basic");
#
# RFC 9110, section 11.6.1: a server may send this field with any status, as to say that credentials would change the answer.
# The manual of PHP, header(): two cases are special, a line that begins with HTTP/ and the field Location.
# Guess: PHP-FPM gives the status of a program that sets none, 200.
# Seen: PHP-FPM 8.2 gives 401, and 401 for http_response_code(403) before the field, too. A 403 behind the field stays.
# Other fields, Retry-After or Content-Range, leave the status alone.
# A page for everybody with a hint to log in becomes an error, which caches do not keep.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >ask.py <<'PY'
import os, socket, struct, sys, time

def record(kind, body):
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body

parameters = {"SCRIPT_FILENAME": os.path.abspath("a.php"), "REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.1",
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
cat >a.php <<'PHP'
<?php
if (str_starts_with($_GET['set'], 'before')) http_response_code(403);
header($_GET['field'] ?? 'WWW-Authenticate: Basic');
if ($_GET['set'] === 'behind') http_response_code(403);
echo 'hello';
PHP
status() {
    python3 ask.py "$1" | sed -n 's/^Status: //p'
}
seen 'Retry-After' '' "$(status 'set=none&field=Retry-After:+1')"
seen 'Retry-After, 403 before it' '403 Forbidden' "$(status 'set=before&field=Retry-After:+1')"
seen 'WWW-Authenticate' '401 Unauthorized' "$(status set=none)"
seen 'WWW-Authenticate, 403 before it' '401 Unauthorized' "$(status set=before)"
seen 'WWW-Authenticate, 403 behind it' '403 Forbidden' "$(status set=behind)"
