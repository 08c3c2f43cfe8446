//! Conditions of requests, evaluated on a stored response (section 4.3.2), whose validators are as the server
//! wrote them.

use crate::etag::{SentTag, tags};
use crate::{Known, Method, Request};

/// The validators of a stored response.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoredValidators<'a> {
    /// ETag, as it stands in the field.
    pub etag: Option<&'a [u8]>,
    /// Last-Modified in seconds since the epoch.
    pub last_modified: Option<u64>,
    /// Date, or when it came: a date of the request is compared with it where there is no Last-Modified.
    pub date: u64,
}

/// Whether a GET or HEAD request says that the client has the stored response, so that 304 is the answer.
pub fn is_known_to_client(request: &Request<'_, '_>, stored: &StoredValidators<'_>) -> bool {
    if request.has(Known::IfNoneMatch) {
        return names(request, stored.etag);
    }
    let date = request.only(Known::IfModifiedSince).and_then(super::facts::date);
    date.is_some_and(|date| stored.last_modified.unwrap_or(stored.date) <= date)
}

/// If-None-Match, by the weak comparison (RFC 9110 section 8.8.3.2).
fn names(request: &Request<'_, '_>, etag: Option<&[u8]>) -> bool {
    let own = etag.and_then(SentTag::parse);
    let mut count = 0;
    let mut star = false;
    for line in request.values(Known::IfNoneMatch) {
        count += 1;
        star |= line == b"*";
        if own.is_some_and(|own| tags(line).any(|tag| tag.quoted == own.quoted)) {
            return true;
        }
    }
    star && count == 1
}

/// Whether a Range counts (RFC 9110 section 13.1.5): there is no If-Range, or it names the stored response by
/// a strong validator.
pub fn may_send_part(request: &Request<'_, '_>, stored: &StoredValidators<'_>) -> bool {
    if request.method != Method::Get {
        return false;
    }
    if !request.has(Known::IfRange) {
        return true;
    }
    let Some(value) = request.only(Known::IfRange) else { return false };
    if let Some(tag) = SentTag::parse(value) {
        let own = stored.etag.and_then(SentTag::parse);
        return !tag.weak && own.is_some_and(|own| !own.weak && own.quoted == tag.quoted);
    }
    let (date, modified) = (super::facts::date(value), stored.last_modified);
    // A date is a strong validator only if it is at least a second older than the response (section 8.8.2.2).
    date.is_some() && date == modified && modified.is_some_and(|modified| modified < stored.date)
}
