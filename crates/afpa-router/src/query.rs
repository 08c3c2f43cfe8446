//! Parameters of a query, as forms write them (application/x-www-form-urlencoded of the URL standard).

use std::borrow::Cow;

/// Whether a query has a parameter of this name whose value passes `test`. Both are compared without their escapes, because
/// applications read them so. A parameter without `=` has the empty value.
pub(crate) fn any(query: &[u8], name: &[u8], mut test: impl FnMut(&[u8]) -> bool) -> bool {
    query.split(|&byte| byte == b'&').any(|pair| {
        let equals = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        let (own, value) = pair.split_at(equals);
        let value = value.get(1..).unwrap_or_default();
        !pair.is_empty() && *plain(own) == *name && test(&plain(value))
    })
}

/// A text without its escapes. A percent sign without two digits stands for itself.
fn plain(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'%', b'+', text).is_none() {
        return Cow::Borrowed(text);
    }
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        let escaped = (byte == b'%').then(|| digit(at + 1).zip(digit(at + 2))).flatten();
        match escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => out.push(byte),
            None if byte == b'+' => out.push(b' '),
            None => out.push(byte),
        }
        at += if escaped.is_some() { 3 } else { 1 };
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_as_applications_read_them() {
        for (query, name, value) in [
            ("a=1", "a", "1"),
            ("b=2&a=1", "a", "1"),
            ("a", "a", ""),
            ("&&a=", "a", ""),
            ("%61=%31", "a", "1"),
            ("a=x+y%20z", "a", "x y z"),
            ("a=b=c", "a", "b=c"),
            ("a=100%", "a", "100%"),
            ("a=%zz%4", "a", "%zz%4"),
            ("a=2&a=1", "a", "1"),
        ] {
            assert!(
                any(query.as_bytes(), name.as_bytes(), |found| found == value.as_bytes()),
                "{query}"
            );
        }
        for query in ["", "&", "A=1", "ab=1", "b=a", "b;a=1"] {
            assert!(!any(query.as_bytes(), b"a", |_| true), "{query}");
        }
        assert!(!any(b"", b"", |_| true), "no parameter");
    }
}
