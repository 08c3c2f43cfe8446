//! Conversion of nodes to values, and the faults of nodes that cannot be converted.

use std::ops::{Range, RangeInclusive};

use crate::choice::Choice;
use crate::document::{Node, Value};
use crate::finding::{Finding, Location};
use crate::suggest;
use crate::units::Unfit;

/// Why a node is not the value that was asked for.
pub(crate) struct Fault {
    span: Range<usize>,
    why: Why,
    /// Whether the value is not to be shown.
    secret: bool,
    /// Whether the cause has a word of the value.
    tells: bool,
}

enum Why {
    /// It is of this kind instead.
    Kind(&'static str),
    Unfit(Unfit),
    Outside {
        low: String,
        high: String,
    },
}

impl Fault {
    pub(crate) fn kind(node: &Node) -> Vec<Self> {
        Self::of(node, Why::Kind(node.value.kind()))
    }

    pub(crate) fn unfit(node: &Node, unfit: Unfit) -> Vec<Self> {
        Self::of(node, Why::Unfit(unfit))
    }

    fn of(node: &Node, why: Why) -> Vec<Self> {
        let tells = match &why {
            Why::Unfit(unfit) => has_word_of(&unfit.cause, node),
            _ => false,
        };
        vec![Fault { span: node.span.clone(), why, secret: node.is_secret(), tells }]
    }
}

/// Whether a text has a word of one of a node's texts.
fn has_word_of(text: &str, node: &Node) -> bool {
    match &node.value {
        Value::Text(value) => {
            let mut words = value.split(|c: char| !c.is_alphanumeric());
            words.any(|word| !word.is_empty() && text.contains(word))
        }
        Value::List(items) => items.iter().any(|item| has_word_of(text, item)),
        Value::Table(table) => table.iter().any(|(_, node)| has_word_of(text, node)),
        _ => true,
    }
}

/// The setting that a [`Fault`] is reported for.
pub(crate) struct Report<'a> {
    pub(crate) key: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) default: &'a str,
    pub(crate) location: &'a Location,
}

impl Report<'_> {
    pub(crate) fn finding(&self, fault: Fault) -> Finding {
        let Report { key, kind, default, location } = self;
        let location = match *location {
            Location::File(_) => Location::File(fault.span),
            elsewhere => elsewhere.clone(),
        };
        match fault.why {
            Why::Kind(_) if fault.secret => {
                let cause = format!("the content of the file is no {kind}, as `{key}` takes");
                Finding::error(location, cause, "correct the file; its content is not shown")
            }
            Why::Unfit(unfit) if fault.secret && !fault.tells => {
                let cause = format!("`{key}`, of the content of the file: {}", unfit.cause);
                Finding::error(location, cause, "correct the file; its content is not shown")
            }
            Why::Unfit(_) if fault.secret => {
                let cause = format!("the content of the file is no {kind}, as `{key}` takes");
                Finding::error(location, cause, "correct the file; its content is not shown")
            }
            Why::Kind(found) => {
                let cause = format!("`{key}` takes a {kind}, not {found}");
                let remedy = match *default {
                    // One value, where there may be several.
                    _ if kind.starts_with("list of") && is_single(found) => {
                        format!("write it in brackets: `{key} = [...]`")
                    }
                    "required" => {
                        "it has no default: docs/configuration.md shows how it is written"
                            .to_owned()
                    }
                    default => format!("the default is `{key} = {default}`"),
                };
                Finding::error(location, cause, remedy)
            }
            Why::Unfit(unfit) => {
                Finding::error(location, format!("`{key}`: {}", unfit.cause), unfit.remedy)
            }
            Why::Outside { low, high } => {
                let remedy = match *default {
                    "required" => format!("use {low} to {high}"),
                    default => format!("use {low} to {high}; the default is {default}"),
                };
                Finding::error(location, format!("`{key}` is out of range"), remedy)
            }
        }
    }
}

/// Whether a node of this kind is one value.
fn is_single(found: &str) -> bool {
    matches!(found, "text" | "a number")
}

pub(crate) fn text_of(node: &Node) -> Result<&str, Vec<Fault>> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(Fault::kind(node)),
    }
}

