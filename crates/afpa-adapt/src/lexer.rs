//! The words of nginx's configuration, as `ngx_conf_read_token` takes them apart.

/// A fault of the text: its line, its cause, and the remedy.
pub(crate) type Fault = (u32, String, &'static str);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
}

/// The text that is left, and the line at which it begins.
pub(crate) struct Lexer<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    pub(crate) line: u32,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Lexer { rest: text.chars().peekable(), line: 1 }
    }

    /// The next token with its line; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(Token, u32)>, Fault> {
        self.skip_space();
        let line = self.line;
        let Some(first) = self.rest.peek().copied() else { return Ok(None) };
        let token = match first {
            ';' => Token::End,
            '{' => Token::Open,
            '}' => Token::Close,
            '"' | '\'' => return Ok(Some((Token::Word(self.quoted(first)?), line))),
            _ => return Ok(Some((Token::Word(self.bare()), line))),
        };
        self.bump();
        Ok(Some((token, line)))
    }

    /// Skips the code of a block of Lua, up to its closing brace. Strings and comments may have braces.
    pub(crate) fn skip_code(&mut self) -> Result<(), Fault> {
        let (begun, mut depth) = (self.line, 1);
        while let Some(c) = self.bump() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                '"' | '\'' => self.skip_string(c),
                '-' if self.rest.peek() == Some(&'-') => self.skip_line(),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err((begun, "a block of code does not end".to_owned(), "close it with }"))
    }

    fn skip_string(&mut self, quote: char) {
        while let Some(c) = self.bump() {
            match c {
                '\\' => drop(self.bump()),
                c if c == quote || c == '\n' => return,
                _ => {}
            }
        }
    }

    fn skip_line(&mut self) {
        while self.rest.peek().is_some_and(|c| *c != '\n') {
            self.bump();
        }
    }

    fn skip_space(&mut self) {
        while let Some(c) = self.rest.peek() {
            match c {
                ' ' | '\t' | '\r' | '\n' => drop(self.bump()),
                '#' => self.skip_line(),
                _ => return,
            }
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.line += u32::from(c == '\n');
        Some(c)
    }

    /// A word in quotes, in which braces, semicolons and white space mean nothing.
    fn quoted(&mut self, quote: char) -> Result<String, Fault> {
        let (begun, mut word) = (self.line, String::new());
        self.bump();
        loop {
            match self.bump() {
                None => {
                    let cause = format!("a text in {quote} does not end");
                    return Err((begun, cause, "close it with the same quote"));
                }
                Some('\\') => self.escaped(&mut word),
                Some(c) if c == quote => break,
                Some(c) => word.push(c),
            }
        }
        match self.rest.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | ';' | '{' | ')') => Ok(word),
            Some(c) => {
                let cause = format!("\"{c}\" stands right behind a text in quotes");
                Err((self.line, cause, "put white space or ; between them"))
            }
        }
    }

    /// A word up to white space, a semicolon or a brace, but that of `${name}`.
    fn bare(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.rest.peek().copied() {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' => break,
                '{' if word.ends_with('$') => self.variable(&mut word),
                '{' => break,
                '\\' => {
                    self.bump();
                    self.escaped(&mut word);
                }
                c => {
                    word.push(c);
                    self.bump();
                }
            }
        }
        word
    }

    fn variable(&mut self, word: &mut String) {
        while let Some(c) = self.rest.peek().copied() {
            if matches!(c, ' ' | '\t' | '\r' | '\n' | ';') {
                return;
            }
            word.push(c);
            self.bump();
            if c == '}' {
                return;
            }
        }
    }

    /// The character behind a backslash, which stays where it means something to others (`\d`, `\.`).
    fn escaped(&mut self, word: &mut String) {
        match self.bump() {
            Some(c @ ('"' | '\'' | '\\')) => word.push(c),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(c) => word.extend(['\\', c]),
            None => word.push('\\'),
        }
    }
}
