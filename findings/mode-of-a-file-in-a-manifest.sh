#!/usr/bin/env bash
# defaultMode: 0644, in a manifest of Kubernetes
#
# Kubernetes, volumes: the mode of files is a number, which manifests in JSON have to write as 420, and those in YAML may write as
# 0644. A zero makes a number octal in YAML 1.1, and counts for nothing in YAML 1.2, which writes 0o644.
# Guess: libraries that programs read manifests with agree with kubectl, the client of the project for Node above all.
# Seen: sigs.k8s.io/yaml 1.6.0 (Go), which kubectl reads manifests with, makes 420 of 0644 and of 0o644, and refuses neither.
# @kubernetes/client-node 1.3.0 (npm) makes 644 of 0644 by its loadYaml, and so do yaml 2.9.1 (npm) and ruamel.yaml 0.19.1 (Python):
# in octal this is 1204, which the owner can only write. PyYAML 6.0.4 (Python) has a text for 0o644. No form but 420 means the same
# to all.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install @kubernetes/client-node@1.3.0 yaml@2.9.1
pip_install PyYAML==6.0.4 ruamel.yaml==0.19.1
cat >go.mod <<'GO'
module finding
go 1.26
require sigs.k8s.io/yaml v1.6.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	read, err := yaml.YAMLToJSON([]byte(os.Args[1]))
	fmt.Println(string(read), err)
}
GO
go get . 2>/dev/null
go build -o parse .
seen 'sigs.k8s.io/yaml: 0644' '{"mode":420} <nil>' "$(./parse 'mode: 0644')"
seen 'sigs.k8s.io/yaml: 0o644' '{"mode":420} <nil>' "$(./parse 'mode: 0o644')"
pod='{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"name":"a","secret":{"secretName":"b","defaultMode":MODE}}]}}'
for mode in 0644 0o644 420; do
    read=$(node --input-type=module -e '
import { loadYaml } from "./node_modules/@kubernetes/client-node/dist/yaml.js";
console.log(loadYaml(process.argv[1]).spec.volumes[0].secret.defaultMode);' "${pod/MODE/$mode}")
    case $mode in 0644) was=644 ;; *) was=420 ;; esac
    seen "client-node: $mode" $was "$read"
done
seen 'yaml: 0644' 644 "$(node -p 'require("yaml").parse("mode: 0644").mode')"
seen 'ruamel.yaml: 0644' 644 "$(v/bin/python -c '
from ruamel.yaml import YAML
print(YAML(typ="safe", pure=True).load("mode: 0644")["mode"])')"
seen 'PyYAML: 0644' 420 "$(v/bin/python -c 'import yaml; print(yaml.safe_load("mode: 0644")["mode"])')"
seen 'PyYAML: 0o644' "'0o644'" "$(v/bin/python -c 'import yaml; print(repr(yaml.safe_load("mode: 0o644")["mode"]))')"
