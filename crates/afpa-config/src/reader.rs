//! Reads settings one by one, and records each: its kind, default, value and location.
//!
//! The calls in [`defaults`](crate::defaults) are the only list of settings there is. Parsing,
//! unknown keys and their suggestions, `afpa check` and the test of the reference manual all follow
//! from the record that the reader keeps of these calls. Reading does not stop at the first error: a
//! wrong value is reported, and its default is used until the end.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::choice::Choice;
use crate::document::{Node, Table, Value};
use crate::fault::{
    Fault, Report, each, gather, path_rule, read_choice, read_count, read_flag, read_text,
    read_text_or_count, read_within, text_of,
};
use crate::finding::{Finding, Location, Source};
use crate::overrides::Overrides;
use crate::settings::{Instance, Setting, Settings, quote, quote_list, quote_map};
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

/// A name and its text.
type Pair = (String, String);

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

    pub(crate) fn choices<C: Choice>(&mut self, key: &'static str, default: &[C]) -> Vec<C> {
        let show = |values: &Vec<C>| quote_list(values.iter().map(|value| value.word()));
        let kind = || format!("list of {}", C::kind());
        self.read(key, kind, default.to_vec(), show, |node| each(node, read_choice))
    }

    /// Words of a choice, and texts behind a prefix that `other` accepts; none by default.
    pub(crate) fn choices_or<C: Choice, T: Display>(
        &mut self,
        key: &'static str,
        prefix: &'static str,
        own: fn(C) -> T,
        other: fn(&str) -> Result<T, Unfit>,
    ) -> Vec<T> {
        let kind = format!("{}, or `{prefix}NAME`", C::kind());
        self.list(key, &kind, Vec::new(), |node| match text_of(node) {
            Ok(text) if let Some(name) = text.strip_prefix(prefix) => {
                other(name).map_err(|unfit| Fault::unfit(node, unfit))
            }
            _ => read_choice(node).map(own),
        })
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

    /// A list of texts that `rule` accepts.
    pub(crate) fn texts<T: Display>(
        &mut self,
        key: &'static str,
        kind: &str,
        default: Vec<T>,
        rule: fn(&str) -> Result<T, Unfit>,
    ) -> Vec<T> {
        self.list(key, kind, default, |item| read_text(item, rule))
    }

    /// A list of texts, none by default, of which some may be written as numbers.
    pub(crate) fn texts_or_counts<T: Display>(
        &mut self,
        key: &'static str,
        kind: &str,
        rule: fn(&str) -> Result<T, Unfit>,
    ) -> Vec<T> {
        self.list(key, kind, Vec::new(), |item| read_text_or_count(item, rule))
    }

    fn list<T: Display>(
        &mut self,
        key: &'static str,
        kind: &str,
        default: Vec<T>,
        read: impl Fn(&Node) -> Result<T, Vec<Fault>>,
    ) -> Vec<T> {
        let show = |values: &Vec<T>| quote_list(values.iter().map(T::to_string));
        self.read(key, || format!("list of {kind}"), default, show, |node| each(node, &read))
    }

    /// `texts` with a long default, which all sections share.
    pub(crate) fn common_texts(
        &mut self,
        key: &'static str,
        kind: &str,
        default: &Arc<[String]>,
        rule: fn(&str) -> Result<String, Unfit>,
    ) -> Arc<[String]> {
        let show = |values: &Arc<[String]>| quote_list(values.iter());
        let default = Arc::clone(default);
        self.read(
            key,
            || format!("list of {kind}"),
            default,
            show,
            |node| each(node, |item| read_text(item, rule)).map(Arc::from),
        )
    }

    /// A list of paths. Relative ones are resolved.
    pub(crate) fn paths(&mut self, key: &'static str) -> Vec<PathBuf> {
        let paths = self.texts(key, "paths", Vec::new(), path_rule);
        paths.into_iter().map(|path| self.resolve(key, path)).collect()
    }

    /// A required list of at least one item, which `read` converts.
    pub(crate) fn required_list<T>(
        &mut self,
        key: &'static str,
        kind: &str,
        show: impl Fn(&T) -> String,
        read: impl Fn(&Node) -> Result<T, Vec<Fault>>,
    ) -> Vec<T> {
        let show = |values: &Vec<T>| match &values[..] {
            [] => "required".to_owned(),
            values => {
                let shown: Vec<String> = values.iter().map(&show).collect();
                format!("[{}]", shown.join(", "))
            }
        };
        self.read(
            key,
            || format!("list of {kind}"),
            Vec::new(),
            show,
            |node| match &node.value {
                Value::List(items) if items.is_empty() => {
                    let remedy = "name at least one, or remove the section";
                    Err(Fault::unfit(node, Unfit::new("the list is empty", remedy)))
                }
                _ => each(node, &read),
            },
        )
    }

    /// Pairs of names and texts that `rule` accepts, none by default.
    pub(crate) fn pairs(
        &mut self,
        key: &'static str,
        kind: &str,
        rule: fn(&str, &str) -> Result<Pair, Unfit>,
    ) -> Vec<Pair> {
        let show = |pairs: &Vec<Pair>| quote_map(pairs);
        self.read(
            key,
            || format!("table of {kind}"),
            Vec::new(),
            show,
            |node| {
                let Value::Table(table) = &node.value else { return Err(Fault::kind(node)) };
                gather(table.iter().map(|(name, value)| {
                    rule(&name.name, text_of(value)?).map_err(|unfit| Fault::unfit(value, unfit))
                }))
            },
        )
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

    /// A path that has no default; empty if it was not given.
    pub(crate) fn required_path(&mut self, key: &'static str) -> PathBuf {
        match self.required(key, "path", path_rule) {
            Some(path) => self.resolve(key, path),
            None => PathBuf::new(),
        }
    }

    /// A path, or `none`.
    pub(crate) fn optional_path(&mut self, key: &'static str) -> Option<PathBuf> {
        let path = self.path_or(key, "path, or `none`", &["none"], "none");
        (path != "none").then(|| PathBuf::from(path))
    }

    /// A path, or one of some words with a meaning of their own. Relative paths are resolved.
    pub(crate) fn path_or(
        &mut self,
        key: &'static str,
        kind: &str,
        words: &[&str],
        default: &str,
    ) -> String {
        let show = |value: &String| quote(value);
        let default = default.to_owned();
        let path =
            self.read(key, || kind.to_owned(), default, show, |node| read_text(node, path_rule));
        if words.contains(&path.as_str()) {
            return path;
        }
        self.resolve(key, path).to_string_lossy().into_owned()
    }

    /// Adds to the table the value that a setting such as "auto" has on this machine.
    pub(crate) fn note(&mut self, key: &'static str, note: impl Into<String>) {
        self.reader.settings.note(self.path, self.instance, key, note.into());
    }

    /// A file's paths are relative to its folder, an option's to the working directory.
    fn resolve(&mut self, key: &'static str, path: String) -> PathBuf {
        let resolved = match self.reader.settings.location_in(self.path, self.instance, key) {
            Location::Option(_) => PathBuf::from(&path),
            Location::File(span) => self.reader.source.folder_at(span.start).join(&path),
            Location::Nowhere => self.reader.source.folder_at(0).join(&path),
        };
        let resolved = std::path::absolute(&resolved).unwrap_or(resolved);
        let is_secret = self.find(key).0.is_some_and(Node::is_secret);
        if resolved != Path::new(&path) && !is_secret {
            self.note(key, resolved.display().to_string());
        }
        resolved
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
