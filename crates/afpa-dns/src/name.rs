//! Names: in wire form, in presentation form, in canonical order.

use std::fmt;

use thiserror::Error;

/// Bytes of the longest name in wire form (RFC 1035 section 2.3.4).
pub const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: usize = 63;

/// A name in wire form, without compression, in the case that it was written in.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Box<[u8]>);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Two dots follow each other, or a dot comes first.
    #[error("a label is empty")]
    EmptyLabel,
    /// It has a label above 63 bytes.
    #[error("a label is longer than 63 bytes")]
    LongLabel,
    /// It is above 255 bytes.
    #[error("the name is longer than 255 bytes")]
    Long,
    /// A backslash is followed by neither a character nor three digits up to 255.
    #[error("a backslash is followed by neither a character nor a number of three digits")]
    Escape,
}

impl Name {
    /// The name of the root.
    pub fn root() -> Self {
        Self([0].into())
    }

    /// A name from its wire form, which has to end where the name does.
    pub fn from_wire(wire: &[u8]) -> Option<Self> {
        (wire_length(wire)? == wire.len()).then(|| Self(wire.into()))
    }

    /// A name from its presentation form (RFC 1035 section 5.1). One without a dot at its end is below `origin`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str, origin: &Name) -> Result<Self, NameError> {
        match text {
            "@" => return Ok(origin.clone()),
            "." => return Ok(Self::root()),
            _ => {}
        }
        let (mut wire, mut label) = (Vec::new(), Vec::new());
        let mut bytes = text.bytes();
        let mut is_absolute = false;
        while let Some(byte) = bytes.next() {
            is_absolute = false;
            match byte {
                b'.' => {
                    close_label(&mut wire, &mut label)?;
                    is_absolute = true;
                }
                b'\\' => label.push(escaped(&mut bytes)?),
                other => label.push(other),
            }
        }
        if is_absolute {
            wire.push(0);
        } else {
            close_label(&mut wire, &mut label)?;
            wire.extend_from_slice(origin.wire());
        }
        if wire.len() > LONGEST_NAME { Err(NameError::Long) } else { Ok(Self(wire.into())) }
    }

    /// Its wire form.
    pub fn wire(&self) -> &[u8] {
        &self.0
    }

    /// Its labels, without the root's.
    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        suffixes(&self.0).filter_map(first_label)
    }

    /// The name below which it is; `None` for the root.
    pub fn parent(&self) -> Option<&[u8]> {
        suffixes(&self.0).nth(1)
    }

    /// It in lower case, by which it is looked up.
    #[must_use]
    pub fn lower(&self) -> Self {
        Self(self.0.to_ascii_lowercase().into())
    }

    /// Whether it is `other` or below it.
    pub fn is_within(&self, other: &[u8]) -> bool {
        suffixes(&self.0).any(|suffix| suffix.eq_ignore_ascii_case(other))
    }

    /// The name of the wildcard below a name; `None` if that is too long.
    pub fn star_below(name: &[u8]) -> Option<Self> {
        let wire = [b"\x01*".as_slice(), name].concat();
        (wire.len() <= LONGEST_NAME).then(|| Self(wire.into()))
    }

    /// Bytes whose order is the canonical order of names (RFC 4034 section 6.1).
    pub fn canonical(&self) -> Vec<u8> {
        canonical(&self.0)
    }
}

/// As [`Name::canonical`], of a name in wire form.
pub fn canonical(wire: &[u8]) -> Vec<u8> {
    let labels: Vec<&[u8]> = suffixes(wire).filter_map(first_label).collect();
    let mut key = Vec::with_capacity(wire.len() + 8);
    for label in labels.iter().rev() {
        for byte in label.to_ascii_lowercase() {
            // A shorter label comes first, so its end is below every byte.
            match byte {
                0 | 1 => key.extend([1, byte + 1]),
                other => key.push(other),
            }
        }
        key.push(0);
    }
    key
}

fn close_label(wire: &mut Vec<u8>, label: &mut Vec<u8>) -> Result<(), NameError> {
    match label.len() {
        0 => return Err(NameError::EmptyLabel),
        length @ 1..=LONGEST_LABEL => wire.push(length as u8),
        _ => return Err(NameError::LongLabel),
    }
    wire.append(label);
    Ok(())
}

