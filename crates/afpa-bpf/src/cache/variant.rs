//! The variants of an object that can be pinned, and the reasons why one cannot.

use afpa_abi::{DATE_LENGTH, PAGE, PAGES_MAX};

/// Longest answer that can be pinned at all.
pub const LONGEST_ANSWER: usize = PAGES_MAX * PAGE;

/// Content coding of a stored variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As it is.
    Identity = 0,
    /// gzip
    Gzip = 1,
    /// br
    Brotli = 2,
    /// zstd
    Zstd = 3,
}

/// A complete response. Some bytes of its head, at `date_offset`, are overwritten: 29 for the Date, or for a server's
/// answer as many as its Age has digits; where it has a `ttl`, all from that to the Age, which is the next line.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Status line to blank line.
    pub head: &'a [u8],
    /// Where the value of the Date, or of the Age, stands in `head`; of an answer with a `ttl`, where that does.
    pub date_offset: usize,
    /// Content; empty for a 304.
    pub body: &'a [u8],
}

/// One coding of an object.
#[derive(Clone, Copy, Debug)]
pub struct Variant<'a> {
    /// Which one.
    pub coding: Coding,
    /// It answers requests that ask for the connection's end. Used on connections without a socket alone.
    pub closing: bool,
    /// Entity tag with quotes; empty: none, so that If-None-Match never holds.
    pub etag: &'a [u8],
    /// The Last-Modified value; None: If-Modified-Since goes to user mode.
    pub last_modified: Option<&'a [u8; DATE_LENGTH]>,
    /// Of a server's answer; `None`: its Date is written, and it is given for as long as it is pinned.
    pub freshness: Option<Freshness>,
    /// The answer to GET (and, its head, to HEAD); None where user mode gives it.
    pub whole: Option<Response<'a>>,
    /// The answer to a validator that matches; None: user mode gives it.
    pub not_modified: Option<Response<'a>>,
}

/// How old a server's answer is, and for how long it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Nanoseconds of `CLOCK_BOOTTIME` at which its age was 0; that may be before the clock began, modulo 2^64.
    pub born: u64,
    /// It is given while its age, in seconds, is less.
    pub fresh_for: u32,
    /// How many digits the age has until then: at most [`AGE_DIGITS`].
    pub digits: u32,
    /// Of an answer that says how long it is fresh.
    pub ttl: Option<Ttl>,
    /// A time of [`monotonic_ns`](crate::monotonic_ns) before the attached server was asked for the answer. An unsafe
    /// request for its target that has passed since then ends it, too
    /// ([`Reports::note_requests`](crate::Reports::note_requests)). 0: only an unpin ends it.
    pub asked: u64,
}

/// Most digits of an age.
pub const AGE_DIGITS: usize = afpa_abi::AGE_DIGITS;

/// The parameter `ttl` of Cache-Status (RFC 9211 section 2.2.3): the rest of a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl {
    /// Seconds, no fewer than [`Freshness::fresh_for`]: the age at which none is left.
    pub lifetime: u32,
    /// How many digits the rest has until [`Freshness::fresh_for`]: at most [`TTL_DIGITS`].
    pub digits: u32,
}

/// Most digits of a `ttl`.
pub const TTL_DIGITS: usize = afpa_abi::TTL_DIGITS;

/// The bytes between a `ttl` and the Age.
pub const BEFORE_AGE: &[u8; afpa_abi::BEFORE_AGE] = b"\r\nAge: ";

/// Codings that a request accepts, as the programs read them from Accept-Encoding: only names that they know, without
/// weights, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AcceptedCodings(u16);

impl AcceptedCodings {
    /// Of a request without the field.
    pub const NONE: Self = Self(1);

    /// Of the members of the field, which are in lower case. `None`: the programs leave such a request to user mode.
    pub fn of<'m>(members: impl IntoIterator<Item = &'m [u8]>) -> Option<Self> {
        let mut codings = Self::NONE;
        for member in members {
            let bit = match member {
                b"gzip" => 2,
                b"br" => 4,
                b"zstd" => 8,
                b"deflate" => 16,
                b"identity" => 32,
                _ => return None,
            };
            if codings.0 & bit != 0 {
                return None;
            }
            codings.0 |= bit;
        }
        Some(codings)
    }
}

