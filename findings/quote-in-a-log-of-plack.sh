#!/usr/bin/env bash
# User-Agent: a "b" c, in a log of Plack, which another library reads
#
# The manual of Apache, mod_log_config: in %{...}i quotes and backslashes are written with a backslash before them, and characters that are
# not printable as \xhh, so that the end of a quoted field can be told. Plack's manual has its format from there.
# Guess: Plack writes a quote as \", and a reader of Apache's logs gives the field as it was.
# Seen: Plack::Middleware::AccessLog of Plack 1.0050 (Perl) writes quotes and backslashes as they are, and a line break as \x0a, as it does
# the four letters \x0a. apachelogs 0.6.1 (Python) refuses a line with a quote in a field, and gives a line break for the four letters.
# Requests of a client that has a quote in its name are missing from statistics, and none in the log of Apache.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libplack-perl=1.0050-1 libapache-logformat-compiler-perl libposix-strftime-compiler-perl libtry-tiny-perl
pip_install apachelogs==0.6.1
cat >log.pl <<'PERL'
use Plack::Middleware::AccessLog;
for (@ARGV) {
    my $server = Plack::Middleware::AccessLog->wrap(sub { [200, [], []] }, format => '"%{A}i" "%{B}i"', logger => sub { print @_ });
    my ($first, $second) = split /\|/;
    $server->({REQUEST_METHOD => "GET", PATH_INFO => "/", HTTP_A => $first, HTTP_B => $second});
}
PERL
cat >read.py <<'PY'
import sys
from apachelogs import InvalidEntryError, LogParser
parser = LogParser('"%{A}i" "%{B}i"')
for line in sys.argv[1:]:
    try:
        fields = parser.parse(line).headers_in
        print(repr(fields["A"]), repr(fields["B"]))
    except InvalidEntryError:
        print("refused")
PY
# each COMMAND CASE EXPECTED...: COMMAND runs once, with all cases, and prints a line for each
each() {
    local command cases=() expected=() found i
    read -ra command <<<"$1"
    shift
    while (($#)); do
        cases+=("$1")
        expected+=("$2")
        shift 2
    done
    mapfile -t found < <("${command[@]}" "${cases[@]}")
    for i in "${!cases[@]}"; do seen "${command[*]:1} ${cases[i]}" "${expected[i]}" "${found[i]-}"; done
}
each 'perl -Iroot/usr/share/perl5 log.pl' \
    'x|a b' '"x" "a b"' \
    'x|a "b" c' '"x" "a "b" c"' \
    'x|a\b' '"x" "a\b"' \
    'x|a\x0ab' '"x" "a\x0ab"'
each 'v/bin/python read.py' \
    '"x" "a \"b\" c"' "'x' 'a \"b\" c'" \
    '"x" "a "b" c"' refused \
    '"x" "a\x0ab"' "'x' 'a\nb'"
