#!/usr/bin/env bash
# Content-Type: text/html;CHARSET=UTF-8
#
# RFC 9110, section 8.3.1: the names of parameters have no case; its own example has four forms of one type, with Charset="utf-8" among
# them. Section 5.6.6: a value may be a token or stand in quotes.
# Guess: the class of Jetty for types finds the charset in each of these forms.
# Seen: MimeTypes of jetty-http 12.0.15 (Java) finds none in CHARSET=UTF-8, and in the example of the RFC; it finds utf-8 in
# charset="utf-8", and not in the text of another parameter.
# A server then reads a form in its default, and only from clients that write the name so.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

maven_install org.eclipse.jetty:jetty-http:12.0.15
cat >Find.java <<'JAVA'
import org.eclipse.jetty.http.MimeTypes;

public class Find {
    public static void main(String[] types) {
        for (String type : types) {
            System.out.println(MimeTypes.getCharsetFromContentType(type));
        }
    }
}
JAVA
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
each 'java -cp jars/* Find.java' \
    'text/html;charset=utf-8' utf-8 \
    'text/html; charset="utf-8"' utf-8 \
    'text/html; a="charset=x"; charset=utf-8' utf-8 \
    'Text/HTML;Charset="utf-8"' null \
    'text/html;CHARSET=UTF-8' null
