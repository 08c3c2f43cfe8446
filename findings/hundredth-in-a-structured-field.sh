#!/usr/bin/env bash
# text/html;q=0.05, read and written again
#
# RFC 8941, and RFC 9651, section 4.1.5: a decimal has up to three digits behind its point; zeros at its end are left out, and those between
# the point and another digit are not.
# Guess: a library for structured fields writes the number that it has read.
# Seen: structured-fields 0.4 of org.greenbytes.http (Java) writes 0.05 as 0.5, 1.002 as 1.2 and -1.05 as -1.5, as if the digits behind
# the point were a number of their own. It writes 1.25 and 0.5 as they are. It cuts 1.9996 to 1.999, where the RFC rounds to 2.0.
# Weights, and numbers of Server-Timing or of limits, are ten times too high behind it, and valid.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

maven_install org.greenbytes.http:structured-fields:0.4
cat >Again.java <<'JAVA'
import java.math.BigDecimal;
import org.greenbytes.http.sfv.DecimalItem;
import org.greenbytes.http.sfv.Parser;

public class Again {
    public static void main(String[] texts) {
        for (String text : texts) {
            System.out.println(text.startsWith("=") ? DecimalItem.valueOf(new BigDecimal(text.substring(1))).serialize()
                : Parser.parseList(text).serialize());
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
each 'java -cp jars/* Again.java' \
    'text/html;q=0.5' 'text/html;q=0.5' \
    'text/html;q=0.25' 'text/html;q=0.25' \
    'text/html;q=0.05' 'text/html;q=0.5' \
    1.002 1.2 \
    -1.05 -1.5 \
    =0.05 0.5 \
    =1.9996 1.999
