//! The marks of a request, by which it is found again in several logs: its id, and its trace.
//!
//! The configuration says which requests have some ([`IdRule`], [`TraceRule`]); a source of random bits makes them. They are never part of
//! a key, and no answer that is kept has any.

use crate::request::Request;
use crate::syntax::is_alike;
#[cfg(doc)]
use crate::trace::TraceRule;
use crate::trace::{Trace, put_hex};

/// Bytes of the longest id of a router in front that is taken over.
pub const LONGEST_ID: usize = 64;

/// Bytes of the longest name of the field that carries ids.
pub const LONGEST_FIELD: usize = 40;

/// How requests have ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdRule {
    /// The field that carries the id: of at most [`LONGEST_FIELD`] bytes.
    pub field: String,
    /// Whether answers carry it too.
    pub in_answers: bool,
}

impl IdRule {
    /// Whether servers may take a field for the one with the id.
    pub fn is(&self, name: &[u8]) -> bool {
        is_alike(name, self.field.as_bytes())
    }

    /// The id of a request: the one that it has, if it comes from a router in front that is `trusted`, else a new one.
    pub fn id(&self, request: &Request<'_, '_>, trusted: bool, random: u128) -> RequestId {
        let given = || {
            let lines = request.fields();
            let mut own = lines.filter(|(name, _)| name.eq_ignore_ascii_case(&self.field));
            match (own.next(), own.next()) {
                (Some((_, value)), None) => RequestId::given(value),
                _ => None,
            }
        };
        given().filter(|_| trusted).unwrap_or_else(|| RequestId::new(random))
    }
}

/// The id of one request: short, and of letters, digits and signs that no log has to escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    bytes: [u8; LONGEST_ID],
    len: u8,
}

impl RequestId {
    /// A new id, of 128 random bits: 32 hexadecimal digits, as nginx's `$request_id`.
    pub fn new(random: u128) -> Self {
        let mut bytes = [0; LONGEST_ID];
        put_hex(&random.to_be_bytes(), Some(&mut bytes));
        Self { bytes, len: 32 }
    }

    /// The id that a router in front has given a request: of at most [`LONGEST_ID`] letters, digits, and signs among
    /// `-_.:=+/@`. `None`: it is none.
    pub fn given(text: &[u8]) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:=+/@".contains(byte);
        let mut bytes = [0; LONGEST_ID];
        let room = bytes.get_mut(..text.len())?;
        if text.is_empty() || !text.iter().all(is_plain) {
            return None;
        }
        room.copy_from_slice(text);
        Some(Self { bytes, len: u8::try_from(text.len()).ok()? })
    }

    /// Its text.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// The marks of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Its id, if it has one.
    pub id: Option<RequestId>,
    /// Its trace, if it belongs to one.
    pub trace: Option<Trace>,
}

impl Marks {
    /// The text of its id; empty: it has none.
    pub fn id(&self) -> &[u8] {
        self.id.as_ref().map(RequestId::as_bytes).unwrap_or_default()
    }

    /// The number of its trace; empty: it belongs to none.
    pub fn trace_id(&self) -> &[u8] {
        self.trace.as_ref().map(Trace::id).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldSlots, RequestLimits, request};

    fn id(lines: &str, trusted: bool) -> String {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let parsed = parsed.unwrap().unwrap();
        let rule = IdRule { field: "X-Request-Id".to_owned(), in_answers: true };
        String::from_utf8(rule.id(&parsed, trusted, 0xab).as_bytes().to_vec()).unwrap()
    }

    const NEW: &str = "000000000000000000000000000000ab";

    #[test]
    fn a_new_id_has_thirty_two_digits() {
        assert_eq!(id("", true), NEW);
        assert_eq!(RequestId::new(u128::MAX).as_bytes(), [b'f'; 32]);
    }

    #[test]
    fn only_a_trusted_router_chooses_an_id_and_only_a_short_plain_one() {
        let longest = "a".repeat(LONGEST_ID);
        for given in [
            "7",
            "018f3a5e-7d5c-7a3b-9c1d-2e4f6a8b0c1d",
            "Root=1-67891233-abcdef012345678912345678",
            &longest,
        ] {
            let line = format!("x-request-ID: {given}\r\n");
            assert_eq!(id(&line, true), given);
            assert_eq!(id(&line, false), NEW);
        }
        let long = "a".repeat(LONGEST_ID + 1);
        for given in ["", "a b", "a\"b", "a;b", "a,b", "a\\b", "<a>", "a\u{e9}", &long] {
            assert_eq!(id(&format!("X-Request-Id: {given}\r\n"), true), NEW, "{given}");
        }
        assert_eq!(id("X-Request-Id: a\r\nX-Request-Id: a\r\n", true), NEW);
        assert_eq!(id("X_Request_Id: a\r\n", true), NEW);
    }
}
