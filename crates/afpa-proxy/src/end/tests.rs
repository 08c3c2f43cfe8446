use afpa_http::Version;
use proptest::prelude::*;

use super::*;

fn framing<'b>(lines: &[(&str, &'b str)]) -> Framing<'b> {
    let mut framing = Framing::default();
    for (name, value) in lines {
        match *name {
            "length" => framing.content_length(value.as_bytes()),
            "coding" => framing.transfer_encoding(value.as_bytes()),
            "type" => framing.content_type(value.as_bytes()),
            "connection" => framing.connection(value.as_bytes()),
            other => panic!("{other}"),
        }
    }
    framing
}

fn ending(status: u16, lines: &[(&str, &str)]) -> Result<Ending, FramingError> {
    Ending::of(false, status, Version::Http11, &framing(lines))
}

const RANGES: &str = "multipart/byteranges; boundary=THIS";

#[test]
fn each_way_to_end_is_recognised() {
    assert_eq!(ending(200, &[]), Ok(Ending::Close));
    assert_eq!(ending(200, &[("length", "5")]), Ok(Ending::Length(5)));
    assert_eq!(ending(200, &[("coding", "Chunked")]), Ok(Ending::Chunked));
    assert_eq!(ending(206, &[("type", RANGES), ("length", "9")]), Ok(Ending::Length(9)));
    assert_eq!(ending(206, &[("type", RANGES), ("coding", "chunked")]), Ok(Ending::Chunked));
    assert!(matches!(ending(206, &[("type", RANGES)]), Ok(Ending::Multipart(_))));
    assert_eq!(ending(200, &[("type", RANGES)]), Ok(Ending::Close));
    for status in [100, 101, 103, 204, 304] {
        assert_eq!(ending(status, &[("length", "5")]), Ok(Ending::Head), "{status}");
    }
    let head = Ending::of(true, 200, Version::Http11, &framing(&[("length", "5")]));
    assert_eq!(head, Ok(Ending::Head));
}

#[test]
fn what_two_readers_could_understand_differently_is_refused() {
    use FramingError as E;
    for (lines, error) in [
        (&[("length", "5"), ("length", "5")][..], E::ContentLength),
        (&[("length", "5"), ("length", "6")], E::ContentLength),
        (&[("length", "5, 5")], E::ContentLength),
        (&[("length", "+5")], E::ContentLength),
        (&[("length", "")], E::ContentLength),
        (&[("length", "18446744073709551616")], E::ContentLength),
        (&[("length", "5"), ("coding", "chunked")], E::LengthAndCoding),
        (&[("coding", "chunked"), ("coding", "chunked")], E::Coding),
        (&[("coding", "gzip, chunked")], E::Coding),
        (&[("coding", "identity")], E::Coding),
        (&[("coding", "")], E::Coding),
        (&[("coding", "\x0bchunked")], E::Coding),
    ] {
        for status in [200, 204, 304] {
            assert_eq!(ending(status, lines), Err(error), "{status} {lines:?}");
        }
    }
    let old = Ending::of(false, 200, Version::Http10, &framing(&[("coding", "chunked")]));
    assert_eq!(old, Err(E::CodingInHttp10));
}

#[test]
fn connections_are_kept_as_the_version_and_the_field_say() {
    for (value, old, new) in [
        ("", false, true),
        ("close", false, false),
        ("Keep-Alive", true, true),
        ("keep-alive, close", false, false),
        ("x, CLOSE", false, false),
        ("disclose", false, true),
    ] {
        let framing = framing(&[("connection", value)]);
        assert_eq!(framing.keeps(Version::Http10), old, "{value} in 1.0");
        assert_eq!(framing.keeps(Version::Http11), new, "{value} in 1.1");
    }
}

#[test]
fn boundaries_are_read_quoted_or_not() {
    let boundary = |text: &str| Boundary::of_byteranges(text.as_bytes());
    for text in [
        "multipart/byteranges; boundary=THIS",
        "Multipart/ByteRanges;charset=x; Boundary=\"THIS\"",
        "multipart/byteranges ; boundary=THIS ",
    ] {
        assert_eq!(boundary(text).expect(text).as_bytes(), b"THIS");
    }
    let long = format!("multipart/byteranges; boundary={}", "x".repeat(71));
    for text in [
        "multipart/mixed; boundary=x",
        "multipart/byteranges",
        "multipart/byteranges; boundary=",
        &long,
    ] {
        assert_eq!(boundary(text), None, "{text}");
    }
}

/// Reads `wire` in pieces; gives the content and the number of bytes that were consumed.
fn read(ending: &Ending, wire: &[u8], pieces: &[usize]) -> Result<(Vec<u8>, usize), EndError> {
    let mut content = Content::new(ending);
    let (mut data, mut at, mut pieces) = (Vec::new(), 0, pieces.iter().cycle());
    while at < wire.len() && !content.is_done() {
        let end = (at + pieces.next().unwrap()).min(wire.len());
        let mut from = at;
        while from < end && !content.is_done() {
            let progress = content.feed(&wire[from..end])?;
            data.extend_from_slice(&wire[from..end][progress.data]);
            from += progress.consumed;
            assert!(progress.consumed > 0, "no progress");
        }
        at = from;
    }
    content.end_of_stream()?;
    Ok((data, at))
}