/// The byte behind a backslash.
pub(crate) fn escaped(bytes: &mut impl Iterator<Item = u8>) -> Result<u8, NameError> {
    let first = bytes.next().ok_or(NameError::Escape)?;
    if !first.is_ascii_digit() {
        return Ok(first);
    }
    let mut number = u32::from(first - b'0');
    for _ in 0..2 {
        let digit = bytes.next().filter(u8::is_ascii_digit).ok_or(NameError::Escape)?;
        number = number * 10 + u32::from(digit - b'0');
    }
    u8::try_from(number).map_err(|_| NameError::Escape)
}

/// A name and those above it, up to the root, in wire form.
pub fn suffixes(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(wire);
    std::iter::from_fn(move || {
        let current = rest?;
        let length = usize::from(*current.first()?);
        rest = if length == 0 { None } else { current.get(length + 1..) };
        Some(current)
    })
}

/// The first label of a name in wire form; none of the root's.
fn first_label(wire: &[u8]) -> Option<&[u8]> {
    let length = usize::from(*wire.first()?);
    if length == 0 { None } else { wire.get(1..=length) }
}

/// Bytes of the uncompressed name at the beginning of `bytes`, if there is one.
pub fn wire_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        if length > LONGEST_LABEL {
            return None;
        }
        at += length + 1;
        if at > LONGEST_NAME || at > bytes.len() {
            return None;
        }
        if length == 0 {
            return Some(at);
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.len() == 1 {
            return f.write_str(".");
        }
        for label in self.labels() {
            for byte in label {
                match byte {
                    b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' => {
                        write!(f, "\\{}", char::from(*byte))?;
                    }
                    b'!'..=b'~' => write!(f, "{}", char::from(*byte))?,
                    other => write!(f, "\\{other:03}")?,
                }
            }
            f.write_str(".")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Name {
        Name::parse(text, &Name::root()).expect(text)
    }

    #[test]
    fn relative_names_are_below_the_origin() {
        let origin = name("example.org.");
        let parse = |text| Name::parse(text, &origin).expect(text).to_string();
        assert_eq!(parse("www"), "www.example.org.");
        assert_eq!(parse("@"), "example.org.");
        assert_eq!(parse("a.b."), "a.b.");
        assert_eq!(parse(r"a\.b"), r"a\.b.example.org.");
        assert_eq!(parse(r"\065\@"), r"A\@.example.org.");
        assert_eq!(parse("."), ".");
    }

    #[test]
    fn a_text_that_is_no_name_is_refused() {
        let parse = |text: &str| Name::parse(text, &Name::root());
        assert_eq!(parse("a..b"), Err(NameError::EmptyLabel));
        assert_eq!(parse(".a"), Err(NameError::EmptyLabel));
        assert_eq!(parse(&"a".repeat(64)), Err(NameError::LongLabel));
        assert_eq!(parse(&"a.".repeat(128)), Err(NameError::Long));
        assert_eq!(parse(r"a\25"), Err(NameError::Escape));
        assert_eq!(parse(r"a\256"), Err(NameError::Escape));
        assert!(parse(&"a.".repeat(127)).is_ok());
    }

    /// RFC 4034 section 6.1 has these names in this order.
    #[test]
    fn names_are_in_canonical_order() {
        let ordered = [
            "example.",
            "a.example.",
            "yljkjljk.a.example.",
            "Z.a.example.",
            "zABC.a.EXAMPLE.",
            "z.example.",
            r"\001.z.example.",
            "*.z.example.",
            r"\200.z.example.",
        ];
        let keys: Vec<_> = ordered.iter().map(|text| name(text).canonical()).collect();
        assert!(keys.is_sorted());
    }

    proptest! {
        #[test]
        fn a_shown_name_is_read_as_it_was(labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..6)) {
            let mut wire: Vec<u8> = labels.iter().flat_map(|label| {
                std::iter::once(label.len() as u8).chain(label.iter().copied())
            }).collect();
            wire.push(0);
            let name = Name::from_wire(&wire).expect("a name");
            prop_assert_eq!(Name::parse(&name.to_string(), &Name::root()), Ok(name));
        }
    }
}
