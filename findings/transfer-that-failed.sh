#!/usr/bin/env bash
# dig AXFR a.example && install the-zone
#
# RFC 5936, section 2.2.1: a server that refuses a transfer says so by its RCODE. dig(1) lists the exit statuses 0, 1, 8, 9
# and 10, the last for an internal error.
# Guess: a tool whose transfer was refused ends with an error.
# Seen: dig of BIND 9.18.49 ends with 0, prints "; Transfer failed." to the standard output, and nothing to the standard
# error. drill 1.8.3 (ldns) ends with 0, too. kdig 3.2.6 and host 9.18.49 end with 1.
# A script that keeps zones by dig has to look for a second SOA record: it else replaces a zone by a line of comment.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install bind9-dnsutils=1:9.18.49-1~deb12u3 bind9-host bind9-libs libmaxminddb0 libuv1 libxml2 libicu72 libjson-c5 \
    libnghttp2-14 libjemalloc2 libfstrm0 libprotobuf-c1 liblmdb0 \
    knot-dnsutils=3.2.6-1 libknot13 libdnssec9 libzscanner4 libbpf1 libxdp1 libngtcp2-9 libngtcp2-crypto-gnutls2 liburcu8 \
    ldnsutils=1.8.3-1+b1 libldns3
cat >serve.py <<'PY'
import socketserver, struct

class Refuse(socketserver.StreamRequestHandler):
    def handle(self):
        question = self.rfile.read(struct.unpack(">H", self.rfile.read(2))[0])
        end = question.index(b"\0", 12) + 5
        answer = question[:2] + struct.pack(">HHHHH", 0x8005, 1, 0, 0, 0) + question[12:end]
        self.wfile.write(struct.pack(">H", len(answer)) + answer)

with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Refuse) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
PY
python3 serve.py >port &
server=$!
trap 'kill $server; rm -rf "$FOLDER"' EXIT
until [[ -s port ]]; do sleep 0.05; done
port=$(<port)
status() {
    local status=0 tool=root/usr/bin/$1
    shift
    "$tool" "$@" >output 2>errors || status=$?
    echo $status
}
seen 'dig: status' 0 "$(status dig @127.0.0.1 -p "$port" +noall +answer a.example. AXFR)"
seen 'dig: output' '; Transfer failed.' "$(<output)"
seen 'dig: errors' '' "$(<errors)"
seen 'drill: status' 0 "$(status drill -p "$port" a.example. AXFR @127.0.0.1)"
seen 'drill: errors' 'AXFR failed.' "$(<errors)"
seen 'kdig: status' 1 "$(status kdig @127.0.0.1 -p "$port" +noall +answer a.example. AXFR)"
seen 'kdig: output' '' "$(<output)"
seen 'host: status' 1 "$(status host -p "$port" -t AXFR a.example. 127.0.0.1)"
