#!/usr/bin/env bash
# # HELP b, with a text of two lines
#
# Prometheus, "Text-based format": in a text of HELP a backslash is written as \\, and a line feed as \n.
# Guess: a library that writes this format does so in both places that have texts of a program, values of labels and HELP.
# Seen: Prometheus::Tiny 0.010 (Perl) writes HELP as it is, and labels escaped, so that the second line of a text becomes a line of its
# own. prometheus_client 0.26.0 (Python) refuses the whole page for it, or finds a metric that nobody counts in `b 2`.
# A word on usage in two lines takes all metrics of a program away.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libprometheus-tiny-perl=0.010-1
pip_install prometheus_client==0.26.0
# page HELP: the page of one gauge, with this text
page() {
    perl -I root/usr/share/perl5 -MPrometheus::Tiny -e '
        my $metrics = Prometheus::Tiny->new;
        $metrics->declare("a", type => "gauge", help => $ARGV[0]);
        $metrics->set("a", 1, {label => $ARGV[0]});
        print $metrics->format;' "$1"
}
read_python() {
    v/bin/python -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
try:
    print(*(f"{family.name}={family.samples[0].value:g}" for family in text_string_to_metric_families(sys.stdin.read()) if family.samples))
except ValueError:
    print("refused")'
}
seen 'one line' a=1 "$(page 'requests' | read_python)"
seen 'two lines' '# HELP a requests|of all kinds|# TYPE a gauge|a{label="requests\nof all kinds"} 1|' \
    "$(page $'requests\nof all kinds' | tr '\n' '|')"
seen 'two lines, read' refused "$(page $'requests\nof all kinds' | read_python)"
seen 'b 2 in the second line, read' 'b=2 a=1' "$(page $'requests\nb 2' | read_python)"
