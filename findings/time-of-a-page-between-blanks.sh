#!/usr/bin/env bash
# <lastmod> 2024-05-06 </lastmod>, in a sitemap
#
# sitemaps.org, "sitemap.xsd": lastmod is a date or a date with a time of XML Schema, which takes away blanks around such values (part 2,
# section 4.3.6). So a program may indent its elements. RFC 4287, section 4.2.7.2: the page of an entry is the link `alternate`.
# Guess: a reader of sitemaps which takes loc and priority between blanks does so with the time.
# Seen: crawler-commons 1.4 (Java) has no time for a page, if a blank or a line break stands beside it, and no error; loc, priority and
# changefreq may have them. Of an Atom feed it takes the first link, whatever its relation.
# A robot then visits pages again that have not changed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

maven_install com.github.crawler-commons:crawler-commons:1.4
cat >Read.java <<'JAVA'
import crawlercommons.sitemaps.SiteMap;
import crawlercommons.sitemaps.SiteMapParser;
import java.net.URL;

public class Read {
    public static void main(String[] pages) throws Exception {
        for (String page : pages) {
            String text = page.startsWith("<entry>")
                ? "<feed xmlns=\"http://www.w3.org/2005/Atom\">" + page + "</feed>"
                : "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url>" + page + "</url></urlset>";
            var read = new SiteMapParser().parseSiteMap("text/xml", text.getBytes(), new URL("http://a.example/sitemap.xml"));
            for (var found : ((SiteMap) read).getSiteMapUrls()) {
                var time = found.getLastModified();
                System.out.println(found.getUrl().getPath() + " " + (time == null ? "none" : time.toInstant()));
            }
        }
    }
}
JAVA
export TZ=UTC
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
edit='<link rel="edit" href="http://a.example/e"/>'
each 'java -cp jars/* Read.java' \
    '<loc>http://a.example/x</loc><lastmod>2024-05-06</lastmod>' '/x 2024-05-06T00:00:00Z' \
    '<loc>http://a.example/x</loc><lastmod>2024-05-06T07:08Z</lastmod>' '/x 2024-05-06T07:08:00Z' \
    '<loc> http://a.example/x </loc><lastmod>2024-05-06</lastmod>' '/x 2024-05-06T00:00:00Z' \
    '<loc>http://a.example/x</loc><lastmod> 2024-05-06 </lastmod>' '/x none' \
    $'<loc>http://a.example/x</loc><lastmod>\n2024-05-06\n</lastmod>' '/x none' \
    "<entry>$edit<link rel=\"alternate\" href=\"http://a.example/x\"/></entry>" '/e none'
