//! Field lines, and an index of those that decide something (RFC 9110 section 5).

use std::iter::FusedIterator;
use std::mem::MaybeUninit;

/// The most field lines a head can have, whatever the limits say.
pub const MAX_FIELDS: usize = 128;

/// Uninitialised room for the field lines of one head, on the caller's stack.
///
/// Making one costs nothing; nothing is ever cleared.
pub struct FieldSlots<'b>([MaybeUninit<httparse::Header<'b>>; MAX_FIELDS]);

impl<'b> FieldSlots<'b> {
    /// Empty room.
    #[inline(always)]
    pub const fn new() -> FieldSlots<'b> {
        FieldSlots([const { MaybeUninit::uninit() }; MAX_FIELDS])
    }

    #[inline]
    pub(super) fn first(&mut self, count: usize) -> &mut [MaybeUninit<httparse::Header<'b>>] {
        let (slots, _) = self.0.split_at_mut(count.min(MAX_FIELDS));
        slots
    }
}

impl Default for FieldSlots<'_> {
    fn default() -> Self {
        FieldSlots::new()
    }
}

macro_rules! known {
    ($($field:ident $name:literal $source:literal;)*) => {
        /// Fields with an effect on a server, found by one pass over the head.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            $(
                #[doc = concat!("`", $name, "` (", $source, ").")]
                $field,
            )*
        }

        impl Known {
            /// Every well-known field.
            pub const ALL: &[Known] = &[$(Known::$field),*];

            /// The name in its usual spelling.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Known::$field => $name,)*
                }
            }
        }
    };
}

known! {
    Host "Host" "RFC 9110 section 7.2";
    Connection "Connection" "RFC 9110 section 7.6.1";
    ContentLength "Content-Length" "RFC 9110 section 8.6";
    TransferEncoding "Transfer-Encoding" "RFC 9112 section 6.1";
    Expect "Expect" "RFC 9110 section 10.1.1";
    Upgrade "Upgrade" "RFC 9110 section 7.8";
    IfMatch "If-Match" "RFC 9110 section 13.1.1";
    IfNoneMatch "If-None-Match" "RFC 9110 section 13.1.2";
    IfModifiedSince "If-Modified-Since" "RFC 9110 section 13.1.3";
    IfUnmodifiedSince "If-Unmodified-Since" "RFC 9110 section 13.1.4";
    IfRange "If-Range" "RFC 9110 section 13.1.5";
    Range "Range" "RFC 9110 section 14.2";
    AcceptEncoding "Accept-Encoding" "RFC 9110 section 12.5.3";
    UserAgent "User-Agent" "RFC 9110 section 10.1.5";
    Referer "Referer" "RFC 9110 section 10.1.3";
}

impl Known {
    const COUNT: usize = Known::ALL.len();

    /// Recognises a field name in any case: by length and first byte, then one comparison.
    #[inline]
    pub fn recognise(name: &str) -> Option<Known> {
        let first = name.as_bytes().first()? | 0x20;
        let candidate = match (name.len(), first) {
            (4, b'h') => Known::Host,
            (5, b'r') => Known::Range,
            (6, b'e') => Known::Expect,
            (7, b'r') => Known::Referer,
            (7, b'u') => Known::Upgrade,
            (8, b'i') if name.as_bytes().get(3)? | 0x20 == b'm' => Known::IfMatch,
            (8, b'i') => Known::IfRange,
            (10, b'c') => Known::Connection,
            (10, b'u') => Known::UserAgent,
            (13, b'i') => Known::IfNoneMatch,
            (14, b'c') => Known::ContentLength,
            (15, b'a') => Known::AcceptEncoding,
            (17, b'i') => Known::IfModifiedSince,
            (17, b't') => Known::TransferEncoding,
            (19, b'i') => Known::IfUnmodifiedSince,
            _ => return None,
        };
        // Most clients use the usual spelling, for which one comparison of memory is enough.
        let usual = candidate.name();
        (name == usual || name.eq_ignore_ascii_case(usual)).then_some(candidate)
    }
}

/// A set of well-known fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownSet(u32);

impl KnownSet {
    /// Fields that [`conditional::evaluate`](crate::conditional::evaluate) reads.
    pub const CONDITIONAL: KnownSet = KnownSet::of(&[
        Known::IfMatch,
        Known::IfNoneMatch,
        Known::IfModifiedSince,
        Known::IfUnmodifiedSince,
    ]);

    /// Fields that [`range::select`](crate::range::select) reads.
    pub const RANGE: KnownSet = KnownSet::of(&[Known::Range, Known::IfRange]);

    /// Any field that makes a GET more than "send the whole object": conditions, ranges, a body,
    /// an expectation, an upgrade.
    pub const UNUSUAL: KnownSet =
        KnownSet::CONDITIONAL.union(KnownSet::RANGE).union(KnownSet::of(&[
            Known::ContentLength,
            Known::TransferEncoding,
            Known::Expect,
            Known::Upgrade,
        ]));

    /// The set of the given fields.
    pub const fn of(fields: &[Known]) -> KnownSet {
        let (mut bits, mut rest) = (0, fields);
        while let [field, tail @ ..] = rest {
            bits |= 1 << *field as u32;
            rest = tail;
        }
        KnownSet(bits)
    }

