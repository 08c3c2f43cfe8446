//! Which fields of a response are stored (section 3.1), and which ones a validation updates (section 3.2).

use super::control::{directives, members};
use crate::syntax::list;

/// Field names in the argument of `no-cache` or `private`.
pub fn names(argument: &[u8]) -> impl Iterator<Item = &[u8]> {
    list(argument)
}

/// Whether a field is left out of a stored response, beside those that concern only the connection: it is for proxies
/// alone (section 3.1), or a fresh value is generated with each use.
pub fn is_left_out(name: &[u8]) -> bool {
    const OUT: [&str; 5] = [
        "age",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "cache-status",
    ];
    OUT.iter().any(|out| name.eq_ignore_ascii_case(out.as_bytes()))
}

/// Whether a line of Cache-Control names the field with `no-cache` or `private`, so that it is not stored
/// (sections 5.2.2.4 and 5.2.2.7).
pub fn is_named_by(line: &[u8], name: &[u8]) -> bool {
    directives(line)
        .filter(|(directive, _)| {
            directive.eq_ignore_ascii_case(b"no-cache")
                || directive.eq_ignore_ascii_case(b"private")
        })
        .any(|(_, argument)| {
            names(argument.unwrap_or_default()).any(|named| named.eq_ignore_ascii_case(name))
        })
}

/// Whether a 304 updates the stored field (section 3.2): all but those that describe the stored bytes as
/// they were received.
pub fn is_updated(name: &[u8]) -> bool {
    const KEPT: [&str; 4] = ["content-encoding", "content-length", "content-range", "content-type"];
    let is_kept = KEPT.iter().any(|kept| name.eq_ignore_ascii_case(kept.as_bytes()));
    !is_kept && !is_of_message(name)
}

/// Whether a field is a digest of the content of this one message (RFC 9530 section 2, RFC 2616 section 14.15): an answer with
/// another part of the representation, or with none, has other content.
pub fn is_of_message(name: &[u8]) -> bool {
    const OF_MESSAGE: [&str; 2] = ["content-digest", "content-md5"];
    OF_MESSAGE.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
}

/// Whether a field is about the bytes of the content in its coding, so that a 304 of a server that has not coded them says
/// nothing about them. The entity tag, which was made weak, names the same version.
pub fn is_of_bytes(name: &[u8]) -> bool {
    const OF_BYTES: [&str; 6] =
        ["accept-ranges", "content-digest", "content-md5", "digest", "etag", "repr-digest"];
    OF_BYTES.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
}

/// Whether a field goes into a 304 that is generated here (RFC 9110 section 15.4.5).
pub fn is_in_not_modified(name: &[u8]) -> bool {
    const IN: [&str; 7] =
        ["cache-control", "content-location", "date", "etag", "expires", "last-modified", "vary"];
    IN.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
}

/// The tags of a response in fields that list them: `Surrogate-Key` by spaces, `Cache-Tag` by commas,
/// `Cache-Groups` (RFC 9875) as a List of Strings.
pub fn tags<'b>(name: &[u8], value: &'b [u8]) -> Vec<&'b [u8]> {
    if name.eq_ignore_ascii_case(b"surrogate-key") {
        let words = value.split(|byte| matches!(byte, b' ' | b'\t'));
        return words.filter(|word| !word.is_empty()).collect();
    }
    if name.eq_ignore_ascii_case(b"cache-tag") {
        return list(value).collect();
    }
    if name.eq_ignore_ascii_case(b"cache-groups") {
        return groups(value);
    }
    Vec::new()
}

/// The members of `Cache-Groups` or `Cache-Group-Invalidation`; none if one is no String, because such a
/// field is not to be believed at all (RFC 9875 section 2).
pub fn groups(value: &[u8]) -> Vec<&[u8]> {
    let strings: Option<Vec<&[u8]>> = members(value)
        .map(|member| match member {
            [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') && !inner.contains(&b'"') => {
                Some(inner)
            }
            _ => None,
        })
        .collect();
    strings.unwrap_or_default()
}
