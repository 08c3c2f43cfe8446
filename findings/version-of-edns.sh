#!/usr/bin/env bash
# a question with EDNS of the version 1
#
# RFC 6891, section 6.1.3: a server that does not know the version of a question has to answer BADVERS, 16, with the version that
# it knows.
# Guess: servers that are in use everywhere do so, since the rule is from 1999.
# Seen: dnsmasq 2.90 answers NOERROR, with the record, and the version 0. Unbound 1.17.1 answers BADVERS.
# A later version cannot be told from the first by asking; tests of name servers have a case for it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install dnsmasq-base=2.90-4~deb12u2 unbound=1.17.1-2+deb12u4 libevent-2.1-7 libprotobuf-c1 libfstrm0 libhiredis0.14
pip_install dnspython==2.9.2
cat >ask.py <<'PY'
import socket, subprocess, sys, time
import dns.message, dns.query, dns.rcode
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
with open("unbound.conf", "w") as settings:
    settings.write(f"""
server:
    interface: 127.0.0.1@{port}
    chroot: ""
    username: ""
    directory: "."
    pidfile: ""
    use-syslog: no
    module-config: "iterator"
    local-data: "a.example. A 192.0.2.1"
remote-control:
    control-enable: no
""")
programs = {
    "dnsmasq": ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", f"--port={port}", "--pid-file",
                "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts", "--user=root",
                "--host-record=a.example,192.0.2.1"],
    "unbound": ["unbound", "-d", "-c", "unbound.conf"],
}
program = programs[sys.argv[1]]
server = subprocess.Popen(["timeout", "60", "root/usr/sbin/" + program[0], *program[1:]], stderr=subprocess.DEVNULL)
try:
    question = dns.message.make_query("a.example.", "A", use_edns=int(sys.argv[2]))
    for _ in range(50):
        try:
            answer = dns.query.udp(question, "127.0.0.1", port=port, timeout=1)
            break
        except (OSError, dns.exception.Timeout):
            time.sleep(0.1)
    print(dns.rcode.to_text(answer.rcode()), len(answer.answer), "version", answer.edns)
finally:
    server.terminate()
    server.wait()
PY
ask() {
    v/bin/python ask.py "$@"
}
seen 'dnsmasq: 0' 'NOERROR 1 version 0' "$(ask dnsmasq 0)"
seen 'dnsmasq: 1' 'NOERROR 1 version 0' "$(ask dnsmasq 1)"
seen 'unbound: 0' 'NOERROR 1 version 0' "$(ask unbound 0)"
seen 'unbound: 1' 'BADVERS 0 version 0' "$(ask unbound 1)"
