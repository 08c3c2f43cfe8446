//! The settings that the files of a configuration say together, as one file.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::document::{Given, Key, Node, Table, Value};
use crate::finding::{Location, Source};
use crate::settings::{Setting, Settings, quote};

/// The settings of all files: includes are followed, variables have their values.
#[derive(Clone, Debug, Default)]
pub struct Written(Table);

impl Written {
    pub(crate) fn of(document: Table) -> Self {
        Written(document)
    }
}

/// One file in the place of those that `written` was read from. Comments name the file and the line of each section.
pub(crate) fn as_one_file(written: &Written, source: &Source, settings: &Settings) -> String {
    let given = settings.iter().filter_map(|setting| match &setting.location {
        Location::File(span) => Some((span.start, setting)),
        _ => None,
    });
    let mut text = String::new();
    let writing = Writing { source, given: given.collect() };
    writing.section(&mut text, &written.0, "");
    text.trim_start().to_owned()
}

/// A file that is being written.
struct Writing<'l> {
    source: &'l Source,
    /// Settings by their places.
    given: HashMap<usize, &'l Setting>,
}

impl Writing<'_> {
    fn section(&self, text: &mut String, table: &Table, path: &str) {
        let is_inner = |node: &Node| matches!(&node.value, Value::Table(_)) || node.is_several();
        let included = |key: &str| path.is_empty() && key == "include";
        for (key, node) in
            table.iter().filter(|(key, node)| !is_inner(node) && !included(&key.name))
        {
            let value = match path {
                "server_group.servers" => self.of_server(node),
                _ => self.value(node),
            };
            let _ = writeln!(text, "{} = {value}", shown_key(&key.name));
        }
        for (key, node) in table.iter().filter(|(_, node)| is_inner(node)) {
            let name = match path {
                "" => shown_key(&key.name),
                _ => format!("{path}.{}", shown_key(&key.name)),
            };
            let mut head = |node: &Node, brackets: (&str, &str)| {
                let at = node.span.start;
                let (file, line) = (self.source.name_at(at), self.source.line(at));
                let _ = writeln!(text, "\n{}{name}{}  # {file}:{line}", brackets.0, brackets.1);
                if let Value::Table(table) = &node.value {
                    self.section(text, table, &name);
                }
            };
            match &node.value {
                Value::List(items) => items.iter().for_each(|item| head(item, ("[[", "]]"))),
                _ => head(node, ("[", "]")),
            }
        }
    }

    fn value(&self, node: &Node) -> String {
        match &node.value {
            // A variable may have made a number of it.
            Value::Text(_) if node.given == Given::Variable && self.given(node).is_some() => {
                self.given(node).unwrap_or_default().to_owned()
            }
            Value::Text(text) => match node.is_secret() {
                true => self.as_first_file_has_it(node),
                false => quote(&self.path(node, text).replace("${", "$${")),
            },
            Value::Number(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.value(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) => {
                let pair = |(key, node): &(Key, Node)| {
                    let value = self.of_server(node);
                    format!("{} = {value}", shown_key(&key.name))
                };
                format!("{{ {} }}", table.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
            Value::Other(kind) => quote(kind),
        }
    }

    /// A setting of a server, which is not noted by itself: variables may have made a number of it.
    fn of_server(&self, node: &Node) -> String {
        let number = node.number().filter(|_| node.given == Given::Variable);
        number.map_or_else(|| self.value(node), |number| number.to_string())
    }

    fn given(&self, node: &Node) -> Option<&str> {
        let setting = self.given.get(&node.span.start)?;
        Some(setting.value.as_str()).filter(|value| !value.contains("${"))
    }

    /// The text of a node; of a relative path in an included file, the path from the root.
    fn path<'t>(&'t self, node: &Node, text: &'t str) -> &'t str {
        let folder = self.source.folder_at(node.span.start);
        if folder == self.source.folder_at(0) {
            return text;
        }
        let Some(setting) = self.given.get(&node.span.start) else { return text };
        let is_it = std::path::absolute(folder.join(text))
            .is_ok_and(|path| path == Path::new(&setting.note));
        if is_it { &setting.note } else { text }
    }

    /// A text that is not to be shown, as it is written. The files that it names are found from the first file's folder, too.
    fn as_first_file_has_it(&self, node: &Node) -> String {
        let text = written_text(self.source, node);
        let folder = self.source.folder_at(node.span.start);
        if folder == self.source.folder_at(0) {
            return text.to_owned();
        }
        let mut parts = text.split("${file:");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, path| match path.starts_with(['/', '$']) {
            true => format!("{text}${{file:{path}"),
            false => {
                let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
                format!("{text}${{file:{}/{path}", folder.display())
            }
        })
    }
}

/// The text in the place of which there is something that is not to be shown.
fn written_text<'s>(source: &'s Source, node: &Node) -> &'s str {
    source.text().get(node.span.clone()).unwrap_or_default()
}

/// A value, with that which is not to be shown as it is written.
pub(crate) fn shown(source: &Source, node: &Node) -> String {
    Writing { source, given: HashMap::new() }.value(node)
}

fn shown_key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { quote(name) }
}
