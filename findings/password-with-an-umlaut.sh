#!/usr/bin/env bash
# htpasswd -nbm a pä
#
# RFC 7617, section 2.1: servers that name an encoding of passwords name UTF-8, the only one that the RFC allows, and
# clients send it. The hashes of htpasswd are of bytes.
# Guess: libraries that make these hashes take the bytes of UTF-8, as the programs do of which they are named.
# Seen: apache-md5 1.1.8 and apache-crypt 1.2.6 (both npm) give the hash of the bytes of Latin-1, by which openssl and
# crypt(3) do not know the password in UTF-8.
# A password that a site takes by these libraries is wrong to the web server before it, and the other way round.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install apache-md5@1.1.8 apache-crypt@1.2.6
md5() {
    node -p 'require("apache-md5")(process.argv[1], process.argv[2])' "$1" "\$apr1\$abcdefgh\$"
}
crypt() {
    node -p 'require("apache-crypt")(process.argv[1], "ab")' "$1"
}
# shellcheck disable=SC2016 # Perl, with its own variables
perl_crypt() {
    perl -e 'print crypt($ARGV[0], "ab")' "$1"
}
seen 'apache-md5: pass' "$(openssl passwd -apr1 -salt abcdefgh pass)" "$(md5 pass)"
seen 'apache-crypt: pass' "$(perl_crypt pass)" "$(crypt pass)"
latin=$(printf 'p\xe4')
utf8=$(openssl passwd -apr1 -salt abcdefgh pä)
bytes=$(openssl passwd -apr1 -salt abcdefgh "$latin")
seen 'openssl, UTF-8' "\$apr1\$abcdefgh\$ZOyOqw2NttbBavO97cVrT/" "$utf8"
seen 'openssl, Latin-1' "\$apr1\$abcdefgh\$oS9zsK8wRFfHPF6DGVJlf1" "$bytes"
seen 'apache-md5' "$bytes" "$(md5 pä)"
seen 'crypt(3), UTF-8' ab1H2qEQKiLj. "$(perl_crypt pä)"
seen 'crypt(3), Latin-1' abHAQIFgMgOKQ "$(perl_crypt "$latin")"
seen 'apache-crypt' abHAQIFgMgOKQ "$(crypt pä)"
