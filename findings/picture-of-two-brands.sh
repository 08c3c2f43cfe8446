#!/usr/bin/env bash
# the first bytes of an AVIF file whose major brand is mif1
#
# AVIF 1.1, "Brands": a file names avif among its compatible brands. The major brand may be another, such as mif1, of which AVIF is
# a kind. WOFF 2.0: the type is font/woff2, the signature wOF2.
# Guess: libraries that tell a type by the first bytes look at the compatible brands, as mif1 alone tells neither AVIF nor HEIC.
# Seen: file-type 21.3.4 (npm) says image/heif, and image/avif with avif as the major brand. puremagic 1.30 (Python) says video/mp4
# of both. filetype 1.2.0 (Python) says image/avif of both, and application/font-woff of WOFF 2, which is the type of version 1.
# A server that sets Content-Type by such a library gives browsers a picture that they do not show, or a film.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install file-type@21.3.4
pip_install puremagic==1.30 filetype==1.2.0
# picture MAJOR COMPATIBLE...
picture() {
    printf '\0\0\0%b%s\0\0\0\0' "\\x$(printf %x $((12 + 4 * $#)))ftyp" "$1"
    shift
    printf %s "$@"
    head -c 64 /dev/zero
}
picture avif avif mif1 miaf >one.avif
picture mif1 mif1 avif miaf >two.avif
{
    printf 'wOF2\0\1\0\0'
    head -c 64 /dev/zero
} >woff2
node_type() {
    node --input-type=module -e '
import { fileTypeFromBuffer } from "file-type";
import { readFileSync } from "fs";
console.log((await fileTypeFromBuffer(readFileSync(process.argv[1]))).mime);' "$1"
}
python_type() {
    v/bin/python -c '
import sys, filetype, puremagic
data = open(sys.argv[2], "rb").read()
print(filetype.guess_mime(data) if sys.argv[1] == "filetype" else puremagic.from_string(data, mime=True))' "$1" "$2"
}
seen 'file-type: avif' image/avif "$(node_type one.avif)"
seen 'file-type: mif1, and avif among others' image/heif "$(node_type two.avif)"
for library in filetype puremagic; do
    case $library in filetype) was=image/avif ;; *) was=video/mp4 ;; esac
    seen "$library: avif" $was "$(python_type $library one.avif)"
    seen "$library: mif1, and avif among others" $was "$(python_type $library two.avif)"
done
seen 'filetype: WOFF 2' application/font-woff "$(python_type filetype woff2)"
seen 'puremagic: WOFF 2' font/woff2 "$(python_type puremagic woff2)"
seen 'file-type: WOFF 2' font/woff2 "$(node_type woff2)"
