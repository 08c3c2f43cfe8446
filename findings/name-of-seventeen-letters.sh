#!/usr/bin/env bash
# a-very-long-file-name.txt, in an archive of ar
#
# ar(5) of FreeBSD, and deb(5): the header of a member has 60 bytes, 16 of them for the name. A longer one stands in a member // to which
# /0 points (GNU), or before the content, after #1/25 in the header (BSD).
# Guess: libraries for such archives write and read one of the two forms, or refuse a longer name.
# Seen: unix-ar 0.2.1 (Python) writes the name as it is, so that the header has 69 bytes: it refuses its own archive, as arpy 2.4.0 and
# arfile of python-debian 1.1.1 (Python) do. arfile gives an empty name for each long one of GNU, and `#1`, with the name in the content,
# for BSD; arpy reads both forms.
# Nothing tells the archive from one that was damaged on its way.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install unix-ar==0.2.1 python-debian==1.1.1 arpy==2.4.0
cat >use.py <<'PY'
import io, sys
import arpy, unix_ar
from debian.arfile import ArError, ArFile

def member(name, content):
    return f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)

def written(name):
    archive = unix_ar.open("archive", "w")
    archive.addfile(unix_ar.ArInfo(name, size=3, mtime=0, perms=0o644, uid=0, gid=0), io.BytesIO(b"abc"))
    archive.close()
    with open("archive", "rb") as file:
        return file.read()

long = b"a-very-long-file-name.txt"
archives = {
    "short": b"!<arch>\n" + member("a.txt/", b"abc"),
    "GNU": b"!<arch>\n" + member("//", long + b"/\n") + member("/0", b"abc"),
    "BSD": b"!<arch>\n" + member("#1/25", long + b"abc"),
    "of-unix-ar-short": written("a.txt"),
    "of-unix-ar": written(long.decode()),
}
for library, name in (case.split(" ") for case in sys.argv[1:]):
    try:
        if library == "arpy":
            archive = arpy.Archive(fileobj=io.BytesIO(archives[name]))
            archive.read_all_headers()
            print(*(f"{name.decode()}={file.read().decode()}" for name, file in archive.archived_files.items()))
        elif library == "unix-ar":
            print([str(info.name) for info in unix_ar.ArFile(io.BytesIO(archives[name])).infolist()])
        else:
            print(*(f"{file.name}={file.read().decode()}" for file in ArFile(fileobj=io.BytesIO(archives[name])).getmembers()[-1:]))
    except (ArError, OSError, ValueError, arpy.ArchiveFormatError):
        print("refused")
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
each 'v/bin/python use.py' \
    'arpy short' a.txt=abc \
    'arfile short' a.txt=abc \
    'arpy GNU' a-very-long-file-name.txt=abc \
    'arfile GNU' =abc \
    'arpy BSD' a-very-long-file-name.txt=abc \
    'arfile BSD' '#1=a-very-long-file-name.txtabc' \
    'arpy of-unix-ar-short' a.txt=abc \
    'arpy of-unix-ar' refused \
    'arfile of-unix-ar' refused \
    'unix-ar of-unix-ar' refused
