use super::*;
use proptest::prelude::*;

const BROWSER: &str = "GET /docs/index.html?x=1 HTTP/1.1\r\n\
    Host: www.example.com:8080\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Referer: http://www.example.com:8080/\r\n\
    Connection: keep-alive\r\n\
    Cookie: session=0123456789abcdef\r\n\
    Sec-Fetch-Dest: document\r\n\
    Priority: u=0, i\r\n\r\n";

#[test]
fn a_browser_is_understood() {
    let wire = format!("{BROWSER}GET /next");
    let mut slots = FieldSlots::new();
    let request = parse(wire.as_bytes(), &mut slots, &RequestLimits::default()).unwrap().unwrap();
    assert_eq!((request.method, request.version), (Method::Get, Version::Http11));
    assert_eq!(request.raw_target, b"/docs/index.html?x=1");
    assert_eq!(request.target.path(), Some(&b"/docs/index.html"[..]));
    assert_eq!(request.target.query(), Some(&b"x=1"[..]));
    assert_eq!((request.host.name(), request.host.port()), ("www.example.com", Some(8080)));
    assert!(request.keep_alive && !request.expect_continue);
    assert_eq!((request.body, request.head_len), (BodyLength::None, BROWSER.len()));
    assert_eq!(request.first(Known::Referer), Some(&b"http://www.example.com:8080/"[..]));
    assert!(request.has(Known::UserAgent) && !request.has_any(KnownSet::UNUSUAL));
    assert_eq!(request.fields().len(), 10);
    assert_eq!(request.fields().last(), Some(("Priority", &b"u=0, i"[..])));
}

#[test]
fn limits_are_settings_and_the_room_for_fields_is_one() {
    let answer = |limits: RequestLimits| {
        let mut slots = FieldSlots::new();
        parse(BROWSER.as_bytes(), &mut slots, &limits).map(|request| request.is_some())
    };
    let default = RequestLimits::default();
    let line = BROWSER.find('\r').unwrap();
    assert_eq!(
        answer(RequestLimits { request_line: line, head: BROWSER.len(), fields: 10 }),
        Ok(true)
    );
    let shorter = RequestLimits { request_line: line - 1, ..default };
    assert_eq!(answer(shorter), Err(Refusal::RequestLineTooLong));
    let shorter = RequestLimits { head: BROWSER.len() - 1, ..default };
    assert_eq!(answer(shorter), Err(Refusal::HeadTooLong));
    assert_eq!(answer(RequestLimits { fields: 9, ..default }), Err(Refusal::TooManyFields));
    assert_eq!(answer(RequestLimits { fields: usize::MAX, ..default }), Ok(true));

    let crowd = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(MAX_FIELDS));
    let mut slots = FieldSlots::new();
    let limits = RequestLimits { fields: usize::MAX, ..default };
    assert_eq!(parse(crowd.as_bytes(), &mut slots, &limits).unwrap_err(), Refusal::TooManyFields);
}

/// The hot path and the scan are two readings of one grammar: they must not differ.
fn readings_agree(input: &[u8], limits: &RequestLimits) {
    let mut slots = FieldSlots::new();
    let hot = tokenise(input, &mut slots, limits).map(|tokens| tokens.head_len);
    let cold = match scan::scan(input, limits) {
        Scan::Complete(length) => Some(length),
        Scan::Offence(_) | Scan::Incomplete => None,
    };
    assert_eq!(hot, cold, "{:?}", String::from_utf8_lossy(input));
}

/// Pieces of heads, good and bad, in an order of chance: it finds more than random bytes do.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = proptest::sample::select(vec![
        "GET",
        "PUT",
        " ",
        " ",
        "/",
        "/x?y",
        "*",
        " HTTP/1.1",
        "HTTP/1.0",
        "HTTP/2.0",
        "\r\n",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "\r",
        "Host: a",
        "Host:",
        "X",
        ":",
        "a",
        "\t",
        "\0",
        "\u{e9}",
        "#",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "X: y  \r\n",
        "X:\r\n",
    ]);
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_readings_agree(input in pieces(), line in 1usize..60, head in 1usize..120, fields in 0usize..5) {
        readings_agree(&input, &RequestLimits::default());
        readings_agree(&input, &RequestLimits { request_line: line, head, fields });
    }

    #[test]
    fn both_readings_agree_on_damaged_browsers(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let mut input = BROWSER.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(input.len());
            input[at] = byte;
        }
        readings_agree(&input, &RequestLimits::default());
    }

    #[test]
    fn every_split_gives_the_same_answer(input in pieces(), line in 1usize..60, head in 1usize..120) {
        let limits = RequestLimits { request_line: line, head, fields: 4 };
        let answer = |input: &[u8]| {
            let mut slots = FieldSlots::new();
            let answer = parse(input, &mut slots, &limits);
            answer.map(|request| request.map(|request| (request.head_len, request.body)))
        };
        let whole = answer(&input);
        let mut open = true;
        for end in 0..=input.len() {
            let now = answer(&input[..end]);
            open &= now == Ok(None);
            prop_assert!(open || now == whole, "{:?} after {} bytes, then {:?}", now, end, whole);
        }
    }
}
