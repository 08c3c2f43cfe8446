#!/usr/bin/env bash
# <feed xml:base="http://a.example/blog/"> (...) <entry> <link rel="related" href="b.html"/> (...)
#
# RFC 4287, section 2: addresses are relative to xml:base; section 4.2.7.2: the page of an entry is the link with rel "alternate",
# with the address that this word stands for, or without rel; section 4.1.3.2: content may be at the address in src, with any type.
# Guess: readers of feeds give the whole address of the page, and none for an entry without one.
# Seen: rss-parser 3.13.0 (npm) leaves addresses relative, gives that of a related page for the entry's, and that of the feed for
# the page of the feed. feedparser 6.0.14 (Python) gives the entry's id where rel is the address. atoma 0.0.17 (Python) refuses a
# whole feed for content of the type audio/mpeg at an address. @rowanmanning/feed-parser 2.1.5 (npm) does none of these.
# Whoever subscribes to two such feeds finds the entries of one at the address of the other.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

npm_install rss-parser@3.13.0 @rowanmanning/feed-parser@2.1.5
pip_install feedparser==6.0.14 atoma==0.0.17
# feed ENTRY: a feed with it
feed() {
    cat <<XML
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://a.example/blog/">
<title>A</title><id>urn:uuid:60a76c80-d399-11d9-b93c-0003939e0af6</id><updated>2026-01-02T03:04:05Z</updated>
<link rel="self" href="feed.atom"/><link href="./"/>
<entry><title>B</title><id>tag:a.example,2026:b</id><updated>2026-01-02T03:04:05Z</updated>$1</entry></feed>
XML
}
feed '<link href="b.html"/>' >plain.atom
feed '<link rel="related" href="c.html"/><content>c</content>' >related.atom
feed '<link rel="http://www.iana.org/assignments/relation/alternate" href="b.html"/>' >address.atom
feed '<link href="b.html"/><content src="b.mp3" type="audio/mpeg"/>' >content.atom
# Each prints the addresses of the feed's page and of the entry's.
read_rss_parser() {
    node -e '
        const Parser = require("rss-parser"), text = require("fs").readFileSync(process.argv[1] + ".atom", "utf8");
        new Parser().parseString(text).then(feed => console.log(feed.link, feed.items[0].link));' "$1"
}
read_feed_parser() {
    node -e '
        const text = require("fs").readFileSync(process.argv[1] + ".atom", "utf8");
        import("@rowanmanning/feed-parser").then(library => {
            const feed = library.parseFeed(text);
            console.log(feed.url, feed.items[0].url);
        });' "$1"
}
read_feedparser() {
    v/bin/python -c '
import feedparser, sys
feed = feedparser.parse(sys.argv[1] + ".atom")
print(feed.feed.link, feed.entries[0].get("link"))' "$1"
}
read_atoma() {
    v/bin/python -c '
import atoma, sys
try:
    feed = atoma.parse_atom_file(sys.argv[1] + ".atom")
    print(*(f"{link.rel}={link.href}" for link in feed.entries[0].links))
except ValueError as error:
    print(error)' "$1"
}
BLOG=http://a.example/blog/
seen 'feed-parser: plain' "$BLOG ${BLOG}b.html" "$(read_feed_parser plain)"
seen 'feedparser: plain' "$BLOG ${BLOG}b.html" "$(read_feedparser plain)"
seen 'rss-parser: plain' 'feed.atom b.html' "$(read_rss_parser plain)"
seen 'feed-parser: related' "$BLOG null" "$(read_feed_parser related)"
seen 'rss-parser: related' 'feed.atom c.html' "$(read_rss_parser related)"
seen 'rss-parser: an address for the word' 'feed.atom b.html' "$(read_rss_parser address)"
seen 'feedparser: an address for the word' "$BLOG tag:a.example,2026:b" "$(read_feedparser address)"
seen 'feed-parser: content at an address' "$BLOG ${BLOG}b.html" "$(read_feed_parser content)"
seen 'atoma: plain' 'None=b.html' "$(read_atoma plain)"
seen 'atoma: content at an address' "'audio/mpeg' is not a valid AtomTextType" "$(read_atoma content)"
