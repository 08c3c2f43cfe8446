//! The authority a request is for (RFC 9110 section 7.2, RFC 3986 section 3.2).

use std::net::Ipv6Addr;

use super::fields::Index;
use super::{Known, Refusal, Target, Version};
use crate::syntax::byte_table;

/// A valid host with an optional port, or the absence of one in HTTP/1.0.
///
/// The grammar of RFC 3986 is narrowed to names that can be resolved: letters, digits, `-`, `.`, `_` and `~`, or an
/// IPv6 address in brackets. Percent-escapes, sub-delimiters and user information are refused: no name has them, and
/// they are the raw material of cache poisoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host<'b> {
    bytes: &'b [u8],
    name_len: usize,
    port: Option<u16>,
}

impl<'b> Host<'b> {
    /// The host that an HTTP/1.0 request without Host has.
    pub const ABSENT: Host<'static> = Host { bytes: b"", name_len: 0, port: None };

    /// Reads `host [":" port]`. An empty port is like none (RFC 3986 section 3.2.3).
    ///
    /// # Errors
    /// [`Refusal::HostInvalid`], also for an empty host (RFC 9110 section 4.2.1).
    #[inline]
    pub fn parse(bytes: &'b [u8]) -> Result<Host<'b>, Refusal> {
        let name_len = name_len(bytes).ok_or(Refusal::HostInvalid)?;
        let port = match bytes.get(name_len..) {
            None | Some([] | [b':']) => None,
            Some([b':', digits @ ..]) => Some(port(digits).ok_or(Refusal::HostInvalid)?),
            Some(_) => return Err(Refusal::HostInvalid),
        };
        Ok(Host { bytes, name_len, port })
    }

    /// Host and port as they were sent; empty when absent.
    pub fn as_bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The host as text, without the port, and without the dot that may stand behind the root of a name (RFC 1034
    /// section 3.1); IPv6 addresses keep their brackets. Compare it without regard to case.
    #[inline]
    pub fn name(&self) -> &'b str {
        let name = self.bytes.get(..self.name_len).unwrap_or_default();
        let name = match name {
            [rest @ .., last, b'.'] if *last != b'.' => name.get(..=rest.len()).unwrap_or_default(),
            _ => name,
        };
        str::from_utf8(name).unwrap_or("")
    }

    /// The port, if one was named.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether there was no host at all, which only HTTP/1.0 allows.
    pub fn is_absent(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// The host of a request: exactly one valid Host line in HTTP/1.1, which must be there even when
/// the target names an authority, but then gives way to it (RFC 9112 sections 3.2 and 3.2.2).
#[inline]
pub(super) fn of_request<'b>(
    target: &Target<'b>,
    version: Version,
    index: &Index,
    lines: &[httparse::Header<'b>],
) -> Result<Host<'b>, Refusal> {
    if index.is_repeated(Known::Host) {
        return Err(Refusal::HostRepeated);
    }
    let host = match index.first(Known::Host, lines) {
        Some(value) => Host::parse(value)?,
        None if version == Version::Http10 => Host::ABSENT,
        None => return Err(Refusal::HostMissing),
    };
    match *target {
        Target::Absolute { authority, .. } | Target::Authority(authority) => Host::parse(authority),
        Target::Origin { .. } | Target::Asterisk => Ok(host),
    }
}

#[inline]
fn name_len(bytes: &[u8]) -> Option<usize> {
    if bytes.first() == Some(&b'[') {
        return literal_len(bytes);
    }
    const NAME: [bool; 256] = byte_table!(is_name_byte);
    let len = bytes.iter().position(|&byte| !NAME[usize::from(byte)]).unwrap_or(bytes.len());
    (len > 0).then_some(len)
}

/// Length of `[IPv6]`; zones and future forms are refused.
fn literal_len(bytes: &[u8]) -> Option<usize> {
    let close = bytes.iter().position(|&byte| byte == b']')?;
    let address = str::from_utf8(bytes.get(1..close)?).ok()?;
    address.parse::<Ipv6Addr>().ok().map(|_| close + 1)
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn port(digits: &[u8]) -> Option<u16> {
    if digits.len() > 5 {
        return None;
    }
    crate::syntax::number(digits).and_then(|port| u16::try_from(port).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_ports() {
        for (text, name, port) in [
            ("example.com", "example.com", None),
            ("example.com:", "example.com", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("a_b-c~d", "a_b-c~d", None),
            ("example.com.", "example.com", None),
            ("example.com.:80", "example.com", Some(80)),
            ("a.", "a", None),
            (".", ".", None),
            ("a..", "a..", None),
            ("127.0.0.1:0", "127.0.0.1", Some(0)),
            ("[::1]", "[::1]", None),
            ("[::ffff:1.2.3.4]:65535", "[::ffff:1.2.3.4]", Some(65535)),
        ] {
            let host = Host::parse(text.as_bytes()).unwrap();
            assert_eq!((host.name(), host.port()), (name, port), "{text}");
            assert_eq!(host.as_bytes(), text.as_bytes());
        }
        assert!(Host::ABSENT.is_absent() && Host::ABSENT.name().is_empty());
    }

    #[test]
    fn what_is_not_a_host_is_refused() {
        for text in [
            "",
            ":80",
            "a b",
            "a,b",
            "a/b",
            "a@b",
            "a%20",
            "a\\b",
            "a?b",
            "a#b",
            "a:65536",
            "a:+1",
            "a:1:2",
            "a:1a",
            "a:000080",
            "[::1",
            "[::1]x",
            "[1.2.3.4]",
            "[fe80::1%25eth0]",
            "[v1.a]",
            "::1",
            "caf\u{e9}",
            "a\0",
        ] {
            assert_eq!(Host::parse(text.as_bytes()), Err(Refusal::HostInvalid), "{text:?}");
        }
    }
}
