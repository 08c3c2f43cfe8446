#!/usr/bin/env bash
# $ORIGIN example., b CNAME a, $ORIGIN sub.example., c CNAME a: read, and written again
#
# RFC 1035, section 5.1: $ORIGIN may come several times, and a name without a dot at its end is below the origin that holds at its line, in
# the data of a record as well. $INCLUDE puts in another file.
# Guess: a library that reads and writes zone files writes records with the targets that it has read.
# Seen: dnsz 4.5.2 (npm) keeps the last origin alone, writes it above all records, and leaves the targets as they stand: the alias of
# b.example. then leads to a.sub.example. The owners are right. It drops $INCLUDE without an error, and so the records of that file.
# The option `dots` makes an end of a dot without the origin, which is another target again.
# A zone of several parts that is sorted by it changes its aliases and mail servers, and stays a valid one.
# shellcheck disable=SC2016 # words of zone files
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install dnsz@4.5.2
# again TEXT [OPTIONS]: the zone, read and written, without comments
again() {
    node --input-type=module -e '
        import { parseZone, stringifyZone } from "dnsz";
        const [text, options] = process.argv.slice(1);
        const lines = stringifyZone(parseZone(text), JSON.parse(options ?? "{}")).split("\n");
        console.log(lines.filter((line) => line && !line.startsWith(";")).join(" | ").replaceAll("\t", " "));' "$@"
}
seen 'one origin' '$ORIGIN example. | b 60 IN CNAME a' "$(again $'$ORIGIN example.\nb 60 CNAME a\n')"
seen 'two origins' '$ORIGIN sub.example. | b.example. 60 IN CNAME a | c 60 IN CNAME a' \
    "$(again $'$ORIGIN example.\nb 60 CNAME a\n$ORIGIN sub.example.\nc 60 CNAME a\n')"
seen 'two origins, a mail server' '$ORIGIN sub.example. | c 60 IN A 192.0.2.1 | b.example. 60 IN MX 10 mail' \
    "$(again $'$ORIGIN example.\nb 60 MX 10 mail\n$ORIGIN sub.example.\nc 60 A 192.0.2.1\n')"
seen 'one origin, dots' '$ORIGIN example. | b 60 IN CNAME a.' "$(again $'$ORIGIN example.\nb 60 CNAME a\n' '{"dots": true}')"
seen '$INCLUDE' 'a.example. 60 IN A 192.0.2.1' "$(again $'$INCLUDE more\na.example. 60 A 192.0.2.1\n')"
