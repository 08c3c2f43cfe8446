#!/usr/bin/env bash
# memory: 1.5Gi, and cpu: 123456n
#
# Kubernetes, "Quantity" of its API: a number, with a fraction if need be, and then a power of two (Ki to Ei), a suffix of SI from n
# to E, or an exponent, e or E. Its metrics come with n, as in cpu: 123456n.
# Guess: the clients of the project itself, and small libraries for quantities, read the same as its own code in Go.
# Seen: k8s.io/apimachinery 0.34.1 (Go) reads all. @kubernetes/client-node 1.3.0 (npm) fails at 1.5Gi with a SyntaxError, and
# lightkube 1.0.1 (Python) at n, u and 1E3. kubernetes 34.1.0 (Python) takes 1K for 1000, which Go refuses. kubernetes-resource-parser
# 0.1.0 (npm) has 1 byte for 1.5Gi, 1 for 1e3 of memory, NaN for 128000m, and 123456 CPUs for 123456n.
# A program that adds up what the pods ask for counts another sum than the scheduler, or ends.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @kubernetes/client-node@1.3.0 kubernetes-resource-parser@0.1.0
pip_install kubernetes==34.1.0 lightkube==1.0.1
cat >go.mod <<'GO'
module finding
go 1.26
require k8s.io/apimachinery v0.34.1
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	quantity, err := resource.ParseQuantity(os.Args[1])
	if err != nil {
		fmt.Println("refused")
		return
	}
	fmt.Println(quantity.AsApproximateFloat64())
}
GO
go mod tidy 2>/dev/null
go build -o parse .
# python MODULE QUANTITY
python() {
    v/bin/python -c '
import importlib, sys
parse = importlib.import_module(sys.argv[1]).parse_quantity
try:
    print(float(parse(sys.argv[2])))
except ValueError:
    print("refused")' "$1" "$2"
}
# client QUANTITY
client() {
    node --input-type=module -e '
import { quantityToScalar } from "./node_modules/@kubernetes/client-node/dist/util.js";
try {
    console.log(String(quantityToScalar(process.argv[1])));
} catch (error) {
    console.log(error.name);
}' "$1"
}
# small FUNCTION QUANTITY
small() {
    node -p 'require("kubernetes-resource-parser")[process.argv[1]](process.argv[2])' "$1" "$2"
}
seen 'Go: 1.5Gi' 1.610612736e+09 "$(./parse 1.5Gi)"
seen 'client-node: 1Gi' 1073741824 "$(client 1Gi)"
seen 'client-node: 1.5Gi' SyntaxError "$(client 1.5Gi)"
seen 'kubernetes-resource-parser: 1.5Gi' 1 "$(small memoryParser 1.5Gi)"
seen 'Go: 123456n' 0.000123456 "$(./parse 123456n)"
seen 'kubernetes of Python: 123456n' 0.000123456 "$(python kubernetes.utils.quantity 123456n)"
seen 'lightkube: 123456n' refused "$(python lightkube.utils.quantity 123456n)"
seen 'kubernetes-resource-parser: 123456n' 123456 "$(small cpuParser 123456n)"
seen 'Go: 1E3' 1000 "$(./parse 1E3)"
seen 'lightkube: 1E3' refused "$(python lightkube.utils.quantity 1E3)"
seen 'lightkube: 1e3' 1000.0 "$(python lightkube.utils.quantity 1e3)"
seen 'kubernetes-resource-parser: 1e3' 1 "$(small memoryParser 1e3)"
seen 'Go: 128000m' 128 "$(./parse 128000m)"
seen 'kubernetes-resource-parser: 128000m' NaN "$(small memoryParser 128000m)"
seen 'Go: 1K' refused "$(./parse 1K)"
seen 'kubernetes of Python: 1K' 1000.0 "$(python kubernetes.utils.quantity 1K)"
