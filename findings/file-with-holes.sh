#!/usr/bin/env bash
# tar --sparse, of a file of a mebibyte with one byte in it
#
# The manual of GNU tar, "Storing Sparse Files": an archive has the parts with data, and a map of them, in four formats; the
# header of the newer ones states the name and the size of the file in records of PAX.
# Guess: libraries that read GNU archives give the whole file, or refuse it.
# Seen: tar-stream 3.2.2 and tar 7.5.23 (npm), the library of npm itself, give the stored parts, of 4 KiB, as the content, under
# a name with GNUSparseFile in it. Of the format of GNU tar's default, tar leaves the file out, and tar-stream gives an entry
# of no type. archive/tar of Go 1.26 and tarfile of Python 3.11 give the mebibyte.
# Images of disks, and databases, come out short of their holes, without an error.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install tar-stream@3.2.2 tar@7.5.23
truncate -s 1048575 file
printf x >>file
for format in pax gnu; do
    tar --sparse --format=$format -cf $format.tar file
done
cat >stream.js <<'JS'
const extract = require("tar-stream").extract();
extract.on("entry", (header, content, next) => {
    let size = 0;
    content.on("data", part => size += part.length);
    content.on("end", () => (console.log(header.name.replace(/\d+/, "N"), header.type, size), next()));
});
require("fs").createReadStream(process.argv[2]).pipe(extract);
JS
cat >list.js <<'JS'
const list = require("tar").list({ file: process.argv[2], onReadEntry(entry) {
    let size = 0;
    entry.on("data", part => size += part.length);
    entry.on("end", () => console.log(entry.path.replace(/\d+/, "N"), entry.type, size));
} });
JS
cat >go.mod <<'GO'
module finding
go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
)

func main() {
	archive := tar.NewReader(os.Stdin)
	header, err := archive.Next()
	if err != nil {
		panic(err)
	}
	content, _ := io.ReadAll(archive)
	fmt.Println(header.Name, len(content))
}
GO
go build -o read .
for format in pax gnu; do
    seen "Go: $format" 'file 1048576' "$(./read <$format.tar)"
    seen "Python: $format" 'file 1048576' "$(python3 -c '
import sys, tarfile
archive = tarfile.open(sys.argv[1])
member = archive.next()
print(member.name, len(archive.extractfile(member).read()))' $format.tar)"
done
seen 'tar-stream: pax' './GNUSparseFile.N/file file 4608' "$(node stream.js pax.tar)"
seen 'tar of npm: pax' './GNUSparseFile.N/file File 4608' "$(node list.js pax.tar)"
seen 'tar-stream: gnu' 'file null 4096' "$(node stream.js gnu.tar)"
seen 'tar of npm: gnu' '' "$(node list.js gnu.tar)"
