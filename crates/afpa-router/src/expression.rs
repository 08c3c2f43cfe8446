//! Regular expressions over bytes. Their time is linear in the text, and their size is bounded.

use std::fmt;

use regex::bytes::{Captures, Regex, RegexBuilder};

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

    /// Whether some part of a text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }
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
