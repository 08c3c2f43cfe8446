//! A zone file as entries: words of one or several lines, without comments and parentheses (RFC 1035 section 5.1).

/// The words of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'t> {
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
    /// It begins with a space: its name is that of the record before.
    pub(crate) begins_blank: bool,
    /// As written, with quotes and backslashes.
    pub(crate) words: Vec<&'t str>,
}

/// Why a text cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsplit {
    /// A quote is open at the end of a line.
    Quote(usize),
    /// A parenthesis is open at the end.
    Open(usize),
    /// A parenthesis closes nothing.
    Closed(usize),
}

/// The entries of a text.
#[derive(Clone, Debug)]
pub(crate) struct Entries<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Entries<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The next entry that has words.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry<'t>>, Unsplit> {
        while self.peek().is_some() {
            let entry = self.entry()?;
            if !entry.words.is_empty() {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn entry(&mut self) -> Result<Entry<'t>, Unsplit> {
        let begins_blank = matches!(self.peek(), Some(b' ' | b'\t'));
        let mut entry = Entry { line: self.line, begins_blank, words: Vec::new() };
        let mut opened = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    if opened.is_empty() {
                        return Ok(entry);
                    }
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b';' => self.skip_comment(),
                b'(' => {
                    opened.push(self.line);
                    self.at += 1;
                }
                b')' => {
                    opened.pop().ok_or(Unsplit::Closed(self.line))?;
                    self.at += 1;
                }
                _ => {
                    if entry.words.is_empty() {
                        entry.line = self.line;
                    }
                    entry.words.push(self.word()?);
                }
            }
        }
        match opened.first() {
            Some(line) => Err(Unsplit::Open(*line)),
            None => Ok(entry),
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    fn word(&mut self) -> Result<&'t str, Unsplit> {
        let begin = self.at;
        let mut is_quoted = false;
        while let Some(byte) = self.peek() {
            match byte {
                // A character behind a backslash is skipped whole, so that no word ends inside of it.
                b'\\' => self.at += 1 + self.width_at(self.at + 1),
                b'"' => {
                    is_quoted = !is_quoted;
                    self.at += 1;
                }
                b'\n' if is_quoted => return Err(Unsplit::Quote(self.line)),
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' if !is_quoted => break,
                _ => self.at += 1,
            }
        }
        if is_quoted {
            return Err(Unsplit::Quote(self.line));
        }
        self.at = self.at.min(self.text.len());
        Ok(self.text.get(begin..self.at).unwrap_or_default())
    }

    fn width_at(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.chars().next().filter(|next| *next != '\n').map_or(0, char::len_utf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line, whether it begins with a blank, and the words.
    type Shown<'t> = (usize, bool, Vec<&'t str>);

    fn entries(text: &str) -> Result<Vec<Shown<'_>>, Unsplit> {
        let mut entries = Entries::of(text);
        let mut all = Vec::new();
        while let Some(Entry { line, begins_blank, words }) = entries.next_entry()? {
            all.push((line, begins_blank, words));
        }
        Ok(all)
    }

    #[test]
    fn parentheses_join_lines_and_comments_are_left_out() {
        let text =
            "; first\n@ SOA a b ( 1 ; serial\n 2\n\t3 )\n\n  NS ns1;x\nt TXT \"a;b (\" c\\;d\n";
        let expected = vec![
            (2, false, vec!["@", "SOA", "a", "b", "1", "2", "3"]),
            (6, true, vec!["NS", "ns1"]),
            (7, false, vec!["t", "TXT", "\"a;b (\"", "c\\;d"]),
        ];
        assert_eq!(entries(text), Ok(expected));
        assert_eq!(entries("a A 1.2.3.4"), Ok(vec![(1, false, vec!["a", "A", "1.2.3.4"])]));
    }

    #[test]
    fn open_ends_are_told_with_their_line() {
        assert_eq!(entries("\na TXT \"b\n\""), Err(Unsplit::Quote(2)));
        assert_eq!(entries("a TXT (\n\nb"), Err(Unsplit::Open(1)));
        assert_eq!(entries("\na ) b"), Err(Unsplit::Closed(2)));
        assert_eq!(entries("a\\"), Ok(vec![(1, false, vec!["a\\"])]));
    }
}
