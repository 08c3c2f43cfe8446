#!/usr/bin/env bash
# "multipleOf": 0.01, and 19.99
#
# JSON Schema: a number is valid, if its division by multipleOf gives an integer. 19.99 has two digits behind its point, and 1e308
# is an integer.
# Guess: validators take 19.99, as prices and weights are what the keyword is for.
# Seen: ajv 8.20.0 (npm) and jsonschema 4.26.0 (Python) refuse 19.99 for 0.01, and 0.3 for 0.1, although they take 19.98. ajv refuses
# 1e308 for 1. fastjsonschema 2.22.3 (Python), gojsonschema 1.2.0 and santhosh-tekuri/jsonschema 6.0.3 (Go) take all.
# One schema, in a form for people and in a program behind it, refuses one price of ten, or none.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ajv@8.20.0
pip_install jsonschema==4.26.0 fastjsonschema==2.22.3
cat >go.mod <<'GO'
module finding
go 1.26
require (
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	github.com/xeipuuv/gojsonschema v1.2.0
)
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"
)

func main() {
	schema := `{"multipleOf":` + os.Args[1] + `}`
	result, err := gojsonschema.Validate(gojsonschema.NewStringLoader(schema), gojsonschema.NewStringLoader(os.Args[2]))
	if err != nil {
		fmt.Println(err)
		return
	}
	read, _ := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	value, _ := jsonschema.UnmarshalJSON(strings.NewReader(os.Args[2]))
	compiler := jsonschema.NewCompiler()
	compiler.AddResource("a.json", read)
	fmt.Println(result.Valid(), compiler.MustCompile("a.json").Validate(value) == nil)
}
GO
go get . 2>/dev/null
go build -o validate .
cat >validate.py <<'PY'
import json, sys
import fastjsonschema, jsonschema
schema, value = {"multipleOf": json.loads(sys.argv[1])}, json.loads(sys.argv[2])
try:
    fastjsonschema.validate(schema, value)
    fast = True
except fastjsonschema.JsonSchemaValueException:
    fast = False
print(jsonschema.Draft202012Validator(schema).is_valid(value), fast)
PY
ajv() {
    node -p '
const Ajv = require("ajv/dist/2020");
new Ajv({ strict: false }).compile({ multipleOf: +process.argv[1] })(+process.argv[2])' "$1" "$2"
}
seen 'ajv: 0.01, 19.98' true "$(ajv 0.01 19.98)"
seen 'ajv: 0.01, 19.99' false "$(ajv 0.01 19.99)"
seen 'ajv: 0.1, 0.3' false "$(ajv 0.1 0.3)"
seen 'ajv: 1, 1e308' false "$(ajv 1 1e308)"
seen 'jsonschema, fastjsonschema: 0.01, 19.98' 'True True' "$(v/bin/python validate.py 0.01 19.98)"
seen 'jsonschema, fastjsonschema: 0.01, 19.99' 'False True' "$(v/bin/python validate.py 0.01 19.99)"
seen 'jsonschema, fastjsonschema: 0.1, 0.3' 'False True' "$(v/bin/python validate.py 0.1 0.3)"
seen 'both of Go: 0.01, 19.99' 'true true' "$(./validate 0.01 19.99)"
seen 'both of Go: 0.1, 0.3' 'true true' "$(./validate 0.1 0.3)"
seen 'both of Go: 1, 1e308' 'true true' "$(./validate 1 1e308)"
