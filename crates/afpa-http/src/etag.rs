//! Entity tags (RFC 9110 section 8.8.3).

use std::fmt;

use crate::Coding;

/// A strong entity tag of ours, quotes included.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EntityTag(Box<str>);

impl EntityTag {
    /// The tag of a file's content in a coding: `"size-mtime[-inode][-coding]"`, numbers in
    /// hexadecimal.
    ///
    /// It is strong because any write moves the modification time (nanoseconds since the epoch,
    /// negative before it) or the size, and because each coding has its own suffix (RFC 9110
    /// section 8.8.3.3). The inode number also tells apart files that replaced each other with
    /// their times preserved; leave it out where several machines must agree on the tag.
    pub fn from_stamp(size: u64, mtime_ns: i128, inode: Option<u64>, coding: Coding) -> EntityTag {
        let mut tag = if mtime_ns < 0 {
            format!("\"{size:x}-n{:x}", mtime_ns.unsigned_abs())
        } else {
            format!("\"{size:x}-{mtime_ns:x}")
        };
        if let Some(inode) = inode {
            tag.push_str(&format!("-{inode:x}"));
        }
        if coding != Coding::Identity {
            tag.push('-');
            tag.push_str(coding.token());
        }
        tag.push('"');
        EntityTag(tag.into_boxed_str())
    }

    /// The tag of content that is not in a file: a digest of the decoded content, and the coding.
    pub fn from_digest(digest: u128, coding: Coding) -> EntityTag {
        let mut tag = format!("\"{digest:032x}");
        if coding != Coding::Identity {
            tag.push('-');
            tag.push_str(coding.token());
        }
        tag.push('"');
        EntityTag(tag.into_boxed_str())
    }

    /// A tag with the given text between the quotes; `None` if a byte may not stand there.
    pub fn new(opaque: &str) -> Option<EntityTag> {
        let fits = opaque.bytes().all(is_etagc);
        fits.then(|| EntityTag(format!("\"{opaque}\"").into_boxed_str()))
    }

    /// The tag as it stands in the ETag field.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The tag as it stands in the ETag field.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares with a tag sent by a client (RFC 9110 section 8.8.3.2).
    #[inline]
    pub fn matches(&self, sent: &SentTag<'_>, comparison: Comparison) -> bool {
        (comparison == Comparison::Weak || !sent.weak) && sent.quoted == self.as_bytes()
    }

    /// Whether the lines of an If-Match or If-None-Match field name this tag. `*` names every tag,
    /// when it is all there is (RFC 9110 sections 13.1.1 and 13.1.2).
    ///
    /// The rest of a line behind a malformed member is not read.
    pub fn is_named_by<'b>(
        &self,
        lines: impl Iterator<Item = &'b [u8]>,
        comparison: Comparison,
    ) -> bool {
        let mut count = 0;
        let mut star = false;
        for line in lines {
            count += 1;
            star |= line == b"*";
            if tags(line).any(|tag| self.matches(&tag, comparison)) {
                return true;
            }
        }
        star && count == 1
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The two ways to compare tags (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Both tags are strong and equal.
    Strong,
    /// The opaque parts are equal.
    Weak,
}

/// A tag sent by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentTag<'b> {
    /// Whether `W/` stood before it.
    pub weak: bool,
    /// The opaque part with its quotes.
    pub quoted: &'b [u8],
}

impl<'b> SentTag<'b> {
    /// Reads a value that is one tag and nothing else.
    pub fn parse(value: &'b [u8]) -> Option<SentTag<'b>> {
        match Self::split(value)? {
            (tag, []) => Some(tag),
            _ => None,
        }
    }

    /// One tag from the front, and the rest.
    fn split(value: &'b [u8]) -> Option<(SentTag<'b>, &'b [u8])> {
        let (weak, value) = match value {
            [b'W', b'/', rest @ ..] => (true, rest),
            _ => (false, value),
        };
        let [b'"', opaque @ ..] = value else { return None };
        let len = opaque.iter().position(|&byte| !is_etagc(byte))?;
        let (quoted, rest) = value.split_at_checked(len + 2)?;
        quoted.ends_with(b"\"").then_some((SentTag { weak, quoted }, rest))
    }
}

/// The tags of a comma-separated list, up to its end or its first malformed member.
///
/// Empty members are skipped (RFC 9110 section 5.6.1.2). Tags may hold commas.
pub fn tags(mut rest: &[u8]) -> impl Iterator<Item = SentTag<'_>> {
    std::iter::from_fn(move || {
        while let [b' ' | b'\t' | b',', tail @ ..] = rest {
            rest = tail;
        }
        let (tag, tail) = SentTag::split(rest)?;
        rest = crate::syntax::trim_start(tail);
        if !matches!(rest, [] | [b',', ..]) {
            rest = b"";
            return None;
        }
        Some(tag)
    })
}

