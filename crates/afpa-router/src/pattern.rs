//! Patterns of values.

use std::fmt;

use crate::expression::{BadExpression, Expression};

/// A text with at most one star at either end, or a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `*`: there is one.
    Any,
    /// `text`
    Exact(String),
    /// `text*`
    Prefix(String),
    /// `*text`
    Suffix(String),
    /// `*text*`
    Contains(String),
    /// `~expression`, or `~*expression` where case does not matter.
    Expression(Expression),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`BadExpression`].
    pub fn read(text: &str) -> Result<Self, BadExpression> {
        if let Some(expression) = Expression::marked(text) {
            return expression.map(Pattern::Expression);
        }
        Ok(match (text.strip_prefix('*'), text.strip_suffix('*')) {
            _ if text == "*" => Pattern::Any,
            (Some(rest), Some(_)) => {
                Pattern::Contains(rest.strip_suffix('*').unwrap_or(rest).to_owned())
            }
            (Some(suffix), None) => Pattern::Suffix(suffix.to_owned()),
            (None, Some(prefix)) => Pattern::Prefix(prefix.to_owned()),
            (None, None) => Pattern::Exact(text.to_owned()),
        })
    }

    /// As [`Pattern::read`]; a text that is no pattern stands for itself.
    pub fn new(text: &str) -> Self {
        Self::read(text).unwrap_or_else(|_| Pattern::Exact(text.to_owned()))
    }

    /// A value that it matches, if one is found ([`Expression::example`]).
    pub fn example(&self) -> Option<Vec<u8>> {
        Some(match self {
            Pattern::Any => b"x".to_vec(),
            Pattern::Exact(text) | Pattern::Contains(text) => text.clone().into_bytes(),
            Pattern::Prefix(text) => [text.as_bytes(), b"x"].concat(),
            Pattern::Suffix(text) => [b"x", text.as_bytes()].concat(),
            Pattern::Expression(expression) => return expression.example(),
        })
    }

    /// Whether it matches a value; case matters.
    pub fn fits(&self, value: &[u8]) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Exact(text) => value == text.as_bytes(),
            Pattern::Prefix(text) => value.starts_with(text.as_bytes()),
            Pattern::Suffix(text) => value.ends_with(text.as_bytes()),
            Pattern::Contains(text) => memchr::memmem::find(value, text.as_bytes()).is_some(),
            Pattern::Expression(expression) => expression.matches(value),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Any => f.write_str("*"),
            Pattern::Exact(text) => f.write_str(text),
            Pattern::Prefix(text) => write!(f, "{text}*"),
            Pattern::Suffix(text) => write!(f, "*{text}"),
            Pattern::Contains(text) => write!(f, "*{text}*"),
            Pattern::Expression(expression) => write!(f, "{expression}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_stars_at_their_ends() {
        for (pattern, fits, differs) in [
            ("*", &["", "a"][..], &[][..]),
            ("a*", &["a", "ab"], &["ba", "A"]),
            ("*a", &["a", "ba"], &["ab"]),
            ("*a*", &["a", "bab"], &["b", ""]),
            ("a*b", &["a*b"], &["ab", "axb"]),
            ("", &[""], &["a"]),
            ("***", &["*", "x*"], &["x"]),
            ("~^a+$", &["a", "aa"], &["ab", "~^a+$"]),
            ("~*A", &["a", "bA"], &["b"]),
        ] {
            let text = pattern;
            let pattern = Pattern::new(text);
            assert_eq!(pattern.to_string(), text);
            assert!(fits.iter().all(|value| pattern.fits(value.as_bytes())), "{pattern:?}");
            assert!(!differs.iter().any(|value| pattern.fits(value.as_bytes())), "{pattern:?}");
            assert!(pattern.example().is_some_and(|example| pattern.fits(&example)), "{pattern:?}");
        }
    }
}
