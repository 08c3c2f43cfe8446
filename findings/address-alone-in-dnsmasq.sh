#!/usr/bin/env bash
# address=/a.example/192.0.2.1 and local=/example/, in the configuration of dnsmasq
#
# RFC 2308, section 2: NXDOMAIN says that a name does not exist, for any type, and RFC 8020 that nothing below it does. A name
# that has another type is answered NOERROR without a record. dnsmasq(8): local=/example/ names a domain that is never asked
# of other servers.
# Guess: dnsmasq answers NOERROR for AAAA and HTTPS of a name whose A record it has.
# Seen: dnsmasq 2.90 answers NXDOMAIN, for a name of `address` and for one of `dns-rr`; the address that it has just given is
# there no more for a resolver that keeps the answer. For a name of `host-record` it answers NOERROR.
# Browsers ask for A, AAAA and HTTPS at once.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install dnsmasq-base=2.90-4~deb12u2
pip_install dnspython==2.9.2
cat >ask.py <<'PY'
import socket, subprocess, sys, time
import dns.flags, dns.message, dns.query, dns.rcode
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = subprocess.Popen([
    "timeout", "60", "root/usr/sbin/dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", f"--port={port}",
    "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts", "--pid-file", "--user=root",
    "--local=/example/", "--address=/a.example/192.0.2.1", "--host-record=h.example,192.0.2.1",
    "--dns-rr=r.example,65,00010000010003026832"])
try:
    for word in sys.argv[1:]:
        name, kind = word.split("/")
        question = dns.message.make_query(name + ".example.", kind)
        for _ in range(50):
            try:
                answer = dns.query.udp(question, "127.0.0.1", port=port, timeout=1)
                break
            except (dns.query.BadResponse, OSError, dns.exception.Timeout):
                time.sleep(0.1)
        print(word, dns.rcode.to_text(answer.rcode()), sum(len(records) for records in answer.answer))
finally:
    server.terminate()
    server.wait()
PY
v/bin/python ask.py a/A a/AAAA a/HTTPS h/A h/AAAA h/HTTPS r/HTTPS r/A >answers
answer() {
    sed -n "s|^$1 ||p" answers
}
seen 'address: A' 'NOERROR 1' "$(answer a/A)"
seen 'address: AAAA' 'NXDOMAIN 0' "$(answer a/AAAA)"
seen 'address: HTTPS' 'NXDOMAIN 0' "$(answer a/HTTPS)"
seen 'host-record: A' 'NOERROR 1' "$(answer h/A)"
seen 'host-record: AAAA' 'NOERROR 0' "$(answer h/AAAA)"
seen 'host-record: HTTPS' 'NOERROR 0' "$(answer h/HTTPS)"
seen 'dns-rr: HTTPS' 'NOERROR 1' "$(answer r/HTTPS)"
seen 'dns-rr: A' 'NXDOMAIN 0' "$(answer r/A)"
