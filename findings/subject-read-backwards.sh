#!/usr/bin/env bash
# the subject CN=a,C=DE as a text
#
# RFC 4514, section 2.1: the text begins with the last element of the name, so the country comes first in the
# certificate. Section 3: a byte of a value may be written as a backslash and two digits; \C3\A4 is the letter ä.
# Guess: libraries for certificates make the same name of a text.
# Seen: @peculiar/x509 2.2.0 (npm) puts CN first, and gives C3A4, four letters, for \C3\A4. It does not know UID and
# STREET, of the RFC's own table. cryptography 50.0.2 (Python) and Java 17 put C first, and give ä.
# A name made here from the text that openssl or Java printed does not equal that of the certificate.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install cryptography==50.0.2
cat >order.py <<'PY'
import sys
from cryptography.x509 import Name
print(*(f"{part.rfc4514_attribute_name}={ascii(part.value)[1:-1]}" for part in Name.from_rfc4514_string(sys.argv[1])))
PY
npm_install @peculiar/x509@2.2.0 reflect-metadata@0.2.2
cat >order.js <<'JS'
require("reflect-metadata");
const { Name } = require("@peculiar/x509");
try {
    const bytes = Buffer.from(new Name(process.argv[2]).toArrayBuffer()).toString("hex");
    console.log(bytes.match(/0603550403|0603550406|1302.{4}|0c02.{4}|1304.{8}/g).join(" "));
} catch (error) {
    console.log(error.message);
}
JS
cat >Order.java <<'JAVA'
import java.util.HexFormat;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.security.auth.x500.X500Principal;

public class Order {
    public static void main(String[] words) {
        var bytes = HexFormat.of().formatHex(new X500Principal(words[0]).getEncoded());
        var parts = Pattern.compile("0603550403|0603550406|1302.{4}|0c02.{4}|1304.{8}").matcher(bytes);
        System.out.println(parts.results().map(part -> part.group()).collect(Collectors.joining(" ")));
    }
}
JAVA
# the identifiers of CN (2.5.4.3) and C (2.5.4.6), and values of two bytes
cn=0603550403
c=0603550406
seen 'cryptography: CN=ab,C=DE' 'C=DE CN=ab' "$(v/bin/python order.py CN=ab,C=DE)"
seen 'Java: CN=ab,C=DE' "$c 13024445 $cn 13026162" "$(java Order.java CN=ab,C=DE)"
seen '@peculiar/x509: CN=ab,C=DE' "$cn 13026162 $c 13024445" "$(node order.js CN=ab,C=DE)"
seen 'cryptography: CN=\C3\A4' 'CN=\xe4' "$(v/bin/python order.py 'CN=\C3\A4')"
seen 'Java: CN=\C3\A4' "$cn 0c02c3a4" "$(java Order.java 'CN=\C3\A4')"
seen '@peculiar/x509: CN=\C3\A4' "$cn 130443334134" "$(node order.js 'CN=\C3\A4')"
seen 'cryptography: UID=a' UID=a "$(v/bin/python order.py UID=a)"
seen '@peculiar/x509: UID=a' "Cannot get OID for name type ''" "$(node order.js UID=a)"
