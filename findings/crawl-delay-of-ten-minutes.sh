#!/usr/bin/env bash
# User-agent: *, Crawl-delay: 600, Disallow: /a
#
# RFC 9309, section 2.2.4: lines that are no part of the protocol, such as this delay, must not interfere with the rules that are.
# Guess: a robot that knows the delay waits for ten minutes, or not so long, and may visit all but /a.
# Seen: crawler-commons 1.4 (Java) forbids each page, once the delay is above 5 minutes, as if the file had Disallow: /, and says then that
# it has no delay. With 300 seconds the rules hold.
# A site that asks for few visits gets none, and is missing from an index without a word in its own log.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

maven_install com.github.crawler-commons:crawler-commons:1.4
cat >Ask.java <<'JAVA'
import crawlercommons.robots.SimpleRobotRulesParser;
import java.util.List;

public class Ask {
    public static void main(String[] files) {
        for (String file : files) {
            byte[] text = ("User-agent: *\n" + file.replace("|", "\n") + "\n").getBytes();
            var rules = new SimpleRobotRulesParser().parseContent("http://a.example/robots.txt", text, "text/plain", List.of("robot"));
            System.out.println(rules.isAllowed("http://a.example/a") + " " + rules.isAllowed("http://a.example/b") + " "
                + (rules.getCrawlDelay() < 0 ? "none" : rules.getCrawlDelay()));
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
each 'java -cp jars/* Ask.java' \
    'Disallow: /a' 'false true none' \
    'Crawl-delay: 1|Disallow: /a' 'false true 1000' \
    'Crawl-delay: 300|Disallow: /a' 'false true 300000' \
    'Crawl-delay: 600|Disallow: /a' 'false false none' \
    'Crawl-delay: 600' 'false false none'
