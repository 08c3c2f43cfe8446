#!/usr/bin/env bash
# f0: simple(16) in CBOR
#
# RFC 8949, section 3.3 and appendix A: simple values that have no meaning yet are well-formed, and the appendix has
# simple(16) and simple(255) as examples. Section 5.2: a generic decoder gives them to the application as they are.
# Guess: a decoder has a type for them, as for unknown tags, or says that it does not know the value.
# Seen: cbor-js 0.1.0 (npm) gives `undefined`, which is another value, f7. cbor-x 1.6.9 (npm) fails with "No packed values
# available", of a draft that it takes for the standard. cbor 1.0.0 (Python) fails. cbor 10.0.12, borc 3.0.0 (npm) and
# cbor2 5.9.0 (Python) give the number.
# One such value in a list costs the whole, or becomes a value that is not there.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install cbor-js@0.1.0 cbor-x@1.6.9 cbor@10.0.12 borc@3.0.0
python3 -m venv w
w/bin/pip --quiet --disable-pip-version-check install cbor==1.0.0
pip_install cbor2==5.9.0
read_with() {
    node -e '
        const [library, text] = process.argv.slice(1);
        const bytes = Buffer.from(text, "hex");
        try {
            const { decode, decodeFirstSync } = require(library);
            const value = (decodeFirstSync ?? decode)(library === "cbor-js" ? new Uint8Array(bytes).buffer : bytes);
            console.log(value?.value ?? String(value));
        } catch (error) { console.log(error.message); }' "$@"
}
for library in cbor borc; do
    seen "$library: simple(16)" 16 "$(read_with $library f0)"
    seen "$library: simple(255)" 255 "$(read_with $library f8ff)"
done
seen 'cbor-js: simple(16)' undefined "$(read_with cbor-js f0)"
seen 'cbor-js: simple(255)' undefined "$(read_with cbor-js f8ff)"
seen 'cbor-x: simple(16)' 'No packed values available' "$(read_with cbor-x f0)"
seen 'cbor-x: simple(255)' 'No packed values available' "$(read_with cbor-x f8ff)"
seen 'cbor2: simple(16)' 16 "$(v/bin/python -c 'import cbor2; print(cbor2.loads(b"\xf0").value)')"
seen 'cbor of Python: simple(16)' ValueError "$(w/bin/python -c '
import cbor
try:
    print(cbor.loads(b"\xf0"))
except Exception as error:
    print(type(error).__name__)')"
