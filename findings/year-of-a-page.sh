#!/usr/bin/env bash
# <lastmod>2024</lastmod>, in a sitemap
#
# The sitemaps protocol (sitemaps.org), "XML tag definitions": lastmod is in the W3C's format of dates, which allows a year,
# or a year and a month.
# Guess: a parser of sitemaps gives the first of January, or the text, or nothing.
# Seen: ultimate-sitemap-parser 1.8.1 (Python) adds month and day of the moment in which it reads the file: 2024-11-28 on
# 28 November. A date in full is read as meant. The same file gives another date each day.
# A crawler takes such a page for changed, day after day, and asks for it again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install ultimate-sitemap-parser==1.8.1
export TZ=UTC
date_of() {
    v/bin/python -c '
import sys
from usp.tree import sitemap_from_str
(page,) = sitemap_from_str(
    "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http://a.example/</loc>"
    "<lastmod>" + sys.argv[1] + "</lastmod></url></urlset>"
).all_pages()
print(page.last_modified)' "$1" 2>/dev/null
}
seen 'a day' '2024-02-29 00:00:00' "$(date_of 2024-02-29)"
seen 'a year' "$(date +2024-%m-%d) 00:00:00" "$(date_of 2024)"
