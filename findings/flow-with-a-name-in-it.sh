#!/usr/bin/env bash
# interfaceName, with the length 65535, in a template of IPFIX
#
# RFC 7011, section 7: this length says that each record has its own, in one byte before the value, or in two after 255.
# Section 6.2: a counter may be sent in fewer bytes than its type has, in three, for example.
# Guess: a library that names IPFIX reads both, the more so as names of interfaces and applications are texts.
# Seen: netflow 0.12.2 (Python) raises PaddingCalculationError for the length 65535, and IPFIXTemplateError for three
# bytes. Scapy 2.8.0 (Python) finds no record in a set with the length 65535, and reads three bytes.
# One text in a template costs netflow all the flows of the message, and Scapy those of the set.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install netflow==0.12.2 scapy==2.8.0
cat >read.py <<'PY'
import logging, struct, sys

def make_set(number, content):
    return struct.pack(">HH", number, 4 + len(content)) + content

library, lengths, record = sys.argv[1:]
numbers = {"protocol": 4, "name": 82, "packets": 2}
fields = [field.split("=") for field in lengths.split(",")]
template = struct.pack(">HH", 256, len(fields))
template += b"".join(struct.pack(">HH", numbers[name], int(length)) for name, length in fields)
sets = make_set(2, template) + make_set(256, bytes.fromhex(record))
message = struct.pack(">HHIII", 10, 16 + len(sets), 1700000000, 0, 1) + sets
if library == "netflow":
    from netflow.ipfix import IPFIXExportPacket
    try:
        print(*(dict(sorted(flow.data.items())) for flow in IPFIXExportPacket(message, {}).flows))
    except Exception as error:
        print(type(error).__name__)
else:
    logging.getLogger("scapy").setLevel(logging.CRITICAL)
    from scapy.all import IP, UDP
    from scapy.layers.netflow import NetflowDataflowsetV9, NetflowHeader, netflowv9_defragment
    packet = netflowv9_defragment([IP() / UDP() / NetflowHeader(message)])[0]
    print([list(record.fields.values()) for record in packet[NetflowDataflowsetV9].records])
PY
read_with() {
    v/bin/python read.py "$@" 2>/dev/null
}
seen 'netflow: a name of 3 bytes' "{'interfaceName': 'eth', 'protocolIdentifier': 6}" \
    "$(read_with netflow name=3,protocol=1 65746806)"
seen 'netflow: a name with its length' PaddingCalculationError "$(read_with netflow name=65535,protocol=1 0365746806)"
seen 'netflow: packets, in 3 bytes' IPFIXTemplateError "$(read_with netflow packets=3,protocol=1 00000906)"
seen 'Scapy: a name of 3 bytes' "[[b'eth', 6]]" "$(read_with scapy name=3,protocol=1 65746806)"
seen 'Scapy: a name with its length' [] "$(read_with scapy name=65535,protocol=1 0365746806)"
seen 'Scapy: packets, in 3 bytes' '[[9, 6]]' "$(read_with scapy packets=3,protocol=1 00000906)"
