use super::*;
use proptest::prelude::*;

/// Decodes by pieces of the given sizes in turn: content, bytes consumed, whether it ended.
fn decode(wire: &[u8], pieces: &[usize]) -> Result<(Vec<u8>, usize, bool), ChunkError> {
    let limits = ChunkLimits { extensions: 16, trailers: 32 };
    let mut decoder = ChunkedDecoder::new(limits);
    let (mut content, mut at, mut end) = (Vec::new(), 0, 0);
    let mut pieces = pieces.iter().cycle();
    while !decoder.is_done() && end < wire.len() {
        end = (end + pieces.next().unwrap()).min(wire.len());
        while at < end && !decoder.is_done() {
            let piece = &wire[at..end];
            let progress = decoder.decode(piece)?;
            assert!(progress.consumed > 0 && progress.consumed <= piece.len());
            assert!(progress.data.end <= progress.consumed);
            assert_eq!(progress.done, decoder.is_done());
            content.extend_from_slice(&piece[progress.data]);
            at += progress.consumed;
        }
    }
    Ok((content, at, decoder.is_done()))
}

/// Splits content into chunks of the given sizes, each with an extension now and then.
fn encode(content: &[u8], sizes: &[usize], dress: bool) -> Vec<u8> {
    let (mut wire, mut rest, mut sizes) = (Vec::new(), content, sizes.iter().cycle());
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        wire.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        wire.extend_from_slice(chunk);
        wire.extend_from_slice(b"\r\n");
        rest = tail;
    }
    wire.extend_from_slice(if dress { b"00 ;a=\"b\"\r\nX: y\r\n\r\n" } else { b"0\r\n\r\n" });
    wire
}