/// Class of the request fields that have no other class.
pub const FIELD_UNKNOWN: u32 = afpa_abi::FIELD_UNKNOWN as u32;
/// Class of Upgrade, and of connection options that name a field which no server here reads.
pub const FIELD_HOP: u32 = afpa_abi::FIELD_HOP as u32;
/// Among the classes that do not matter: Accept-Encoding with weights chooses as AFPA's own server does.
pub const WEIGHTS_AS_OURS: u32 = afpa_abi::WEIGHTS_AS_OURS as u32;
const OTHER_TAG_WHOLE: u32 = afpa_abi::OTHER_TAG_WHOLE as u32;
const TAG_WINS: u32 = afpa_abi::TAG_WINS as u32;
const OLD_ALIKE: u32 = afpa_abi::OLD_ALIKE as u32;
const TAG_WEAKLY: u32 = afpa_abi::TAG_WEAKLY as u32;
const RULES: u32 = OTHER_TAG_WHOLE | TAG_WINS | OLD_ALIKE | TAG_WEAKLY;

/// Which requests for an object are answered, beyond what its variants say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinRules {
    /// Classes of request fields that do not matter to it, as
    /// [`let_fields_matter`](crate::Listeners::let_fields_matter) numbered them; with [`FIELD_HOP`] and [`WEIGHTS_AS_OURS`].
    pub fields: u32,
    /// If-None-Match with another tag gets the whole answer.
    pub other_tag_gets_whole: bool,
    /// If-None-Match decides alone, whatever If-Modified-Since says.
    pub tag_wins: bool,
    /// If-None-Match compares weakly (RFC 9110, 13.1.2). If not, requests with a weak tag are left to user mode.
    pub tag_weakly: bool,
    /// HTTP/1.0 gets the answer of an HTTP/1.1 request that asks for the connection's end.
    pub old_alike: bool,
    /// Only requests that accept exactly these codings are answered: for a server's answer that varies by them.
    pub codings: Option<AcceptedCodings>,
    /// HEAD is answered, with the head of the whole answer: one for each coding, by its number.
    pub head: [bool; 4],
}

impl Default for PinRules {
    /// The rules of AFPA's own server: it reads no fields but those that the programs read, and follows RFC 9110.
    fn default() -> Self {
        let fields = !RULES;
        Self {
            fields,
            other_tag_gets_whole: true,
            tag_wins: true,
            tag_weakly: true,
            old_alike: true,
            codings: None,
            head: [true; 4],
        }
    }
}

impl PinRules {
    /// As the kernel's key of the object has it.
    pub(super) fn codings(&self) -> u16 {
        self.codings.map_or(0, |codings| codings.0)
    }

    pub(super) fn word(&self) -> u32 {
        let whole = if self.other_tag_gets_whole { OTHER_TAG_WHOLE } else { 0 };
        let wins = if self.tag_wins { TAG_WINS } else { 0 };
        let old = if self.old_alike { OLD_ALIKE } else { 0 };
        let weakly = if self.tag_weakly { TAG_WEAKLY } else { 0 };
        self.fields & !RULES | whole | wins | weakly | old
    }
}

/// Why an object was not pinned. An object that was pinned under its path before is not pinned any more.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// Path, validator or response exceeds the room for it, or the response
    /// [`Settings::answer_max`](crate::Settings::answer_max).
    #[error("{0} is too long for the fast path")]
    TooLong(&'static str),
    /// Every slot, or page, is in use or being retired.
    #[error("no room for another object")]
    Full,
    /// Another pinned path has the same hash (one in 2^64).
    #[error("path hash collides with another pinned path")]
    Collision,
    /// There is something else where this is to be written.
    #[error("{0} does not stand where the fast path writes it")]
    Misplaced(&'static str),
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] libbpf_rs::Error),
}