    /// The fields of both sets.
    pub const fn union(self, other: KnownSet) -> KnownSet {
        KnownSet(self.0 | other.0)
    }

    /// Whether the field is in the set.
    #[inline]
    pub const fn contains(self, field: Known) -> bool {
        self.0 & (1 << field as u32) != 0
    }

    /// Whether the sets have a field in common.
    #[inline]
    pub const fn intersects(self, other: KnownSet) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    fn insert(&mut self, field: Known) {
        self.0 |= 1 << field as u32;
    }
}

/// Which well-known fields a head has and where the first line of each stands.
#[derive(Clone, Debug)]
pub(super) struct Index {
    present: KnownSet,
    repeated: KnownSet,
    first: [u8; Known::COUNT],
}

impl Index {
    #[inline]
    pub(super) fn new(lines: &[httparse::Header<'_>]) -> Index {
        let mut index = Index {
            present: KnownSet::default(),
            repeated: KnownSet::default(),
            first: [0; Known::COUNT],
        };
        // Positions fit a byte because there are at most MAX_FIELDS lines.
        for (position, line) in (0u8..).zip(lines) {
            if let Some(field) = Known::recognise(line.name) {
                index.note(field, position);
            }
        }
        index
    }

    #[inline]
    fn note(&mut self, field: Known, position: u8) {
        if self.present.contains(field) {
            self.repeated.insert(field);
        } else {
            self.present.insert(field);
            self.first[field as usize] = position;
        }
    }

    #[inline]
    pub(super) fn present(&self) -> KnownSet {
        self.present
    }

    #[inline]
    pub(super) fn is_repeated(&self, field: Known) -> bool {
        self.repeated.contains(field)
    }

    #[inline]
    pub(super) fn first<'b>(
        &self,
        field: Known,
        lines: &[httparse::Header<'b>],
    ) -> Option<&'b [u8]> {
        if !self.present.contains(field) {
            return None;
        }
        lines.get(usize::from(self.first[field as usize])).map(|line| line.value)
    }

    #[inline]
    pub(super) fn only<'b>(
        &self,
        field: Known,
        lines: &[httparse::Header<'b>],
    ) -> Option<&'b [u8]> {
        if self.is_repeated(field) { None } else { self.first(field, lines) }
    }

    #[inline]
    pub(super) fn values<'s, 'b>(
        &self,
        field: Known,
        lines: &'s [httparse::Header<'b>],
    ) -> Values<'s, 'b> {
        let first = usize::from(self.first[field as usize]);
        let lines = match (self.present.contains(field), self.repeated.contains(field)) {
            (false, _) => &[],
            (true, false) => lines.get(first..=first).unwrap_or_default(),
            (true, true) => lines.get(first..).unwrap_or_default(),
        };
        Values { name: field.name(), lines: lines.iter() }
    }
}

/// Iterator over the values of one field; see [`Request::values`](super::Request::values).
#[derive(Clone, Debug)]
pub struct Values<'s, 'b> {
    name: &'static str,
    lines: std::slice::Iter<'s, httparse::Header<'b>>,
}

impl<'b> Iterator for Values<'_, 'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let name = self.name;
        self.lines.find(|line| line.name.eq_ignore_ascii_case(name)).map(|line| line.value)
    }
}

impl FusedIterator for Values<'_, '_> {}

/// Iterator over all field lines; see [`Request::fields`](super::Request::fields).
#[derive(Clone, Debug)]
pub struct Fields<'s, 'b>(std::slice::Iter<'s, httparse::Header<'b>>);

impl<'s, 'b> Fields<'s, 'b> {
    pub(super) fn new(lines: &'s [httparse::Header<'b>]) -> Fields<'s, 'b> {
        Fields(lines.iter())
    }
}

impl<'b> Iterator for Fields<'_, 'b> {
    type Item = (&'b str, &'b [u8]);

    fn next(&mut self) -> Option<(&'b str, &'b [u8])> {
        self.0.next().map(|line| (line.name, line.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Fields<'_, '_> {}
impl FusedIterator for Fields<'_, '_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_field_is_recognised_in_any_case() {
        for &field in Known::ALL {
            let name = field.name();
            assert_eq!(Known::recognise(name), Some(field));
            assert_eq!(Known::recognise(&name.to_lowercase()), Some(field));
            assert_eq!(Known::recognise(&name.to_uppercase()), Some(field));
            assert_eq!(Known::recognise(&format!("{name}x")), None);
            assert_eq!(Known::recognise(&format!("{}_", &name[..name.len() - 1])), None);
        }
        assert_eq!(Known::recognise(""), None);
    }

    #[test]
    fn the_index_knows_first_lines_and_repeats() {
        let line = |name, value| httparse::Header { name, value };
        let lines = [line("RANGE", &b"1"[..]), line("x", b"2"), line("range", b"3")];
        let index = Index::new(&lines);
        assert!(index.present() == KnownSet::of(&[Known::Range]));
        assert_eq!(index.first(Known::Range, &lines), Some(&b"1"[..]));
        assert_eq!(index.only(Known::Range, &lines), None);
        assert_eq!(index.values(Known::Range, &lines).collect::<Vec<_>>(), [b"1", b"3"]);
        assert_eq!(index.values(Known::Host, &lines).next(), None);
    }
}
