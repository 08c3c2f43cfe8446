#!/usr/bin/env bash
# Content-Disposition: form-data;
#  name="a"
#
# RFC 7578, section 4.1, and RFC 2046, section 5.1: the header of a part of a form is one of MIME, where RFC 5322,
# section 2.2.3, lets a line go on with the next one that begins with a blank.
# Guess: parsers of forms read the name, as those of mail do.
# Seen: werkzeug 3.1.9 (Python) and busboy 1.6.0 (npm) read it. python-multipart 0.0.34, multipart 2.0.1 with
# strict=True (Python), multiparty 4.3.1, formidable 3.5.4 and undici 7.30.2 (npm) refuse the form.
# Programs that write forms by a library of mail get such lines where names are long.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install python-multipart==0.0.34 multipart==2.0.1 werkzeug==3.1.9
npm_install busboy@1.6.0 multiparty@4.3.1 formidable@3.5.4 undici@7.30.2
cat >read.py <<'PY'
import io, logging, sys
logging.disable()
library, kind = sys.argv[1], "multipart/form-data; boundary=b"
content = sys.argv[2].encode().decode("unicode_escape").encode()
environment = {
    "REQUEST_METHOD": "POST",
    "CONTENT_TYPE": kind,
    "CONTENT_LENGTH": str(len(content)),
    "wsgi.input": io.BytesIO(content),
}
try:
    if library == "werkzeug":
        from werkzeug.formparser import parse_form_data
        names = parse_form_data(environment)[1].keys()
    elif library == "multipart":
        import multipart
        names = multipart.parse_form_data(environment, strict=True)[0].keys()
    else:
        import python_multipart
        names = []
        header = {"Content-Type": kind.encode()}
        python_multipart.parse_form(header, io.BytesIO(content), lambda f: names.append(f.field_name.decode()), print)
    print(*names or ["none"])
except Exception as error:
    print("refused" if "multipart" in type(error).__module__ else error)
PY
cat >read.mjs <<'JS'
import { createRequire } from "module";
import { Readable } from "stream";

const require = createRequire(import.meta.url);
const library = process.argv[2];
const content = Buffer.from(JSON.parse(`"${process.argv[3].replaceAll('"', '\\"')}"`));
const headers = { "content-type": "multipart/form-data; boundary=b", "content-length": content.length };
const request = Object.assign(Readable.from([content]), { headers });
const libraries = {
    busboy: () => new Promise((resolve, reject) => {
        const names = [];
        const form = require("busboy")({ headers });
        form.on("field", (name) => names.push(name)).on("close", () => resolve(names)).on("error", reject);
        form.end(content);
    }),
    multiparty: () => new Promise((resolve, reject) => {
        const form = new (require("multiparty").Form)();
        form.parse(request, (error, fields) => (error ? reject(error) : resolve(Object.keys(fields))));
    }),
    formidable: async () => Object.keys((await (await import("formidable")).default({}).parse(request))[0]),
    undici: async () => [...(await new (require("undici").Response)(content, { headers }).formData()).keys()],
};
try {
    console.log((await libraries[library]()).join(" ") || "none");
} catch {
    console.log("refused");
}
process.exit();
JS
# row CONTENT WHAT OF_PYTHON_MULTIPART OF_MULTIPART OF_WERKZEUG OF_BUSBOY OF_MULTIPARTY OF_FORMIDABLE OF_UNDICI
row() {
    local content=$1 what=$2 library
    shift 2
    for library in python-multipart multipart werkzeug; do
        seen "$library: $what" "$1" "$(v/bin/python read.py $library "$content")"
        shift
    done
    for library in busboy multiparty formidable undici; do
        seen "$library: $what" "$1" "$(node read.mjs $library "$content")"
        shift
    done
}
part() {
    printf '%s' '--b\r\nContent-Disposition: form-data;' "$1" 'name="a"\r\n\r\nvalue\r\n--b--\r\n'
}
row "$(part ' ')" 'one line' a a a a a a a
row "$(part '\r\n ')" 'two lines' refused refused a a refused refused refused
