#!/usr/bin/env bash
# 9D 01 2A 14 40 1E 80: a picture of WebP of 20 by 30, to be shown larger
#
# RFC 6386, section 9.1: width and height have 14 bits, and the two bits above each say how much larger the picture may be shown.
# [MS-WMF], "BitmapCoreHeader": in the short header of a BMP file width and height have 16 bits each.
# Guess: libraries that find the size of a picture know these two.
# Seen: imagesize 2.0.1 (Python) gives 16404 and 32798. It gives 1966100 and 1572865 for the BMP file, and so do image-size 2.1.0 and
# buffer-image-size 0.6.4 (npm). probe-image-size 7.5.0 (npm) finds 20 and 30 in both.
# A page that trusts it leaves a place of 16404 pixels.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install image-size@2.1.0 buffer-image-size@0.6.4 probe-image-size@7.5.0
pip_install imagesize==2.0.1
python3 - <<'PY'
import struct
def webp(across, down):
    frame = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", 20 | across << 14, 30 | down << 14) + bytes(10)
    return b"RIFF" + struct.pack("<I", 12 + len(frame)) + b"WEBPVP8 " + struct.pack("<I", len(frame)) + frame
rows = bytes(20 * 3 * 30)
files = {
    "plain.webp": webp(0, 0),
    "scaled.webp": webp(1, 2),
    "plain.bmp": b"BM" + struct.pack("<IHHIIiiHH24x", 54 + len(rows), 0, 0, 54, 40, 20, 30, 1, 24) + rows,
    "short.bmp": b"BM" + struct.pack("<IHHIIHHHH", 26 + len(rows), 0, 0, 26, 12, 20, 30, 1, 24) + rows,
}
for name, content in files.items():
    with open(name, "wb") as file:
        file.write(content)
PY
size() {
    if [[ $1 == imagesize ]]; then
        v/bin/python -c 'import imagesize, sys; print(*imagesize.get(sys.argv[1]))' "$2"
        return
    fi
    node -e '
        const [library, name] = process.argv.slice(1);
        const found = require(library);
        const size = (found.imageSize ?? found.sync ?? found)(require("fs").readFileSync(name));
        console.log(size.width, size.height);' "$1" "$2"
}
for name in plain.webp plain.bmp; do
    for library in image-size buffer-image-size probe-image-size imagesize; do
        seen "$library: $name" '20 30' "$(size $library $name)"
    done
done
for library in image-size buffer-image-size probe-image-size; do
    seen "$library: scaled.webp" '20 30' "$(size $library scaled.webp)"
done
seen 'imagesize: scaled.webp' '16404 32798' "$(size imagesize scaled.webp)"
seen 'probe-image-size: short.bmp' '20 30' "$(size probe-image-size short.bmp)"
for library in image-size buffer-image-size imagesize; do
    seen "$library: short.bmp" '1966100 1572865' "$(size $library short.bmp)"
done
