# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Where cargo leaves its programs: honours a target directory chosen by the user. The scripts call cargo in the root.
TARGET=$(cd "$ROOT" && realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")

# rustup puts cargo here, and a shell opened before it ran does not know.
if ! command -v cargo >/dev/null && [[ -x $HOME/.cargo/bin/cargo ]]; then
    PATH=$HOME/.cargo/bin:$PATH
fi

if [[ -t 2 && -z ${NO_COLOR:-} ]]; then
    BOLD=$'\e[1m' RED=$'\e[31m' GREEN=$'\e[32m' PLAIN=$'\e[0m'
else
    BOLD='' RED='' GREEN='' PLAIN=''
fi

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "${RED}${BOLD}$(basename "$0"):${PLAIN} $1"
    shift
    local line
    for line in "$@"; do say "  $line"; done
    exit 1
}
