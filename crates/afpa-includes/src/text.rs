//! Encodings of what elements print, and of their values.

use crate::scan::find;

/// How `echo` prints a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As it is.
    None,
    /// For a URL path.
    Url,
    /// For HTML.
    Entity,
}

impl Encoding {
    pub(crate) fn named(name: &[u8]) -> Option<Encoding> {
        match &*name.to_ascii_lowercase() {
            b"none" => Some(Encoding::None),
            b"url" => Some(Encoding::Url),
            b"entity" => Some(Encoding::Entity),
            _ => None,
        }
    }

    pub(crate) fn encode(self, value: &[u8]) -> Vec<u8> {
        match self {
            Encoding::None => value.to_vec(),
            Encoding::Url => url(value),
            Encoding::Entity => entity(value),
        }
    }
}

fn entity(value: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b'<' => encoded.extend_from_slice(b"&lt;"),
            b'>' => encoded.extend_from_slice(b"&gt;"),
            b'&' => encoded.extend_from_slice(b"&amp;"),
            b'"' => encoded.extend_from_slice(b"&quot;"),
            plain => encoded.push(plain),
        }
    }
    encoded
}

/// As Apache's `ap_escape_uri`: with a `./` before a relative path whose first segment has a colon, because it
/// would be read as a scheme.
fn url(value: &[u8]) -> Vec<u8> {
    let first = value.split(|byte| *byte == b'/').next().unwrap_or_default();
    let mut encoded = if first.contains(&b':') { b"./".to_vec() } else { Vec::new() };
    for &byte in value {
        if byte.is_ascii_alphanumeric() || b"$-_.+!*'(),:@&=/~".contains(&byte) {
            encoded.push(byte);
        } else {
            encoded.extend_from_slice(format!("%{byte:02x}").as_bytes());
        }
    }
    encoded
}

/// Replaces the entities of HTML that a value may need to have its own bytes.
pub(crate) fn decode_entities(value: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = find(b'&', rest) {
        let (plain, entity) = rest.split_at(at);
        decoded.extend_from_slice(plain);
        let (character, behind) = decoded_entity(entity).unwrap_or((b'&', &entity[1..]));
        decoded.push(character);
        rest = behind;
    }
    decoded.extend_from_slice(rest);
    decoded
}

/// The character that the text begins with, written as an entity, and the text behind it.
fn decoded_entity(text: &[u8]) -> Option<(u8, &[u8])> {
    let name = text.get(1..)?;
    let end = find(b';', name.get(..=LONGEST_NAME).unwrap_or(name))?;
    Some((character(name.get(..end)?)?, name.get(end + 1..)?))
}

/// Longest name of an entity that is decoded, in bytes.
const LONGEST_NAME: usize = 6;

fn character(name: &[u8]) -> Option<u8> {
    match name {
        b"lt" => Some(b'<'),
        b"gt" => Some(b'>'),
        b"amp" => Some(b'&'),
        b"quot" => Some(b'"'),
        [b'#', digits @ ..] => {
            let number: u8 = std::str::from_utf8(digits).ok()?.parse().ok()?;
            let printable = matches!(number, 9 | 10 | 32..=126 | 161..);
            printable.then_some(number)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_for_where_they_stand() {
        let value = b"<a href=\"x y\">&'";
        assert_eq!(Encoding::None.encode(value), value);
        assert_eq!(Encoding::Entity.encode(value), b"&lt;a href=&quot;x y&quot;&gt;&amp;'");
        assert_eq!(Encoding::Url.encode(b"/a b?c%"), b"/a%20b%3fc%25");
        assert_eq!(Encoding::Url.encode(b"a:b/c"), b"./a:b/c");
        assert_eq!(Encoding::named(b"URL"), Some(Encoding::Url));
        assert_eq!(Encoding::named(b"base64"), None);
    }

    #[test]
    fn entities_are_decoded_and_the_rest_stays() {
        assert_eq!(decode_entities(b"a &lt;&amp;&gt; &quot;b&quot; &#65;"), b"a <&> \"b\" A");
        for same in ["&", "&;", "&lt", "&nbsp;", "&#0;", "&#999;", "&#x41;", "& lt;"] {
            assert_eq!(decode_entities(same.as_bytes()), same.as_bytes());
        }
    }
}
