#!/usr/bin/env bash
# Content-Disposition: attachment; filename*=UTF-8''%e2%82%ac%20rates; filename="EURO rates"
#
# RFC 6266, section 4.3: recipients that know both forms take filename* and ignore filename, in either order.
# Guess: a library that decodes filename* prefers it.
# Seen: werkzeug 3.1.9 (Python) takes the later of the two, under the one name `filename`. The other order, which the RFC
# recommends, is read as meant. pyrfc6266 1.0.2 and contentdisp 1.0.0 (Python) give € rates in both.
# A client on this library saves the file under the name for old browsers, and cannot see that there was another one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install werkzeug==3.1.9 pyrfc6266==1.0.2 contentdisp==1.0.0
read_with() {
    v/bin/python -c '
import sys
library, field = sys.argv[1:]
if library == "werkzeug":
    from werkzeug.http import parse_options_header
    print(parse_options_header(field)[1]["filename"])
elif library == "pyrfc6266":
    import pyrfc6266
    print(pyrfc6266.parse_filename(field))
else:
    import contentdisp
    print(contentdisp.parse(field).params["filename"])' "$@"
}
PLAIN='filename="EURO rates"'
EXTENDED="filename*=UTF-8''%e2%82%ac%20rates"
for library in werkzeug pyrfc6266 contentdisp; do
    seen "$library: the plain one first" '€ rates' "$(read_with $library "attachment; $PLAIN; $EXTENDED")"
done
for library in pyrfc6266 contentdisp; do
    seen "$library: the plain one last" '€ rates' "$(read_with $library "attachment; $EXTENDED; $PLAIN")"
done
seen 'werkzeug: the plain one last' 'EURO rates' "$(read_with werkzeug "attachment; $EXTENDED; $PLAIN")"
