//! The part of WebSocket's handshake that AFPA answers itself, where the server is asked by HTTP/2, which does without it
//! (RFC 8441 section 5).

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text that is appended to a key (RFC 6455 section 1.3).
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Whether a value of Sec-WebSocket-Key is 16 bytes in base 64 (RFC 6455 section 4.2.1).
pub(crate) fn is_key(value: &[u8]) -> bool {
    // Before they are decoded: 16 bytes are 24 digits.
    value.len() == 24 && STANDARD.decode(value).is_ok_and(|key| key.len() == 16)
}

/// The value of Sec-WebSocket-Accept for a key (RFC 6455 section 4.2.2). SHA-1 keeps no secret here: it shows that the key was
/// understood.
pub(crate) fn accept(key: &[u8]) -> Box<str> {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, SUFFIX].concat());
    STANDARD.encode(hash).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let key = b"dGhlIHNhbXBsZSBub25jZQ==";
        assert!(is_key(key));
        assert_eq!(&*accept(key), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_no_key() {
        for value in [
            &b""[..],
            b"x",
            b"dGhlIHNhbXBsZSBub25jZQ",
            b"dGhlIHNhbXBsZSBub25jZQ= ",
            b"dGhlIHNhbXBsZSBub25jZQ=!",
            b"dGhlIHNhbXBsZSBub25jZWU=",
            b"dGhlIHNhbXBsZSBub25jZR==",
            b"dGhlIHNhbXBsZSBub25j",
            b"dGhlIHNhbXBsZSBub25jZWUgYXMgbG9uZw==",
            b"========================",
        ] {
            assert!(!is_key(value), "{}", value.escape_ascii());
        }
    }
}
