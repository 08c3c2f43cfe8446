//! An intermediary's treatment of field lines: some concern only one connection, some it writes itself
//! (RFC 9110 section 7.6.1).

mod front;

use afpa_http::syntax::{is_alike, list};

/// An intermediary's treatment of a field of a message that it passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Passed on as it is.
    EndToEnd,
    /// `Connection`: names further fields that concern only this connection.
    Connection,
    /// Concerns only this connection, or only a proxy: never passed on.
    HopByHop,
    ContentLength,
    TransferEncoding,
    ContentType,
    Date,
    Host,
    Expect,
    Upgrade,
    /// `TE`: codings, and whether trailer fields are wanted, on this connection.
    Te,
    /// `Trailer`: announces trailer fields; passed on where those are.
    Trailer,
    Via,
    MaxForwards,
    EarlyData,
    Forwarded,
    XForwardedFor,
    XForwardedHost,
    XForwardedProto,
    /// Another field by which a router in front describes the request that it got: servers believe it.
    FrontRequest,
    /// Another field by which a router in front names its client.
    FrontClient,
}

/// Recognises a field name, a token, in any case: by its length and first byte, then one comparison.
///
/// Another sign in the place of `-` counts as one: CGI does not distinguish the two, and a field that is removed or set here
/// must not get through under its other name.
pub(crate) fn kind(name: &[u8]) -> Kind {
    let first = name.first().map_or(0, |byte| byte | 0x20);
    let (usual, kind): (&[u8], Kind) = match (name.len(), first) {
        (2, b't') => (b"te", Kind::Te),
        (3, b'v') => (b"via", Kind::Via),
        (4, b'd') => (b"date", Kind::Date),
        (4, b'h') => (b"host", Kind::Host),
        // CGI would turn this field into the variable HTTP_PROXY, which programs obey.
        (5, b'p') => (b"proxy", Kind::HopByHop),
        (6, b'e') => (b"expect", Kind::Expect),
        (7, b'u') => (b"upgrade", Kind::Upgrade),
        (7, b't') => (b"trailer", Kind::Trailer),
        (9, b'f') => (b"forwarded", Kind::Forwarded),
        (10, b'c') => (b"connection", Kind::Connection),
        (10, b'e') => (b"early-data", Kind::EarlyData),
        (10, b'k') => (b"keep-alive", Kind::HopByHop),
        (12, b'c') => (b"content-type", Kind::ContentType),
        (12, b'm') => (b"max-forwards", Kind::MaxForwards),
        (14, b'c') => (b"content-length", Kind::ContentLength),
        (14, b'h') => (b"http2-settings", Kind::HopByHop),
        (15, b'x') => (b"x-forwarded-for", Kind::XForwardedFor),
        (16, b'p') => (b"proxy-connection", Kind::HopByHop),
        (16, b'x') => (b"x-forwarded-host", Kind::XForwardedHost),
        (17, b't') => (b"transfer-encoding", Kind::TransferEncoding),
        (17, b'x') => (b"x-forwarded-proto", Kind::XForwardedProto),
        (18, b'p') => (b"proxy-authenticate", Kind::HopByHop),
        (19, b'p') => (b"proxy-authorization", Kind::HopByHop),
        _ => return front::kind(name),
    };
    if is_same(name, usual) {
        return kind;
    }
    if is_alike(name, usual) { Kind::HopByHop } else { front::kind(name) }
}

/// Whether a token is `usual` in any case, which is as long, and of lower case letters, digits and `-`.
/// Every field of every message comes by here: eight bytes are compared at once. The bit that tells the
/// cases of a letter apart is set in all else that a token may share with `usual`.
fn is_same(name: &[u8], usual: &[u8]) -> bool {
    debug_assert_eq!(name.len(), usual.len(), "the length was compared before");
    const LOWER: u8 = 0x20;
    let (words, usual_words) = (name.as_chunks::<8>().0, usual.as_chunks::<8>().0);
    let same = |word: &[u8; 8], usual: &[u8; 8]| {
        u64::from_ne_bytes(*word) | u64::from_ne_bytes([LOWER; 8]) == u64::from_ne_bytes(*usual)
    };
    match (name.last_chunk(), usual.last_chunk()) {
        // The last eight, which may overlap with those before.
        (Some(last), Some(usual_last)) => {
            same(last, usual_last) && words.iter().zip(usual_words).all(|(a, b)| same(a, b))
        }
        _ => name.iter().zip(usual).all(|(byte, usual)| byte | LOWER == *usual),
    }
}

