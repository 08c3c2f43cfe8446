#!/usr/bin/env bash
# local-data: "c.example. CNAME a.example.", and "a.example. A 192.0.2.1", in unbound.conf
#
# RFC 1034, section 4.3.2: an alias is followed by the records of its target, where the server has them. RFC 8482, section 4: a
# question for ANY is answered with some of the records, or with HINFO. unbound.conf(5) advises another way for aliases and
# wildcards.
# Guess: unbound-checkconf refuses such lines, or warns, or the server follows the alias that is in the same file.
# Seen: Unbound 1.17.1 takes them without a word. It answers A of c.example. with the alias alone, which resolvers of programs
# take for no address, and NXDOMAIN below DNAME and for a wildcard. ANY of a name with A is answered NOERROR without a record.
# The name is there for a test with dig, and not for a program.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install unbound=1.17.1-2+deb12u4 libevent-2.1-7 libprotobuf-c1 libfstrm0 libhiredis0.14
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
    local-zone: "example." static
    local-data: "a.example. A 192.0.2.1"
    local-data: "c.example. CNAME a.example."
    local-data: "d.example. DNAME e.example."
    local-data: "*.w.example. A 192.0.2.1"
remote-control:
    control-enable: no
""")
print("check", subprocess.run(["root/usr/sbin/unbound-checkconf", "unbound.conf"], capture_output=True, text=True).stdout)
program = ["timeout", "60", "root/usr/sbin/unbound", "-d", "-c", "unbound.conf"]
server = subprocess.Popen(program, stderr=subprocess.DEVNULL)
try:
    for word in sys.argv[1:]:
        name, kind = word.split("/")
        question = dns.message.make_query(name + ".example.", kind)
        for _ in range(50):
            try:
                answer = dns.query.udp(question, "127.0.0.1", port=port, timeout=1)
                break
            except (OSError, dns.exception.Timeout):
                time.sleep(0.1)
        print(word, dns.rcode.to_text(answer.rcode()), *(data for records in answer.answer for data in records))
finally:
    server.terminate()
    server.wait()
PY
v/bin/python ask.py a/A c/A x.d/A x.w/A a/ANY >answers
answer() {
    sed -n "s|^$1 ||p" answers
}
seen unbound-checkconf 'unbound-checkconf: no errors in unbound.conf' "$(answer check)"
seen A 'NOERROR 192.0.2.1' "$(answer a/A)"
seen 'A of the alias' 'NOERROR a.example.' "$(answer c/A)"
seen 'A below DNAME' NXDOMAIN "$(answer x.d/A)"
seen 'A of the wildcard' NXDOMAIN "$(answer x.w/A)"
seen ANY NOERROR "$(answer a/ANY)"
