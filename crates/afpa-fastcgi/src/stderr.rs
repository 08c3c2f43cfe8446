//! The messages of a program, for the log.

/// Bytes of a line; the rest of it is dropped.
const LONGEST: usize = 2048;

/// Lines of one request; further ones are dropped.
const MOST: usize = 32;

/// Lines that a program has written to its standard error stream.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    line: Vec<u8>,
    lines: Vec<String>,
    /// Lines that were written in all.
    count: usize,
}

impl Messages {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|&byte| byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = LONGEST.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend_from_slice(piece.get(..room).unwrap_or_default());
            if pieces.peek().is_some() {
                self.end_line();
            }
        }
    }

    /// Ends the last line, and takes all that have ended.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        self.end_line();
        self.take()
    }

    /// Takes the lines that have ended.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(line.trim_ascii());
        if text.is_empty() || self.count > MOST {
            return;
        }
        self.count += 1;
        self.lines.push(match self.count > MOST {
            true => "further messages of this request are left out".to_owned(),
            false => escaped(&text),
        });
    }
}

/// One line, in which nothing acts on a terminal.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    line
}
