#!/usr/bin/env bash
# tar --format=pax --owner=3000000
#
# POSIX, pax, "pax Extended Header": a number of an owner that the 7 octal digits of the header cannot hold, above 2097151,
# stands in the record uid, and the record counts.
# Guess: a library that reads names and sizes from these records reads the owner.
# Seen: tar-stream 3.2.2 (npm) gives owner and group 0, root, for 3000000 in this format, and reads the name from the same
# record. In the format of GNU, which has such numbers in binary form, it gives 3000000. tar 7.5.23 (npm) and tarfile of Python
# 3.11 give 3000000 in both.
# Accounts of directories and of containers have such numbers; their files become those of root.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install tar-stream@3.2.2 tar@7.5.23
long=$(printf 'n%.0s' {1..120})
touch "$long"
for format in pax gnu; do
    tar --format=$format --owner=:3000000 --group=:3000000 -cf $format.tar "$long"
done
cat >stream.js <<'JS'
const extract = require("tar-stream").extract();
extract.on("entry", (header, content, next) => {
    console.log(header.name.length, header.uid, header.gid);
    content.on("end", next).resume();
});
require("fs").createReadStream(process.argv[2]).pipe(extract);
JS
cat >list.js <<'JS'
require("tar").list({ file: process.argv[2], onReadEntry(entry) {
    console.log(entry.path.length, entry.uid, entry.gid);
    entry.resume();
} });
JS
for format in pax gnu; do
    seen "tar of npm: $format" '120 3000000 3000000' "$(node list.js $format.tar)"
    seen "Python: $format" '120 3000000 3000000' "$(python3 -c '
import sys, tarfile
member = tarfile.open(sys.argv[1]).next()
print(len(member.name), member.uid, member.gid)' $format.tar)"
done
seen 'tar-stream: gnu' '120 3000000 3000000' "$(node stream.js gnu.tar)"
seen 'tar-stream: pax' '120 0 0' "$(node stream.js pax.tar)"
