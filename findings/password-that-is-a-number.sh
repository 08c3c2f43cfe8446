#!/usr/bin/env bash
# authorization { user: a, password: 10k }
# max_payload: 1K
#
# The configuration of NATS: a text needs no quotes; a word of digits is a number, with units of 1000 (K, M, G) or 1024 (KB, MB, GB).
# Guess: nats-server takes a password of digits for a text, or says that it must be one; and 1K and 1KB are the same.
# Seen: nats-server 2.9.10 of Debian 12 refuses the passwords 123, 10k, true and -5, with a message on an invalid address of memory
# that names no password; 5x and 10kbit are fine. 1K is 1000 bytes, and 1KB 1024, as is 1KiB.
# A password that is drawn at random works without quotes nearly always; so it wants them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install nats-server
root/usr/sbin/nats-server --version
# check PASSWORD: whether the server takes a configuration with it
check() {
    echo "authorization { user: a, password: $1 }" >nats.conf
    if root/usr/sbin/nats-server -t -c nats.conf &>log; then
        echo taken
    else
        grep -o 'invalid memory address' log
    fi
}
# limit SIZE: the largest message in bytes, which the server tells its clients
limit() {
    echo "max_payload: $1" >nats.conf
    rm -f nats-server_*.ports
    root/usr/sbin/nats-server -c nats.conf -a 127.0.0.1 -p -1 --ports_file_dir "$FOLDER" 2>/dev/null &
    server=$!
    until grep -o '127.0.0.1:[0-9]*' nats-server_*.ports &>address; do sleep 0.1; done
    grep -o '127.0.0.1:[0-9]*' nats-server_*.ports | tr : / >address
    head -1 <"/dev/tcp/$(<address)" | grep -o '"max_payload":[0-9]*' | cut -d : -f 2
    kill $server
    wait $server || true
}
for password in 123 10k true -5; do
    seen "password: $password" 'invalid memory address' "$(check $password)"
done
for password in 5x 10kbit '"10k"' '"123"'; do
    seen "password: $password" taken "$(check "$password")"
done
seen 'max_payload: 1K' 1000 "$(limit 1K)"
seen 'max_payload: 1KB' 1024 "$(limit 1KB)"
seen 'max_payload: 1KiB' 1024 "$(limit 1KiB)"
