#!/usr/bin/env bash
# {"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}}, {"name": "g", "type": "F"}]}
#
# Avro 1.12, "Names": a type is defined once, and named afterwards; "Parsing Canonical Form": this holds for the form of which the
# fingerprint of a schema is taken. "Default values": that of bytes is a text whose letters are the bytes. "Schema Resolution": a value of
# the writer's union is read by the reader's type, if that is no union. "Sort Order": strings are in the order of their code points.
# Guess: libraries for Avro make the same fingerprint, and read by another schema alike.
# Seen: avro 1.12.2 (Python, Apache's own) defines F twice in the canonical form, which gives another fingerprint, and which it refuses
# to read. It makes C3 BF of the default for the byte FF, and fastavro 1.13.1 (Python) a text. avro and avsc 5.7.9 (npm) refuse a
# union of the writer, and avsc puts U+1F600 before U+FF01.
# Two programs that look for one schema by its fingerprint find two.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install avsc@5.7.9
pip_install avro==1.12.2 fastavro==1.13.1
cat >try.py <<'PY'
import avro.errors, avro.io, avro.schema, fastavro, fastavro.schema, io, json, sys

RECORD = '{"type":"record","name":"R","fields":[%s]}'
TWICE = RECORD % '{"name":"f","type":{"type":"fixed","name":"F","size":4}},{"name":"g","type":"F"}'
OLD, NEW = RECORD % '{"name":"u","type":["null","int"]}', RECORD % '{"name":"u","type":"int"}'
BYTES = RECORD % '{"name":"b","type":"bytes","default":"\\u00ff"}'
EMPTY = RECORD % ""

def by_avro(writer, reader, data):
    return avro.io.DatumReader(avro.schema.parse(writer), avro.schema.parse(reader)).read(avro.io.BinaryDecoder(io.BytesIO(data)))

def by_fastavro(writer, reader, data):
    return fastavro.schemaless_reader(io.BytesIO(data), json.loads(writer), json.loads(reader))

def union(library):
    try:
        return globals()["by_" + library](OLD, NEW, b"\2\6")
    except avro.errors.SchemaResolutionException:
        return "refused"

def again(form):
    try:
        return avro.schema.parse(form) and "read"
    except avro.errors.AvroException:
        return "refused"

form = {"avro": lambda: avro.schema.parse(TWICE).canonical_form,
    "fastavro": lambda: fastavro.schema.to_parsing_canonical_form(json.loads(TWICE))}
print({
    "form": lambda library: form[library](),
    "print": lambda library: fastavro.schema.fingerprint(form[library](), "CRC-64-AVRO"),
    "again": lambda library: again(form[library]()),
    "bytes": lambda library: globals()["by_" + library](EMPTY, BYTES, b""),
    "union": union,
}[sys.argv[1]](sys.argv[2]))
PY
cat >try.js <<'JS'
const { Type } = require("avsc"), record = (...fields) => ({ type: "record", name: "R", fields });
const read = (writer, reader, bytes) => reader.fromBuffer(Buffer.from(bytes), reader.createResolver(writer));
const tries = {
    form: () => JSON.stringify(Type.forSchema(record({ name: "f", type: { type: "fixed", name: "F", size: 4 } },
        { name: "g", type: "F" })).schema()),
    bytes: () => read(Type.forSchema(record()), Type.forSchema(record({ name: "b", type: "bytes", default: "\u00ff" })), []).b[0],
    union: () => read(Type.forSchema(record({ name: "u", type: ["null", "int"] })), Type.forSchema(record({ name: "u", type: "int" })),
        [2, 6]).u,
    order: () => Type.forSchema("string").compare("\u{1F600}", "\uff01"),
};
try {
    console.log(tries[process.argv[2]]());
} catch {
    console.log("refused");
}
JS
ONCE='{"name":"R","type":"record","fields":[{"name":"f","type":{"name":"F","type":"fixed","size":4}},{"name":"g","type":'
seen 'fastavro: the form' "$ONCE\"F\"}]}" "$(v/bin/python try.py form fastavro)"
seen 'avsc: the form' "$ONCE\"F\"}]}" "$(node try.js form)"
seen 'avro: the form' "$ONCE{\"name\":\"F\",\"type\":\"fixed\",\"size\":4}}]}" "$(v/bin/python try.py form avro)"
seen 'avro: its own form again' refused "$(v/bin/python try.py again avro)"
seen 'avro: that of fastavro' read "$(v/bin/python try.py again fastavro)"
seen 'fastavro: the fingerprint' 03a57eb916193419 "$(v/bin/python try.py print fastavro)"
seen 'of the form by avro' 387fde905e248b69 "$(v/bin/python try.py print avro)"
seen 'avro: a default of bytes' "{'b': b'\xc3\xbf'}" "$(v/bin/python try.py bytes avro)"
seen 'avsc: a default of bytes' 255 "$(node try.js bytes)"
seen 'fastavro: a default of bytes' "{'b': 'ÿ'}" "$(v/bin/python try.py bytes fastavro)"
seen 'fastavro: a union of the writer' "{'u': 3}" "$(v/bin/python try.py union fastavro)"
seen 'avro: a union of the writer' refused "$(v/bin/python try.py union avro)"
seen 'avsc: a union of the writer' refused "$(node try.js union)"
seen 'avsc: U+1F600 and U+FF01' -1 "$(node try.js order)"
