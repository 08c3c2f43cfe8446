//! Findings about a configuration, and how they are shown: location, line, caret, cause, remedy.

use std::cmp::Reverse;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How much a [`Finding`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used, but something about it should be checked.
    Warning,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// Where a value, or the absence of one, was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// These bytes of the file.
    File(Range<usize>),
    /// A command-line option, for example `--listen`.
    Option(&'static str),
    /// Nowhere in particular: a default, or something missing.
    Nowhere,
}

/// One thing to say about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Error or warning.
    pub severity: Severity,
    /// Where.
    pub location: Location,
    /// The fault, in one sentence without a full stop at its end.
    pub cause: String,
    /// How to correct it; empty if the cause says so already.
    pub remedy: String,
    /// The place that it contradicts.
    pub other: Location,
}

impl Finding {
    /// An error at `location`.
    pub fn error(location: Location, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { severity: Severity::Error, ..Self::warning(location, cause, remedy) }
    }

    /// Names the place of a file that it contradicts.
    pub(crate) fn against(self, other: Location) -> Self {
        Finding { other, ..self }
    }

    /// A warning at `location`.
    pub fn warning(
        location: Location,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Finding {
            severity: Severity::Warning,
            location,
            cause: cause.into(),
            remedy: remedy.into(),
            other: Location::Nowhere,
        }
    }
}

/// A configuration text under the name that messages give it, with those that it includes behind it. A
/// [`Location`] counts from the beginning of the first.
#[derive(Clone, Debug)]
pub struct Source {
    files: Vec<SourceFile>,
    text: String,
    /// Where its lines begin.
    lines: Vec<usize>,
    /// Values that are not to be shown, the longest first, and what stands in their place.
    secrets: Vec<(String, String)>,
}

/// A file of a configuration.
#[derive(Clone, Debug)]
struct SourceFile {
    name: String,
    /// Its relative paths begin here.
    folder: PathBuf,
    /// The place of its first byte in the text of all.
    start: usize,
}

