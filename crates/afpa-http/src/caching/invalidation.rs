//! The effect of answers to other methods than GET on stored responses: invalidation by unsafe requests (section 4.4),
//! the answer to POST that may answer GET (RFC 9110 section 9.3.3), and the one to HEAD (section 4.3.5).

use super::ResponseFacts;
use super::facts::date;
use crate::Method;

/// Whether an answer to this request invalidates the stored responses for its URL: the method is not known to be safe,
/// and the answer is no error.
pub fn invalidates(method: Method<'_>, status: u16) -> bool {
    let safe = matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace);
    !safe && (200..400).contains(&status)
}

/// Whether the answer to a POST request may answer GET requests for its URL, if it may be stored at all: it is 200, and
/// says itself for how long it is fresh (RFC 9110 section 9.3.3). That its Content-Location names that URL is
/// [`same_origin_path`]'s affair.
pub fn may_answer_get(facts: &ResponseFacts) -> bool {
    facts.status == 200 && facts.has_lifetime()
}

/// The verdict of the 200 to a HEAD request on a stored response (section 4.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSays {
    /// It is the current one, and gets the new fields.
    Same,
    /// It is not current.
    Other,
    /// Nothing: there is neither a validator nor a length to compare. The RFC would update the stored response; a
    /// server that leaves both out of its answers to HEAD would then keep any stored response alive.
    Nothing,
}

/// The fields of a head that tell one version of a representation from another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Version<'a> {
    /// ETag, as it stands in the field.
    pub etag: Option<&'a [u8]>,
    /// Last-Modified, as it stands in the field.
    pub last_modified: Option<&'a [u8]>,
    /// Bytes of the content.
    pub length: Option<u64>,
}

/// Compares the answer to HEAD with the stored response. A fact that only the stored response has counts for nothing. A
/// fact that only the answer has means that the stored response is another one.
pub fn head_says(stored: &Version<'_>, head: &Version<'_>) -> HeadSays {
    let modified = |version: &Version<'_>| version.last_modified.and_then(date);
    let same_date = head.last_modified.map(|new| {
        stored.last_modified == Some(new)
            || modified(stored).is_some() && modified(stored) == modified(head)
    });
    let compared = [
        head.etag.map(|new| stored.etag == Some(new)),
        same_date,
        head.length.map(|new| stored.length == Some(new)),
    ];
    match compared.into_iter().flatten().reduce(|all, same| all && same) {
        None => HeadSays::Nothing,
        Some(true) => HeadSays::Same,
        Some(false) => HeadSays::Other,
    }
}

/// The path and query of a URI reference in Location or Content-Location, if it is of the same origin
/// (section 4.4): a path, or a URI with this host.
pub fn same_origin_path<'b>(reference: &'b [u8], host: &[u8]) -> Option<&'b [u8]> {
    let reference = reference.split(|&byte| byte == b'#').next()?;
    if reference.starts_with(b"/") && !reference.starts_with(b"//") {
        return Some(reference);
    }
    let (scheme, rest) = match reference {
        [b'/', b'/', rest @ ..] => (&b"http"[..], rest),
        _ => {
            let colon = reference.windows(3).position(|window| window == b"://")?;
            (reference.get(..colon)?, reference.get(colon + 3..)?)
        }
    };
    if !(scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")) {
        return None;
    }
    let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    if !authority.eq_ignore_ascii_case(host) {
        return None;
    }
    Some(if path.starts_with(b"/") { path } else { b"/" })
}
