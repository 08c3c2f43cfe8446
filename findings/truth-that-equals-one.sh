#!/usr/bin/env bash
# {"networks": 1, "hosting": true} in a database of addresses
#
# MaxMind DB File Format Specification (maxmind.github.io), "Output Data Section": the format has types of its own for
# true and false, for whole numbers and for doubles.
# Guess: a writer in Python keeps the type of each value.
# Seen: mmdb_writer 0.2.7 (Python) writes each value once, and finds those that it has written as Python compares them,
# where 1, 1.0 and True are equal. So whichever of the three comes first is written for all, anywhere in the file.
# maxminddb 3.2.0 (Python) and mmdb-lib 3.0.3 (npm) read it so.
# A type thus depends on other rows: a rule that asks for true (=== true) stops to match when a row with 1 is added.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install mmdb_writer==0.2.7 maxminddb==3.2.0 netaddr==1.3.0
cat >write.py <<'PY'
import json, maxminddb, sys
from mmdb_writer import MMDBWriter
from netaddr import IPSet
writer = MMDBWriter(float_type="f64")
networks = ["192.0.2.0/24", "198.51.100.0/24"]
for network, row in zip(networks, sys.argv[1:]):
    writer.insert_network(IPSet([network]), json.loads(row))
writer.to_db_file("a.mmdb")
reader = maxminddb.open_database("a.mmdb")
print(*(json.dumps(reader.get(network.split("/")[0])) for network in networks[:len(sys.argv) - 1]))
PY
write() {
    v/bin/python write.py "$@"
}
seen 'true alone' '{"hosting": true}' "$(write '{"hosting": true}')"
seen 'true after 1' '{"networks": 1, "hosting": 1}' "$(write '{"networks": 1, "hosting": true}')"
seen 'true before 1' '{"hosting": true, "networks": true}' "$(write '{"hosting": true, "networks": 1}')"
seen 'a degree of longitude after true' '{"hosting": true, "longitude": true}' \
    "$(write '{"hosting": true, "longitude": 1.0}')"
seen 'in two rows' '{"networks": 1} {"hosting": 1}' "$(write '{"networks": 1}' '{"hosting": true}')"

npm_install mmdb-lib@3.0.3
seen 'mmdb-lib, the second row' '{"hosting":1}' "$(node -p '
    const { Reader } = require("mmdb-lib");
    JSON.stringify(new Reader(require("fs").readFileSync("a.mmdb")).get("198.51.100.0"))')"