/// The value of If-None-Match with the strong spelling of each weak tag behind it. Both mean the same there (RFC 9110
/// section 13.1.2), but some servers compare byte by byte with their own tag, which AFPA has made weak. `None`: no tag
/// is weak.
pub fn with_strong_spellings(value: &[u8]) -> Option<Vec<u8>> {
    let weak = |tag: &SentTag<'_>| tag.weak;
    let mut named = tags(value).filter(weak).peekable();
    named.peek()?;
    let mut both = value.to_vec();
    for tag in named {
        both.extend_from_slice(b", ");
        both.extend_from_slice(tag.quoted);
    }
    Some(both)
}

/// The bytes of an opaque tag: VCHAR without the quote, and obs-text (RFC 9110 section 8.8.3).
fn is_etagc(byte: u8) -> bool {
    byte > b' ' && byte != b'"' && byte != 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(weak: bool, quoted: &str) -> SentTag<'_> {
        SentTag { weak, quoted: quoted.as_bytes() }
    }

    #[test]
    fn stamps_make_distinct_strong_tags() {
        let all = [
            EntityTag::from_stamp(16, 255, None, Coding::Identity),
            EntityTag::from_stamp(16, -255, None, Coding::Identity),
            EntityTag::from_stamp(16, 255, Some(10), Coding::Identity),
            EntityTag::from_stamp(16, 255, Some(10), Coding::Brotli),
            EntityTag::from_stamp(16, 255, Some(10), Coding::Gzip),
        ];
        let texts: Vec<_> = all.iter().map(EntityTag::as_str).collect();
        let expected =
            ["\"10-ff\"", "\"10-nff\"", "\"10-ff-a\"", "\"10-ff-a-br\"", "\"10-ff-a-gzip\""];
        assert_eq!(texts, expected);
        for tag in &all {
            assert_eq!(SentTag::parse(tag.as_bytes()), Some(sent(false, tag.as_str())));
        }
    }

    /// The table of RFC 9110 section 8.8.3.2, as far as our tags, which are strong, go.
    #[test]
    fn comparisons_are_those_of_the_rfc() {
        let one = EntityTag::new("1").unwrap();
        for (tag, strong, weak) in [
            (sent(true, "\"1\""), false, true),
            (sent(true, "\"2\""), false, false),
            (sent(false, "\"1\""), true, true),
            (sent(false, "\"2\""), false, false),
        ] {
            assert_eq!(one.matches(&tag, Comparison::Strong), strong, "{tag:?}");
            assert_eq!(one.matches(&tag, Comparison::Weak), weak, "{tag:?}");
        }
    }

    #[test]
    fn lists_of_tags() {
        for (list, expected) in [
            ("\"a\"", vec![sent(false, "\"a\"")]),
            (" , \"a\" ,W/\"b,c\",,", vec![sent(false, "\"a\""), sent(true, "\"b,c\"")]),
            ("\"\"", vec![sent(false, "\"\"")]),
            ("\"a\" \"b\"", vec![]),
            ("\"a\", b, \"c\"", vec![sent(false, "\"a\"")]),
            ("w/\"a\"", vec![]),
            ("\"a", vec![]),
            ("\"a b\"", vec![]),
            ("*", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(tags(list.as_bytes()).collect::<Vec<_>>(), expected, "{list}");
        }
    }

    #[test]
    fn a_star_names_every_tag_only_when_it_is_alone() {
        let tag = EntityTag::new("a").unwrap();
        let named = |lines: &[&'static str]| {
            tag.is_named_by(lines.iter().map(|line| line.as_bytes()), Comparison::Weak)
        };
        assert!(named(&["*"]));
        assert!(!named(&["*", "\"b\""]) && !named(&["*, \"a\""]) && !named(&[]));
        assert!(named(&["\"b\"", "W/\"a\""]) && !named(&["\"b\"", "\"c\""]));
        assert!(EntityTag::new("a\"b").is_none() && EntityTag::new("a b").is_none());
    }

    #[test]
    fn weak_tags_get_their_strong_spelling_beside_them() {
        let both = |value: &str| {
            with_strong_spellings(value.as_bytes()).map(|both| String::from_utf8(both).unwrap())
        };
        assert_eq!(both("W/\"a\"").as_deref(), Some("W/\"a\", \"a\""));
        let two = "\"s\", W/\"a,b\",W/\"c\"";
        assert_eq!(both(two), Some(format!("{two}, \"a,b\", \"c\"")));
        assert_eq!((both("\"a\""), both("*"), both("")), (None, None, None));
    }

    proptest! {
        #[test]
        fn written_lists_are_read_back(
            members in proptest::collection::vec((any::<bool>(), "[!#-~]{0,6}"), 0..6),
            gap in "[ \t]{0,2},[ \t,]{0,3}",
        ) {
            let quoted: Vec<_> = members.iter().map(|(_, text)| format!("\"{text}\"")).collect();
            let list: Vec<_> = members.iter().zip(&quoted)
                .map(|((weak, _), text)| format!("{}{text}", if *weak { "W/" } else { "" }))
                .collect();
            let expected: Vec<_> = members.iter().zip(&quoted)
                .map(|((weak, _), text)| sent(*weak, text))
                .collect();
            let line = list.join(&gap);
            prop_assert_eq!(tags(line.as_bytes()).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn hostile_lists_end(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(tags(&bytes).count() <= bytes.len());
        }
    }
}
