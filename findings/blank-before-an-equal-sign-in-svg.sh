#!/usr/bin/env bash
# <svg xmlns="http://www.w3.org/2000/svg" width = "20" height = "30"/>
#
# XML 1.0, production 25: blanks may stand beside the equal sign of an attribute; section 2.5: a comment is no part of the text.
# SVG 2, section 4.2: a number may have an exponent.
# Guess: libraries that find the size of a picture of SVG read it as XML.
# Seen: image-size 2.1.0, buffer-image-size 0.6.4 (npm) and imagesize 2.0.1 (Python) find no size, or give an error, and only
# probe-image-size 7.5.0 (npm) finds 20 and 30. Of width="2e1" buffer-image-size makes 2, and imagesize nothing. Behind a comment
# with another svg in it image-size and buffer-image-size give the size in the comment, and imagesize none.
# A picture whose file a person has laid out gets no place on the page, or the wrong one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SVG='<svg xmlns="http://www.w3.org/2000/svg"'
npm_install image-size@2.1.0 buffer-image-size@0.6.4 probe-image-size@7.5.0
pip_install imagesize==2.0.1
echo "$SVG width=\"20\" height=\"30\"/>" >plain.svg
echo "$SVG width = \"20\" height = \"30\"/>" >blank.svg
echo "$SVG width=\"2e1\" height=\"3e1\"/>" >exponent.svg
echo "<!-- <svg width=\"1\" height=\"1\"> -->$SVG width=\"20\" height=\"30\"/>" >comment.svg
size() {
    if [[ $1 == imagesize ]]; then
        v/bin/python -c 'import imagesize, sys; print(*(int(side) for side in imagesize.get(sys.argv[1])))' "$2.svg"
        return
    fi
    node -e '
        const [library, name] = process.argv.slice(1);
        const bytes = require("fs").readFileSync(name), found = require(library);
        try {
            const size = (found.imageSize ?? found.sync ?? found)(bytes);
            console.log(size.width, size.height);
        } catch {
            console.log("error");
        }' "$1" "$2.svg"
}
for library in image-size buffer-image-size probe-image-size imagesize; do
    seen "$library: plain" '20 30' "$(size $library plain)"
done
for name in blank exponent comment; do
    seen "probe-image-size: $name" '20 30' "$(size probe-image-size $name)"
done
seen 'image-size: exponent' '20 30' "$(size image-size exponent)"
seen 'image-size: blank' error "$(size image-size blank)"
seen 'image-size: comment' '1 1' "$(size image-size comment)"
seen 'buffer-image-size: blank' error "$(size buffer-image-size blank)"
seen 'buffer-image-size: exponent' '2 3' "$(size buffer-image-size exponent)"
seen 'buffer-image-size: comment' '1 1' "$(size buffer-image-size comment)"
for name in blank exponent comment; do
    seen "imagesize: $name" '-1 -1' "$(size imagesize $name)"
done
