#!/usr/bin/env bash
# a SVCB 16 b alpn="f\\\\oo\\,bar,h2"
#
# RFC 9460, appendices A.1 and D.2: the characters are unescaped twice, once as any text of a zone file, and once as a
# list with commas. So the two protocols here are f\oo,bar and h2; the second vector of the RFC writes the same without
# quotes, alpn=f\\\092oo\092,bar,h2.
# Guess: a library that knows SVCB reads both vectors alike, and writes a text that others read as the same.
# Seen: dnsjava 3.6.3 (Java) makes f\\oo\,bar and h2 of the first vector, and three protocols of the second. Of the right
# bytes it writes alpn=f\\oo\,bar,h2, which it reads as the same, and dnspython 2.9.2 (Python) refuses, as the RFC
# has no escape of an o in a list. dnspython reads both vectors as the RFC does.
# Names of protocols in use have no commas and no backslashes; a tool that copies records should copy bytes, or \#.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# length and bytes of each protocol
RIGHT=08665c6f6f2c626172026832
TEXT='alpn="f\\\\oo\\,bar,h2"'
BARE='alpn=f\\\092oo\092,bar,h2'
HEAD=0010016200000100

pip_install dnspython==2.9.2
python() {
    v/bin/python -c '
import dns.exception, dns.rdata, sys
try:
    print(dns.rdata.from_text("IN", "SVCB", f"16 b. {sys.argv[1]}").to_wire().hex())
except dns.exception.SyntaxError as error:
    print(error)' "$1"
}
seen 'dnspython: with quotes' "${HEAD}0c$RIGHT" "$(python "$TEXT")"
seen 'dnspython: without' "${HEAD}0c$RIGHT" "$(python "$BARE")"

maven_install dnsjava:dnsjava:3.6.3 org.slf4j:slf4j-nop:1.7.36
cat >Read.java <<'JAVA'
import java.io.ByteArrayInputStream;
import java.util.HexFormat;
import org.xbill.DNS.Master;

public class Read {
    public static void main(String[] words) throws Exception {
        var zone = new ByteArrayInputStream(("a. 60 IN SVCB " + words[1] + "\n").getBytes());
        var record = new Master(zone).nextRecord();
        var bytes = HexFormat.of().formatHex(record.rdataToWireCanonical());
        System.out.println(words[0].equals("bytes") ? bytes : record.rdataToString());
    }
}
JAVA
java() {
    command java -cp 'jars/*' Read.java "$@"
}
seen 'dnsjava: with quotes' "${HEAD}0e0a665c5c6f6f5c2c626172026832" "$(java bytes "16 b. $TEXT")"
seen 'dnsjava: without' "${HEAD}0e06665c5c6f6f5c03626172026832" "$(java bytes "16 b. $BARE")"
right="\\# 21 ${HEAD}0c$RIGHT"
seen 'dnsjava: the right bytes' "${HEAD}0c$RIGHT" "$(java bytes "$right")"
text=$(java text "$right")
seen 'dnsjava, as text' '16 b. alpn=f\\oo\,bar,h2' "$text"
seen 'dnsjava, of that' "${HEAD}0c$RIGHT" "$(java bytes "$text")"
seen 'dnspython, of that' 'invalid escape in value list' "$(python "${text#16 b. }")"
