//! Parameters: the variables of CGI (RFC 3875 section 4.1) as pairs of name and value (FastCGI 1.0 section 3.4).

/// Appends a parameter whose value has these parts.
pub fn put_param(out: &mut Vec<u8>, name: &[u8], value: &[&[u8]]) {
    put_length(out, name.len());
    put_length(out, value.iter().map(|part| part.len()).sum());
    out.extend_from_slice(name);
    value.iter().for_each(|part| out.extend_from_slice(part));
}

/// A length: one byte up to 127, else four with the first bit set.
fn put_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short @ ..=127) => out.push(short),
        _ => {
            debug_assert!(length < 1 << 31, "a head is much shorter");
            out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes());
        }
    }
}

/// Begins the names of fields.
const PREFIX: &[u8] = b"HTTP_";

/// Appends a field of a request, as the variable `HTTP_...` (RFC 3875 section 4.1.18). Of several lines with the same
/// name, the first one brings the values of all.
///
/// A name that is not of letters, digits and `-` is left out. In a variable, `_` stands for `-`: a client's `X_User`
/// must not pass for the `X-User` that a router in front writes or removes. `Proxy` would become `HTTP_PROXY`, which
/// programs obey.
pub(crate) fn put_field(out: &mut Vec<u8>, fields: &[(&[u8], &[u8])], at: usize) {
    let Some((name, _)) = fields.get(at) else { return };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let same = |field: &&(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name);
    if !name.iter().all(is_plain)
        || name.eq_ignore_ascii_case(b"proxy")
        || fields.iter().take(at).any(|field| same(&field))
    {
        return;
    }
    // The crumbs of a cookie have a separator of their own (RFC 9113 section 8.2.3).
    let separator: &[u8] = if name.eq_ignore_ascii_case(b"cookie") { b"; " } else { b", " };
    let values = || fields.iter().skip(at).filter(same).map(|(_, value)| *value);
    let separators = values().count().saturating_sub(1) * separator.len();
    put_length(out, PREFIX.len() + name.len());
    put_length(out, values().map(<[u8]>::len).sum::<usize>() + separators);
    out.extend_from_slice(PREFIX);
    out.extend(name.iter().map(variable));
    for (number, value) in values().enumerate() {
        out.extend_from_slice(if number > 0 { separator } else { b"" });
        out.extend_from_slice(value);
    }
}

fn variable(byte: &u8) -> u8 {
    if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }
}
