#!/usr/bin/env bash
# HTTP/1.1 200, a blank, and the end of the line
#
# RFC 9112, section 4: the words behind the status may be left out, the blank before them may not. Section 6.3: 304 has no content,
# whatever its Content-Length says; section 6.1: codings may stand before `chunked`.
# Guess: a parser of answers finds the status, and knows where they end.
# Seen: HTTP::Parser 0.06 (Perl) gives the status 1 for such a line, and waits for 5 more bytes of 304, if it has Content-Length: 5. It
# leaves the sizes of chunks in the content for `gzip, chunked`. Extensions of chunks, and zeros before their sizes, are right.
# Servers that pass on HTTP/2, which has no such words, leave them out.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install libhttp-parser-perl=0.06-4 libhttp-message-perl libhttp-date-perl liburi-perl libencode-locale-perl libio-html-perl \
    liblwp-mediatypes-perl libclone-perl libtimedate-perl
# read_answer LINES: status, content and the number that the parser gives, 0 at the end of an answer; | ends a line
read_answer() {
    perl -I root/usr/share/perl5 -I root/usr/lib/x86_64-linux-gnu/perl5/5.36 -MHTTP::Parser -e '
        my $parser = HTTP::Parser->new(response => 1);
        my $missing = $parser->add($ARGV[0] =~ s/\|/\r\n/gr);
        print join(" ", $parser->object->code, $parser->object->content =~ s/\r\n/|/gr, $missing);' "$1"
}
seen 'HTTP/1.1 200 OK' '200 hi 0' "$(read_answer 'HTTP/1.1 200 OK|Content-Length: 2||hi')"
seen 'HTTP/1.1 200, and a blank' '1  0' "$(read_answer 'HTTP/1.1 200 |Content-Length: 0||')"
seen '204' '204  0' "$(read_answer 'HTTP/1.1 204 No Content||')"
seen '304, Content-Length: 5' '304  5' "$(read_answer 'HTTP/1.1 304 Not Modified|Content-Length: 5||')"
seen 'chunked' '200 hi 0' "$(read_answer 'HTTP/1.1 200 OK|Transfer-Encoding: chunked||02;a=b|hi|000||')"
seen 'gzip, chunked' '200 2|hi|0|| -3' "$(read_answer 'HTTP/1.1 200 OK|Transfer-Encoding: gzip, chunked||2|hi|0||')"
