#!/usr/bin/env bash
# "a\fb" of TOML, and other values that a library does not write or read as they are
#
# TOML 1.0: \b and \f are a backspace and a form feed. Blanks around the dot of a key do not count. A time of a
# day may have a fraction, and the T and the Z of a date may be small letters.
# Guess: a library writes a text so that each reader, and itself, reads the same text.
# Seen: toml 0.10.2 (Python) writes "ax0cb" for a form feed in the middle of a and b: the escape of Python without its backslash. It
# has a key "a " for a . b, drops the half second of 07:32:00.5, and the small z of a time, which then has no time zone. tomlkit
# 0.15.2 and Python's own tomllib, which does not write, agree on all.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install toml==0.10.2 tomlkit==0.15.2
# ask EXPRESSION
ask() {
    v/bin/python -c '
import sys, toml, tomllib, tomlkit
try:
    print(eval(sys.argv[1]))
except ValueError:
    print("refused")' "$1"
}
seen 'toml: writes a form feed' 'a = "ax0cb"' "$(ask 'toml.dumps({"a": "a\fb"}).strip()')"
seen 'tomlkit: writes a form feed' 'a = "a\fb"' "$(ask 'tomlkit.dumps({"a": "a\fb"}).strip()')"
seen 'toml: a . b' "{'a ': {'b': 1}}" "$(ask 'toml.loads("a . b = 1")')"
seen 'tomllib: a . b' "{'a': {'b': 1}}" "$(ask 'tomllib.loads("a . b = 1")')"
seen 'toml: 07:32:00.5' 07:32:00 "$(ask 'toml.loads("a = 07:32:00.5")["a"]')"
seen 'tomllib: 07:32:00.5' 07:32:00.500000 "$(ask 'tomllib.loads("a = 07:32:00.5")["a"]')"
seen 'toml: 2026-11-29t07:32:00z' '2026-11-29 07:32:00' "$(ask 'toml.loads("a = 2026-11-29t07:32:00z")["a"]')"
seen 'tomllib: 2026-11-29t07:32:00z' '2026-11-29 07:32:00+00:00' "$(ask 'tomllib.loads("a = 2026-11-29t07:32:00z")["a"]')"
