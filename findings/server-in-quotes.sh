#!/usr/bin/env bash
# Authentication-Results: "a.example"; x-a=pass b.c=d
#
# RFC 8601, section 2.2: the name of the server that checked a message is a value of RFC 2045, a token or a text in quotes; so is that of a
# property, or it is an address of mail. The type of a property is any keyword, and a method may have a version: dkim/1. A colon has to
# stand in quotes, by RFC 2045, section 5.1.
# Guess: a library for this field, which mail servers write and filters read, writes again what it has read.
# Seen: authres 1.2.0 (Python) refuses the field for the quotes around the name, and drops a property whose type it does not know.
# Mail::AuthenticationResults 2.20230112 (Perl) reads the name, and writes an address of IPv6 without quotes, the version as `pass / 1`, and
# an address whose local part is in quotes as two properties; authres refuses two of the three, and loses the address in the other.
# A filter that passes on the field changes what the next one believes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install authres==1.2.0
debian_install libmail-authenticationresults-perl=2.20230112-1 libclone-perl libjson-perl libscalar-list-utils-perl
cat >again.py <<'PY'
import sys
import authres
for text in sys.argv[1:]:
    try:
        print(str(authres.AuthenticationResultsHeader.parse("Authentication-Results: " + text)).removeprefix("Authentication-Results: "))
    except authres.SyntaxError:
        print("refused")
PY
cat >again.pl <<'PERL'
use Mail::AuthenticationResults::Parser;
for (@ARGV) {
    my $written = Mail::AuthenticationResults::Parser->new->parse($_)->as_string;
    print $written =~ s/\s+/ /gr, "\n";
}
PERL
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
checked='a.example; spf=pass smtp.mailfrom=b.example'
each 'v/bin/python again.py' \
    "$checked" "$checked" \
    '"a.example"; spf=pass' refused \
    'a.example; x-a=pass b.c=d' 'a.example; x-a=pass' \
    'a.example; dkim/1=pass header.d=b.example' 'a.example; dkim/1=pass header.d=b.example' \
    'a.example; iprev=pass policy.iprev="2001:db8::1"' 'a.example; iprev=pass policy.iprev="2001:db8::1"' \
    'a.example; spf=pass smtp.mailfrom="x y"@b.example' 'a.example; spf=pass smtp.mailfrom="x y"@b.example'
each 'perl -Iroot/usr/share/perl5 again.pl' \
    "$checked" "$checked" \
    '"a.example"; spf=pass' 'a.example; spf=pass' \
    'a.example; x-a=pass b.c=d' 'a.example; x-a=pass b.c=d' \
    'a.example; dkim/1=pass header.d=b.example' 'a.example; dkim=pass / 1 header.d=b.example' \
    'a.example; iprev=pass policy.iprev="2001:db8::1"' 'a.example; iprev=pass policy.iprev=2001:db8::1' \
    'a.example; spf=pass smtp.mailfrom="x y"@b.example' 'a.example; spf=pass smtp.mailfrom="x y" @b.example=""'
each 'v/bin/python again.py' \
    'a.example; dkim=pass / 1 header.d=b.example' refused \
    'a.example; iprev=pass policy.iprev=2001:db8::1' refused \
    'a.example; spf=pass smtp.mailfrom="x y" @b.example=""' refused
