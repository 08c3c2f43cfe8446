#!/usr/bin/env bash
# machine a.example login u password p#2
#
# The file .netrc is of words between blanks. curl and Python take a line or a word that begins with # for a comment, and a
# word in double quotes for one that may have blanks in it.
# Guess: other readers of .netrc do the same.
# Seen: netrc 0.1.4 and netrc-parser 3.1.6 (npm) cut the password p#2 to p. They end "p 2" at its blank, and netrc then takes
# each name for a value, and each value for a name, and finds no machine behind it. curl 7.88.1 and netrc of Python 3.11 read
# both.
# A tool in Node sends a wrong password, where curl sends the right one by the same file.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install netrc@0.1.4 netrc-parser@3.1.6
cat >serve.py <<'PY'
import base64, http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        given = base64.b64decode(self.headers["Authorization"].split()[1])
        self.send_response(200)
        self.send_header("Content-Length", str(len(given)))
        self.end_headers()
        self.wfile.write(given)

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 serve.py >port &
server=$!
trap 'kill $server; rm -rf "$FOLDER"' EXIT
until [[ -s port ]]; do sleep 0.05; done

password() {
    case $1 in
    curl) curl -s --netrc-file "$2" --connect-to "::127.0.0.1:$(<port)" http://a.example/ | cut -d : -f 2 ;;
    python) python3 -c 'import netrc, sys; print(netrc.netrc(sys.argv[1]).hosts["a.example"][2])' "$2" ;;
    netrc) node -p 'require("netrc")(process.argv[1])["a.example"].password' "$2" ;;
    netrc-parser)
        node -p '
            const { Netrc } = require("netrc-parser");
            const file = new Netrc(process.argv[1]);
            file.loadSync();
            file.machines["a.example"].password' "$2"
        ;;
    esac
}
for word in p2 p#2 '"p 2"'; do
    printf '%s\n' "machine a.example login u password $word" 'machine b.example login v password q' >"$word"
done
curl --version | cut -d ' ' -f 1,2 | head -1
for tool in curl python netrc netrc-parser; do
    seen "$tool: p2" p2 "$(password $tool p2)"
done
for tool in curl python; do
    seen "$tool: p#2" p#2 "$(password $tool p#2)"
    seen "$tool: \"p 2\"" 'p 2' "$(password $tool '"p 2"')"
done
for tool in netrc netrc-parser; do
    seen "$tool: p#2" p "$(password $tool p#2)"
    seen "$tool: \"p 2\"" '"p' "$(password $tool '"p 2"')"
done
seen 'netrc: machines' a.example "$(node -p 'Object.keys(require("netrc")("\"p 2\"")).join(" ")')"
