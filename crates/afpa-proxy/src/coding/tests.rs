use super::*;
use afpa_http::{FieldSlots, RequestLimits, request};

fn rules() -> Arc<CodingRules> {
    let types = ["text/*".to_owned(), "application/json".to_owned()].into();
    Arc::new(CodingRules { codings: Coding::ALL.into_iter().collect(), types, least: 100 })
}

fn compress(fields: &str) -> Compress {
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut slots = FieldSlots::default();
    let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
    Compress::of(&rules(), &parsed.expect("good").expect("whole"))
}

/// The new head of this answer, and what is known of it; `None`: it stays as it is.
fn recoded(request: &str, head: &str, asked: Asked) -> Option<(String, Option<Coded>, bool)> {
    let mut slots = Slots::default();
    let old = response::parse(head.as_bytes(), &mut slots, 4096, asked);
    let old = old.expect("good").expect("whole");
    let places = Places::default();
    let (head, recoded) = compress(request).recode(&old, asked, (&places, &|| false))?;
    let mut slots = Slots::default();
    let (new, recoded) = recoded.read(&head, &mut slots, (&old, asked)).expect("a head");
    let facts = (recoded.coded, new.is_makeshift);
    Some((String::from_utf8(head).expect("text"), facts.0, facts.1))
}

fn answer(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}\r\n")
}

const GZIP: &str = "Accept-Encoding: gzip\r\n";
const TEXT: &str = "Content-Type: text/plain\r\nContent-Length: 5000\r\n";

#[test]
fn what_is_not_compressed_for_anybody_passes_as_it_is() {
    for (status, fields) in [
        ("200 OK", "Content-Type: image/png\r\nContent-Length: 5000\r\n"),
        ("200 OK", "Content-Length: 5000\r\n"),
        ("200 OK", "Content-Type: text/plain\r\nContent-Length: 99\r\n"),
        ("200 OK", "Content-Type: text/event-stream\r\n"),
        ("200 OK", "Content-Type: application/grpc+proto\r\n"),
        ("204 No Content", "Content-Type: text/plain\r\n"),
        ("206 Partial Content", "Content-Type: image/png\r\nContent-Range: bytes 0-4999/9000\r\n"),
        ("416 Range Not Satisfiable", &format!("{TEXT}Content-Range: bytes */9000\r\n")),
        ("200 OK", &format!("{TEXT}Content-Encoding: gzip\r\n")),
        ("200 OK", &format!("{TEXT}Content-Encoding: aes128gcm\r\n")),
        ("200 OK", &format!("{TEXT}Content-Encoding: identity, br\r\n")),
        ("200 OK", &format!("{TEXT}Cache-Control: max-age=1, No-Transform\r\n")),
        ("200 OK", &format!("{TEXT}Cache-Control: max-age=1\r\nCache-Control: no-transform\r\n")),
        ("200 OK", "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n"),
    ] {
        let found = recoded(GZIP, &answer(status, fields), Asked::default());
        assert!(found.is_none(), "{status} {fields}: {found:?}");
    }
}

#[test]
fn a_compressed_answer_says_so_and_nothing_about_the_bytes_it_was() {
    let fields = format!(
        "{TEXT}ETag: \"a\"\r\nVary: Cookie\r\nAccept-Ranges: bytes\r\nContent-MD5: x\r\nDigest: x\r\n\
         Content-Digest: x\r\nRepr-Digest: x\r\nContent-Encoding: identity\r\nX-A: 1\r\nvary: Origin\r\n"
    );
    let found = recoded(GZIP, &answer("200 OK", &fields), Asked::default());
    let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: W/\"a\"\r\nX-A: 1\r\n\
        Vary: Cookie, Origin, Accept-Encoding\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(found, Some((expected.into(), Some(Coded::Yes), false)));
    // The answer to HEAD has the same fields, and no content.
    let asked = Asked { head: true, ..Asked::default() };
    let found = recoded(GZIP, &answer("200 OK", &fields), asked);
    let expected = expected.replace("Transfer-Encoding: chunked\r\n", "");
    assert_eq!(found, Some((expected, None, false)));
}

