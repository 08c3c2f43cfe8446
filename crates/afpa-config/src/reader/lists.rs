//! Settings that are lists and tables.

use std::fmt::Display;
use std::sync::Arc;

use super::Section;
use crate::choice::Choice;
use crate::document::{Node, Value};
use crate::fault::{Fault, each, gather, read_choice, read_text, read_text_or_count, text_of};
use crate::settings::{quote_list, quote_map};
use crate::units::Unfit;

/// A name and its text.
type Pair = (String, String);

impl Section<'_, '_> {
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
}
