#!/usr/bin/env bash
# d1:a2:bce
#
# BEP 3, "bencoding": a dictionary has its keys in the order of their bytes, so that U+FF01, EF BC 81, stands before U+1F600, F0 9F 98 80.
# Numbers have no limit.
# Guess: libraries for bencode read a dictionary as text, and write its keys in this order.
# Seen: bencode 4.0.1 (npm) fails at each dictionary that is not empty, if it is asked for text, as its own documentation shows. It
# writes U+1F600 before U+FF01, and reads 9007199254740993 as 9007199254740992. bencode.py 4.1.0 (Python) reads and
# writes all of them.
# The hash of a torrent is another one, for which no peer has anything.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install bencode@4.0.1
pip_install bencode.py==4.1.0
cat >try.mjs <<'JS'
import bencode from "bencode";
const steps = {
    bytes: (text) => JSON.stringify(bencode.decode(Buffer.from(text)), (_, value) => value instanceof Uint8Array
        ? Buffer.from(value).toString() : value),
    text: (text) => JSON.stringify(bencode.decode(Buffer.from(text), "utf8")),
    write: (json) => Buffer.from(bencode.encode(JSON.parse(json))).toString(),
};
try {
    console.log(steps[process.argv[2]](process.argv[3]));
} catch {
    console.log("error");
}
JS
cat >try.py <<'PY'
import bencodepy, json, sys

step, text = sys.argv[1:]
if step == "text":
    print(json.dumps(bencodepy.Bencode(encoding="utf-8").decode(text.encode()), separators=(",", ":")))
else:
    print(bencodepy.encode(json.loads(text)).decode())
PY
seen 'bencode: d1:a2:bce, as bytes' '{"a":"bc"}' "$(node try.mjs bytes d1:a2:bce)"
for text in '2:bc' 'l2:bce' 'de'; do
    seen "bencode.py: $text" "$(node try.mjs text $text)" "$(v/bin/python try.py text $text)"
done
seen 'bencode.py: d1:a2:bce' '{"a":"bc"}' "$(v/bin/python try.py text d1:a2:bce)"
seen 'bencode: d1:a2:bce' error "$(node try.mjs text d1:a2:bce)"
seen 'bencode.py: i9007199254740993e' 9007199254740993 "$(v/bin/python try.py text i9007199254740993e)"
seen 'bencode: i9007199254740993e' 9007199254740992 "$(node try.mjs text i9007199254740993e)"
KEYS='{"\uff01":1,"\ud83d\ude00":2}'
seen 'bencode.py: the order of keys' $'d3:\uff01i1e4:\U1f600i2ee' "$(v/bin/python try.py write "$KEYS")"
seen 'bencode: the order of keys' $'d4:\U1f600i2e3:\uff01i1ee' "$(node try.mjs write "$KEYS")"
