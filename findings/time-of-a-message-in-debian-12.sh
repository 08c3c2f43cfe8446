#!/usr/bin/env bash
# 2026-11-29T08:00:00.123456+01:00 h cron[1]: a, in /var/log/syslog
#
# The release notes of Debian 12, "Changes to system logging": rsyslog writes times with high precision by default, and programs that
# analyse logs may have to know that. That is the form of RFC 3339, which RFC 5424 has, too.
# Guess: the parser of system logs in Debian 12 reads the log of Debian 12.
# Seen: Parse::Syslog 1.10 (Perl), of Debian 12, passes over each line of this form, with a warning, whatever its offset. It reads the
# form before it, `Nov 29 08:00:00`, and passes over a line whose text has no program.
# Statistics on such a system come out empty, and right in their form.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libparse-syslog-perl=1.10-4
# read_line LINE: what it finds in a log of this line
read_line() {
    echo "$1" >log
    TZ=UTC perl -I root/usr/share/perl5 -MParse::Syslog -e '
        $SIG{__WARN__} = sub { print "warning" };
        my $log = Parse::Syslog->new("log", year => 2026);
        while (my $line = $log->next) {
            print join("|", scalar gmtime $line->{timestamp}, map { $_ // "" } @{$line}{qw(host program pid text)});
        }'
}
seen 'Nov 29' 'Sun Nov 29 08:00:00 2026|h|cron|1|a' "$(read_line 'Nov 29 08:00:00 h cron[1]: a')"
seen 'Nov  9' 'Mon Nov  9 08:00:00 2026|h|cron||a' "$(read_line 'Nov  9 08:00:00 h cron: a')"
seen 'high precision' warning "$(read_line '2026-11-29T08:00:00.123456+01:00 h cron[1]: a')"
seen 'UTC' warning "$(read_line '2026-11-29T08:00:00Z h cron[1]: a')"
seen 'no program' warning "$(read_line 'Nov 29 08:00:00 h a b')"
