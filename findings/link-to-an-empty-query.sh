#!/usr/bin/env bash
# <a href="?"> in the page http://a.example/list?page=2
#
# RFC 3986, section 5.2.2: a reference with a query, even an empty one, replaces that of the base; one without a query
# and a path keeps it. So `?` leads to http://a.example/list?, the list from its beginning.
# Guess: libraries that resolve references give this address, perhaps without its question mark.
# Seen: urljoin of Python 3.11, yarl 1.25.1, furl 2.1.4, hyperlink 21.0.0 and httpx 0.28.1 (Python) give
# http://a.example/list?page=2. rfc3986 2.0.0, uritools 6.1.5 (Python), and uri-js 4.4.1 and fast-uri 4.2.4 (npm) give
# the one of the RFC.
# A crawler on them stays on the second page, where the RFC leads back to the first.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install yarl==1.25.1 furl==2.1.4 hyperlink==21.0.0 httpx==0.28.1 rfc3986==2.0.0 uritools==6.1.5
cat >resolve.py <<'PY'
import sys
from urllib.parse import urljoin
import furl, httpx, hyperlink, rfc3986, uritools, yarl
base, reference = "http://a.example/list?page=2", sys.argv[2]
print({
    "urllib": lambda: urljoin(base, reference),
    "yarl": lambda: yarl.URL(base).join(yarl.URL(reference)),
    "furl": lambda: furl.furl(base).join(reference).url,
    "hyperlink": lambda: hyperlink.URL.from_text(base).click(reference).to_text(),
    "httpx": lambda: httpx.URL(base).join(reference),
    "rfc3986": lambda: rfc3986.uri_reference(reference).resolve_with(base).unsplit(),
    "uritools": lambda: uritools.urijoin(base, reference),
}[sys.argv[1]]())
PY
npm_install uri-js@4.4.1 fast-uri@4.2.4
for library in urllib yarl furl hyperlink httpx; do
    seen "$library: ?a=1" 'http://a.example/list?a=1' "$(v/bin/python resolve.py $library '?a=1')"
    seen "$library: ?" 'http://a.example/list?page=2' "$(v/bin/python resolve.py $library '?')"
done
for library in rfc3986 uritools; do
    seen "$library: ?" 'http://a.example/list?' "$(v/bin/python resolve.py $library '?')"
done
for library in uri-js fast-uri; do
    seen "$library: ?" 'http://a.example/list?' \
        "$(node -p "require('$library').resolve('http://a.example/list?page=2', '?')")"
done
