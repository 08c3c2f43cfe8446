//! Writes a configuration as TOML.

use crate::model::{Group, Output, Path, Site};
use crate::values::quoted;

/// The whole text.
pub(crate) fn write(output: &Output) -> String {
    let mut text = String::new();
    let top = output.sections.iter().filter(|(name, _)| name.is_empty());
    for (_, lines) in top {
        push(&mut text, "", lines);
    }
    let mut named: Vec<_> = output.sections.iter().filter(|(name, _)| !name.is_empty()).collect();
    named.sort_by_key(|(name, _)| *name);
    for (name, lines) in named {
        push(&mut text, &format!("[{name}]"), lines);
    }
    for (chain, key) in &output.certificates {
        let lines = [format!("chain = {}", quoted(chain)), format!("key = {}", quoted(key))];
        push(&mut text, "[[certificate]]", &lines);
    }
    for group in &output.groups {
        let name = format!("name = {}", quoted(&group.name));
        push(&mut text, "[[server_group]]", &[name, group.body.trim_end().to_owned()]);
    }
    for one in &output.sites {
        site(&mut text, one);
    }
    text
}

fn push(text: &mut String, head: &str, lines: &[String]) {
    if !text.is_empty() {
        text.push('\n');
    }
    if !head.is_empty() {
        text.push_str(head);
        text.push('\n');
    }
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
}

fn site(text: &mut String, site: &Site) {
    push(text, &format!("# {}\n[[site]]", site.comment), &site.lines);
    for (name, lines) in &site.sections {
        push(text, name, lines);
    }
    for one in &site.paths {
        path(text, one);
    }
}

fn path(text: &mut String, path: &Path) {
    let mut lines = vec![format!("prefix = {}", quoted(&path.prefix))];
    if path.exact {
        lines.push("exact = true".to_owned());
    }
    let [only] = &path.groups[..] else {
        push(text, "[[site.path]]", &lines);
        for one in &path.groups {
            group(text, one, Vec::new(), "site.path.content");
        }
        return;
    };
    group(text, only, lines, "site.path");
}

fn group(text: &mut String, group: &Group, mut lines: Vec<String>, section: &str) {
    for part in [&group.conditions, &group.action, &group.rules] {
        lines.extend(part.iter().cloned());
    }
    push(text, &format!("[[{section}]]"), &lines);
    for header in group.sent.iter().chain(&group.headers) {
        push(text, &format!("[[{section}.header]]"), header);
    }
    for page in &group.errors {
        push(text, &format!("[[{section}.errors]]"), page);
    }
}
