#!/usr/bin/env bash
# a TXT "x" "y", read and written again
#
# RFC 1035, sections 3.3.14 and 5.1: TXT holds one text or several, in quotes or without, and blanks within quotes stay. A backslash
# before a dot makes it a part of a label.
# Guess: a library that reads and writes zone files keeps the data of records whose types it has.
# Seen: DNS::ZoneParse 1.10 (Perl) writes `"x\" \"y"`, one text with quotes in it, for two, x alone for two without quotes, and `"x y"` for
# `"x  y"`. It writes a.b, another name, for a\.b, and HINFO without quotes.
# Keys of mail (DKIM) in two texts are no longer valid once a zone went through it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libdns-zoneparse-perl=1.10-1.1
# again LINE: this line of a zone, read and written
again() {
    perl -I root/usr/share/perl5 -MDNS::ZoneParse -e '
        my $zone = "\$TTL 60\n\@ IN SOA a. b. 1 2 3 4 5\n$ARGV[0]\n";
        my $written = DNS::ZoneParse->new(\$zone, "example.")->output;
        $written =~ s/.*minimum TTL\s*\)//s;
        print join(" | ", grep { !/^\s*(;.*)?$/ } split /\n/, $written =~ tr/\t/ /r), "\n";' "$1"
}
seen 'one text' 'a 60 IN TXT "x y"' "$(again 'a TXT "x y"')"
seen 'two texts' 'a 60 IN TXT "x\" \"y"' "$(again 'a TXT "x" "y"')"
seen 'two texts without quotes' 'a 60 IN TXT "x"' "$(again 'a TXT x y')"
seen 'two blanks' 'a 60 IN TXT "x y"' "$(again 'a TXT "x  y"')"
seen 'a\.b' 'a.b 60 IN A 192.0.2.1' "$(again 'a\.b A 192.0.2.1')"
seen 'HINFO "x y" z' 'a 60 IN HINFO x y   z' "$(again 'a HINFO "x y" z' | sed 's/ *$//')"