/// The options of Connection lines, other than those that say whether the connection stays.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nominated<'b> {
    lines: [&'b [u8]; 4],
    used: usize,
}

/// There are more Connection lines than a sensible sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl<'b> Nominated<'b> {
    /// Takes a Connection line.
    pub(crate) fn add(&mut self, value: &'b [u8]) -> Result<(), TooMany> {
        if !list(value).any(nominates) {
            return Ok(());
        }
        *self.lines.get_mut(self.used).ok_or(TooMany)? = value;
        self.used += 1;
        Ok(())
    }

    /// An owned copy of the named fields, for the trailer section, which comes when the head is gone.
    pub(crate) fn to_owned(self) -> OwnedNominated {
        let lines = self.lines.iter().take(self.used);
        OwnedNominated(lines.map(|line| Box::from(*line)).collect())
    }

    /// Whether a field was named there.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.used > 0
            && self
                .lines
                .iter()
                .take(self.used)
                .any(|line| list(line).any(|option| option.eq_ignore_ascii_case(name)))
    }
}

/// Options of Connection lines, owned; almost always none.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedNominated(Vec<Box<[u8]>>);

impl OwnedNominated {
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        let mut options = self.0.iter().flat_map(|line| list(line));
        options.any(|option| option.eq_ignore_ascii_case(name))
    }
}

fn nominates(option: &[u8]) -> bool {
    !option.eq_ignore_ascii_case(b"close") && !option.eq_ignore_ascii_case(b"keep-alive")
}

/// Appends `name: value` and CRLF.
pub(crate) fn put(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// A byte of a name, as programs read it that distinguish neither cases nor signs.
pub(crate) fn plain(byte: &u8) -> u8 {
    if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' }
}

/// Appends a Content-Length line.
pub(crate) fn put_length(out: &mut Vec<u8>, length: u64) {
    put(out, b"Content-Length", itoa::Buffer::new().format(length).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_in_any_case_and_with_underscores_taken_away() {
        assert_eq!(kind(b"Transfer-Encoding"), Kind::TransferEncoding);
        assert_eq!(kind(b"CONTENT-LENGTH"), Kind::ContentLength);
        assert_eq!(kind(b"Content_Length"), Kind::HopByHop);
        assert_eq!(kind(b"x_forwarded-for"), Kind::HopByHop);
        assert_eq!(kind(b"X.Forwarded.For"), Kind::HopByHop);
        assert_eq!(kind(b"Proxy"), Kind::HopByHop);
        assert_eq!(kind(b"HTTP2_Settings"), Kind::HopByHop);
        assert_eq!(kind(b"x-FORWARDED-Proto"), Kind::XForwardedProto);
        assert_eq!(kind(b"proxx"), Kind::EndToEnd);
        assert_eq!(kind(b"Cookie"), Kind::EndToEnd);
        assert_eq!(kind(b""), Kind::EndToEnd);
    }

    #[test]
    fn words_are_compared_as_bytes_are() {
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        for usual in
            ["te", "upgrade", "trailers", "forwarded", "http2-settings", "x-forwarded-proto"]
        {
            let usual = usual.as_bytes();
            for at in 0..usual.len() {
                for byte in (0..=u8::MAX).filter(is_token) {
                    let mut name = usual.to_ascii_uppercase();
                    name[at] = byte;
                    let expected = name.eq_ignore_ascii_case(usual);
                    assert_eq!(is_same(&name, usual), expected, "{}", name.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn nominated_fields_are_found_and_the_usual_options_are_none() {
        let mut nominated = Nominated::default();
        nominated.add(b"close, keep-alive").expect("none");
        assert!(!nominated.contains(b"close"));
        nominated.add(b"x-a , ,Keep-Alive,X-B").expect("one line");
        assert!(nominated.contains(b"X-A") && nominated.contains(b"x-b"));
        assert!(!nominated.contains(b"x-c"));
        for _ in 0..3 {
            nominated.add(b"x").expect("room");
        }
        assert_eq!(nominated.add(b"x"), Err(TooMany));
    }
}
