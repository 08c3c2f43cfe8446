#!/usr/bin/env bash
# fastcgi_finish_request(); sleep(1);
#
# This function of PHP-FPM ends the answer, while its program works on. A record of FastCGI, FCGI_END_REQUEST, says so, and
# where the web server asked for it (FCGI_KEEP_CONN), the connection stays open for the next request.
# Guess: whoever has that record may send the next request, and gets its answer at once, as long as a process is idle.
# Seen: PHP-FPM 8.2 takes the next request of that connection up when the work is over, a second later, although its other
# process is idle. A request over another connection is answered at once.
# A gateway that keeps its connections to PHP lets clients wait for work that nobody waits for, as the record does not tell.
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
    begin = time.monotonic()
    parameters = {"SCRIPT_FILENAME": os.path.abspath(script), "REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.1",
                  "HTTP_HOST": "a.example", "REQUEST_URI": "/", "QUERY_STRING": ""}
    pairs = b"".join(bytes([len(name), len(value)]) + (name + value).encode() for name, value in parameters.items())
    connection.sendall(record(1, struct.pack(">HB5x", 1, 1)) + record(4, pairs) + record(4, b"") + record(5, b""))
    output, kind = b"", 0
    while kind != 3:
        _, kind, _, size, padding = struct.unpack(">BBHHBx", received.read(8))
        body = received.read(size + padding)[:size]
        output += body if kind == 6 else b""
    content = output.decode().split("\r\n\r\n", 1)[1]
    print(content, "late" if time.monotonic() - begin > 0.7 else "at once")
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
pm.max_children = 2
CONF
root/usr/sbin/php-fpm8.2 --version | head -1
root/usr/sbin/php-fpm8.2 --allow-to-run-as-root --no-php-ini --fpm-config fpm.conf 2>/dev/null &
server=$!
trap 'kill $server; rm -rf "$FOLDER"' EXIT
echo '<?php echo "hello";' >a.php
echo '<?php echo "begun"; fastcgi_finish_request(); sleep(1);' >b.php
ask() {
    python3 ask.py "$@" | paste -sd '|'
}
seen 'two requests' 'hello at once|hello at once' "$(ask a.php a.php)"
seen 'behind one that is finished' 'begun at once|hello late' "$(ask b.php a.php)"
seen 'the same, over two connections' 'begun at once/hello at once' "$(ask b.php)/$(ask a.php)"
