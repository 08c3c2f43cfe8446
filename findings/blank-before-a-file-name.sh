#!/usr/bin/env bash
# Content-Disposition: INLINE; FILENAME= "an example.html"
#
# RFC 6266, section 5: this is its second example; section 4.1 allows blanks on both sides of the equal sign.
# Guess: parsers of this field read it.
# Seen: werkzeug 3.1.9 (Python) gives no parameter at all, if a blank stands on either side, and neither does
# content-disposition-filename 0.0.1 (npm). pyrfc6266 1.0.2, contentdisp 1.0.0, aiohttp 3.14.5 (Python) and
# content-disposition 2.0.1 (npm) give the name.
# So werkzeug, and Flask with it, takes a part of a form with such a blank for a field, where it is a file.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install werkzeug==3.1.9 pyrfc6266==1.0.2 contentdisp==1.0.0 aiohttp==3.14.5
npm_install content-disposition-filename@0.0.1 content-disposition@2.0.1
read_with() {
    v/bin/python -c '
import sys
library, field = sys.argv[1:]
if library == "werkzeug":
    from werkzeug.http import parse_options_header
    name = parse_options_header(field)[1].get("filename")
elif library == "pyrfc6266":
    import pyrfc6266
    name = pyrfc6266.parse_filename(field)
elif library == "contentdisp":
    import contentdisp
    name = contentdisp.parse(field).params.get("filename")
else:
    from aiohttp.multipart import parse_content_disposition
    name = parse_content_disposition(field)[1].get("filename")
print(name)' "$@"
}
read_js() {
    node --input-type=module -e '
        const [library, field] = process.argv.slice(1);
        const { default: found } = await import(library);
        console.log(found.parse ? found.parse(field).parameters.filename : found(field));' "$@"
}
for library in werkzeug pyrfc6266 contentdisp aiohttp; do
    seen "$library: without a blank" 'an example.html' "$(read_with $library 'INLINE; FILENAME="an example.html"')"
done
for library in pyrfc6266 contentdisp aiohttp; do
    seen "$library: the example" 'an example.html' "$(read_with $library 'INLINE; FILENAME= "an example.html"')"
done
seen 'werkzeug: the example' None "$(read_with werkzeug 'INLINE; FILENAME= "an example.html"')"
seen 'werkzeug: a blank before it' None "$(read_with werkzeug 'inline; filename ="an example.html"')"
seen 'content-disposition: the example' 'an example.html' \
    "$(read_js content-disposition 'INLINE; FILENAME= "an example.html"')"
seen 'content-disposition-filename: no blank' '"a.html"' "$(read_js content-disposition-filename 'inline; filename="a.html"')"
seen 'content-disposition-filename: a blank' null "$(read_js content-disposition-filename 'inline; filename = "a.html"')"
# part DISPOSITION: what werkzeug finds in a form of one part
part() {
    v/bin/python -c '
import io, sys
from werkzeug.formparser import parse_form_data
content = f"--b\r\nContent-Disposition: form-data; {sys.argv[1]}\r\n\r\nhello\r\n--b--\r\n".encode()
_, fields, files = parse_form_data({
    "REQUEST_METHOD": "POST",
    "CONTENT_TYPE": "multipart/form-data; boundary=b",
    "CONTENT_LENGTH": str(len(content)),
    "wsgi.input": io.BytesIO(content),
})
print(f"{len(fields)} fields, {len(files)} files")' "$1"
}
seen 'werkzeug: a file in a form' '0 fields, 1 files' "$(part 'name="a"; filename="b"')"
seen 'werkzeug: with a blank' '1 fields, 0 files' "$(part 'name="a"; filename ="b"')"
