//! Command-line options as settings, so that the same rules check both.

use std::path::Path;

use crate::document::{Given, Key, Node, Value};

/// Settings given as options. They override those of a file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    list: Vec<Override>,
    certificates: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Override {
    section: &'static str,
    key: &'static str,
    option: &'static str,
    node: Node,
}

impl Overrides {
    /// Sets `key` of `section` to a text, if given.
    pub fn text(
        &mut self,
        section: &'static str,
        key: &'static str,
        option: &'static str,
        text: Option<&str>,
    ) -> &mut Self {
        self.set(section, key, option, text.map(|text| Value::Text(text.to_owned())))
    }

    /// Sets a count, or a word such as `auto` instead, if given.
    pub fn count(
        &mut self,
        section: &'static str,
        key: &'static str,
        option: &'static str,
        text: Option<&str>,
    ) -> &mut Self {
        let value = |text: &str| text.parse().map_or(Value::Text(text.to_owned()), Value::Number);
        self.set(section, key, option, text.map(value))
    }

    /// Sets a path, if given. It is relative to the working directory.
    pub fn path(
        &mut self,
        section: &'static str,
        key: &'static str,
        option: &'static str,
        path: Option<&Path>,
    ) -> &mut Self {
        let value = path.map(|path| Value::Text(path.to_string_lossy().into_owned()));
        self.set(section, key, option, value)
    }

    /// Sets a list, if any item was given.
    pub fn list(
        &mut self,
        section: &'static str,
        key: &'static str,
        option: &'static str,
        items: &[String],
    ) -> &mut Self {
        let nodes = items.iter().map(|item| node(Value::Text(item.clone()))).collect();
        self.set(section, key, option, (!items.is_empty()).then_some(Value::List(nodes)))
    }

    /// Adds a `[[certificate]]` before those of the file. Paths are relative to the working directory.
    pub fn certificate(&mut self, chain: &Path, key: &Path) -> &mut Self {
        let pair = [("chain", chain), ("key", key)].map(|(name, path)| {
            let key = Key { span: 0..0, name: name.to_owned() };
            (key, node(Value::Text(path.to_string_lossy().into_owned())))
        });
        self.certificates.push(node(Value::Table(pair.into())));
        self
    }

    /// The sections that options have made.
    pub(crate) fn items(&self, section: &str) -> &[Node] {
        if section == "certificate" { &self.certificates } else { &[] }
    }

    /// Switches a setting on, if the option was given.
    pub fn on(
        &mut self,
        section: &'static str,
        key: &'static str,
        option: &'static str,
        given: bool,
    ) -> &mut Self {
        self.set(section, key, option, given.then_some(Value::Flag(true)))
    }

    pub(crate) fn get(&self, section: &str, key: &str) -> Option<(&'static str, &Node)> {
        let found = self.list.iter().find(|item| item.section == section && item.key == key);
        found.map(|item| (item.option, &item.node))
    }

    /// The options that set something in `section`.
    pub(crate) fn options(&self, section: &str) -> impl Iterator<Item = &'static str> {
        self.list.iter().filter(move |item| item.section == section).map(|item| item.option)
    }

    fn set(
        &mut self,
        section: &'static str,
        key: &'static str,
        option: &'static str,
        value: Option<Value>,
    ) -> &mut Self {
        self.list.extend(value.map(|value| Override { section, key, option, node: node(value) }));
        self
    }
}

fn node(value: Value) -> Node {
    Node { span: 0..0, value, given: Given::Written }
}
