//! A TOML text as nodes that know where they stand.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::finding::{Finding, Location};

/// A value and the bytes of the file it came from.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
    pub(crate) given: Given,
}

/// How a text came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Given {
    /// As it is written.
    #[default]
    Written,
    /// Variables have put something in.
    Variable,
    /// A file has put something in that is not to be shown.
    Secret,
}

impl Node {
    /// A number. A text that comes from a variable may be one.
    pub(crate) fn number(&self) -> Option<i64> {
        match &self.value {
            Value::Number(number) => Some(*number),
            Value::Text(text) if self.given != Given::Written => text.parse().ok(),
            _ => None,
        }
    }

    /// True or false. A text that comes from a variable may be one of them.
    pub(crate) fn flag(&self) -> Option<bool> {
        match &self.value {
            Value::Flag(flag) => Some(*flag),
            Value::Text(text) if self.given != Given::Written => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether it is written `[[section]]`.
    pub(crate) fn is_several(&self) -> bool {
        let Value::List(items) = &self.value else { return false };
        !items.is_empty() && items.iter().all(|item| matches!(item.value, Value::Table(_)))
    }

    /// Whether something in it is not to be shown.
    pub(crate) fn is_secret(&self) -> bool {
        match &self.value {
            Value::List(items) => items.iter().any(Node::is_secret),
            Value::Table(table) => table.iter().any(|(_, node)| node.is_secret()),
            _ => self.given == Given::Secret,
        }
    }

    /// Where it was written. A section that options made has no bytes in any file.
    pub(crate) fn location(&self) -> Location {
        match self.span.is_empty() {
            true => Location::Option("--cert, --key"),
            false => Location::File(self.span.clone()),
        }
    }
}

/// TOML's values, as far as settings use them.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
    /// A kind that no setting takes, with its name for error messages.
    Other(&'static str),
}

/// Keys in the order of the file.
pub(crate) type Table = Vec<(Key, Node)>;

/// The left side of an assignment, or the name in a section's header.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) span: Range<usize>,
    pub(crate) name: String,
}

impl Value {
    /// The name of this kind of value in error messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "text",
            Value::Number(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Other(kind) => kind,
        }
    }
}

/// Parses `text`; on failure there is one finding for every syntax error.
pub(crate) fn parse(text: &str) -> Result<Table, Vec<Finding>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(convert_table(table.get_ref()));
    }
    Err(errors.iter().map(|error| syntax_error(text, error)).collect())
}

fn syntax_error(text: &str, error: &toml::de::Error) -> Finding {
    let span = error.span();
    let before = span.as_ref().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let location = span.map_or(Location::Nowhere, Location::File);
    let cause = error.message().lines().collect::<Vec<_>>().join(", ");
    let remedy = if cause.contains("duplicate key") && before.ends_with("[[") {
        "sections within it, such as [[site.path]] of [[site]], stand behind it: move them there"
    } else if cause.contains("duplicate key") {
        "keep one of the two"
    } else {
        "this is not TOML: settings are written `name = value`, text stands in double quotes"
    };
    Finding::error(location, cause, remedy)
}

fn convert_table(table: &DeTable<'_>) -> Table {
    let mut converted: Table = table
        .iter()
        .map(|(key, value)| {
            let key = Key { span: key.span(), name: key.get_ref().to_string() };
            (key, convert(value.get_ref(), value.span()))
        })
        .collect();
    converted.sort_by_key(|(key, _)| key.span.start);
    converted
}

fn convert(value: &DeValue<'_>, span: Range<usize>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("a number beyond 64 bits"), Value::Number),
        DeValue::Float(_) => Value::Other("a number with a fraction"),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| convert(item.get_ref(), item.span())).collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table)),
    };
    Node { span, value, given: Given::Written }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_know_their_bytes() {
        let text = "a = 1\n[b]\nc = [\"x\", true]\n";
        let table = parse(text).unwrap();
        assert_eq!(&text[table[0].1.span.clone()], "1");
        let Value::Table(section) = &table[1].1.value else { panic!("a table") };
        assert_eq!(&text[section[0].0.span.clone()], "c");
        let Value::List(items) = &section[0].1.value else { panic!("a list") };
        assert_eq!(&text[items[1].span.clone()], "true");
    }

    #[test]
    fn every_syntax_error_is_found() {
        let findings = parse("a = \nb = 1\nc = ]\n").unwrap_err();
        assert!(findings.len() >= 2, "{findings:?}");
        assert!(matches!(findings[0].location, Location::File(_)));
    }

    #[test]
    fn numbers_beyond_64_bits_are_named() {
        let table = parse("a = 99999999999999999999\nb = 0x10").unwrap();
        assert_eq!(table[0].1.value.kind(), "a number beyond 64 bits");
        assert!(matches!(table[1].1.value, Value::Number(16)));
    }
}
