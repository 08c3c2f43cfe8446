# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=bash

set -euo pipefail
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
export GOMODCACHE=$FOLDER/modules GOFLAGS=-modcacherw # modules of Go, too, are removed at the end

# pip_install PACKAGE==VERSION...: a virtual environment in ./v
pip_install() {
    python3 -m venv v
    v/bin/pip --quiet --disable-pip-version-check install "$@"
}

# npm_install PACKAGE@VERSION...
npm_install() {
    npm init --yes >/dev/null
    npm install --silent --no-audit --no-fund "$@"
}

# seen WHAT EXPECTED FOUND: prints FOUND, and ends with an error if it is not EXPECTED.
seen() {
    printf '%-44s %s\n' "$1" "$3"
    if [[ $2 != "$3" ]]; then
        echo "changed: it was $2" >&2
        exit 1
    fi
}