impl Source {
    /// `name` is the path as the user typed it, so that editors and terminals can open it from a message.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let mut source =
            Source { files: Vec::new(), text: String::new(), lines: vec![0], secrets: Vec::new() };
        source.push(name.into(), PathBuf::from("/"), text.into());
        source
    }

    /// This source, whose relative paths begin at `folder`.
    pub(crate) fn within(self, folder: &Path) -> Self {
        let mut source = self;
        if let Some(first) = source.files.first_mut() {
            first.folder = folder.to_owned();
        }
        source
    }

    /// Adds a file behind all others, and returns where it begins.
    pub(crate) fn push(&mut self, name: String, folder: PathBuf, text: String) -> usize {
        if !self.files.is_empty() {
            // The end of a file is a place of its own.
            self.lines.push(self.text.len() + 1);
            self.text.push('\n');
        }
        let start = self.text.len();
        self.lines.extend(text.match_indices('\n').map(|(at, _)| start + at + 1));
        match self.text.is_empty() {
            true => self.text = text,
            false => self.text.push_str(&text),
        }
        self.files.push(SourceFile { name, folder, start });
        start
    }

    /// Remembers a value of which no message may tell, and how it is written. One of fewer than three bytes would stand
    /// in every message, and so would the words of a text, unless they look like keys.
    pub(crate) fn add_secret(&mut self, value: &str, written: &str) {
        let parts =
            value.split(|c: char| c.is_whitespace() || c == ',').filter(|part| is_key(part));
        for part in parts.chain([value].into_iter().filter(|value| value.len() > 2)) {
            self.secrets.push((part.to_owned(), written.to_owned()));
        }
        self.secrets.sort_by_key(|(value, _)| Reverse(value.len()));
        self.secrets.dedup();
    }

    /// Remembers a value that the file itself has, and of which no message may tell.
    pub(crate) fn add_own_secret(&mut self, value: &str) {
        // The variable that has made a value stands in its place already.
        if value.len() > 2 && !self.secrets.iter().any(|(secret, _)| value.contains(secret)) {
            self.secrets.push((value.to_owned(), "...".to_owned()));
            self.secrets.sort_by_key(|(value, _)| Reverse(value.len()));
        }
    }

    /// A text for people: in the place of each secret it has the variable that stands for it.
    pub fn hide(&self, text: String) -> String {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for (value, written) in &self.secrets {
            let mut from = 0;
            while let Some(at) = text.get(from..).and_then(|rest| find_ignoring_case(rest, value)) {
                let begin = from + at;
                found.push((begin..begin + value.len(), written));
                let first = text.get(begin..).and_then(|rest| rest.chars().next());
                from = begin + first.map_or(1, char::len_utf8);
            }
        }
        // In front those that begin first, and of these the longest.
        found.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
        let (mut hidden, mut end) = (String::with_capacity(text.len()), 0);
        for (range, written) in found {
            // Values that overlap are hidden as one.
            if range.start >= end {
                hidden.push_str(text.get(end..range.start).unwrap_or_default());
                hidden.push_str(written);
            }
            end = end.max(range.end);
        }
        hidden + text.get(end..).unwrap_or_default()
    }

    /// The name and the text of each file.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        // A line feed stands between two of them.
        let ends = self.files.iter().skip(1).map(|next| next.start - 1).chain([self.text.len()]);
        let text = |file: &SourceFile, end| self.text.get(file.start..end).unwrap_or_default();
        self.files.iter().zip(ends).map(move |(file, end)| (&*file.name, text(file, end)))
    }

    /// The texts of all files.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the first file in messages.
    pub fn name(&self) -> &str {
        self.files.first().map_or("", |file| &file.name)
    }

    /// The name of the file that holds byte `offset`.
    pub(crate) fn name_at(&self, offset: usize) -> &str {
        self.file(offset).map_or("", |file| &file.name)
    }

    /// The folder of the file that holds byte `offset`.
    pub(crate) fn folder_at(&self, offset: usize) -> &Path {
        self.file(offset).map_or(Path::new(""), |file| &file.folder)
    }

    /// The one-based number, in its file, of the line that holds byte `offset`.
    pub fn line(&self, offset: usize) -> usize {
        let before = |offset| self.lines.partition_point(|start| *start <= offset);
        let first = self.file(offset).map_or(0, |file| before(file.start));
        (before(offset) + 1).saturating_sub(first).max(1)
    }

    /// `line 4`; of an included file, `sites/a.toml:4`.
    pub(crate) fn line_name(&self, offset: usize) -> String {
        match self.file(offset) {
            Some(file) if file.start > 0 => format!("{}:{}", file.name, self.line(offset)),
            _ => format!("line {}", self.line(offset)),
        }
    }

    fn file(&self, offset: usize) -> Option<&SourceFile> {
        let behind = self.files.partition_point(|file| file.start <= offset);
        self.files.get(behind.saturating_sub(1))
    }

    /// Findings as a person reads them: file order, errors and warnings together.
    pub fn render(&self, findings: &[Finding]) -> String {
        let mut ordered: Vec<&Finding> = findings.iter().collect();
        ordered.sort_by_key(|finding| match &finding.location {
            Location::Option(_) => (0, 0),
            Location::File(span) => (1, span.start),
            Location::Nowhere => (2, 0),
        });
        let blocks: Vec<String> = ordered.iter().map(|finding| self.block(finding)).collect();
        blocks.join("\n")
    }

    fn block(&self, finding: &Finding) -> String {
        let word = finding.severity.word();
        let cause = self.hide(finding.cause.clone());
        let remedy = self.hide(finding.remedy.clone());
        let mut margin = 1;
        let mut block = match &finding.location {
            Location::File(span) => {
                let at = self.position(span.start);
                let (name, line, column) = (self.name_at(span.start), at.line, at.column);
                let quote = at.quote(span.len());
                margin = at.line.to_string().len();
                format!("{name}:{line}:{column}: {word}: {cause}\n{quote}")
            }
            Location::Option(option) => format!("{option}: {word}: {cause}\n"),
            Location::Nowhere if self.name().is_empty() => format!("{word}: {cause}\n"),
            Location::Nowhere => format!("{}: {word}: {cause}\n", self.name()),
        };
        if let Location::File(other) = &finding.other {
            let (name, line) = (self.name_at(other.start), self.line(other.start));
            let _ = writeln!(block, "{:margin$} = the other one is in {name}:{line}", "");
        }
        if !remedy.is_empty() {
            let _ = writeln!(block, "{:margin$} = {remedy}", "");
        }
        block
    }

    fn position(&self, offset: usize) -> Position<'_> {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = self.text.get(start..).unwrap_or("");
        let head = before.get(start..).unwrap_or("");
        Position {
            line: self.line(offset.min(self.text.len())),
            column: head.chars().count() + 1,
            head,
            content: rest.lines().next().unwrap_or(""),
        }
    }
}

/// Every error of a configuration, rendered.
#[derive(Debug)]
pub struct ConfigError {
    rendered: String,
    usage: bool,
}