pub(crate) fn read_text<T>(
    node: &Node,
    rule: fn(&str) -> Result<T, Unfit>,
) -> Result<T, Vec<Fault>> {
    rule(text_of(node)?).map_err(|unfit| Fault::unfit(node, unfit))
}

/// As [`read_text`], of a node that may be a number as well.
pub(crate) fn read_text_or_count<T>(
    node: &Node,
    rule: fn(&str) -> Result<T, Unfit>,
) -> Result<T, Vec<Fault>> {
    match &node.value {
        Value::Number(number) => {
            rule(&number.to_string()).map_err(|unfit| Fault::unfit(node, unfit))
        }
        _ => read_text(node, rule),
    }
}

pub(crate) fn read_flag(node: &Node) -> Result<bool, Vec<Fault>> {
    node.flag().ok_or_else(|| quoted::<bool>(node))
}

/// The fault of a value of another kind, or of the right one in quotes.
fn quoted<T: std::str::FromStr>(node: &Node) -> Vec<Fault> {
    match &node.value {
        Value::Text(text) if text.parse::<T>().is_ok() => {
            let remedy = format!("write {text}, without quotes");
            Fault::unfit(node, Unfit::new(format!("\"{text}\" is a text"), remedy))
        }
        _ => Fault::kind(node),
    }
}

pub(crate) fn read_count(node: &Node, range: &RangeInclusive<usize>) -> Result<usize, Vec<Fault>> {
    let number = node.number().ok_or_else(|| quoted::<i64>(node))?;
    let (low, high) = (range.start().to_string(), range.end().to_string());
    // A negative number is out of every range.
    let count = usize::try_from(number).ok().filter(|count| range.contains(count));
    count.ok_or_else(|| outside(node, &low, &high))
}

pub(crate) fn read_choice<C: Choice>(node: &Node) -> Result<C, Vec<Fault>> {
    // A word that is a number may be written as one.
    let number = match node.value {
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let text = match &number {
        Some(number) if C::ALL.iter().any(|choice| choice.word().parse::<i64>().is_ok()) => number,
        _ => text_of(node)?,
    };
    let found = C::ALL.iter().find(|choice| choice.word() == text);
    found.copied().ok_or_else(|| {
        let remedy = match suggest::nearest(text, C::ALL.iter().map(|choice| choice.word())) {
            Some(word) => format!("did you mean \"{word}\"?"),
            None => format!("write one of {}", C::kind()),
        };
        Fault::unfit(node, Unfit::new(format!("\"{text}\" is not known"), remedy))
    })
}

pub(crate) fn read_within<T: Copy + PartialOrd>(
    node: &Node,
    parse: fn(&str) -> Result<T, Unfit>,
    range: &RangeInclusive<T>,
    show: fn(T) -> String,
) -> Result<T, Vec<Fault>> {
    let value = read_text(node, parse)?;
    match range.contains(&value) {
        true => Ok(value),
        false => Err(outside(node, &show(*range.start()), &show(*range.end()))),
    }
}

fn outside(node: &Node, low: &str, high: &str) -> Vec<Fault> {
    let why = Why::Outside { low: low.to_owned(), high: high.to_owned() };
    Fault::of(node, why)
}

pub(crate) fn each<T>(
    node: &Node,
    read: impl Fn(&Node) -> Result<T, Vec<Fault>>,
) -> Result<Vec<T>, Vec<Fault>> {
    let Value::List(items) = &node.value else { return Err(Fault::kind(node)) };
    gather(items.iter().map(read))
}

/// All values, or all faults.
pub(crate) fn gather<T>(
    results: impl Iterator<Item = Result<T, Vec<Fault>>>,
) -> Result<Vec<T>, Vec<Fault>> {
    let (mut values, mut faults) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(more) => faults.extend(more),
        }
    }
    if faults.is_empty() { Ok(values) } else { Err(faults) }
}

pub(crate) fn path_rule(text: &str) -> Result<String, Unfit> {
    if text.contains('\0') {
        return Err(Unfit::new("no path has the character \\u0000", "remove it"));
    }
    if text.is_empty() {
        return Err(Unfit::new("an empty text is not a path", "write a path in double quotes"));
    }
    Ok(text.to_owned())
}
