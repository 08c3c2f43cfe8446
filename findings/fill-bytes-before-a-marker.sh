#!/usr/bin/env bash
# FF D8 (...) FF FF FF C0: a picture of JPEG, with two fill bytes before a marker
#
# ITU-T T.81, section B.1.1.2: any marker may be preceded by any number of bytes FF. Table B.1: C9 begins a frame with arithmetic
# coding, as C0 and C2 begin others, and all have the size at the same place.
# Guess: libraries that find the size of a picture know both.
# Seen: image-size 2.1.0 and buffer-image-size 0.6.4 (npm) give an error for both. probe-image-size 7.5.0, imagesize 1.0.0 (npm),
# and imagesize 2.0.1 (Python) find 20 and 30.
# jpegtran -arithmetic makes the second kind of any picture.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install image-size@2.1.0 buffer-image-size@0.6.4 probe-image-size@7.5.0 imagesize@1.0.0
pip_install imagesize==2.0.1
python3 - <<'PY'
import struct
def picture(before, marker):
    start = b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0\1\1\0\0\1\0\1\0\0"
    frame = b"\xff" + bytes([marker]) + struct.pack(">HBHHB", 17, 8, 30, 20, 3) + bytes([1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1])
    scan = b"\xff\xda" + struct.pack(">HB6sBBB", 12, 3, bytes([1, 0, 2, 0, 3, 0]), 0, 63, 0) + bytes(50)
    return start + before + frame + scan + b"\xff\xd9"
for name, before, marker in ("plain", b"", 0xC0), ("filled", b"\xff\xff", 0xC0), ("arithmetic", b"", 0xC9):
    with open(name + ".jpg", "wb") as file:
        file.write(picture(before, marker))
PY
size_js() {
    node -e '
        const [library, name] = process.argv.slice(1);
        const bytes = require("fs").readFileSync(name), found = require(library);
        const size = {
            "image-size": () => found.imageSize(bytes),
            "buffer-image-size": () => found(bytes),
            "probe-image-size": () => found.sync(bytes),
            imagesize: () => {
                const parser = found.Parser();
                parser.parse(bytes);
                return parser.getResult();
            },
        }[library];
        try {
            console.log(size().width, size().height);
        } catch {
            console.log("error");
        }' "$1" "$2"
}
size_python() {
    v/bin/python -c 'import imagesize, sys; print(*imagesize.get(sys.argv[1]))' "$1"
}
for library in image-size buffer-image-size probe-image-size imagesize; do
    seen "$library: plain" '20 30' "$(size_js $library plain.jpg)"
done
for name in filled arithmetic; do
    for library in probe-image-size imagesize; do
        seen "$library: $name" '20 30' "$(size_js $library $name.jpg)"
    done
    seen "imagesize of Python: $name" '20 30' "$(size_python $name.jpg)"
    for library in image-size buffer-image-size; do
        seen "$library: $name" error "$(size_js $library $name.jpg)"
    done
done
