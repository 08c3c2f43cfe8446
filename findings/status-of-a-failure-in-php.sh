#!/usr/bin/env bash
# <?php throw new Exception("a");
#
# An error that a program does not catch ends it. RFC 9110, section 15.6: a server that fails says so by a status from 500 on.
# Guess: PHP-FPM answers 500.
# Seen: PHP-FPM 8.2 does so where display_errors is off. Where it is on, which is its default without php.ini, the answer has
# the message and no Status, which means 200.
# A cache in front may keep the message as a page.
# shellcheck disable=SC2016 # PHP, with its own variables
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >ask.py <<'PY'
import os, socket, struct, sys, time

def record(kind, body):
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body

while not os.path.exists("fpm"):
    time.sleep(0.05)
connection = socket.socket(socket.AF_UNIX)
connection.connect("fpm")
received = connection.makefile("rb")
for script in sys.argv[1:]:
    parameters = {"SCRIPT_FILENAME": os.path.abspath(script), "REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.1",
                  "HTTP_HOST": "a.example", "REQUEST_URI": "/", "QUERY_STRING": ""}
    pairs = b"".join(bytes([len(name), len(value)]) + (name + value).encode() for name, value in parameters.items())
    connection.sendall(record(1, struct.pack(">HB5x", 1, 1)) + record(4, pairs) + record(4, b"") + record(5, b""))
    output, kind = b"", 0
    while kind != 3:
        _, kind, _, size, padding = struct.unpack(">BBHHBx", received.read(8))
        body = received.read(size + padding)[:size]
        output += body if kind == 6 else b""
    fields, content = output.decode().split("\r\n\r\n", 1)
    status = fields.split("\r\n")[0] if fields.startswith("Status") else "no Status"
    print(status, "/", "message" if "Fatal error" in content else content)
PY

debian_install php8.2-fpm libapparmor1 libacl1 libxml2 libicu72 libsodium23 libargon2-1
root/usr/sbin/php-fpm8.2 --version | head -1
echo '<?php throw new Exception("a");' >a.php
echo '<?php http_response_code(500); throw new Exception("a");' >b.php
# ask SETTING SCRIPT: the answer of PHP-FPM with this line in its configuration
ask() {
    local server
    cat >fpm.conf <<CONF
[global]
error_log = $FOLDER/fpm.log
daemonize = no
[a]
user = $(id -un)
listen = $FOLDER/fpm
pm = static
pm.max_children = 1
$1
CONF
    rm -f fpm
    root/usr/sbin/php-fpm8.2 --allow-to-run-as-root --no-php-ini --fpm-config fpm.conf 2>/dev/null &
    server=$!
    python3 ask.py "$2" || true
    kill $server
    wait $server || true
}
seen 'no setting' 'no Status / message' "$(ask '' a.php)"
seen 'display_errors on' 'no Status / message' "$(ask 'php_flag[display_errors] = on' a.php)"
seen 'display_errors off' 'Status: 500 Internal Server Error / ' "$(ask 'php_flag[display_errors] = off' a.php)"
seen 'on, and 500 by the program' 'Status: 500 Internal Server Error / message' "$(ask '' b.php)"
