#!/usr/bin/env bash
# Host a  # b
#     IdentityFile ~/.ssh/a#b
#
# ssh_config(5): a line may have a comment at its end, and an argument may stand in quotes. OpenSSH takes a hash for a comment where a
# word begins, and not within one. A name and its value may have an equal sign between them.
# Guess: libraries for this file find what "ssh -G" does.
# Seen: ssh-config 5.3.0 (npm) and sshconf 0.2.7 (Python) cut the path to ~/.ssh/a. @jeanp413/ssh-config 4.3.1 (npm) and paramiko 4.0.0
# (Python) take each word of a comment behind Host for a host. sshconf leaves quotes and an equal sign in values, and gives the options
# of a Match to the host above it. OpenSSH 9.2 does none of this.
# A program offers another key than ssh does.
# shellcheck disable=SC2088 # the tilde is one of the file
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install ssh-config@5.3.0 @jeanp413/ssh-config@4.3.1
pip_install paramiko==4.0.0 sshconf==0.2.7
debian_install openssh-client=1:9.2p1-2+deb12u7
# option LIBRARY HOST OPTION
option() {
    case $1 in
        ssh) root/usr/bin/ssh -G -F config "$2" 2>/dev/null | sed -n "s/^${3,,} //p" ;;
        paramiko) v/bin/python -c '
import os, paramiko, sys
value = paramiko.SSHConfig.from_path("config").lookup(sys.argv[1])[sys.argv[2].lower()]
print(value[0].replace(os.path.expanduser("~"), "~") if isinstance(value, list) else value)' "$2" "$3" ;;
        sshconf) v/bin/python -c '
import sshconf, sys
print(sshconf.read_ssh_config("config").host(sys.argv[1])[sys.argv[2].lower()])' "$2" "$3" ;;
        *) node -e '
            const [library, host, option] = process.argv.slice(1), found = require(library);
            const values = (found.default ?? found).parse(require("fs").readFileSync("config", "utf8")).compute(host);
            console.log([values[option] ?? values[option.toLowerCase()] ?? "none"].flat()[0]);' "$@" ;;
    esac
}
# each HOST OPTION SSH PARAMIKO SSH-CONFIG JEANP413 SSHCONF
each() {
    seen "ssh: $1, $2" "$3" "$(option ssh "$1" "$2")"
    seen '  paramiko' "$4" "$(option paramiko "$1" "$2")"
    seen '  ssh-config' "$5" "$(option ssh-config "$1" "$2")"
    seen '  @jeanp413/ssh-config' "$6" "$(option @jeanp413/ssh-config "$1" "$2")"
    seen '  sshconf' "$7" "$(option sshconf "$1" "$2")"
}
cat >config <<'CONF'
Host a
    IdentityFile ~/.ssh/a#b
    User "x y"
    Port = 23
Match host d
    User three
Host b # c
    User two
Host c
    User four
Host *
    User five
CONF
each a IdentityFile '~/.ssh/a#b' '~/.ssh/a#b' '~/.ssh/a' '~/.ssh/a#b' '~/.ssh/a'
each a User 'x y' 'x y' 'x y' 'x y' "['\"x y\"', 'three']"
each a Port 23 23 23 23 '= 23'
each b User two two two two two
each c User four two four two four
