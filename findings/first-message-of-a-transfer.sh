#!/usr/bin/env bash
# an answer to IXFR=1 whose first message has the SOA record of the serial number 3 alone, before others with the changes
#
# RFC 5936, section 2.2: a transfer is divided into messages as the server likes, of one record at least; RFC 1995, section 4: the
# answer is one SOA record alone where the client is up to date, which it sees at the serial number.
# Guess: a tool that asks for the changes since 1, and gets a 3 first, reads on to the end.
# Seen: kdig 3.2.6 (of Knot) and drill 1.8.3 (of ldns) of Debian 12 print this record and end, with status 0. drill prints the first
# message of any IXFR alone; kdig takes a message that ends with the new SOA record for the last one, although this record stands
# before the additions, too. dig 9.18 reads all, and all three do with AXFR.
# A server that sends a record a message, as BIND does with `transfer-format one-answer`, seems to have no changes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install knot-dnsutils libknot13 libzscanner4 libdnssec9 ldnsutils libldns3 bind9-dnsutils bind9-libs
pip_install dnspython==2.9.2
cat >serve.py <<'PY'
import io, socketserver, struct, sys
import dns.message, dns.rrset

def record(name, kind, data):
    return dns.rrset.from_text(name, 60, "IN", kind, data)

def soa(serial):
    return record("a.example.", "SOA", f"ns.a.example. admin.a.example. {serial} 60 60 60 60")

old, new = record("www.a.example.", "A", "192.0.2.1"), record("www.a.example.", "A", "192.0.2.3")
changes = [soa(3), soa(1), old, soa(3), new, soa(3)]
whole = [soa(3), record("a.example.", "NS", "ns.b."), new, soa(3)]
first = int(sys.argv[1])

class Server(socketserver.StreamRequestHandler):
    def handle(self):
        question = dns.message.from_wire(self.rfile.read(*struct.unpack(">H", self.rfile.read(2))))
        records = whole if question.question[0].rdtype == 252 else changes
        for part in [records[:first], *([one] for one in records[first:])]:
            answer = dns.message.make_response(question)
            answer.use_edns(False)
            content = io.BytesIO()
            for one in part:
                one.to_wire(content)
            message = bytearray(answer.to_wire()) + content.getvalue()
            message[6:8] = struct.pack(">H", len(part))
            try:
                self.wfile.write(struct.pack(">H", len(message)) + message)
            except OSError: # the client has ended
                return

server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Server)
print(server.server_address[1], flush=True)
server.serve_forever()
PY
# ask TOOL TYPE FIRST: how many records it prints, if the first message has FIRST of them
ask() {
    local port tool=$1 kind=$2
    v/bin/python serve.py "$3" >port 2>/dev/null &
    server=$!
    until [[ -s port ]]; do sleep 0.05; done
    port=$(<port)
    case $tool in
    drill) root/usr/bin/drill -t -p "$port" @127.0.0.1 a.example "${kind%=1}" ;;
    *) "root/usr/bin/$tool" @127.0.0.1 -p "$port" +tcp a.example "$kind" ;;
    esac | grep -c '^[a-z]'
    kill $server
    wait $server || true
    rm port
}
for tool in dig kdig drill; do
    seen "$tool: the whole zone" 4 "$(ask $tool AXFR 1)"
done
seen 'dig: changes' 6 "$(ask dig IXFR=1 1)"
seen 'dig: two records in the first message' 6 "$(ask dig IXFR=1 2)"
seen 'kdig: changes' 1 "$(ask kdig IXFR=1 1)"
seen 'kdig: two records in the first message' 4 "$(ask kdig IXFR=1 2)"
seen 'kdig: all in the first message' 6 "$(ask kdig IXFR=1 6)"
seen 'drill: changes' 1 "$(ask drill IXFR=1 1)"
seen 'drill: two records in the first message' 2 "$(ask drill IXFR=1 2)"