fn chunked(content: &[u8], sizes: &[usize]) -> Vec<u8> {
    let (mut wire, mut rest, mut sizes) = (Vec::new(), content, sizes.iter().cycle());
    while !rest.is_empty() {
        let (chunk, others) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        wire.extend(format!("{:x};e=\"v\"\r\n", chunk.len()).into_bytes());
        wire.extend(chunk);
        wire.extend(b"\r\n");
        rest = others;
    }
    wire.extend(b"0\r\nTrailer: one\r\nOther: two\r\n\r\n");
    wire
}

fn byteranges(content: &[u8], boundary: &str) -> Vec<u8> {
    let head = format!("--{boundary}\r\nContent-Type: text/plain\r\n\r\n");
    [head.as_bytes(), content, format!("\r\n--{boundary}--").as_bytes()].concat()
}

#[test]
fn a_connection_that_ends_too_early_is_told_from_one_that_ends_the_content() {
    let truncated = Err(EndError::Truncated);
    assert_eq!(read(&Ending::Length(5), b"1234", &[9]), truncated);
    assert_eq!(read(&Ending::Chunked, b"5\r\n12345\r\n0\r\n", &[9]), truncated);
    assert_eq!(read(&Ending::Close, b"1234", &[9]), Ok((b"1234".to_vec(), 4)));
    let ranges = Ending::Multipart(Boundary::of_byteranges(RANGES.as_bytes()).unwrap());
    assert_eq!(read(&ranges, b"--THIS\r\n\r\nx", &[3]).unwrap().1, 11);
    assert!(matches!(read(&Ending::Chunked, b"5\r\n12345x", &[9]), Err(EndError::Chunk(_))));
}

#[test]
fn a_delimiter_at_the_start_or_after_a_false_start_is_found() {
    let ranges = Ending::Multipart(Boundary::of_byteranges(RANGES.as_bytes()).unwrap());
    for (wire, consumed) in [
        (&b"--THIS--rest"[..], 8),
        (b"a\r\n\r\n--THIS--rest", 13),
        (b"\r\r\n--THI\r\n--THIS-\r\n--THIS--x", 27),
        (b"x--THIS--\r\n--THIS--x", 19),
    ] {
        for piece in 1..wire.len() {
            assert_eq!(read(&ranges, wire, &[piece]).unwrap().1, consumed, "by {piece}");
        }
    }
}

proptest! {
    #[test]
    fn every_way_gives_the_content_and_leaves_the_next_response(
        content in proptest::collection::vec(any::<u8>(), 0..300),
        sizes in proptest::collection::vec(1usize..64, 1..6),
        pieces in proptest::collection::vec(1usize..64, 1..8),
    ) {
        let next = b"HTTP/1.1 200 OK\r\n";
        let length = Ending::Length(content.len() as u64);
        let wire = [&content[..], next].concat();
        prop_assert_eq!(read(&length, &wire, &pieces), Ok((content.clone(), content.len())));

        let coded = chunked(&content, &sizes);
        let wire = [&coded[..], next].concat();
        prop_assert_eq!(read(&Ending::Chunked, &wire, &pieces), Ok((content.clone(), coded.len())));

        prop_assert_eq!(read(&Ending::Close, &content, &pieces), Ok((content.clone(), content.len())));
        prop_assert_eq!(read(&Ending::Head, next, &pieces), Ok((Vec::new(), 0)));
    }

    #[test]
    fn a_multipart_ends_where_a_plain_search_finds_the_delimiter(
        content in "(\r|\n|-|T|\r\n--TT|--TT--|x){0,40}",
        pieces in proptest::collection::vec(1usize..16, 1..8),
    ) {
        let ranges = Boundary::of_byteranges(b"multipart/byteranges; boundary=TT").unwrap();
        let wire = byteranges(content.as_bytes(), "TT");
        let delimiter = b"\r\n--TT--";
        let padded = [b"\r\n", &wire[..]].concat();
        let found = padded.windows(delimiter.len()).position(|window| window == delimiter);
        let end = found.expect("it ends") + delimiter.len() - 2;
        let (data, consumed) = read(&Ending::Multipart(ranges), &wire, &pieces).unwrap();
        prop_assert_eq!(consumed, end);
        prop_assert_eq!(&data[..], &wire[..end]);
    }

    #[test]
    fn no_bytes_panic_and_data_lies_in_what_was_consumed(
        wire in proptest::collection::vec(any::<u8>(), 0..200),
        pieces in proptest::collection::vec(1usize..64, 1..8),
    ) {
        let ranges = Boundary::of_byteranges(RANGES.as_bytes()).unwrap();
        for ending in [Ending::Length(50), Ending::Chunked, Ending::Multipart(ranges), Ending::Close] {
            if let Ok((data, consumed)) = read(&ending, &wire, &pieces) {
                prop_assert!(data.len() <= consumed && consumed <= wire.len());
            }
        }
    }
}
