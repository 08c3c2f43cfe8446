//! The static table (RFC 9204 appendix A).

/// Names and values; the first one has the index 0.
#[rustfmt::skip]
pub(super) static FIELDS: [(&[u8], &[u8]); 99] = [
    (b":authority", b""),
    (b":path", b"/"),
    (b"age", b"0"),
    (b"content-disposition", b""),
    (b"content-length", b"0"),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"referer", b""),
    (b"set-cookie", b""),
    (b":method", b"CONNECT"),
    (b":method", b"DELETE"),
    (b":method", b"GET"),
    (b":method", b"HEAD"),
    (b":method", b"OPTIONS"),
    (b":method", b"POST"),
    (b":method", b"PUT"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"103"),
    (b":status", b"200"),
    (b":status", b"304"),
    (b":status", b"404"),
    (b":status", b"503"),
    (b"accept", b"*/*"),
    (b"accept", b"application/dns-message"),
    (b"accept-encoding", b"gzip, deflate, br"),
    (b"accept-ranges", b"bytes"),
    (b"access-control-allow-headers", b"cache-control"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"max-age=0"),
    (b"cache-control", b"max-age=2592000"),
    (b"cache-control", b"max-age=604800"),
    (b"cache-control", b"no-cache"),
    (b"cache-control", b"no-store"),
    (b"cache-control", b"public, max-age=31536000"),
    (b"content-encoding", b"br"),
    (b"content-encoding", b"gzip"),
    (b"content-type", b"application/dns-message"),
    (b"content-type", b"application/javascript"),
    (b"content-type", b"application/json"),
    (b"content-type", b"application/x-www-form-urlencoded"),
    (b"content-type", b"image/gif"),
    (b"content-type", b"image/jpeg"),
    (b"content-type", b"image/png"),
    (b"content-type", b"text/css"),
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-type", b"text/plain"),
    (b"content-type", b"text/plain;charset=utf-8"),
    (b"range", b"bytes=0-"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"strict-transport-security", b"max-age=31536000; includesubdomains"),
    (b"strict-transport-security", b"max-age=31536000; includesubdomains; preload"),
    (b"vary", b"accept-encoding"),
    (b"vary", b"origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-xss-protection", b"1; mode=block"),
    (b":status", b"100"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"302"),
    (b":status", b"400"),
    (b":status", b"403"),
    (b":status", b"421"),
    (b":status", b"425"),
    (b":status", b"500"),
    (b"accept-language", b""),
    (b"access-control-allow-credentials", b"FALSE"),
    (b"access-control-allow-credentials", b"TRUE"),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-allow-methods", b"get"),
    (b"access-control-allow-methods", b"get, post, options"),
    (b"access-control-allow-methods", b"options"),
    (b"access-control-expose-headers", b"content-length"),
    (b"access-control-request-headers", b"content-type"),
    (b"access-control-request-method", b"get"),
    (b"access-control-request-method", b"post"),
    (b"alt-svc", b"clear"),
    (b"authorization", b""),
    (b"content-security-policy", b"script-src 'none'; object-src 'none'; base-uri 'none'"),
    (b"early-data", b"1"),
    (b"expect-ct", b""),
    (b"forwarded", b""),
    (b"if-range", b""),
    (b"origin", b""),
    (b"purpose", b"prefetch"),
    (b"server", b""),
    (b"timing-allow-origin", b"*"),
    (b"upgrade-insecure-requests", b"1"),
    (b"user-agent", b""),
    (b"x-forwarded-for", b""),
    (b"x-frame-options", b"deny"),
    (b"x-frame-options", b"sameorigin"),
];

/// Where a field stands in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The whole field.
    Field(usize),
    /// Its name, with another value.
    Name(usize),
}

/// The first entry of a field, or of its name; `None` if the table has neither.
pub(super) fn place_of(name: &[u8], value: &[u8]) -> Option<Place> {
    let (start, end) = names_of(name)?;
    let group = FIELDS.get(start..end).unwrap_or_default();
    match group.iter().position(|(_, known)| *known == value && !value.is_empty()) {
        Some(at) => Some(Place::Field(start + at)),
        None => Some(Place::Name(start)),
    }
}

/// The first run of entries that have a name.
fn names_of(name: &[u8]) -> Option<(usize, usize)> {
    let entry = |at: usize| FIELDS.get(at).is_some_and(|(known, _)| *known == name);
    let candidates = BY_LENGTH.get(name.len())?.iter().take_while(|at| **at != NONE);
    let start = candidates.map(|at| usize::from(*at)).find(|at| entry(*at))?;
    let run = (start..).take_while(|at| entry(*at)).count();
    Some((start, start + run))
}

/// The first entries of the names of each length, and behind them [`NONE`].
static BY_LENGTH: [[u8; MOST]; LONGEST + 1] = by_length(&FIELDS);

/// No entry.
const NONE: u8 = u8::MAX;
/// The length of the longest name.
const LONGEST: usize = 32;
/// Names of one length at most, and one more.
const MOST: usize = 9;

/// An entry has its place here before the program is there: one that did not fit would not compile.
const fn by_length(fields: &[(&[u8], &[u8])]) -> [[u8; MOST]; LONGEST + 1] {
    let mut all = [[NONE; MOST]; LONGEST + 1];
    let mut at = 0;
    while at < fields.len() {
        let name = fields[at].0;
        let mut place = 0;
        let mut is_known = false;
        while all[name.len()][place] != NONE {
            is_known |= is_same(fields[all[name.len()][place] as usize].0, name);
            place += 1;
        }
        if !is_known {
            all[name.len()][place] = at as u8;
        }
        at += 1;
    }
    all
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_where_it_first_stands() {
        for (name, value) in FIELDS {
            let start = FIELDS.iter().position(|(known, _)| *known == name).unwrap();
            let run = FIELDS[start..].iter().take_while(|(known, _)| *known == name).count();
            assert_eq!(names_of(name), Some((start, start + run)), "{}", name.escape_ascii());
            let Some(Place::Field(at) | Place::Name(at)) = place_of(name, value) else {
                panic!("{}", name.escape_ascii())
            };
            assert!((start..start + run).contains(&at));
        }
        for name in ["", "x", "datf", "content-typf", &"a".repeat(32), &"a".repeat(64)] {
            assert_eq!(names_of(name.as_bytes()), None, "{name}");
        }
    }
}
