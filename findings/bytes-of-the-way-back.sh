#!/usr/bin/env bash
# reverseOctetDeltaCount in a flow that IPFIX reports
#
# RFC 7011, section 3.2: a field with the enterprise bit has a number that the enterprise gave. RFC 5103, section 6.1:
# the bytes of the way back have the number of those of the way there, 1, with the enterprise number 29305.
# Guess: a decoder tells the two apart, or leaves out a field of an enterprise that it does not know.
# Seen: netflow 0.12.2 (Python) names both octetDeltaCount, so that one of them is lost if a record has both: that of the
# way back stays. Scapy 2.8.0 (Python) names a field of the way back IN_BYTES, too. Field 8 of any other enterprise
# becomes the source address in netflow.
# A sum of bytes from a probe that reports both directions in one record is that of the answers alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install netflow==0.12.2 scapy==2.8.0
cat >read.py <<'PY'
import logging, struct, sys

def make_set(number, content):
    return struct.pack(">HH", number, 4 + len(content)) + content

library, *fields = sys.argv[1:]
template, record = struct.pack(">HH", 256, len(fields)), b""
for field in fields:
    number, enterprise, value = map(int, field.split(","))
    template += struct.pack(">HHI", number | 0x8000, 4, enterprise) if enterprise else struct.pack(">HH", number, 4)
    record += struct.pack(">I", value)
sets = make_set(2, template) + make_set(256, record)
message = struct.pack(">HHIII", 10, 16 + len(sets), 1700000000, 0, 1) + sets
if library == "netflow":
    from netflow.ipfix import IPFIXExportPacket
    print(*(flow.data for flow in IPFIXExportPacket(message, {}).flows))
else:
    logging.getLogger("scapy").setLevel(logging.CRITICAL)
    from scapy.all import IP, UDP
    from scapy.layers.netflow import NetflowDataflowsetV9, NetflowHeader, netflowv9_defragment
    packet = netflowv9_defragment([IP() / UDP() / NetflowHeader(message)])[0]
    print(*(record.fields for record in packet[NetflowDataflowsetV9].records))
PY
read_with() {
    v/bin/python read.py "$@" 2>/dev/null
}
seen 'netflow: way there' "{'octetDeltaCount': 100}" "$(read_with netflow 1,0,100)"
seen 'netflow: both' "{'octetDeltaCount': 5000}" "$(read_with netflow 1,0,100 1,29305,5000)"
seen 'netflow: field 8 of enterprise 9' "{'sourceIPv4Address': 5}" "$(read_with netflow 8,9,5)"
seen 'Scapy: way there' "{'IN_BYTES': 100}" "$(read_with scapy 1,0,100)"
seen 'Scapy: way back' "{'IN_BYTES': 5000}" "$(read_with scapy 1,29305,5000)"
