//! Reads settings one by one, and records each: its kind, default, value and location.
//!
//! The calls in [`defaults`](crate::defaults) are the only list of settings there is. Parsing,
//! unknown keys and their suggestions, `afpa check` and the test of the reference manual all follow
//! from the record that the reader keeps of these calls. Reading does not stop at the first error: a
//! wrong value is reported, and its default is used until the end.

mod lists;
mod paths;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::choice::Choice;
use crate::document::{Node, Table, Value};
use crate::fault::{
    Fault, Report, read_choice, read_count, read_flag, read_text, read_text_or_count, read_within,
};
use crate::finding::{Finding, Location, Source};
use crate::overrides::Overrides;
use crate::settings::{Instance, Setting, Settings, quote};
use crate::suggest;
use crate::units::{
    Amount, Unfit, human_size, parse_amount, parse_duration, parse_size, show_duration, show_size,
};
use crate::written;

/// The settings of a file and of the options above it, being read.
pub(crate) struct Reader<'i> {
    pub(crate) document: &'i Table,
    pub(crate) overrides: &'i Overrides,
    /// Relative paths start at the folders of its files.
    source: &'i Source,
    settings: Settings,
    pub(crate) findings: Vec<Finding>,
}

impl<'i> Reader<'i> {
    pub(crate) fn new(document: &'i Table, overrides: &'i Overrides, source: &'i Source) -> Self {
        let (settings, findings) = (Settings::default(), Vec::new());
        Reader { document, overrides, source, settings, findings }
    }

    /// The section called `path`: empty for the top level, `a.b` for a table in a table.
    pub(crate) fn section(&mut self, path: &'static str) -> Section<'_, 'i> {
        let mut table = Some(self.document);
        for name in path.split('.').filter(|name| !name.is_empty()) {
            table = table.and_then(|table| self.subtable(table, name, path));
        }
        Section { reader: self, path, instance: [0; 4], table }
    }

    /// The settings that were read, and everything that is wrong with them. `known` has every setting that
    /// exists: any other key is reported.
    pub(crate) fn finish(mut self, known: &Settings) -> (Settings, Vec<Finding>) {
        let unknown = suggest::unknown_keys(self.document, known);
        self.findings.extend(unknown);
        (self.settings, self.findings)
    }

    /// Whether nobody has set it.
    pub(crate) fn is_default(
        &self,
        section: &'static str,
        instance: Instance,
        key: &'static str,
    ) -> bool {
        self.settings.location_in(section, instance, key) == Location::Nowhere
    }

