#!/usr/bin/env bash
# the key zürich in etcd, by two clients
#
# etcd: keys and values are bytes. Its own command, and all clients that take text, have to choose bytes for a text.
# Guess: they choose UTF-8, as everything around them does, so that one program reads what another has written.
# Seen: with etcd 3.4.23 of Debian 12, etcd3gw 2.7.0 (Python) writes keys and values in Latin-1, and refuses an arrow. etcd3 1.1.2
# (npm) and etcdctl write and look for UTF-8: they do not find the key, and list it with a byte that is no UTF-8. aetcd 1.0.0
# (Python) takes bytes alone.
# A fleet with programs in two languages has two settings of one name, and neither program sees an error.
# shellcheck disable=SC2016 # templates of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install etcd-server etcd-client
pip_install etcd3gw==2.7.0
npm_install etcd3@1.1.2
root/usr/bin/etcd --version | sed -n 1p
# Two free ports: one for clients, one that a server on its own does not need and still opens.
read -r PORT PEERS < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')
export PORT
root/usr/bin/etcd --data-dir store --listen-client-urls "http://127.0.0.1:$PORT" --advertise-client-urls "http://127.0.0.1:$PORT" \
    --listen-peer-urls "http://127.0.0.1:$PEERS" &>etcd.log &
server=$!
trap 'kill "$server"; wait; rm -rf "$FOLDER"' EXIT
etcdctl() {
    ETCDCTL_API=3 root/usr/bin/etcdctl --endpoints "http://127.0.0.1:$PORT" "$@"
}
until etcdctl endpoint health &>/dev/null; do sleep 0.1; done
# python EXPRESSION, with a client c
python() {
    v/bin/python -c '
import os, sys, etcd3gw
c = etcd3gw.client(host="127.0.0.1", port=int(os.environ["PORT"]))
try:
    print(eval(sys.argv[1]))
except UnicodeError:
    print("refused")' "$1"
}
# node_client EXPRESSION, with a client c
node_client() {
    node -e '
const c = new (require("etcd3").Etcd3)({ hosts: `127.0.0.1:${process.env.PORT}` });
eval(process.argv[1]).then(found => {
    console.log(found);
    c.close();
});' "$1"
}
seen 'etcd3gw: writes zürich' True "$(python 'c.put("zürich", "größe")')"
seen 'etcdctl: its bytes' '7afc72696368 6772f6df65' "$(etcdctl get --prefix z | xxd -p -c 99 | sed 's/0a\(.*\)0a/ \1/')"
seen 'etcd3gw: reads zürich' "[b'gr\\xf6\\xdfe']" "$(python 'c.get("zürich")')"
seen 'etcd3 of npm: reads zürich' null "$(node_client 'c.get("zürich").string()')"
node_client 'c.put("zürich").value("größe")' >/dev/null
seen 'etcd3 of npm: writes zürich, and reads it' größe "$(node_client 'c.get("zürich").string()')"
seen 'etcdctl: reads zürich' größe "$(etcdctl get --print-value-only zürich)"
seen 'etcd3gw: keys that begin with z' 2 "$(python 'len(c.get_prefix("z"))')"
seen 'etcd3gw: an arrow' refused "$(python 'c.put("→", "a")')"
