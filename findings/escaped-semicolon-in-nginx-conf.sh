#!/usr/bin/env bash
# rewrite ^/a\;b$ /c;
#
# In a file of nginx, a backslash takes the meaning of the next character away (ngx_conf_read_token), so the semicolon is
# a part of the expression, where it must stand so, or in quotes.
# Guess: parsers of such files know it.
# Seen: nginx-conf 2.1.0 (npm) and gonginx (Go, of February 2026) make two directives of the line, "rewrite ^/a\" and
# "b$ /c", without an error. gonginx also fails at "\\", a backslash in quotes. crossplane 0.5.8 (Python) reads the line
# as meant, and nginx takes it.
# A tool that converts such files has to be tried with escapes of its user; quotes ("^/a;b$") are read by all.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
LINE='rewrite ^/a\;b$ /c;'
QUOTED='rewrite "^/a;b$" /c;'

debian_install nginx
cat >nginx.conf <<CONF
pid $FOLDER/pid;
error_log stderr;
events {}
http { access_log off; server { listen unix:$FOLDER/socket; $LINE $QUOTED } }
CONF
root/usr/sbin/nginx -v
seen 'nginx: is the file right?' 'test is successful' \
    "$(root/usr/sbin/nginx -t -p "$FOLDER" -c "$FOLDER/nginx.conf" 2>&1 | grep -o 'test is successful')"

pip_install crossplane==0.5.8
cat >read.py <<'PY'
import sys, crossplane
open("a.conf", "w").write(sys.argv[1])
parsed = crossplane.parse("a.conf", check_ctx=False, check_args=False)["config"][0]["parsed"]
print(*([directive["directive"], *directive["args"]] for directive in parsed))
PY
seen 'crossplane: escaped' "['rewrite', '^/a\\\\;b$', '/c']" "$(v/bin/python read.py "$LINE")"
seen 'crossplane: quoted' "['rewrite', '^/a;b$', '/c']" "$(v/bin/python read.py "$QUOTED")"

npm_install nginx-conf@2.1.0
js() {
    node -e '
        require("nginx-conf").NginxConfFile.createFromSource(process.argv[1], (_, file) =>
            console.log(file.toString().trim().split("\n").join(" | ")));' "$1"
}
seen 'nginx-conf: escaped' 'rewrite ^/a\; | b$ /c;' "$(js "$LINE")"
seen 'nginx-conf: quoted' 'rewrite "^/a;b$" /c;' "$(js "$QUOTED")"

cat >go.mod <<'GO'
module finding
go 1.26
require github.com/tufanbarisyildirim/gonginx v0.0.0-20260220081509-8e17ce617db3
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/tufanbarisyildirim/gonginx/parser"
)

func main() {
	config, err := parser.NewStringParser(os.Args[1], parser.WithSkipValidDirectivesErr()).Parse()
	if err != nil {
		fmt.Println("error")
		return
	}
	for _, directive := range config.GetDirectives() {
		for _, parameter := range directive.GetParameters() {
			fmt.Print(directive.GetName(), ": ", parameter.Value, "; ")
		}
	}
	fmt.Println()
}
GO
go mod tidy 2>/dev/null
go build -o read .
seen 'gonginx: escaped' 'rewrite: ^/a\; b$: /c; ' "$(./read "$LINE")"
seen 'gonginx: quoted' 'rewrite: "^/a;b$"; rewrite: /c; ' "$(./read "$QUOTED")"
seen 'gonginx: a backslash in quotes' 'error' "$(./read 'set $a "\\";')"
