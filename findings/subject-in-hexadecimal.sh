#!/usr/bin/env bash
# the subject 1.2.3=#0c0161 of a client's certificate
#
# RFC 4514, section 2.4: the value of an attribute that has no short name is written as # and its encoding, in
# hexadecimal: here a text of type UTF8String (0c) of one byte (01), `a` (61). Any value may be written so.
# Guess: a library that reads # reads the encoding.
# Seen: cryptography 50.0.2 (Python) takes the three bytes 0c 01 61 for the text, with 1.2.3 as with CN. Of an attribute
# without a short name it writes the bare text, 1.2.3=a. Java 17 reads the encoding, and writes it.
# The text of Java names another subject to Python, without an error, for each certificate with a rarer attribute.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install cryptography==50.0.2
# the bytes of the attribute's value, and the subject as a text
python() {
    v/bin/python -c '
import sys
from cryptography.x509 import Name
name = Name.from_rfc4514_string(sys.argv[1])
print(list(name)[0].value.encode().hex(), ascii(name.rfc4514_string()))' "$1"
}
cat >Subject.java <<'JAVA'
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;

public class Subject {
    public static void main(String[] words) {
        var name = new X500Principal(words[0]);
        var bytes = HexFormat.of().formatHex(name.getEncoded());
        System.out.println(bytes.substring(bytes.length() - 2) + " '" + name.getName("RFC2253") + "'");
    }
}
JAVA
seen 'cryptography: CN=a' "61 'CN=a'" "$(python CN=a)"
seen 'Java: CN=a' "61 'CN=a'" "$(java Subject.java CN=a)"
seen 'cryptography: CN=#0c0161' "0c0161 'CN=\\x0c\\x01a'" "$(python CN=#0c0161)"
seen 'Java: CN=#0c0161' "61 'CN=a'" "$(java Subject.java CN=#0c0161)"
seen 'cryptography: 1.2.3=#0c0161' "0c0161 '1.2.3=\\x0c\\x01a'" "$(python 1.2.3=#0c0161)"
seen 'Java: 1.2.3=#0c0161' "61 '1.2.3=#0c0161'" "$(java Subject.java 1.2.3=#0c0161)"