    fn subtable(&mut self, table: &'i Table, name: &str, path: &str) -> Option<&'i Table> {
        let (key, node) = table.iter().find(|(key, _)| key.name == name)?;
        if let Value::Table(table) = &node.value {
            return Some(table);
        }
        let location = Location::File(key.span.clone());
        let cause = format!("`{name}` is a section, not {}", node.value.kind());
        self.findings.push(Finding::error(location, cause, format!("write [{path}]")));
        None
    }
}

/// `count, 1 to 1024`.
fn kind_within<T: Copy>(
    what: &str,
    range: &RangeInclusive<T>,
    show: impl Fn(T) -> String,
) -> String {
    format!("{what}, {} to {}", show(*range.start()), show(*range.end()))
}

/// One section while its settings are read.
pub(crate) struct Section<'r, 'i> {
    pub(crate) reader: &'r mut Reader<'i>,
    pub(crate) path: &'static str,
    pub(crate) instance: Instance,
    pub(crate) table: Option<&'i Table>,
}

impl<'i> Section<'_, 'i> {
    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        self.read(key, || "true or false".to_owned(), default, bool::to_string, read_flag)
    }

    /// `true`, `false`, or a word for what applies outside.
    pub(crate) fn flag_or(&mut self, key: &'static str, word: &'static str) -> Option<bool> {
        self.read_or(key, word, || "true or false".to_owned(), bool::to_string, read_flag)
    }

    pub(crate) fn count(
        &mut self,
        key: &'static str,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> usize {
        let kind = || kind_within("count", &range, |count| count.to_string());
        self.read(key, kind, default, usize::to_string, |node| read_count(node, &range))
    }

    /// A count, or a word for "AFPA decides".
    pub(crate) fn count_or(
        &mut self,
        key: &'static str,
        word: &'static str,
        range: RangeInclusive<usize>,
    ) -> Option<usize> {
        let kind = || kind_within("count", &range, |count| count.to_string());
        self.read_or(key, word, kind, usize::to_string, |node| read_count(node, &range))
    }

    /// A size in bytes.
    pub(crate) fn size(
        &mut self,
        key: &'static str,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> usize {
        let kind = || kind_within("size", &range, show_size);
        let show = |size: &usize| quote(&show_size(*size));
        let read = |node: &Node| read_within(node, parse_size, &range, show_size);
        self.read(key, kind, default, show, read)
    }

    /// A size in bytes, or a word for "no limit".
    pub(crate) fn size_or(
        &mut self,
        key: &'static str,
        word: &'static str,
        range: RangeInclusive<usize>,
    ) -> Option<usize> {
        let kind = || kind_within("size", &range, show_size);
        let show = |size: &usize| quote(&show_size(*size));
        let read = |node: &Node| read_within(node, parse_size, &range, show_size);
        self.read_or(key, word, kind, show, read)
    }

    /// A size, or a share of `whole` bytes of `what`; in bytes.
    pub(crate) fn amount(
        &mut self,
        key: &'static str,
        default: Amount,
        what: &str,
        whole: usize,
    ) -> usize {
        let show = |value: &Amount| quote(&value.to_string());
        let kind = || format!("size, or per cent of {what}");
        let amount = self.read(key, kind, default, show, |node| read_text(node, parse_amount));
        let bytes = amount.of(whole);
        if let Amount::Percent(_) = amount {
            let human = human_size(u64::try_from(bytes).unwrap_or(u64::MAX));
            self.note(key, human);
        }
        bytes
    }

    pub(crate) fn duration(
        &mut self,
        key: &'static str,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        let kind = || kind_within("duration", &range, show_duration);
        let show = |time: &Duration| quote(&show_duration(*time));
        let read = |node: &Node| read_within(node, parse_duration, &range, show_duration);
        self.read(key, kind, default, show, read)
    }

    /// A duration, or a word that stands for none.
    pub(crate) fn duration_or(
        &mut self,
        key: &'static str,
        word: &'static str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let kind = || kind_within("duration", &range, show_duration);
        let show = |time: &Duration| quote(&show_duration(*time));
        let read = |node: &Node| read_within(node, parse_duration, &range, show_duration);
        self.read_or(key, word, kind, show, read)
    }

    pub(crate) fn choice<C: Choice>(&mut self, key: &'static str, default: C) -> C {
        self.read(key, C::kind, default, |value| quote(value.word()), read_choice)
    }

    /// A word of a choice, or one more word for "as another setting says".
    pub(crate) fn choice_or<C: Choice>(
        &mut self,
        key: &'static str,
        word: &'static str,
    ) -> Option<C> {
        self.read_or(key, word, C::kind, |value: &C| quote(value.word()), read_choice)
    }

    /// A text that `rule` accepts, described as `kind`.
    pub(crate) fn text<T: Display>(
        &mut self,
        key: &'static str,
        kind: &str,
        default: T,
        rule: fn(&str) -> Result<T, Unfit>,
    ) -> T {
        let show = |value: &T| quote(&value.to_string());
        self.read(key, || kind.to_owned(), default, show, |node| read_text(node, rule))
    }

    /// A text that `rule` accepts, or a word for "none" or "AFPA decides".
    pub(crate) fn text_or<T: Display>(
        &mut self,
        key: &'static str,
        kind: &str,
        word: &'static str,
        rule: fn(&str) -> Result<T, Unfit>,
    ) -> Option<T> {
        let show = |value: &T| quote(&value.to_string());
        self.read_or(key, word, || kind.to_owned(), show, |node| read_text(node, rule))
    }

    /// A text or a count that `rule` accepts, or a word for none.
    pub(crate) fn text_or_count<T: Display>(
        &mut self,
        key: &'static str,
        kind: &str,
        word: &'static str,
        rule: fn(&str) -> Result<T, Unfit>,
    ) -> Option<T> {
        let show = |value: &T| {
            let text = value.to_string();
            if text.bytes().all(|byte| byte.is_ascii_digit()) { text } else { quote(&text) }
        };
        self.read_or(key, word, || kind.to_owned(), show, |node| read_text_or_count(node, rule))
    }

    /// A required text; `None` if it was not given.
    pub(crate) fn required(
        &mut self,
        key: &'static str,
        kind: &str,
        rule: fn(&str) -> Result<String, Unfit>,
    ) -> Option<String> {
        let show = |value: &Option<String>| match value {
            Some(text) => quote(text),
            None => "required".to_owned(),
        };
        self.read(key, || kind.to_owned(), None, show, |node| read_text(node, rule).map(Some))
    }

    /// Adds to the table the value that a setting such as "auto" has on this machine.
    pub(crate) fn note(&mut self, key: &'static str, note: impl Into<String>) {
        self.reader.settings.note(self.path, self.instance, key, note.into());
    }

    /// A value, or a word for none.
    fn read_or<T>(
        &mut self,
        key: &'static str,
        word: &'static str,
        kind: impl Fn() -> String,
        show: impl Fn(&T) -> String,
        read: impl FnOnce(&Node) -> Result<T, Vec<Fault>>,
    ) -> Option<T> {
        let kind = || format!("{}, or `{word}`", kind());
        let show = |value: &Option<T>| value.as_ref().map_or_else(|| quote(word), &show);
        self.read(key, kind, None, show, |node| match &node.value {
            Value::Text(text) if text == word => Ok(None),
            _ => read(node).map(Some),
        })
    }

    /// Reads and records one setting; every other method ends here. Of the second and later sections with the same
    /// name only settings that were given are recorded: there may be many thousands of such sections.
    fn read<T>(
        &mut self,
        key: &'static str,
        kind: impl Fn() -> String,
        default: T,
        show: impl Fn(&T) -> String,
        read: impl FnOnce(&Node) -> Result<T, Vec<Fault>>,
    ) -> T {
        let (node, location) = self.find(key);
        let outcome = node.map(read);
        if outcome.is_none() && self.instance != [0; 4] {
            return default;
        }
        // It is the same in every section of the name.
        let kind = match (&outcome, self.instance) {
            (None | Some(Ok(_)), instance) if instance != [0; 4] => String::new(),
            _ => kind(),
        };
        let shown_default = show(&default);
        let value = match outcome {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(faults)) => {
                let report =
                    Report { key, kind: &kind, default: &shown_default, location: &location };
                self.reader.findings.extend(faults.into_iter().map(|fault| report.finding(fault)));
                default
            }
        };
        let shown = match node {
            Some(node) if node.is_secret() => written::shown(self.reader.source, node),
            _ => show(&value),
        };
        let section = self.path;
        self.reader.settings.push(Setting {
            section,
            instance: self.instance,
            key,
            kind,
            default: shown_default,
            value: shown,
            note: String::new(),
            location,
        });
        value
    }

    /// Options go before the file.
    fn find(&self, key: &str) -> (Option<&'i Node>, Location) {
        let first = self.instance == [0; 4];
        let (overrides, table) = (self.reader.overrides, self.table);
        if let Some((option, node)) = overrides.get(self.path, key).filter(|_| first) {
            return (Some(node), Location::Option(option));
        }
        match table.and_then(|table| table.iter().find(|(k, _)| k.name == key)) {
            Some((_, node)) => (Some(node), node.location()),
            None => (None, Location::Nowhere),
        }
    }
}
