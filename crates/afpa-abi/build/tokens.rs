//! Cuts a C header into words and comments.

use std::fmt;

/// Why the header cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) line: usize,
    pub(crate) why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// One word, number or sign. `directive`: it stands in a line that begins with `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) directive: bool,
}

pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) first_line: usize,
    pub(crate) last_line: usize,
    /// Nothing stands before it on its line.
    pub(crate) alone: bool,
}

/// The words of a header, and apart from them its comments.
pub(crate) fn tokens(text: &str) -> Result<(Vec<Token>, Vec<Comment>), Refusal> {
    let (mut tokens, mut comments): (Vec<Token>, Vec<Comment>) = (Vec::new(), Vec::new());
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let on_line = tokens.last().filter(|token| token.line == line);
        let length = if first == '\n' {
            line += 1;
            1
        } else if first.is_whitespace() {
            first.len_utf8()
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let inside =
                comment.find("*/").ok_or_else(|| refusal(line, "a comment without end"))?;
            let (first_line, alone) = (line, on_line.is_none());
            line += comment[..inside].matches('\n').count();
            comments.push(Comment {
                text: plain(&comment[..inside]),
                first_line,
                last_line: line,
                alone,
            });
            inside + 4
        } else {
            let length = token_length(rest);
            let text = rest.get(..length).unwrap_or_default();
            if !is_known(text) {
                return Err(refusal(line, format!("`{first}` is not understood")));
            }
            let directive = text == "#" || on_line.is_some_and(|token| token.directive);
            tokens.push(Token { text: text.to_owned(), line, directive });
            length
        };
        rest = &rest[length..];
    }
    Ok((tokens, comments))
}

/// The value of a number, with its suffix; octal ones are refused.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => None, // octal
        None => digits.parse().ok(),
    }
}

fn token_length(text: &str) -> usize {
    if text.starts_with('<') && text[1..].starts_with(|c: char| c.is_ascii_alphabetic()) {
        return text.find('>').map_or(1, |end| end + 1); // the file of an #include
    }
    if text.starts_with("<<") || text.starts_with(">>") {
        return 2;
    }
    let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    text.find(|c| !word(c)).unwrap_or(text.len()).max(1)
}

fn is_known(token: &str) -> bool {
    let first = token.chars().next().unwrap_or_default();
    let signs = ["#", "{", "}", "[", "]", "(", ")", ",", ";", "=", "<<", ">>"];
    let operators = ["|", "&", "+", "-", "*", "/", "%"];
    first == '_'
        || first.is_ascii_alphanumeric()
        || signs.contains(&token)
        || operators.contains(&token)
        || token.starts_with('<') && token.ends_with('>')
}

/// The words of a comment in one line, without the stars at the margin.
fn plain(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches('*').trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn refusal(line: usize, why: impl Into<String>) -> Refusal {
    Refusal { line, why: why.into() }
}
