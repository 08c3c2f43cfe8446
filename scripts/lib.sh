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

# Clippy's driver is rustc with more lints, and makes the same programs: with it, what is compiled for tests is linted on the
# way. `cargo clippy` would read all crates once more. Only crates of the workspace are compiled by it.
lint_while_compiling() {
    export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
}

# The compiler's flags for programs of users. Those of RUSTFLAGS come last, where they win.
# - Frame pointers make the program smaller (docs/decisions/size.md), and show profilers who called.
# - Paths of this machine are of no interest to others, and would make the program another one on each.
export_release_flags() {
    local of_caller flags
    read -ra of_caller <<<"${RUSTFLAGS-}"
    flags=(-C force-frame-pointers=yes
        "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/cargo" "--remap-path-prefix=$ROOT=/afpa"
        "--remap-path-prefix=$(rustc --print sysroot)=/rust" "${of_caller[@]}")
    local IFS=$'\x1f'
    export CARGO_ENCODED_RUSTFLAGS=${flags[*]}
}

# Milliseconds of processors, from what `times` prints: those of the commands that a shell has waited for. That shell itself
# has to call it, since a subshell knows only its own: times >FILE; busy_ms <FILE
busy_ms() {
    awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); sum += part[1] * 60 + part[2] } }
         END { printf "%d\n", sum * 1000 }'
}
