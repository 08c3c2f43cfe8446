#!/usr/bin/env bash
# OTEL_RESOURCE_ATTRIBUTES=service.name=a,team
#
# OpenTelemetry, "Resource SDK": this variable is a list of keys and values with equal signs; at any error, the whole of it
# should be discarded and the error reported. An equal sign within a value is to be percent-encoded.
# Guess: the SDKs of the project do the same with the same environment.
# Seen: opentelemetry-sdk 1.45.2 (Python) and Go 1.47.0 keep service.name=a. @opentelemetry/resources 2.12.1 (npm) discards
# all. For service.name=a,query=b=c, Python and Go give both, and npm none; a comma at the end is an error to Go alone.
# One slip, and the services in Node have lost their names, while the others look well.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install opentelemetry-sdk==1.45.2
npm_install @opentelemetry/resources@2.12.1
cat >go.mod <<'GO'
module finding
go 1.26
require go.opentelemetry.io/otel/sdk v1.47.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/resource"
)

func main() {
	found, err := resource.New(context.Background(), resource.WithFromEnv())
	values := map[string]string{}
	for _, one := range found.Attributes() {
		values[string(one.Key)] = one.Value.AsString()
	}
	fmt.Println(values, err != nil)
}
GO
go mod tidy 2>/dev/null
go build -o detect .
# ask LANGUAGE VALUE
ask() {
    export OTEL_RESOURCE_ATTRIBUTES=$2
    case $1 in
    Go) ./detect ;;
    Python) v/bin/python -c '
from opentelemetry.sdk.resources import OTELResourceDetector
print(dict(OTELResourceDetector().detect().attributes))' 2>/dev/null ;;
    JavaScript) node -p '
const { detectResources, envDetector } = require("@opentelemetry/resources");
JSON.stringify(detectResources({ detectors: [envDetector] }).attributes)' ;;
    esac
}
seen 'JavaScript: without an error' '{"service.name":"a"}' "$(ask JavaScript service.name=a)"
seen 'JavaScript: team' '{}' "$(ask JavaScript service.name=a,team)"
seen 'JavaScript: query=b=c' '{}' "$(ask JavaScript service.name=a,query=b=c)"
seen 'JavaScript: comma at the end' '{"service.name":"a"}' "$(ask JavaScript service.name=a,)"
seen 'Python: team' "{'service.name': 'a'}" "$(ask Python service.name=a,team)"
seen 'Python: query=b=c' "{'service.name': 'a', 'query': 'b=c'}" "$(ask Python service.name=a,query=b=c)"
seen 'Python: comma at the end' "{'service.name': 'a'}" "$(ask Python service.name=a,)"
seen 'Go: team, and an error' 'map[service.name:a] true' "$(ask Go service.name=a,team)"
seen 'Go: query=b=c, and no error' 'map[query:b=c service.name:a] false' "$(ask Go service.name=a,query=b=c)"
seen 'Go: comma at the end, and an error' 'map[service.name:a] true' "$(ask Go service.name=a,)"
