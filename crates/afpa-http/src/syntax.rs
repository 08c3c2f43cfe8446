//! The few byte classes and list rules of RFC 9110 section 5.6 that several modules share.

/// `tchar`: the bytes of a token (RFC 9110 section 5.6.2).
#[inline]
pub(crate) const fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// The bytes of a field value: HTAB, SP, VCHAR and obs-text (RFC 9110 section 5.5).
#[inline]
pub(crate) const fn is_field_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// The table of a byte class, for the loops of the hot path.
macro_rules! byte_table {
    ($class:path) => {{
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < table.len() {
            table[byte] = $class(byte as u8);
            byte += 1;
        }
        table
    }};
}
pub(crate) use byte_table;

/// True for a non-empty run of `tchar`.
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// Whether servers may take one field name for the other: CGI turns everything but letters and digits into `_`
/// (RFC 3875 section 4.1.18 speaks of `-` alone), so that `X_A`, `X.A` and `X-A` become one variable.
pub fn is_alike(name: &[u8], other: &[u8]) -> bool {
    let same = |(a, b): (&u8, &u8)| {
        a.eq_ignore_ascii_case(b) || !a.is_ascii_alphanumeric() && !b.is_ascii_alphanumeric()
    };
    name.len() == other.len() && name.iter().zip(other).all(same)
}

/// Strips OWS, which is SP and HTAB only, from the front (RFC 9110 section 5.6.3).
pub(crate) fn trim_start(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// Strips OWS from both ends.
pub fn trim(bytes: &[u8]) -> &[u8] {
    let mut bytes = trim_start(bytes);
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The members of a comma-separated list whose members hold no quoted string; empty members are
/// skipped, as RFC 9110 section 5.6.1.2 wants of recipients.
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|member| !member.is_empty())
}

/// `1*DIGIT` as a number: no sign, no white space, at most 19 digits, hence no overflow.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| match byte {
        b'0'..=b'9' => Some(sum * 10 + u64::from(byte - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"0042"), Some(42));
        assert_eq!(number(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        for bad in [&b""[..], b"+5", b"-5", b" 5", b"5 ", b"5,5", b"0x5", b"18446744073709551616"] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn lists_skip_empty_members_and_white_space() {
        let members: Vec<_> = list(b", a ,\t,b,, ").collect();
        assert_eq!(members, [b"a", b"b"]);
        assert_eq!(trim(b" \t "), b"");
    }

    #[test]
    fn names_are_alike_if_cgi_makes_one_variable_of_them() {
        for alike in ["Accept-Language", "accept_language", "ACCEPT.Language", "accept~LANGUAGE"] {
            assert!(is_alike(alike.as_bytes(), b"accept-language"), "{alike}");
            assert!(is_alike(b"accept-language", alike.as_bytes()), "{alike}");
        }
        for other in
            ["accept-languages", "accept0language", "acceptlanguage", "", "accept-languagf"]
        {
            assert!(!is_alike(other.as_bytes(), b"accept-language"), "{other}");
        }
    }

    #[test]
    fn tokens_are_those_of_the_rfc() {
        assert!(is_token(b"x-Y_1!#$%&'*+.^`|~"));
        for bad in [&b""[..], b"a b", b"a:", b"a\0", b"\xe9", b"(a)"] {
            assert!(!is_token(bad), "{bad:?}");
        }
        assert!(is_field_byte(b'\t') && is_field_byte(0xff) && is_field_byte(b' '));
        assert!(!is_field_byte(0) && !is_field_byte(0x7f) && !is_field_byte(b'\n'));
    }
}
