//! Invalidation by unsafe requests (section 4.4).

use crate::Method;

/// Whether an answer to this request invalidates what is stored for its URL: the method is not known to be
/// safe, and the answer is no error.
pub fn invalidates(method: Method<'_>, status: u16) -> bool {
    let safe = matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace);
    !safe && (200..400).contains(&status)
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