impl ConfigError {
    /// The errors among `findings`, or `None` if there are only warnings.
    pub(crate) fn from_findings(source: &Source, findings: &[Finding]) -> Option<Self> {
        let (mut errors, mut shown): (usize, Vec<Finding>) = (0, Vec::new());
        for finding in findings {
            let is_error = finding.severity == Severity::Error;
            // An option may stand for two settings; it has one fault.
            let is_option = matches!(finding.location, Location::Option(_));
            let has_one =
                |one: &Finding| one.severity == Severity::Error && one.location == finding.location;
            if is_error && is_option && shown.iter().any(has_one) {
                continue;
            }
            errors += usize::from(is_error);
            shown.push(finding.clone());
        }
        if errors == 0 {
            return None;
        }
        let mut faults = shown.iter().filter(|one| one.severity == Severity::Error);
        let usage = faults.all(|one| matches!(one.location, Location::Option(_)));
        let mut rendered = source.render(&shown);
        if errors > 1 {
            let _ = write!(rendered, "\n{errors} errors");
        }
        Some(ConfigError { rendered: rendered.trim_end().to_owned(), usage })
    }

    pub(crate) fn unreadable(name: &str, error: &std::io::Error) -> Self {
        let remedy = unreadable_remedy(error);
        ConfigError { rendered: format!("{name}: error: {error}\n  = {remedy}"), usage: false }
    }

    /// Whether nothing but command-line options is to blame.
    pub fn is_usage(&self) -> bool {
        self.usage
    }
}

/// The place of a text within another one; letters of ASCII may have another case, as those of hosts have.
/// Whether a word of a longer text may be a key or a password, and no word of a language.
fn is_key(word: &str) -> bool {
    let is_mixed = || word.chars().skip(1).any(char::is_uppercase);
    word.len() > 5 && (word.contains(|c: char| c.is_ascii_digit()) || is_mixed())
}

fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    let windows = text.as_bytes().windows(wanted.len());
    let found = windows.enumerate().filter(|(_, w)| w.eq_ignore_ascii_case(wanted.as_bytes()));
    found.map(|(at, _)| at).find(|at| text.is_char_boundary(*at))
}

/// How a file of the configuration becomes readable.
pub(crate) fn unreadable_remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::NotFound => "create it, or name another file",
        std::io::ErrorKind::PermissionDenied => "make it readable for the user who starts afpa",
        _ => "name a text file in TOML",
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered)
    }
}

impl std::error::Error for ConfigError {}

struct Position<'a> {
    line: usize,
    /// One-based, in characters.
    column: usize,
    /// The line up to the position.
    head: &'a str,
    /// The whole line.
    content: &'a str,
}

impl Position<'_> {
    /// The line with carets under `len` bytes of it; a span over several lines is cut at the first.
    fn quote(&self, len: usize) -> String {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        // Tabs stay tabs, so that the caret stands under its character whatever their width.
        let pad: String = self.head.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
        let rest = self.content.get(self.head.len()..).unwrap_or("");
        let marked = rest.char_indices().take_while(|(at, _)| *at < len).count().max(1);
        let carets = "^".repeat(marked);
        format!("{gutter} |\n{number} | {}\n{gutter} | {pad}{carets}\n", self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_shows_line_caret_cause_and_remedy() {
        let source = Source::new("afpa.toml", "workers = 2\n\n\tlisen = 1 # é\n");
        let start = source.text().find("lisen").unwrap();
        let location = Location::File(start..start + 5);
        let text = source.render(&[Finding::error(location, "unknown setting", "try `listen`")]);
        let expected = "afpa.toml:3:2: error: unknown setting\n  |\n3 | \tlisen = 1 # é\n  | \t^^^^^\n  = try `listen`\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_count_characters_and_spans_end_with_the_line() {
        let source = Source::new("f", "é = [1,\n 2]");
        let text = source.render(&[Finding::warning(Location::File(5..11), "odd", "")]);
        assert_eq!(text, "f:1:5: warning: odd\n  |\n1 | é = [1,\n  |     ^^^\n");
    }

    #[test]
    fn words_of_a_text_that_no_message_may_tell_are_left_where_messages_have_them() {
        let mut source = Source::new("f", "");
        source.add_secret("The file error 404 hunter12 X", "${file:a}");
        source.add_secret("file:a", "${file:b}");
        let hide = |text: &str| source.hide(text.to_owned());
        assert_eq!(hide("LimitNOFILE: the file, error 404"), "LimitNOFILE: the file, error 404");
        assert_eq!(hide("a HUNTER12b"), "a ${file:a}b");
        assert_eq!(hide("-The file error 404 hunter12 X-"), "-${file:a}-");
        assert_eq!(hide("hunter12 file:a"), "${file:a} ${file:b}");
        let mut source = Source::new("f", "");
        for (value, written) in [("abc", "1"), ("bcdé", "2"), ("dé", "3")] {
            source.add_secret(value, written);
        }
        assert_eq!(source.hide("xabcdéz abé".to_owned()), "x1z abé");
    }

    #[test]
    fn a_position_at_the_end_of_an_empty_file_is_its_first_line() {
        let source = Source::new("f", "");
        let text = source.render(&[Finding::error(Location::File(0..0), "empty", "")]);
        assert_eq!(text, "f:1:1: error: empty\n  |\n1 | \n  | ^\n");
    }
}
