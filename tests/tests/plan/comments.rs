//! The comments of a file, and the text of a page, sentence by sentence.

/// A sentence and the line on which it begins.
#[derive(Debug, PartialEq)]
pub(super) struct Sentence {
    pub(super) line: usize,
    pub(super) text: String,
}

/// A paragraph of a page, a comment, or an item of a list in one.
#[derive(Default)]
struct Block {
    words: Vec<(usize, String)>,
}

/// The sentences of a file of this ending. A file of code has those of its comments only.
pub(super) fn sentences(ending: &str, text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut block = Block::default();
    let mut reader = Reader::new(ending);
    for (at, line) in text.lines().enumerate() {
        match reader.read(line.trim()) {
            Some(part) if !part.is_empty() => {
                let item = without_bullet(part);
                if item != part || reader.stands_alone {
                    block.end(&mut found);
                }
                block.words.extend(item.split_whitespace().map(|word| (at + 1, word.to_owned())));
                if reader.stands_alone {
                    block.end(&mut found);
                }
            }
            _ => block.end(&mut found),
        }
    }
    block.end(&mut found);
    found
}

/// Finds the part of each line that is prose.
struct Reader {
    is_page: bool,
    has_hashes: bool,
    /// `/*` may stand behind code. In Rust it is part of a string there.
    is_c: bool,
    /// Inside `/* */`, or between two fences of a page.
    inside: bool,
    /// The part of this line continues no other line, and no other line continues it.
    stands_alone: bool,
}

impl Reader {
    fn new(ending: &str) -> Self {
        let has_hashes = matches!(ending, "sh" | "toml" | "py" | "");
        let is_c = matches!(ending, "c" | "h");
        Reader { is_page: ending == "md", has_hashes, is_c, inside: false, stands_alone: false }
    }

    fn read<'l>(&mut self, line: &'l str) -> Option<&'l str> {
        self.stands_alone = false;
        if self.is_page {
            self.read_page(line)
        } else if self.has_hashes {
            line.strip_prefix('#').filter(|rest| !rest.starts_with('!')).map(str::trim)
        } else {
            self.read_code(line)
        }
    }

    fn read_page<'l>(&mut self, line: &'l str) -> Option<&'l str> {
        if line.starts_with("```") {
            self.inside = !self.inside;
            return None;
        }
        let is_citation = line.starts_with("- code:") || line.starts_with("- test:");
        if self.inside || is_citation || line.starts_with('<') {
            return None;
        }
        self.stands_alone = line.starts_with(['#', '|']);
        Some(line.trim_matches(['#', '|', ' ']))
    }

    fn read_code<'l>(&mut self, line: &'l str) -> Option<&'l str> {
        if self.inside {
            let part = line.split("*/").next().unwrap_or_default();
            self.inside = part.len() == line.len();
            return Some(part.trim_matches(['*', ' ']));
        }
        if let Some(rest) = line.strip_prefix("//") {
            return Some(rest.trim_start_matches(['/', '!']).trim());
        }
        let comment = line.split_once("/*").filter(|(code, _)| self.is_c || code.is_empty());
        if let Some((_, rest)) = comment {
            let part = rest.split("*/").next().unwrap_or_default();
            self.inside = part.len() == rest.len();
            self.stands_alone = !self.inside;
            return Some(part.trim_matches(['*', ' ']));
        }
        let (code, rest) = line.split_once(" // ")?;
        self.stands_alone = true;
        code.trim_end().ends_with([';', '{', '}', ',', ')']).then_some(rest)
    }
}

impl Block {
    fn end(&mut self, found: &mut Vec<Sentence>) {
        let mut sentence: Option<Sentence> = None;
        for (line, word) in self.words.drain(..) {
            let ends =
                word.trim_end_matches([')', '"', '`', '*']).ends_with(['.', '!', '?', ':', ';']);
            match &mut sentence {
                Some(sentence) => sentence.text.extend([" ", &word]),
                None => sentence = Some(Sentence { line, text: word }),
            }
            if ends {
                found.extend(sentence.take());
            }
        }
        found.extend(sentence);
    }
}

/// The text of an item of a list; any other text as it is.
fn without_bullet(part: &str) -> &str {
    let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if rest.len() < part.len() {
        rest.strip_prefix('.')
    } else {
        rest.strip_prefix(['-', '*'])
    };
    rest.and_then(|rest| rest.strip_prefix(' ')).map_or(part, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ending: &str, text: &str) -> Vec<(usize, String)> {
        sentences(ending, text).into_iter().map(|found| (found.line, found.text)).collect()
    }

    #[test]
    fn comments_are_read_across_lines_and_code_is_left_out() {
        let text = "/// One. Two is\n/// longer: three\nlet x = 5; // four\nlet y = \"a. b\";\n/* five;\n * six */\n";
        let expected = [
            (1, "One."),
            (1, "Two is longer:"),
            (2, "three"),
            (3, "four"),
            (5, "five;"),
            (6, "six"),
        ];
        assert_eq!(found("rs", text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn pages_have_paragraphs_items_rows_and_fences() {
        let text = "# Head\n\none\ntwo.\n- item\n- more\n```\n# code\n```\n| cell | b |\n";
        let expected = [(1, "Head"), (3, "one two."), (5, "item"), (6, "more"), (10, "cell | b")];
        assert_eq!(found("md", text), expected.map(|(line, text)| (line, text.to_owned())));
    }
}
