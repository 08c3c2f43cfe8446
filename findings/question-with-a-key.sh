#!/usr/bin/env bash
# drill -y k.:c2VjcmV0:hmac-sha256 a.example @192.0.2.1
#
# drill(1): -y gives a key for TSIG. RFC 8945, section 5.1: the record of TSIG is the last one of the additional section.
# Guess: drill signs the question, as dig and kdig do with the same option.
# Seen: drill 1.8.3 (ldns) sends the question without TSIG, and says nothing. It signs a transfer. dig of BIND 9.18.49 and
# kdig 3.2.6 sign both.
# A server that shows one of its views by key answers drill from another; and a wrong key seems right.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install bind9-dnsutils=1:9.18.49-1~deb12u3 bind9-libs libmaxminddb0 libuv1 libxml2 libicu72 libjson-c5 \
    libnghttp2-14 libjemalloc2 libfstrm0 libprotobuf-c1 liblmdb0 \
    knot-dnsutils=3.2.6-1 libknot13 libdnssec9 libzscanner4 libbpf1 libxdp1 libngtcp2-9 libngtcp2-crypto-gnutls2 liburcu8 \
    ldnsutils=1.8.3-1+b1 libldns3
cat >serve.py <<'PY'
import socketserver, struct, sys

def note(question):
    print("signed" if b"\x0bhmac-sha256" in question else "not signed", file=sys.stderr, flush=True)
    end = question.index(b"\0", 12) + 5
    return question[:2] + struct.pack(">HHHHH", 0x8005, 1, 0, 0, 0) + question[12:end]

class Packet(socketserver.DatagramRequestHandler):
    def handle(self):
        self.wfile.write(note(self.rfile.read()))

class Stream(socketserver.StreamRequestHandler):
    def handle(self):
        answer = note(self.rfile.read(struct.unpack(">H", self.rfile.read(2))[0]))
        self.wfile.write(struct.pack(">H", len(answer)) + answer)

kind, handler = (socketserver.UDPServer, Packet) if sys.argv[1] == "udp" else (socketserver.TCPServer, Stream)
with kind(("127.0.0.1", 0), handler) as server:
    print(server.server_address[1], flush=True)
    server.handle_request()
PY
KEY=k.:c2VjcmV0
# ask TRANSPORT COMMAND...: what a server sees of the question that the command asks of port PORT
ask() {
    local server port tool=root/usr/bin/$2
    rm -f port
    python3 serve.py "$1" >port 2>question &
    server=$!
    until [[ -s port ]]; do sleep 0.05; done
    port=$(<port)
    shift 2
    "$tool" "${@//PORT/$port}" &>/dev/null || true
    wait "$server"
    cat question
}
seen 'dig' signed "$(ask udp dig @127.0.0.1 -p PORT +tries=1 -y hmac-sha256:$KEY a.example.)"
seen 'kdig' signed "$(ask udp kdig @127.0.0.1 -p PORT +retry=0 -y hmac-sha256:$KEY a.example.)"
seen 'drill' 'not signed' "$(ask udp drill -p PORT -y $KEY:hmac-sha256 a.example. @127.0.0.1)"
seen 'drill: a transfer' signed "$(ask tcp drill -p PORT -y $KEY:hmac-sha256 a.example. AXFR @127.0.0.1)"
