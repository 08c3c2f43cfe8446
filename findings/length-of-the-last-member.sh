#!/usr/bin/env bash
# A gzip file of two members, the first of them longer
#
# RFC 1952, section 2.2: a gzip file is members one after another, and its content theirs, joined. Section 2.3.1: ISIZE is
# the length of one member.
# Guess: a library that reads the first member alone gives at least all of it.
# Seen: fflate 0.8.3 (npm) takes the length from the end of the file, where that of the last member stands: it cuts
# a longer first member to it, without an error. pako 3.0.3 (npm) and Node's DecompressionStream join both.
# A server should never join members, not even for files that are built from compressed pieces.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install fflate@0.8.3 pako@3.0.3
cat >read.js <<'JS'
const { gzipSync } = require("zlib");
const bytes = Buffer.concat(process.argv.slice(3).map((text) => gzipSync(text)));
const libraries = {
    fflate: () => require("fflate").gunzipSync(bytes),
    pako: () => require("pako").ungzip(bytes),
    node: async () =>
        new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer(),
};
(async () => {
    const content = await libraries[process.argv[2]]();
    console.log(JSON.stringify(Buffer.from(content).toString()));
})();
JS
for library in pako node; do
    seen "$library: long and short" '"hello world"' "$(node read.js $library 'hello ' world)"
done
seen 'fflate: one member' '"hello "' "$(node read.js fflate 'hello ')"
seen 'fflate: long and short' '"he"' "$(node read.js fflate 'hello ' me)"
seen 'fflate: short and long' '"me"' "$(node read.js fflate me 'hello ')"
