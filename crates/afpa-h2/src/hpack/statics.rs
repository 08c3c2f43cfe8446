//! The static table (RFC 7541 appendix A).

/// Names and values; the first one has the index 1.
#[rustfmt::skip]
pub(super) static FIELDS: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// The index of the first entry of a name; `None` if it has none.
pub(super) fn index_of(name: &[u8]) -> Option<usize> {
    // The pseudo-fields and `accept` apart, the table is sorted by name, and each name stands once.
    let plain = FIELDS.get(14..).unwrap_or_default();
    match plain.binary_search_by(|(known, _)| known.cmp(&name)) {
        Ok(place) => Some(place + 15),
        Err(_) => FIELDS.iter().position(|(known, _)| *known == name).map(|place| place + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_at_its_first_place() {
        for (name, _) in FIELDS {
            let first = FIELDS.iter().position(|(known, _)| *known == name).unwrap() + 1;
            assert_eq!(index_of(name), Some(first), "{}", name.escape_ascii());
        }
        assert_eq!(
            (index_of(b":status"), index_of(b"date"), index_of(b"x")),
            (Some(8), Some(33), None)
        );
    }
}
