#!/usr/bin/env bash
# tar --listed-incremental=snapshot, and tar --label=backup
#
# The manual of GNU tar, "Basic Tar Format": a header of the GNU format has times of a backup in the bytes where that of POSIX
# has the first part of a name, and a volume may have a label, an entry of the type V.
# Guess: libraries that read the GNU format give the names, and pass over the label or give it.
# Seen: tarfile of Python 3.11 puts the time in front of the names of an incremental backup, 15302575235/d/f. tar-stream 3.2.2
# (npm) gives the names, and refuses an archive with a label, "unknown format". archive/tar of Go 1.26 reads both, and so does
# tar 7.5.23 (npm), which passes over the label.
# A backup that is unpacked by Python lands in as many folders as there were seconds.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install tar-stream@3.2.2 tar@7.5.23
mkdir d
echo hello >d/f
tar --format=gnu --listed-incremental=snapshot -cf backup.tar d
tar --format=gnu --label=backup -cf label.tar d/f
cat >stream.js <<'JS'
const extract = require("tar-stream").extract();
extract.on("entry", (header, content, next) => {
    console.log(header.name);
    content.on("end", next).resume();
});
extract.on("error", error => console.log(error.message));
require("fs").createReadStream(process.argv[2]).pipe(extract);
JS
cat >list.js <<'JS'
require("tar").list({ file: process.argv[2], onReadEntry(entry) {
    console.log(entry.path);
    entry.resume();
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
	"os"
)

func main() {
	archive := tar.NewReader(os.Stdin)
	for header, err := archive.Next(); err == nil; header, err = archive.Next() {
		fmt.Println(header.Name)
	}
}
GO
go build -o read .
python() {
    python3 -c 'import sys, tarfile; print(*tarfile.open(sys.argv[1]).getnames())' "$1"
}
seen 'Go: backup' 'd/ d/f' "$(./read <backup.tar | paste -sd ' ')"
seen 'tar of npm: backup' 'd/ d/f' "$(node list.js backup.tar | paste -sd ' ')"
seen 'tar-stream: backup' 'd/ d/f' "$(node stream.js backup.tar | paste -sd ' ')"
seen 'Python: backup' 'TIME/d/ TIME/d/f' "$(python backup.tar | sed -E 's/[0-9]{11}/TIME/g')"
seen 'Go: label' 'backup d/f' "$(./read <label.tar | paste -sd ' ')"
seen 'Python: label' 'backup d/f' "$(python label.tar)"
seen 'tar of npm: label' d/f "$(node list.js label.tar)"
seen 'tar-stream: label' 'Invalid tar header: unknown format.' "$(node stream.js label.tar)"
