//! What can be pinned: the variants of an object, and why one cannot.

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

/// A complete response. 29 bytes of its head, at `date_offset`, are the Date's and are overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Status line to blank line.
    pub head: &'a [u8],
    /// Where the Date's value stands in `head`.
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
    /// The answer to GET (and, its head, to HEAD); None where user mode gives it.
    pub whole: Option<Response<'a>>,
    /// The answer to a validator that matches; None: user mode gives it.
    pub not_modified: Option<Response<'a>>,
}

/// Class of the request fields that nobody has given a class.
pub const FIELD_UNKNOWN: u32 = afpa_abi::FIELD_UNKNOWN as u32;
const OTHER_TAG_WHOLE: u32 = afpa_abi::OTHER_TAG_WHOLE as u32;
const TAG_WINS: u32 = afpa_abi::TAG_WINS as u32;
const OLD_ALIKE: u32 = afpa_abi::OLD_ALIKE as u32;
const RULES: u32 = OTHER_TAG_WHOLE | TAG_WINS | OLD_ALIKE;

/// Which requests for an object are answered, beyond what its variants say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinRules {
    /// Classes of request fields that do not matter to it, as
    /// [`let_fields_matter`](crate::FastPath::let_fields_matter) numbered them.
    pub fields: u32,
    /// If-None-Match with another tag gets the whole answer.
    pub other_tag_gets_whole: bool,
    /// If-None-Match decides alone, whatever If-Modified-Since says.
    pub tag_wins: bool,
    /// HTTP/1.0 gets what a request of HTTP/1.1 gets that asks for the connection's end.
    pub old_alike: bool,
    /// HEAD is answered, with the head of the whole answer: one for each coding, by its number.
    pub head: [bool; 4],
}

impl Default for PinRules {
    /// What AFPA's own server does: it reads no fields but those that the programs read, and follows RFC 9110.
    fn default() -> Self {
        let fields = !RULES;
        Self {
            fields,
            other_tag_gets_whole: true,
            tag_wins: true,
            old_alike: true,
            head: [true; 4],
        }
    }
}

impl PinRules {
    pub(super) fn word(&self) -> u32 {
        let whole = if self.other_tag_gets_whole { OTHER_TAG_WHOLE } else { 0 };
        let wins = if self.tag_wins { TAG_WINS } else { 0 };
        let old = if self.old_alike { OLD_ALIKE } else { 0 };
        self.fields & !RULES | whole | wins | old
    }
}

/// Why an object was not pinned. An object that was pinned under its path before is not pinned any more.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// Path, validator or response exceeds what is kept of one, or the response
    /// [`Settings::answer_max`](crate::Settings::answer_max).
    #[error("{0} is too long for the fast path")]
    TooLong(&'static str),
    /// Every slot, or page, is in use or being retired.
    #[error("no room for another object")]
    Full,
    /// Another pinned path has the same hash (one in 2^64).
    #[error("path hash collides with another pinned path")]
    Collision,
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] libbpf_rs::Error),
}
