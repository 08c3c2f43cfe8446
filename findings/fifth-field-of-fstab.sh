#!/usr/bin/env bash
# /dev/sda1 /mnt/a\040b ext4 defaults, in /etc/fstab
#
# fstab(5): the fifth and the sixth field may be left out, and are then 0; a blank in a name is written \040, and a tab \011.
# Guess: a library that reads and writes this file knows both.
# Seen: pyfstab 0.2.0 (Python) refuses the whole file for a line of four fields, or of five, and gives \040 as it stands, in the folder
# and in the name of a file system (LABEL=a\040b), which it takes apart else. It writes a folder with a blank as two fields. jc 1.26.1
# (Python) has both fields as 0, and \040 as it stands.
# A file that is written by hand seldom has the two fields, which dump and fsck alone read.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install pyfstab==0.2.0 jc==1.26.1
cat >read.py <<'PY'
import sys
import jc
from pyfstab import Entry, Fstab
from pyfstab.entry import InvalidFstabLine
for case in sys.argv[1:]:
    library, line = case.split(": ")
    if library == "pyfstab":
        try:
            print([f"{entry.device_tag_value}, {entry.dir}, {entry.fsck}" for entry in Fstab().read_string(line).entries])
        except InvalidFstabLine:
            print("refused")
    elif library == "pyfstab, written":
        print(Entry(*line.split("|")))
    else:
        print([f"{entry['fs_spec']}, {entry['fs_file']}, {entry['fs_passno']}" for entry in jc.parse("fstab", line)])
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
    'pyfstab: UUID=a /x ext4 defaults 0 2' "['a, /x, 2']" \
    'jc: UUID=a /x ext4 defaults 0 2' "['UUID=a, /x, 2']" \
    'pyfstab: UUID=a /x ext4 defaults' refused \
    'pyfstab: UUID=a /x ext4 defaults 0' refused \
    'jc: UUID=a /x ext4 defaults' "['UUID=a, /x, 0']" \
    'pyfstab: LABEL=a\040b /x\040y ext4 defaults 0 0' "['a\\\\040b, /x\\\\040y, 0']" \
    'pyfstab, written: /dev/a|/x y|ext4|defaults|0|0' '/dev/a /x y ext4 defaults 0 0' \
    'jc: LABEL=a\040b /x\040y ext4 defaults 0 0' "['LABEL=a\\\\040b, /x\\\\040y, 0']"
