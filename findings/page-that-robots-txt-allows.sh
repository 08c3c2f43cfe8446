#!/usr/bin/env bash
# User-agent: *, Disallow: /a, Allow: /a/b
#
# RFC 9309, section 2.2.2: the longest rule that matches decides, in any order, and Allow has the preference over Disallow; section 2.2.3:
# * stands for any characters in a rule, and $ for its end. Section 2.2: empty lines may stand within a group.
# Guess: the parser that LWP::RobotUA uses knows these parts of the RFC, or at least Allow, which the draft of 1997 has.
# Seen: WWW::RobotRules 6.02 (Perl) ignores Allow in any place, takes * for a letter of the path, and ends a group at an empty line, so
# that a rule behind one forbids nothing.
# A robot in Perl keeps off pages that are allowed to it, and visits those that /*.gif$ forbids.
# shellcheck disable=SC2016 # rules of robots.txt
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libwww-robotrules-perl=6.02-1 liburi-perl
# check RULES PATH EXPECTED: whether the robot a may visit the path; | ends a line
check() {
    seen "$1: $2" "$3" "$(perl -I root/usr/share/perl5 -MWWW::RobotRules -e '
        my ($rules, $path) = @ARGV;
        my $robot = WWW::RobotRules->new("a");
        $robot->parse("http://a.example/robots.txt", "User-agent: *\n" . ($rules =~ tr/|/\n/r) . "\n");
        print $robot->allowed("http://a.example$path") ? "allowed" : "forbidden";' "$1" "$2")"
}
check 'Disallow: /a' /a/b forbidden
check 'Disallow: /a|Allow: /a/b' /a/b forbidden
check 'Allow: /a/b|Disallow: /a' /a/b forbidden
check 'Disallow: /*.gif$' /x.gif allowed
check 'Disallow: /*.gif$' '/*.gif$' forbidden
check '|Disallow: /a' /a allowed
