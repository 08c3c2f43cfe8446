#!/usr/bin/env bash
# <path d="M0 0a1 1 0 01.5.5"/>
#
# SVG 2, section 9.3.9: a flag of an arc is one character, 0 or 1, and nothing need stand behind it, so that the flags here are 0 and 1,
# and the end .5 .5. Programs that make pictures smaller write so. Section 9.5.1: an arc with a radius of 0 is a straight line.
# Guess: parsers of paths read it as they read "a1 1 0 0 1 .5 .5".
# Seen: parse-svg-path 0.2.0 and path-data-parser 0.1.0 (npm) refuse it, and svg-path-properties 2.1.0 (npm) gives NaN for the length
# of the path. Of a radius of 0 the latter makes the length 0, in place of 5. svgpath 2.6.0, svg-pathdata 9.0.0, svg-path-parser 1.1.0
# (npm), svg.path 7.1 and svgelements 1.9.6 (Python) read the arc.
# A picture disappears once it was made smaller.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install parse-svg-path@0.2.0 path-data-parser@0.1.0 svg-path-properties@2.1.0 svgpath@2.6.0 svg-pathdata@9.0.0 svg-path-parser@1.1.0
pip_install svg.path==7.1 svgelements==1.9.6
# end LIBRARY PATH: where the last command of a path that begins at 0 0 ends
end() {
    case $1 in
        svg.path) v/bin/python -c 'import svg.path, sys; end = svg.path.parse_path(sys.argv[1])[-1].end; print(end.real, end.imag)' "$2" ;;
        svgelements) v/bin/python -c 'import svgelements, sys; print(*svgelements.Path(sys.argv[1])[-1].end)' "$2" ;;
        *) node -e '
            const [library, path] = process.argv.slice(1), found = require(library);
            const last = {
                "parse-svg-path": () => found(path).at(-1).slice(-2),
                "path-data-parser": () => found.parsePath(path).at(-1).data.slice(-2),
                svgpath: () => {
                    const { err, segments } = found(path);
                    if (err) throw err;
                    return segments.at(-1).slice(-2);
                },
                "svg-pathdata": () => {
                    const { x, y } = new found.SVGPathData(path).commands.at(-1);
                    return [x, y];
                },
                "svg-path-parser": () => {
                    const { x, y } = found.parseSVG(path).at(-1);
                    return [x, y];
                },
            };
            try {
                console.log(...last[library]());
            } catch {
                console.log("error");
            }' "$1" "$2" ;;
    esac
}
length() {
    node -p 'new (require("svg-path-properties").svgPathProperties)(process.argv[1]).getTotalLength().toFixed(2)' "$1"
}
APART='M0 0a1 1 0 0 1 .5 .5' TOGETHER='M0 0a1 1 0 01.5.5'
for library in svgpath svg-pathdata svg-path-parser svg.path svgelements; do
    seen "$library: flags apart" '0.5 0.5' "$(end $library "$APART")"
    seen "$library: flags together" '0.5 0.5' "$(end $library "$TOGETHER")"
done
for library in parse-svg-path path-data-parser; do
    seen "$library: flags apart" '0.5 0.5' "$(end $library "$APART")"
    seen "$library: flags together" error "$(end $library "$TOGETHER")"
done
seen 'svg-path-properties: flags apart' 0.72 "$(length "$APART")"
seen 'svg-path-properties: flags together' NaN "$(length "$TOGETHER")"
seen 'svg-path-properties: a line' 5.00 "$(length 'M0 0L3 4')"
seen 'svg-path-properties: a radius of 0' 0.00 "$(length 'M0 0A0 1 0 0 1 3 4')"
