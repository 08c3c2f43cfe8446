#!/usr/bin/env bash
# Signature-Input: s=("@query-param";name="a"), for /?a=(b)~c!
#
# RFC 9421, section 2.2.8: the value is decoded, and then encoded as the URL standard says for forms, but with %20 for a
# blank. The set of that encoding leaves letters, digits, `*`, `-`, `.` and `_` as they are, and nothing else.
# Guess: two libraries for message signatures sign the same text.
# Seen: http-message-signatures 1.0.6 (npm) signs `(b)~c!`, as encodeURIComponent of JavaScript leaves `!'()~`.
# http-message-signatures 3.0.0 (Python, no relation) signs %28b%29%7Ec%21. They agree on blanks and on `*`.
# A signature of the one fails at the other for such a parameter; @query, which nobody encodes anew, avoids that.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install http-message-signatures@1.0.6
js() {
    node -p '
        const { httpbis } = require("http-message-signatures");
        const message = { method: "GET", url: process.argv[1], headers: {} };
        const base = httpbis.createSignatureBase({ fields: ["@query-param;name=\"a\""] }, message);
        httpbis.formatSignatureBase(base)' "$1"
}
pip_install http-message-signatures==3.0.0 http-sf==1.5.0
python() {
    v/bin/python -c '
import sys
from types import SimpleNamespace
from http_message_signatures import HTTPSignatureComponentResolver

message = SimpleNamespace(method="GET", url=sys.argv[1], headers={})
component = "\"@query-param\";name=\"a\""
print(component + ":", HTTPSignatureComponentResolver(message).get_query_params(name="a"))' "$1"
}
both='"@query-param";name="a":'
seen 'npm: a=b+c%20d*' "$both b%20c%20d*" "$(js 'https://a.example/?a=b+c%20d*')"
seen 'Python: a=b+c%20d*' "$both b%20c%20d*" "$(python 'https://a.example/?a=b+c%20d*')"
seen 'npm: a=(b)~c!' "$both (b)~c!" "$(js 'https://a.example/?a=(b)~c!')"
seen 'Python: a=(b)~c!' "$both %28b%29%7Ec%21" "$(python 'https://a.example/?a=(b)~c!')"
seen 'npm: a=%28b%29' "$both (b)" "$(js 'https://a.example/?a=%28b%29')"
seen 'Python: a=%28b%29' "$both %28b%29" "$(python 'https://a.example/?a=%28b%29')"
