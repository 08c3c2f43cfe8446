#!/usr/bin/env bash
# days = [2026-11-29, 2026-11-30]
#
# TOML 1.0: a date without a time is a value, and a list holds values of any type, with commas between them. The T and the Z of a
# date may be small letters. A text within three quotes may end with quotes of its own.
# Guess: libraries that know dates read two of them in a list.
# Seen: @iarna/toml 3.0.0 (npm) calls the date incomplete, as it does not expect the comma, and go-toml 1.9.5 (Go) misses a comma.
# Both read a single date. They also refuse 2026-11-29t07:32:00z, and go-toml 1 """"a"""" as well. smol-toml 1.9.1 and toml 5.0.1
# (npm), go-toml 2.4.3 and BurntSushi's toml 1.6.0 (Go) read all.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @iarna/toml@3.0.0 smol-toml@1.9.1 toml@5.0.1
cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/BurntSushi/toml v1.6.0
	github.com/pelletier/go-toml v1.9.5
	github.com/pelletier/go-toml/v2 v2.4.3
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	burnt "github.com/BurntSushi/toml"
	first "github.com/pelletier/go-toml"
	second "github.com/pelletier/go-toml/v2"
)

func main() {
	var values map[string]any
	var err error
	switch os.Args[1] {
	case "burnt":
		_, err = burnt.Decode(os.Args[2], &values)
	case "first":
		err = first.Unmarshal([]byte(os.Args[2]), &values)
	case "second":
		err = second.Unmarshal([]byte(os.Args[2]), &values)
	}
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	fmt.Println("read")
}
GO
go mod tidy 2>/dev/null
go build -o parse .
# npm_reads LIBRARY TEXT
npm_reads() {
    node --input-type=module -e '
const library = await import(process.argv[1]);
try {
    (library.parse ?? library.default.parse)(process.argv[2]);
    console.log("read");
} catch (error) {
    console.log("refused: " + error.message.split(" at ")[0]);
}' "$1" "$2"
}
days='days = [2026-11-29, 2026-11-30]'
for library in smol-toml toml; do
    seen "$library: two dates" read "$(npm_reads $library "$days")"
done
for library in burnt second; do
    seen "$library: two dates" read "$(./parse $library "$days")"
done
seen '@iarna/toml: one date' read "$(npm_reads @iarna/toml 'day = 2026-11-29')"
seen '@iarna/toml: two dates' 'refused: Incomplete datetime' "$(npm_reads @iarna/toml "$days")"
seen '@iarna/toml: small letters' 'refused: Incomplete datetime' "$(npm_reads @iarna/toml 'at = 2026-11-29t07:32:00z')"
seen 'go-toml 1: one date' read "$(./parse first 'day = 2026-11-29')"
seen 'go-toml 1: two dates' 'refused: (1, 19): missing comma' "$(./parse first "$days")"
seen 'go-toml 1: small letters' 'refused: (1, 16): parsing error: incorrect date/time separation character: t' \
    "$(./parse first 'at = 2026-11-29t07:32:00z')"
seen 'go-toml 1: quotes at the end' 'refused: (1, 14): parsing error: unclosed string' "$(./parse first 'a = """"a""""')"
seen 'go-toml 2: quotes at the end' read "$(./parse second 'a = """"a""""')"
