//! Regular expressions over bytes. Their time is linear in the text, and their size is bounded.

use std::fmt;

use regex::bytes::{Captures, Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Literal, Repetition};

/// Most bytes of a compiled expression, and of what a thread remembers of its matches.
const MAX_COMPILED: usize = 256 << 10;

/// A regular expression as the `regex` crate reads it. Classes such as `\d` and `.` mean bytes, because the bytes of a path
/// need not be UTF-8.
#[derive(Clone)]
pub struct Expression {
    regex: Regex,
    ignores_case: bool,
}

/// Why a text is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadExpression {
    /// It breaks the rules, in the words of the `regex` crate.
    #[error("{0}")]
    Syntax(String),
    /// It has letters beyond ASCII where bytes are meant.
    #[error("a letter beyond ASCII is several bytes")]
    Letters,
    /// It would take more than [`MAX_COMPILED`] bytes.
    #[error("the expression takes more than {MAX_COMPILED} bytes of memory")]
    TooLarge,
}

impl Expression {
    /// Compiles an expression; `ignores_case`: letters of ASCII match in both cases.
    ///
    /// # Errors
    /// [`BadExpression`].
    pub fn new(text: &str, ignores_case: bool) -> Result<Self, BadExpression> {
        let mut builder = RegexBuilder::new(text);
        builder.unicode(false).case_insensitive(ignores_case);
        builder.size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED);
        let regex = builder.build().map_err(|error| BadExpression::of(&error))?;
        Ok(Self { regex, ignores_case })
    }

    /// Reads `~` or `~*` and an expression, as nginx writes them; `None`: the text begins with no tilde.
    pub fn marked(text: &str) -> Option<Result<Self, BadExpression>> {
        let text = text.strip_prefix('~')?;
        Some(match text.strip_prefix('*') {
            Some(text) => Self::new(text, true),
            None => Self::new(text, false),
        })
    }

    /// The first part of a text that matches, and the parts of it that its groups match.
    pub(crate) fn captures<'t>(&self, text: &'t [u8]) -> Option<Captures<'t>> {
        self.regex.captures(text)
    }

    /// The number of its groups.
    pub(crate) fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }

    /// Whether one of its groups has this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.regex.capture_names().flatten().any(|own| own == name)
    }

    /// A text that matches as a whole or in part, if one is found without a search: of several ways it takes the first, and of
    /// what may be repeated as little as may be, but one of each.
    pub fn example(&self) -> Option<Vec<u8>> {
        let mut parser = ParserBuilder::new();
        parser.unicode(false).utf8(false).case_insensitive(self.ignores_case);
        let hir = parser.build().parse(self.regex.as_str()).ok()?;
        let mut out = Vec::new();
        put_example(&hir, &mut out);
        self.matches(&out).then_some(out)
    }

    /// Whether some part of a text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }
}

/// Most bytes of an example.
const MAX_EXAMPLE: usize = 1024;

fn put_example(hir: &Hir, out: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(Literal(bytes)) => out.extend_from_slice(bytes),
        HirKind::Class(class) => out.extend(letter(class)),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let times = (*min).max(1).min(max.unwrap_or(u32::MAX));
            for _ in 0..times {
                if out.len() < MAX_EXAMPLE {
                    put_example(sub, out);
                }
            }
        }
        HirKind::Capture(capture) => put_example(&capture.sub, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| put_example(part, out)),
        HirKind::Alternation(ways) => ways.iter().take(1).for_each(|way| put_example(way, out)),
    }
}

/// A byte of a class: a usual one, if it has one.
fn letter(class: &Class) -> Option<u8> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Bytes(class) => {
            class.ranges().iter().map(|own| (own.start().into(), own.end().into())).collect()
        }
        Class::Unicode(class) => {
            class.ranges().iter().map(|own| (own.start().into(), own.end().into())).collect()
        }
    };
    let has =
        |byte: &u8| ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(*byte)));
    let first = || u8::try_from(ranges.first()?.0).ok();
    b"x1X-".iter().copied().find(|byte| has(byte)).or_else(first)
}

impl BadExpression {
    fn of(error: &regex::Error) -> Self {
        let said = match error {
            regex::Error::CompiledTooBig(_) => return Self::TooLarge,
            error => error.to_string(),
        };
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let last = last.trim().trim_start_matches("error: ");
        if last.contains("Unicode not allowed") {
            return Self::Letters;
        }
        Self::Syntax(last.to_owned())
    }

    /// The remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Syntax(_) => {
                "write it as https://docs.rs/regex/latest/regex/#syntax has it; in '...' backslashes stand as they are"
            }
            Self::Letters => "write (?u:...) around such letters",
            Self::TooLarge => "repeat less: {1,20} instead of {1,20000}",
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str() && self.ignores_case == other.ignores_case
    }
}

impl Eq for Expression {}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.ignores_case { "~*" } else { "~" };
        write!(f, "{mark}{}", self.regex.as_str())
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_matches() {
        for (text, example) in [
            ("^/old/(.*)$", "/old/x"),
            ("^/(.+)/$", "/x/"),
            ("^/u/(?<id>\\d{3})(/|$)", "/u/111/"),
            ("\\.(png|jpe?g)$", ".png"),
            ("^/[^x1]$", "/X"),
            ("^/a?b*[A-F]", "/abA"),
            ("", ""),
        ] {
            let found = Expression::new(text, false).unwrap().example();
            assert_eq!(found.as_deref(), Some(example.as_bytes()), "{text}");
        }
        assert_eq!(
            Expression::new("^/AB", true).unwrap().example().map(|text| text.len()),
            Some(3)
        );
        for text in ["a$b", "[^\\x00-\\xff]"] {
            assert_eq!(Expression::new(text, false).unwrap().example(), None, "{text}");
        }
        let long = Expression::new("((a{2}){30}){20}", false).unwrap().example();
        assert!(long.is_none_or(|text| text.len() <= 2 * MAX_EXAMPLE));
    }

    #[test]
    fn an_expression_is_about_bytes_and_has_a_bounded_size() {
        let plain = Expression::marked("~^/u/\\d+$").unwrap().unwrap();
        assert!(plain.matches(b"/u/1") && !plain.matches(b"/U/1"));
        assert!(!plain.matches("/u/\u{0663}".as_bytes()), "digits are those of ASCII");
        assert!(Expression::marked("~*^/U").unwrap().unwrap().matches(b"/u"));
        assert!(Expression::new("^/a.b$", false).unwrap().matches(b"/a\xffb"));
        assert!(Expression::new("é$|(?u:[é-ü])", false).unwrap().matches("xé".as_bytes()));
        assert!(Expression::marked("/u").is_none());
        for (text, error) in [
            ("(", BadExpression::Syntax("unclosed group".to_owned())),
            ("[é]", BadExpression::Letters),
            ("((a{1,200}){1,200}){1,200}", BadExpression::TooLarge),
        ] {
            assert_eq!(Expression::new(text, false), Err(error.clone()), "{text}");
            assert!(!error.remedy().is_empty());
        }
        // A text that takes others hours.
        let text = [b'a'; 20_000];
        assert!(
            !Expression::new("^(a|aa|a?)+$", false).unwrap().matches(&[&text[..], b"!"].concat())
        );
    }
}
