//! Conditions of `if` and `elif`: a part of the expressions of Apache 2.4 (`ap_expr`).
//!
//! ```text
//! or      = and *( "||" and )
//! and     = not *( "&&" not )
//! not     = "!" not / "(" or ")" / "true" / "false" / test
//! test    = ( "-n" / "-z" / "-T" ) words / words operator words
//! words   = word *( "." word )
//! word    = string / digits / function "(" words ")"
//! string  = "..." / '...', with %{v:NAME} for the value of a variable
//! ```
//!
//! Operators on text are `=`, `==`, `!=`, `<`, `<=`, `>` and `>=`; on numbers `-eq`, `-ne`, `-lt`, `-le`, `-gt` and `-ge`,
//! with or without the hyphen. Functions are `v` (the value of a variable; also `reqenv` and `env`), `tolower` and
//! `toupper`. A variable without a value is the empty text. Left out are regular expressions, lists, and every
//! test that asks for a file, the network or the request.

use std::cmp::Ordering;

use crate::scan::find;

/// Why a condition is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It does not follow the grammar.
    #[error("the expression has a syntax error")]
    Syntax,
    /// It is nested too deeply.
    #[error("the expression is nested too deeply")]
    TooDeep,
}

/// Evaluates a condition. `value` gives the values of variables.
///
/// # Errors
/// [`ExpressionError`]: then it is neither true nor false.
pub fn evaluate(condition: &[u8], value: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>) -> Result<bool> {
    let mut reader = Reader { rest: condition, value, depth: 0 };
    let result = reader.or()?;
    reader.skip_spaces();
    if reader.rest.is_empty() { Ok(result) } else { Err(ExpressionError::Syntax) }
}

/// Parentheses, exclamation marks and functions within one another.
const DEEPEST: usize = 32;

/// Reads and evaluates at once. Both sides of every operator are evaluated: nothing has an effect.
struct Reader<'a, 'v> {
    rest: &'a [u8],
    value: &'v mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
    depth: usize,
}

/// The result of reading a condition.
pub type Result<T> = std::result::Result<T, ExpressionError>;

impl Reader<'_, '_> {
    fn or(&mut self) -> Result<bool> {
        let mut result = self.and()?;
        while self.take(b"||") {
            result |= self.and()?;
        }
        Ok(result)
    }

    fn and(&mut self) -> Result<bool> {
        let mut result = self.not()?;
        while self.take(b"&&") {
            result &= self.not()?;
        }
        Ok(result)
    }

    fn not(&mut self) -> Result<bool> {
        self.deeper(|reader| {
            if reader.take(b"!") {
                return Ok(!reader.not()?);
            }
            if reader.take(b"(") {
                let result = reader.or()?;
                return if reader.take(b")") { Ok(result) } else { Err(ExpressionError::Syntax) };
            }
            if reader.take_name(b"true") {
                return Ok(true);
            }
            if reader.take_name(b"false") {
                return Ok(false);
            }
            reader.test()
        })
    }

    fn test(&mut self) -> Result<bool> {
        if self.take_name(b"-n") {
            return Ok(!self.words()?.is_empty());
        }
        if self.take_name(b"-z") {
            return Ok(self.words()?.is_empty());
        }
        if self.take_name(b"-T") {
            let words = self.words()?.to_ascii_lowercase();
            return Ok(!matches!(&*words, b"" | b"0" | b"off" | b"false" | b"no"));
        }
        let left = self.words()?;
        let operator = self.operator().ok_or(ExpressionError::Syntax)?;
        let right = self.words()?;
        Ok(operator.compare(&left, &right))
    }

    fn operator(&mut self) -> Option<Operator> {
        self.skip_spaces();
        for (text, operator) in TEXT_OPERATORS {
            if self.take(text) {
                return Some(Operator { numbers: false, accepts: operator });
            }
        }
        for (text, operator) in NUMBER_OPERATORS {
            let bare = text.strip_prefix(b"-").unwrap_or(text);
            if self.take_name(text) || self.take_name(bare) {
                return Some(Operator { numbers: true, accepts: operator });
            }
        }
        None
    }

    fn words(&mut self) -> Result<Vec<u8>> {
        let mut words = self.word()?;
        while self.take(b".") {
            words.extend(self.word()?);
            words.truncate(LONGEST);
        }
        Ok(words)
    }

    fn word(&mut self) -> Result<Vec<u8>> {
        self.skip_spaces();
        match self.rest {
            [quote @ (b'"' | b'\''), rest @ ..] => {
                self.rest = rest;
                self.string(*quote)
            }
            [b'0'..=b'9', ..] => Ok(self.take_while(|byte| byte.is_ascii_digit()).to_vec()),
            [first, ..] if first.is_ascii_alphabetic() => {
                let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let function = Function::named(name).ok_or(ExpressionError::Syntax)?;
                if !self.take(b"(") {
                    return Err(ExpressionError::Syntax);
                }
                let argument = self.deeper(Self::words)?;
                if !self.take(b")") {
                    return Err(ExpressionError::Syntax);
                }
                Ok(function.call(&argument, self.value))
            }
            _ => Err(ExpressionError::Syntax),
        }
    }

