#!/usr/bin/env bash
# two rings of the same five servers, and the server of a key
#
# Karger et al., "Consistent Hashing and Random Trees" (1997): a key belongs to the server that is next to it on a circle, and
# the places of a server come from a hash of its name, so that all clients with the same servers agree.
# Guess: libraries of this kind choose the same server for a key in each program, whatever the order of the list is, and
# weights of 10 and 10 are as good as 1 and 1.
# Seen: consistent-hash 1.2.2 (npm) puts servers at random places: two rings of one list choose other servers for more than half
# of the keys. With distribution "uniform" they agree, unless the list is in another order. hashring 3.2.0 (npm) and
# uhashring 2.5 (Python) choose the same. With weights of 10 uhashring chooses another server for 2 of 5 keys, and its mode
# ketama the same.
# Each program has a cache of its own in the same five servers, and a restart begins a new one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install consistent-hash@1.2.2 hashring@3.2.0
pip_install uhashring==2.5
cat >ring.js <<'JS'
const [library, order, distribution] = process.argv.slice(2);
const Ring = require(library);
const servers = [1, 2, 3, 4, 5].map(number => `192.0.2.${number}`);
const keys = [...Array(5000).keys()].map(number => `k${number}`);
function build(list) {
    const ring = distribution ? new Ring({ distribution }) : new Ring();
    list.forEach(server => ring.add(server));
    return ring;
}
const first = build(servers);
const second = build(order === "same" ? servers : servers.reverse());
const others = keys.filter(key => first.get(key) !== second.get(key)).length;
console.log(others === 0 ? "none" : others > 2500 ? "most" : others);
JS
python() {
    v/bin/python -c '
import sys
from uhashring import HashRing
change, *mode = sys.argv[1:]
mode = {"hash_fn": mode[0]} if mode else {}
keys = [f"k{number}" for number in range(5000)]
first = HashRing(nodes={"a": 1, "b": 1}, **mode)
second = HashRing(nodes={"b": 1, "a": 1} if change == "order" else {"a": 10, "b": 10}, **mode)
print(sum(first.get_node(key) != second.get_node(key) for key in keys))' "$@"
}
echo 'keys with another server:'
seen 'hashring: same list' none "$(node ring.js hashring same)"
seen 'hashring: other order' none "$(node ring.js hashring other)"
seen 'uhashring: other order' 0 "$(python order)"
seen 'uhashring, ketama: weights of 10' 0 "$(python weight ketama)"
seen 'uhashring: weights of 10' 2146 "$(python weight)"
seen 'consistent-hash: same list' most "$(node ring.js consistent-hash same)"
seen 'consistent-hash, uniform: same list' none "$(node ring.js consistent-hash same uniform)"
seen 'consistent-hash, uniform: other order' most "$(node ring.js consistent-hash other uniform)"