#[test]
fn clients_that_get_it_as_it_is_hear_that_others_do_not() {
    let plain = answer("404 Not Found", &format!("{TEXT}ETag: \"a\"\r\nAccept-Ranges: bytes\r\n"));
    let expected = plain.replace("\r\n\r\n", "\r\nVary: Accept-Encoding\r\n\r\n");
    for request in [
        "",
        "Accept-Encoding: *, *;q=0\r\n",
        "Accept-Encoding: deflate\r\n",
        "Accept-Encoding: gzip;q=0\r\n",
        "Range: bytes=0-1\r\n",
    ] {
        let found = recoded(request, &plain, Asked::default());
        assert_eq!(found, Some((expected.clone(), None, false)), "{request}");
    }
    // Without these lines the same client would get it compressed.
    for line in ["Cache-Control: max-age=0, no-transform\r\n", "Range: bytes=0-1\r\n"] {
        let found = recoded(&format!("{GZIP}{line}"), &plain, Asked::default());
        assert_eq!(found, Some((expected.clone(), None, true)), "{line}");
    }
}

#[test]
fn a_part_passes_as_it_is_and_varies_as_the_whole_does() {
    let fields = "Content-Type: text/plain\r\nETag: \"a\"\r\nContent-Range: bytes 0-9/9000\r\n\
        Content-Length: 10\r\n";
    let expected = answer("206 Partial Content", &format!("{fields}Vary: Accept-Encoding\r\n"));
    let coded = format!("{GZIP}Range: bytes=0-9\r\n");
    for (request, is_makeshift) in [("Range: bytes=0-9\r\n", false), (&*coded, true)] {
        let found = recoded(request, &answer("206 Partial Content", fields), Asked::default());
        assert_eq!(found, Some((expected.clone(), None, is_makeshift)), "{request}");
    }
}

#[test]
fn a_part_is_asked_for_only_where_it_cannot_be_one_of_other_bytes() {
    const DATE: &str = "If-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (fields, may_mix) in [
        (format!("{GZIP}{DATE}"), true),
        (format!("{GZIP}If-Range: W/\"a\"\r\n"), true),
        (format!("{GZIP}If-Range: \"a\"\r\n"), false),
        (GZIP.to_owned(), false),
        (DATE.to_owned(), false),
    ] {
        let fields = format!("{fields}Range: bytes=5-\r\n");
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let parsed = parsed.expect("good").expect("whole");
        assert_eq!(Compress::of(&rules(), &parsed).may_mix(&parsed), may_mix, "{fields}");
    }
}

#[test]
fn a_304_is_true_of_the_compressed_answer_and_of_the_other() {
    let fields = "ETag: \"a\"\r\nVary: accept-encoding\r\nContent-Digest: x\r\n";
    let found = |request| recoded(request, &answer("304 Not Modified", fields), Asked::default());
    let head = |fields: &str| (answer("304 Not Modified", fields), None, false);
    assert_eq!(found(GZIP), Some(head("ETag: W/\"a\"\r\nVary: accept-encoding\r\n")));
    let same = "ETag: \"a\"\r\nContent-Digest: x\r\nVary: accept-encoding\r\n";
    assert_eq!(found(""), Some(head(same)));
    // The type of an answer that is never compressed tells it.
    let picture = answer("304 Not Modified", &format!("{fields}Content-Type: image/png\r\n"));
    assert_eq!(recoded(GZIP, &picture, Asked::default()), None);
}

#[test]
fn vary_names_accept_encoding_once() {
    for (lines, expected) in [
        (&[][..], "Accept-Encoding"),
        (&[""], "Accept-Encoding"),
        (&["*"], "*"),
        (&["Cookie", "ACCEPT-ENCODING"], "Cookie, ACCEPT-ENCODING"),
        (&["Cookie"], "Cookie, Accept-Encoding"),
    ] {
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        assert_eq!(String::from_utf8_lossy(&merged(&lines)), expected);
    }
}

#[test]
fn an_answer_with_as_many_lines_as_there_can_be_passes_as_it_is() {
    let lines = "X: 1\r\n".repeat(response::MAX_FIELDS - 1);
    let full = answer("200 OK", &format!("Content-Type: text/plain\r\n{lines}"));
    let mut slots = Slots::default();
    let old = response::parse(full.as_bytes(), &mut slots, 4096, Asked::default());
    let old = old.expect("good").expect("whole");
    let (places, asked) = (Places::default(), Asked::default());
    let (head, recoded) = compress(GZIP).recode(&old, asked, (&places, &|| false)).expect("a head");
    let mut slots = Slots::default();
    assert!(recoded.read(&head, &mut slots, (&old, asked)).is_none());
    assert!(Encoder::new(Coding::Gzip, None, &places, &|| false).is_some());
}
