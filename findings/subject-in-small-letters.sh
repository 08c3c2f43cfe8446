#!/usr/bin/env bash
# the subject cn=a,o=b of a client's certificate
#
# RFC 4514, section 3: the short names of attributes in the text of a subject (CN, O, STREET) have no case.
# Guess: a library that reads such texts knows cn, as LDAP and programs of the command line write it.
# Seen: cryptography 50.0.2 (Python) raises ValueError, without a word of explanation, for `cn` and `Cn`. Java 17 reads
# each of them. Both give CN and O in capitals.
# A list of subjects for which a server lets clients in, taken from another tool, has to be written in capitals first.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install cryptography==50.0.2
python() {
    v/bin/python -c '
import sys
from cryptography.x509 import Name
try:
    print(Name.from_rfc4514_string(sys.argv[1]).rfc4514_string())
except ValueError as error:
    print(type(error).__name__, str(error) or "without a text")' "$1"
}
cat >Subject.java <<'JAVA'
import javax.security.auth.x500.X500Principal;

public class Subject {
    public static void main(String[] words) {
        System.out.println(new X500Principal(words[0]).getName("RFC2253"));
    }
}
JAVA
seen 'cryptography: CN=a,O=b' CN=a,O=b "$(python CN=a,O=b)"
seen 'Java: CN=a,O=b' CN=a,O=b "$(java Subject.java CN=a,O=b)"
seen 'cryptography: cn=a,o=b' 'ValueError without a text' "$(python cn=a,o=b)"
seen 'Java: cn=a,o=b' CN=a,O=b "$(java Subject.java cn=a,o=b)"
seen 'cryptography: CN=a,Street=b' 'ValueError without a text' "$(python CN=a,Street=b)"
seen 'Java: CN=a,Street=b' CN=a,STREET=b "$(java Subject.java CN=a,Street=b)"
