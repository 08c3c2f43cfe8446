//! A server that breaks its responses off.

use std::io::{Read as _, Write as _};

use afpa_h2::PREFACE;
use afpa_h2::frame::{FrameHeader, HEADER, flag, kind, put, put_settings};
use afpa_h2::hpack::Decoder;

use super::Raw;
use crate::h2::block;

/// A server of HTTP/2 that begins each response, and resets its stream with the code that the path names.
///
/// # Panics
/// When its client does not speak HTTP/2.
pub fn resetting() -> Raw {
    Raw::start(|mut stream| {
        stream.read_exact(&mut [0; PREFACE.len()]).expect("a preface");
        let mut out = Vec::new();
        put_settings(&mut out, &[]);
        let (mut decoder, mut header) = (Decoder::default(), [0; HEADER]);
        while stream.write_all(&out).is_ok() && stream.read_exact(&mut header).is_ok() {
            out.clear();
            let FrameHeader { length, kind: of, flags, stream: id } =
                FrameHeader::read(&header).expect("a header");
            let mut payload = vec![0; length];
            stream.read_exact(&mut payload).expect("a payload");
            match of {
                kind::SETTINGS if flags & flag::ACK == 0 => {
                    put(&mut out, kind::SETTINGS, flag::ACK, 0, b"");
                }
                kind::HEADERS => {
                    let mut code = 0_u32;
                    let path = |name: &[u8], value: &[u8]| {
                        if name == b":path" {
                            let path = str::from_utf8(value).expect("text");
                            let last = path.rsplit('/').next();
                            code = last.and_then(|digits| digits.parse().ok()).expect("a code");
                        }
                    };
                    decoder.decode(&payload, path).expect("a field block");
                    let head = block(&[(":status", "200")]);
                    put(&mut out, kind::HEADERS, flag::END_HEADERS, id, &head);
                    put(&mut out, kind::DATA, 0, id, b"begun");
                    put(&mut out, kind::RST_STREAM, 0, id, &code.to_be_bytes());
                }
                _ => {}
            }
        }
    })
}
