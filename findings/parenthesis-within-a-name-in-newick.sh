#!/usr/bin/env bash
# ('a(b),c':1,B[x]:2);
#
# "The Newick tree format" and Gary Olsen's "Interpretation of the Newick's 8:45 tree format standard": a label in single quotes may have
# parentheses, commas and colons, and two quotes in it are one; a comment stands in brackets, anywhere between other parts.
# Guess: parsers of Newick find two leaves, "a(b),c" and "B", with the lengths 1 and 2.
# Seen: biojs-io-newick 1.5.0 (npm) finds three, "b", "c'" and "B[x]", and leaves quotes in names. newick-js 1.2.1 (npm) leaves a
# comment in a name, and refuses one before the tree. Both lose the length behind one. newick 1.11.0 (Python) reads all of them.
# The tree has kinds that nobody has described.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install biojs-io-newick@1.5.0 newick-js@1.2.1
pip_install newick==1.11.0
# leaves LIBRARY TREE: names and lengths
leaves() {
    if [[ $1 == newick ]]; then
        v/bin/python -c '
import newick, sys
tree = newick.loads(sys.argv[1])[0]
print("".join(f"[{leaf.unquoted_name} {leaf.length:g}]" for leaf in tree.get_leaves()))' "$2"
        return
    fi
    node -e '
        const [name, text] = process.argv.slice(1), library = require(name);
        const show = (leaf, length) => `[${leaf} ${length ?? 0}]`;
        const walk = (node) => node.children?.length ? node.children.flatMap(walk) : [show(node.name, node.branch_length)];
        const read = {
            "biojs-io-newick": () => walk(library.parse_newick(text)),
            "newick-js": () => {
                const { graph: [vertices, arcs] } = library.parse(text);
                const inner = new Set([...arcs].map((arc) => arc[0]));
                const lengths = new Map([...arcs].map((arc) => [arc[1], arc[2]]));
                return [...vertices].filter((vertex) => !inner.has(vertex)).map((leaf) => show(leaf.label, lengths.get(leaf)));
            },
        };
        try {
            console.log(read[name]().join(""));
        } catch {
            console.log("error");
        }' "$1" "$2"
}
# each TREE NEWICK NEWICK-JS BIOJS-IO-NEWICK
each() {
    seen "newick: $1" "$2" "$(leaves newick "$1")"
    seen '  newick-js' "$3" "$(leaves newick-js "$1")"
    seen '  biojs-io-newick' "$4" "$(leaves biojs-io-newick "$1")"
}
each '(A:1,B:2);' '[A 1][B 2]' '[A 1][B 2]' '[A 1][B 2]'
each "('a(b),c':1,B[x]:2);" '[a(b),c 1][B 2]' '[a(b),c 1][B[x] 2]' "[b 0][c' 1][B[x] 2]"
each "('it''s':1,B:2);" "[it's 1][B 2]" "[it's 1][B 2]" "['it''s' 1][B 2]"
each '[x](A:1,B:2);' '[A 1][B 2]' error '[A 1][B 2]'
each '(A:[x]1,B:2);' '[A 1][B 2]' '[A NaN][B 2]' '[A NaN][B 2]'
