//! The target of afpa-fastcgi. It is in a file of its own, so that an ordinary test of that crate can include it.

use afpa_fastcgi::{Fault, RequestWriter, ResponseReader};
use afpa_http::chunked::{ChunkLimits, ChunkedDecoder};

/// Small enough for inputs of a fuzzer to reach it.
const HEAD: usize = 256;

/// The outcome of an answer: its head, its content, whether it has ended, and whether the connection is kept.
type Outcome = Result<(Vec<u8>, Vec<u8>, bool, bool), Fault>;

/// The bytes of a server, behind a byte of which the first bit says whether the request was HEAD. However the network splits
/// it, the same comes of it; an answer that has ended is a head of HTTP/1.1 with all the content that it announces. The
/// bytes are also written as a request, which may be refused.
pub fn fastcgi(data: &[u8]) {
    let Some((first, records)) = data.split_first() else { return };
    let asks_head = first & 1 == 1;
    let whole = answer(records.chunks(records.len().max(1)), asks_head);
    assert_eq!(answer(records.chunks(1), asks_head), whole);
    assert_eq!(answer(records.chunks(7), asks_head), whole);

    let mut out = Vec::new();
    let _ = RequestWriter::new(asks_head).write(records, b"", &mut out);
    assert!(out.len() <= 2 * records.len() + 1024, "no more than it was given, and headers");
}

fn answer<'d>(pieces: impl Iterator<Item = &'d [u8]>, asks_head: bool) -> Outcome {
    let mut reader = ResponseReader::new(asks_head, true, HEAD);
    let mut out = Vec::new();
    for piece in pieces {
        let before = out.len();
        reader.read(piece, &mut out)?;
        assert!(out.len() - before <= 8 * piece.len() + 2 * HEAD, "about as many bytes");
        assert!(reader.messages().iter().all(|line| !line.contains(char::is_control)));
    }
    let Some(end) = out.windows(4).position(|window| window == b"\r\n\r\n") else {
        assert!(out.is_empty() && !reader.has_ended());
        return Ok((out, Vec::new(), false, false));
    };
    let (head, content) = out.split_at(end + 4);
    assert!(head.starts_with(b"HTTP/1.1 "));
    let is_chunked = head.ends_with(b"Transfer-Encoding: chunked\r\n\r\n");
    let content =
        if is_chunked { unchunked(content, reader.has_ended()) } else { content.to_vec() };
    assert!(!asks_head || content.is_empty());
    Ok((head.to_vec(), content, reader.has_ended(), reader.keeps()))
}

fn unchunked(mut input: &[u8], has_ended: bool) -> Vec<u8> {
    let (mut decoder, mut content) = (ChunkedDecoder::new(ChunkLimits::default()), Vec::new());
    let mut done = false;
    while !done && !input.is_empty() {
        let progress = decoder.decode(input).expect("well-formed");
        content.extend_from_slice(&input[progress.data]);
        (input, done) = (&input[progress.consumed..], progress.done);
    }
    assert_eq!(done, has_ended, "the last chunk is the end");
    content
}
