//! `${NAME}` and `${file:PATH}` within texts.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use afpa_fleet::KeptFiles;

use crate::document::{Given, Node, Table, Value};
use crate::finding::{Finding, Location, Source};
use crate::tls_files::read_tls_file;

/// A function that finds a variable of the environment.
pub type Variable<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// The surroundings of a configuration.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) variable: &'a Variable<'a>,
    /// Whether files are looked at.
    pub(crate) files: bool,
    /// The files of the fleet.
    pub(crate) pushed: Pushed<'a>,
}

/// The files that the fleet has for this machine, where it takes them.
#[derive(Clone, Copy, Debug, Default)]
pub enum Pushed<'a> {
    /// The files that this machine has taken before.
    #[default]
    Kept,
    /// These; `None`: none.
    These(Option<&'a KeptFiles>),
}

/// Puts the values of variables into each text of a file.
pub(crate) fn fill(
    table: &mut Table,
    source: &mut Source,
    around: Around<'_>,
    findings: &mut Vec<Finding>,
) {
    for (_, node) in table {
        fill_node(node, source, around, findings);
    }
}

fn fill_node(
    node: &mut Node,
    source: &mut Source,
    around: Around<'_>,
    findings: &mut Vec<Finding>,
) {
    match &mut node.value {
        Value::Text(text) if text.contains("${") => {
            let folder = source.folder_at(node.span.start);
            let mut filling =
                Filling { around, folder, given: Given::Written, secrets: Vec::new() };
            let filled = filling.text(text, 0);
            let Filling { given, secrets, .. } = filling;
            secrets.iter().for_each(|(value, written)| source.add_secret(value, written));
            match filled {
                Ok(filled) => (*text, node.given) = (filled, given),
                Err(fault) => findings.push(fault.finding(node, source)),
            }
        }
        Value::List(items) => {
            items.iter_mut().for_each(|item| fill_node(item, source, around, findings));
        }
        Value::Table(table) => fill(table, source, around, findings),
        _ => {}
    }
}

/// A text while its variables are replaced.
struct Filling<'a> {
    around: Around<'a>,
    /// Relative paths begin here.
    folder: &'a Path,
    given: Given,
    /// The contents of files, and how each is written.
    secrets: Vec<(String, String)>,
}

/// Why a variable has no value.
struct Fault {
    /// The variable as it was written.
    written: String,
    cause: String,
    remedy: String,
}

impl Fault {
    fn new(written: &str, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fault { written: written.to_owned(), cause: cause.into(), remedy: remedy.into() }
    }

    /// At the variable, if the text stands in the file as it is.
    fn finding(self, node: &Node, source: &Source) -> Finding {
        let whole = source.text().get(node.span.clone()).unwrap_or_default();
        let span = match whole.find(&self.written) {
            Some(at) => node.span.start + at..node.span.start + at + self.written.len(),
            None => node.span.clone(),
        };
        Finding::error(Location::File(span), self.cause, self.remedy)
    }
}

/// Defaults and paths may have variables themselves, so deep.
const DEEPEST: usize = 8;

impl Filling<'_> {
    /// `text` with values in the place of its variables.
    fn text(&mut self, text: &str, depth: usize) -> Result<String, Fault> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, variable) = rest.split_at(at);
            let plain = before.trim_end_matches('$');
            let dollars = before.len() - plain.len();
            // Two of them stand for one, before a brace alone.
            filled.push_str(plain);
            filled.extend(std::iter::repeat_n('$', dollars.div_ceil(2)));
            if dollars % 2 == 1 {
                filled.push('{');
                rest = variable.get(2..).unwrap_or_default();
                continue;
            }
            let Some(length) = length(variable).filter(|_| depth < DEEPEST) else {
                let remedy = "close it with }, or write $${ for these two characters";
                return Err(Fault::new("${", "a variable that does not end", remedy));
            };
            let (written, behind) = variable.split_at(length);
            filled.push_str(&self.value(written, depth)?);
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// The value of `${...}`.
    fn value(&mut self, written: &str, depth: usize) -> Result<String, Fault> {
        let inner = written.get(2..written.len() - 1).unwrap_or_default();
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let found = match name.strip_prefix("file:") {
            Some(path) => {
                let path = self.text(path, depth + 1)?;
                self.given = Given::Secret;
                let content = self.file(written, &path);
                if let Ok(Some(content)) = &content {
                    self.secrets.push((content.clone(), written.to_owned()));
                }
                content
            }
            None if is_name(name) => {
                self.given = self.given.max(Given::Variable);
                self.variable(written, name)
            }
            None => {
                let cause = format!("{written} is neither a variable nor a file");
                let remedy = "write ${NAME}, ${NAME:-default} or ${file:/path}, and $${ for these two characters";
                return Err(Fault::new(written, cause, remedy));
            }
        };
        match (found, default) {
            (Ok(Some(value)), _) if default.is_none() || !value.is_empty() => Ok(value),
            (Ok(_), Some(default)) => self.text(default, depth + 1),
            (Ok(_), None) => Err(missing(written, name)),
            (Err(fault), _) => Err(fault),
        }
    }

    fn variable(&self, written: &str, name: &str) -> Result<Option<String>, Fault> {
        let Some(value) = (self.around.variable)(name) else { return Ok(None) };
        value.into_string().map(Some).map_err(|_| {
            let cause = format!("the variable {name} is not UTF-8");
            Fault::new(written, cause, "give it another value")
        })
    }

    /// The content of a file without the end of its last line.
    fn file(&self, written: &str, path: &str) -> Result<Option<String>, Fault> {
        if !self.around.files {
            return Ok(Some(String::new()));
        }
        let path: PathBuf = self.folder.join(path);
        let fault = |cause: &str, remedy| {
            Fault::new(written, format!("{}: {cause}", path.display()), remedy)
        };
        let content = match read_tls_file(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let remedy = match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "make it readable for the user that afpa becomes, who reads it again at a reload"
                    }
                    _ => "name a text file",
                };
                return Err(fault(&error.to_string(), remedy));
            }
        };
        let text = String::from_utf8(content)
            .map_err(|_| fault("it is not UTF-8", "put a text into it, base64 for example"))?;
        let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        Ok(Some(line.unwrap_or(&text).to_owned()))
    }
}

fn missing(written: &str, name: &str) -> Fault {
    match name.strip_prefix("file:") {
        Some(path) => {
            let cause = format!("the file {path} does not exist");
            Fault::new(written, cause, format!("create it, or write ${{{name}:-default}}"))
        }
        None => {
            let cause = format!("the variable {name} is not set");
            Fault::new(written, cause, format!("set it, or write ${{{name}:-default}}"))
        }
    }
}

/// The length of the `${...}` at the beginning of a text; braces within are in pairs.
fn length(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' if open == 1 => return Some(at + 1),
            b'}' => open = open.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// A name of the environment (POSIX.1-2024, section 8.1).
fn is_name(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    first && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
