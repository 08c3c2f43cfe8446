#!/usr/bin/env bash
# HEAD /a, and Range: bytes=0-0, to the server of BusyBox
#
# RFC 9110, section 9.3.2: the answer to HEAD has no content; section 14.1.2: bytes=0-0 is the first byte; section 13.1.5: a range is given
# only, if the file is still that of If-Range, and the whole file else.
# Guess: a server which sends Accept-Ranges, and has both methods, does so.
# Seen: httpd of BusyBox 1.35.0 answers HEAD with the whole content behind the fields. It answers bytes=0-0 with the whole file as a part,
# `bytes 0-4/5`, although bytes=1-1 is one byte, and bytes=1-2 with a part whatever If-Range says.
# A client that keeps the connection, or a proxy, takes the content for the beginning of the next answer; the server closes it, though.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install busybox-static=1:1.35.0-4+deb12u1+b1
mkdir files
printf hello >files/a
cat >ask.py <<'PY'
import socket, subprocess, sys, time

def started():
    for port in range(20000, 20100):
        with socket.socket() as free:
            if not free.connect_ex(("127.0.0.1", port)):
                continue
        server = subprocess.Popen(["root/bin/busybox", "httpd", "-f", "-p", f"127.0.0.1:{port}", "-h", "files"], stderr=subprocess.DEVNULL)
        for _ in range(100):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    return server, port
            if server.poll() is not None:
                break
            time.sleep(0.1)

server, port = started()
try:
    for case in sys.argv[1:]:
        method, *fields = case.split(" | ")
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall("\r\n".join([f"{method} /a HTTP/1.1", "Host: a.example", *fields, "", ""]).encode())
            answer = b"".join(iter(lambda: client.recv(4096), b"")).decode()
        head, content = answer.split("\r\n\r\n", 1)
        part = [line.split(": ")[1] for line in head.split("\r\n") if line.startswith("Content-Range")]
        print(head.split()[1], *part, repr(content))
finally:
    server.terminate()
PY
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'python3 ask.py' \
    GET "200 'hello'" \
    HEAD "200 'hello'" \
    'GET | Range: bytes=1-2' "206 bytes 1-2/5 'el'" \
    'GET | Range: bytes=1-1' "206 bytes 1-1/5 'e'" \
    'GET | Range: bytes=0-0' "206 bytes 0-4/5 'hello'" \
    'GET | Range: bytes=1-2 | If-Range: Sun, 06 Nov 1994 08:49:37 GMT' "206 bytes 1-2/5 'el'"
