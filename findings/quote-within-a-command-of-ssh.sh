#!/usr/bin/env bash
# command="echo \"a\"" ssh-ed25519 AAAA..., in authorized_keys
#
# sshd(8), "AUTHORIZED_KEYS FILE FORMAT": a quote within the command is written with a backslash before it; options have commas between
# them, and blanks only within quotes. verify-required is one of the options.
# Guess: a library that reads these lines gives the command that runs.
# Seen: sshpubkeys 3.3.1 (Python) gives the command with the backslash, and without the quote behind it: echo \a\. It refuses a line for
# verify-required, and reads a comma within a command.
# A program that lists the commands of keys shows others than those that sshd has.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install sshpubkeys==3.3.1
cat >read.py <<'PY'
import base64, struct, sys
from sshpubkeys import SSHKey
from sshpubkeys.exceptions import InvalidOptionNameError, UnknownOptionNameError
key = "ssh-ed25519 " + base64.b64encode(struct.pack(">I11sI", 11, b"ssh-ed25519", 32) + bytes(range(32))).decode()
for options in sys.argv[1:]:
    try:
        found = SSHKey(f"{options} {key} a", strict=True)
        found.parse()
        print(found.options.get("command", found.options))
    except (InvalidOptionNameError, UnknownOptionNameError) as error:
        print(error)
PY
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'v/bin/python read.py' \
    'command="echo a"' "['echo a']" \
    'command="echo a, b",no-pty' "['echo a, b']" \
    'command="echo \"a\""' "['echo \\\\a\\\\']" \
    'no-touch-required' "{'no-touch-required': [True]}" \
    'verify-required' 'verify-required is an unrecognized option name.'