    /// Behind its first quote.
    fn string(&mut self, quote: u8) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let [byte, rest @ ..] = self.rest else { return Err(ExpressionError::Syntax) };
            self.rest = rest;
            match (*byte, rest) {
                (end, _) if end == quote => return Ok(text),
                (b'\\', [escaped, rest @ ..]) => {
                    text.push(unescaped(*escaped));
                    self.rest = rest;
                }
                (b'%', [b'{', rest @ ..]) => {
                    let end = find(b'}', rest).ok_or(ExpressionError::Syntax)?;
                    let (inside, rest) = rest.split_at(end);
                    let colon = find(b':', inside).ok_or(ExpressionError::Syntax)?;
                    let (function, argument) = inside.split_at(colon);
                    let function = Function::named(function).ok_or(ExpressionError::Syntax)?;
                    let argument = argument.get(1..).unwrap_or_default();
                    text.extend(function.call(argument, self.value));
                    self.rest = rest.get(1..).unwrap_or_default();
                }
                (plain, _) => text.push(plain),
            }
            text.truncate(LONGEST);
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ExpressionError::TooDeep);
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &[u8] {
        let end = self.rest.iter().position(|byte| !wanted(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Takes `text`, if it is next.
    fn take(&mut self, text: &[u8]) -> bool {
        self.skip_spaces();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes `name`, if it is next and is not the beginning of another name or function.
    fn take_name(&mut self, name: &[u8]) -> bool {
        self.skip_spaces();
        let Some(rest) = self.rest.strip_prefix(name) else { return false };
        let ends = !rest.first().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        if ends {
            self.rest = rest;
        }
        ends
    }
}

/// Longest text of an expression.
const LONGEST: usize = 64 * 1024;

fn unescaped(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        plain => plain,
    }
}

#[derive(Clone, Copy)]
enum Function {
    Value,
    Lower,
    Upper,
}

impl Function {
    fn named(name: &[u8]) -> Option<Function> {
        match &*name.to_ascii_lowercase() {
            b"v" | b"reqenv" | b"env" => Some(Function::Value),
            b"tolower" => Some(Function::Lower),
            b"toupper" => Some(Function::Upper),
            _ => None,
        }
    }

    fn call(self, argument: &[u8], value: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
        match self {
            Function::Value => value(argument).unwrap_or_default(),
            Function::Lower => argument.to_ascii_lowercase(),
            Function::Upper => argument.to_ascii_uppercase(),
        }
    }
}

type Accepts = fn(Ordering) -> bool;

struct Operator {
    numbers: bool,
    accepts: Accepts,
}

/// Longer ones first.
const TEXT_OPERATORS: [(&[u8], Accepts); 7] = [
    (b"==", Ordering::is_eq),
    (b"!=", Ordering::is_ne),
    (b"<=", Ordering::is_le),
    (b">=", Ordering::is_ge),
    (b"=", Ordering::is_eq),
    (b"<", Ordering::is_lt),
    (b">", Ordering::is_gt),
];

const NUMBER_OPERATORS: [(&[u8], Accepts); 6] = [
    (b"-eq", Ordering::is_eq),
    (b"-ne", Ordering::is_ne),
    (b"-le", Ordering::is_le),
    (b"-ge", Ordering::is_ge),
    (b"-lt", Ordering::is_lt),
    (b"-gt", Ordering::is_gt),
];

impl Operator {
    fn compare(&self, left: &[u8], right: &[u8]) -> bool {
        (self.accepts)(match self.numbers {
            true => number(left).cmp(&number(right)),
            false => left.cmp(right),
        })
    }
}

/// The number that a text begins with; 0 if it begins with none.
fn number(text: &[u8]) -> i128 {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.fold(0_i128, |value, digit| {
        value.saturating_mul(10).saturating_add(i128::from(digit - b'0'))
    });
    sign * value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(condition: &str) -> Result<bool> {
        let mut value = |name: &[u8]| match name {
            b"A" => Some(b"one".to_vec()),
            b"N" => Some(b"12".to_vec()),
            b"off" => Some(b"Off".to_vec()),
            _ => None,
        };
        evaluate(condition.as_bytes(), &mut value)
    }

    #[test]
    fn conditions_are_true_or_false() {
        for condition in [
            "true",
            "v(\"A\") = 'one'",
            "v('A') == \"one\" && ! false",
            "-n v('A')",
            "-z v('B')",
            "-T '1' && !-T v('off')",
            "'%{v:A}-%{env:N}' = 'one-12'",
            "v('A') . 'x' = 'onex'",
            "toupper(v('A')) = 'ONE'",
            "'9' > '10' && 9 -lt 10 && v('N') gt 9",
            "'-3' -lt '0' && 'x' -eq 0",
            "false || (true && !(false))",
            "'a\\'b' = \"a'b\"",
            "'a' <= 'a' && 'a' >= 'a' && 'a' != 'b' && 'a' < 'b'",
            "true||true",
            "false && false || true",
        ] {
            assert_eq!(asked(condition), Ok(true), "{condition}");
            assert_eq!(asked(&format!("!({condition})")), Ok(false), "{condition}");
        }
    }

    #[test]
    fn what_is_no_condition_is_an_error() {
        for condition in [
            "",
            " ",
            "'a'",
            "v('A')",
            "'a' =",
            "= 'a'",
            "'a' = 'a",
            "('a' = 'a'",
            "true true",
            "true &&",
            "$A = one",
            "one = one",
            "'%{A}' = ''",
            "'%{v:A' = ''",
            "-f '/etc/passwd'",
            "'a' =~ /a/",
            "'a' in {'a'}",
            "file('/etc/passwd') = ''",
            "v 'A' = ''",
            "truely",
            "'a' -strmatch 'b'",
            "%{REMOTE_ADDR} = ''",
        ] {
            assert_eq!(asked(condition), Err(ExpressionError::Syntax), "{condition}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for nested in ["(", "!"] {
            assert_eq!(asked(&nested.repeat(100_000)), Err(ExpressionError::TooDeep));
        }
        assert_eq!(asked(&format!("{}''", "tolower(".repeat(99))), Err(ExpressionError::TooDeep));
    }
}
