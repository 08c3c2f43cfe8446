#!/usr/bin/env bash
# If-None-Match: "a", and If-Modified-Since: an older date
#
# RFC 9110, section 13.1.3: a recipient must ignore If-Modified-Since where there is an If-None-Match, and a date matches, if it is no
# earlier than Last-Modified. Section 13.1.2: If-None-Match is a list of tags, which are compared by their values (weakly).
# Guess: the middleware of Plack for these two fields answers 304 where a copy of the client is the current one.
# Seen: Plack::Middleware::ConditionalGET 1.0050 (Perl) answers 200 to If-None-Match alone, if its own answer has Last-Modified, too, and to
# a later date. It compares tags and dates as texts, up to a semicolon: neither W/"a", nor the older form of a date, nor the tag "a;b"
# ever matches, nor a list.
# A client that keeps tags alone, or a cache that sends two, gets each answer whole.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libplack-perl=1.0050-1
cat >ask.pl <<'PERL'
use Plack::Middleware::ConditionalGET;
my ($fields, $tags, $since) = @ARGV;
my $server = Plack::Middleware::ConditionalGET->wrap(sub { [200, [split /: |\|/, $fields], ["hello"]] });
my %request = (REQUEST_METHOD => "GET", PATH_INFO => "/");
$request{HTTP_IF_NONE_MATCH} = $tags if $tags;
$request{HTTP_IF_MODIFIED_SINCE} = $since if $since;
print $server->(\%request)->[0];
PERL
# ask FIELDS_OF_THE_ANSWER [IF_NONE_MATCH [IF_MODIFIED_SINCE]]
ask() { perl -I root/usr/share/perl5 ask.pl "$@"; }
date='Sun, 06 Nov 1994 08:49:37 GMT'
dated="Last-Modified: $date"
seen '"a"' 304 "$(ask 'ETag: "a"' '"a"')"
seen '"a", and the answer has a date, too' 200 "$(ask "ETag: \"a\"|$dated" '"a"')"
seen '"a" and the date' 304 "$(ask "ETag: \"a\"|$dated" '"a"' "$date")"
seen '"a" and an older date' 200 "$(ask "ETag: \"a\"|$dated" '"a"' 'Sat, 05 Nov 1994 08:49:37 GMT')"
seen 'the date' 304 "$(ask "$dated" '' "$date")"
seen 'a later date' 200 "$(ask "$dated" '' 'Mon, 07 Nov 1994 08:49:37 GMT')"
seen 'the date in its older form' 200 "$(ask "$dated" '' 'Sunday, 06-Nov-94 08:49:37 GMT')"
seen 'W/"a" for "a"' 200 "$(ask 'ETag: "a"' 'W/"a"')"
seen '"a;b" for itself' 200 "$(ask 'ETag: "a;b"' '"a;b"')"
seen '"x", "a"' 200 "$(ask 'ETag: "a"' '"x", "a"')"