#[test]
fn good_bodies() {
    for (wire, content) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("a\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("0000000000000005\r\nhello\r\n0\r\n\r\n", "hello"),
        ("2;x\r\nhe\r\n3 \t;y=\"a;b\"\r\nllo\r\n0;z\r\n\r\n", "hello"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
        ("0\r\nX: y\r\nZ:\r\n\r\n", ""),
    ] {
        let expected = Ok((content.as_bytes().to_vec(), wire.len(), true));
        assert_eq!(decode(wire.as_bytes(), &[usize::MAX]), expected, "{wire:?}");
        assert_eq!(decode(wire.as_bytes(), &[1]), expected, "{wire:?}");
    }
}

#[test]
fn trailer_fields_are_kept_for_whoever_wants_them() {
    let wire = b"1\r\nx\r\n0\r\nA:\tone, two \r\nb-c:\r\nA: a:b\r\n\r\nNEXT";
    for piece in 1..wire.len() {
        let (mut plain, mut keeping) =
            (ChunkedDecoder::default(), ChunkedDecoder::default().keeping_trailers());
        let mut at = 0;
        while !keeping.is_done() {
            let input = &wire[at..(at + piece).min(wire.len())];
            let progress = keeping.decode(input).unwrap();
            assert_eq!(plain.decode(input).unwrap(), progress);
            at += progress.consumed;
        }
        assert_eq!(&wire[at..], b"NEXT");
        let trailers = keeping.into_trailers();
        let expected: [(&[u8], &[u8]); 3] = [(b"A", b"one, two"), (b"b-c", b""), (b"A", b"a:b")];
        assert!(trailers.fields().eq(expected), "{trailers:?} by {piece}");
        assert!(plain.into_trailers().is_empty());
    }
    let mut cut = ChunkedDecoder::default().keeping_trailers();
    cut.decode(b"0\r\nA: b\r\n").unwrap();
    assert!(cut.into_trailers().is_empty(), "the section has not ended");
}

#[test]
fn malformed_bodies_are_errors_however_they_are_split() {
    for (wire, error) in [
        ("\r\n", ChunkError::Size),
        ("\n", ChunkError::Size),
        (" 5\r\nhello", ChunkError::Size),
        ("+5\r\nhello", ChunkError::Size),
        ("-1\r\n", ChunkError::Size),
        ("0x5\r\nhello", ChunkError::Size),
        ("5 \r\nhello", ChunkError::Size),
        ("5 5\r\nhello", ChunkError::Size),
        ("5g\r\nhello", ChunkError::Size),
        ("5_0\r\n", ChunkError::Size),
        (";a\r\n", ChunkError::Size),
        ("5\0\r\n", ChunkError::Size),
        ("00000000000000005\r\n", ChunkError::SizeTooLarge),
        ("fffffffffffffffff\r\n", ChunkError::SizeTooLarge),
        ("5\nhello\r\n", ChunkError::LineEnd),
        ("5\rhello", ChunkError::LineEnd),
        ("5\r\rhello", ChunkError::LineEnd),
        ("5;a\nhello\r\n", ChunkError::LineEnd),
        ("5;a\rb\r\nhello", ChunkError::LineEnd),
        ("5;a\0\r\nhello", ChunkError::Extension),
        ("5;\"\x7f\"\r\nhello", ChunkError::Extension),
        ("5;aaaaaaaaaaaaaaaaa\r\n", ChunkError::ExtensionsTooLong),
        ("5                 ;\r\n", ChunkError::ExtensionsTooLong),
        ("1;aaaaaaaaa\r\nx\r\n1;aaaaaaaaa\r\n", ChunkError::ExtensionsTooLong),
        ("5\r\nhello!\r\n", ChunkError::LineEnd),
        ("5\r\nhello\n0\r\n", ChunkError::LineEnd),
        ("5\r\nhello\r0", ChunkError::LineEnd),
        ("5\r\nhell\r\n0\r\n\r\n", ChunkError::LineEnd),
        ("0\r\n\n", ChunkError::LineEnd),
        ("0\r\n\rX", ChunkError::LineEnd),
        ("0\r\nX: y\n\r\n", ChunkError::LineEnd),
        ("0\r\nX: y\rZ", ChunkError::LineEnd),
        ("0\r\n X: y\r\n", ChunkError::Trailer),
        ("0\r\nX : y\r\n", ChunkError::Trailer),
        ("0\r\n: y\r\n", ChunkError::Trailer),
        ("0\r\nX: \0\r\n", ChunkError::Trailer),
        ("0\r\nGET / HTTP/1.1\r\n", ChunkError::Trailer),
        ("0\r\nX: 0123456789012345678901234567890123456789", ChunkError::TrailersTooLong),
    ] {
        for piece in 1..=wire.len() {
            assert_eq!(decode(wire.as_bytes(), &[piece]), Err(error), "{wire:?} by {piece}");
        }
    }
}

#[test]
fn a_failed_decoder_stays_failed() {
    let mut decoder = ChunkedDecoder::default();
    assert_eq!(decoder.decode(b"5\n"), Err(ChunkError::LineEnd));
    assert_eq!(decoder.decode(b"0\r\n\r\n"), Err(ChunkError::LineEnd));
}

#[test]
fn the_largest_size_is_data_and_not_an_overflow() {
    let (content, consumed, done) = decode(b"ffffffffffffffff\r\nabc", &[4]).unwrap();
    assert_eq!((content.as_slice(), consumed, done), (&b"abc"[..], 21, false));
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded_in_any_pieces(
        content in proptest::collection::vec(any::<u8>(), 0..300),
        sizes in proptest::collection::vec(1usize..40, 1..6),
        pieces in proptest::collection::vec(1usize..50, 1..6),
        dress: bool,
    ) {
        let mut wire = encode(&content, &sizes, dress);
        let end = wire.len();
        wire.extend_from_slice(b"GET / HTTP/1.1\r\n");
        prop_assert_eq!(decode(&wire, &pieces), Ok((content, end, true)));
    }

    #[test]
    fn damage_gives_the_same_answer_in_any_pieces(
        content in proptest::collection::vec(any::<u8>(), 0..60),
        sizes in proptest::collection::vec(1usize..20, 1..4),
        pieces in proptest::collection::vec(1usize..20, 1..6),
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let mut wire = encode(&content, &sizes, true);
        let at = at.index(wire.len());
        wire[at] = byte;
        prop_assert_eq!(decode(&wire, &pieces), decode(&wire, &[usize::MAX]));
    }

    #[test]
    fn a_prefix_is_never_done(
        content in proptest::collection::vec(any::<u8>(), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let wire = encode(&content, &[7], false);
        let (_, consumed, done) = decode(&wire[..cut.index(wire.len())], &[5]).unwrap();
        prop_assert!(!done && consumed == cut.index(wire.len()));
    }
}
