#!/usr/bin/env bash
# "2026-11-29T08:00:00+01:00" and "-0.5s" in JSON of Protocol Buffers
#
# ProtoJSON: a Timestamp is a text with Z, and readers take other offsets, too. A Duration may be below zero: -0.5s is then no second
# and -500000000 nanoseconds. 64 bits may stand in quotes, and so may other numbers, NaN among them; enums may be numbers.
# Guess: a library that reads and writes this JSON gives back the same time, in JSON and in bytes.
# Seen: betterproto 1.2.5 (Python) reads the offset, sends the right bytes, and writes 08:00:00Z, an hour late. In bytes it has half
# a second above zero for -0.5s, and half a second after 1970 for half a second before. It refuses "1.5" and "NaN" of a double, and
# 1 of an enum in a list. protobuf 7.36.2 (Python) does all this as ProtoJSON says.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install betterproto==1.2.5 protobuf==7.36.2
cat >message.py <<'PY'
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import List

import betterproto
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import DoubleValue

class Kind(betterproto.Enum):
    ZERO = 0
    ONE = 1

@dataclass
class Message(betterproto.Message):
    time: datetime = betterproto.message_field(1)
    duration: timedelta = betterproto.message_field(2)
    number: float = betterproto.double_field(3)
    kinds: List[Kind] = betterproto.enum_field(4)

PY
# better TEXT: read by betterproto, as JSON and as bytes of the first field
better() {
    v/bin/python -c '
from message import *
try:
    read = Message().from_json(sys.argv[1])
    print(read.to_json(), bytes(read).hex()[4:])
except Exception as error:
    print("refused")' "$1"
}
# standard TYPE TEXT
standard() {
    v/bin/python -c '
from message import *
read = json_format.Parse(sys.argv[2], globals()[sys.argv[1]]())
print(json_format.MessageToJson(read), read.SerializeToString().hex())' "$1" "$2"
}
seen 'protobuf: +01:00' '"2026-11-29T07:00:00Z" 08f09aafd806' "$(standard Timestamp '"2026-11-29T08:00:00+01:00"')"
seen 'betterproto: +01:00' '{"time": "2026-11-29T08:00:00Z"} 08f09aafd806' "$(better '{"time": "2026-11-29T08:00:00+01:00"}')"
seen 'protobuf: -0.5s' '"-0.500s" 1080b6ca91feffffffff01' "$(standard Duration '"-0.5s"')"
seen 'betterproto: -0.5s' '{"duration": "-0.500s"} 1080cab5ee01' "$(better '{"duration": "-0.5s"}')"
seen 'betterproto: 0.5s' '{"duration": "0.500s"} 1080cab5ee01' "$(better '{"duration": "0.5s"}')"
before=1969-12-31T23:59:59.500Z
seen 'protobuf: before 1970' "\"$before\" 08ffffffffffffffffff011080cab5ee01" "$(standard Timestamp "\"$before\"")"
seen 'betterproto: before 1970' "{\"time\": \"$before\"} 1080cab5ee01" "$(better "{\"time\": \"$before\"}")"
seen 'protobuf: "1.5"' '1.5 09000000000000f83f' "$(standard DoubleValue '"1.5"')"
seen 'betterproto: "1.5"' refused "$(better '{"number": "1.5"}')"
seen 'betterproto: "NaN"' refused "$(better '{"number": "NaN"}')"
seen 'betterproto: an enum by its name' '{"kinds": ["ONE"]} 01' "$(better '{"kinds": ["ONE"]}')"
seen 'betterproto: an enum by its number' refused "$(better '{"kinds": [1]}')"
