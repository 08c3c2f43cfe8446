//! The files of a configuration, put together.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use afpa_fleet::{Files, FleetFolder, NamedText, Revision};

use crate::document::{self, Node, Table, Value};
use crate::finding::{ConfigError, Finding, Location, Source, unreadable_remedy};
use crate::variables::{self, Around, Pushed};

/// The setting that names other files.
const INCLUDE: &str = "include";

/// The section that each machine has for itself.
const OWN: &str = "fleet";

/// Parses the text of `source` with every file that it includes, which are added to it, and with those of the fleet, whose
/// revision is returned.
pub(crate) fn read(
    source: &mut Source,
    around: Around<'_>,
) -> Result<(Table, Option<Revision>), Vec<Finding>> {
    let (name, text) = (PathBuf::from(source.name()), source.text().to_owned());
    let mut gathering = Gathering::new(source, around);
    gathering.file(&name, &text, 0);
    let revision = if around.files { gathering.pushed() } else { None };
    match gathering.findings.is_empty() {
        true => Ok((gathering.document, revision)),
        false => Err(gathering.findings),
    }
}

/// A file with all that it includes, or the files `*.toml` of a folder, as the fleet gets them: variables stay, for each machine
/// has its own.
///
/// # Errors
/// When one of them cannot be read or parsed.
pub fn files_of(path: &Path) -> Result<Files, ConfigError> {
    let paths = match path.is_dir() {
        true => matches(path, "*.toml").map_err(|(cause, remedy)| {
            ConfigError::unreadable(
                &path.display().to_string(),
                &io::Error::other(format!("{cause}: {remedy}")),
            )
        })?,
        false => vec![path.to_owned()],
    };
    let variable = &|_: &str| None;
    let around = Around { variable, files: true, pushed: Pushed::These(None) };
    let mut files = Files::default();
    for path in paths {
        let mut source = crate::read_file(&path)?;
        let (name, text) = (PathBuf::from(source.name()), source.text().to_owned());
        let mut gathering = Gathering::new(&mut source, around);
        gathering.keeps_variables = true;
        gathering.file(&name, &text, 0);
        let Gathering { findings, .. } = gathering;
        ConfigError::from_findings(&source, &findings).map_or(Ok(()), Err)?;
        let texts = source
            .files()
            .map(|(name, text)| NamedText { name: name.to_owned(), text: text.to_owned() });
        files.files.extend(texts);
    }
    Ok(files)
}

/// Files while they are put together.
struct Gathering<'a> {
    source: &'a mut Source,
    around: Around<'a>,
    document: Table,
    /// The files by their real paths, and where each was named.
    seen: HashMap<PathBuf, Location>,
    /// The file that is read and those that lead to it, each with its real path.
    chain: Vec<(PathBuf, String)>,
    findings: Vec<Finding>,
    /// The files are for other machines.
    keeps_variables: bool,
    /// The file is of the fleet.
    is_pushed: bool,
}

impl<'a> Gathering<'a> {
    fn new(source: &'a mut Source, around: Around<'a>) -> Self {
        Self {
            source,
            around,
            document: Table::new(),
            seen: HashMap::new(),
            chain: Vec::new(),
            findings: Vec::new(),
            keeps_variables: false,
            is_pushed: false,
        }
    }

    /// Adds a file whose text begins at `start`, and then those that it includes.
    fn file(&mut self, path: &Path, text: &str, start: usize) {
        let mut table = match document::parse(text) {
            Ok(table) => table,
            Err(findings) => {
                let moved = findings
                    .into_iter()
                    .map(|finding| Finding { location: moved(finding.location, start), ..finding });
                return self.findings.extend(moved);
            }
        };
        if start > 0 {
            move_all(&mut table, start);
        }
        if !self.keeps_variables {
            variables::fill(&mut table, self.source, self.around, &mut self.findings);
        }
        if let Some((key, _)) = table.iter().find(|(key, _)| self.is_pushed && key.name == OWN) {
            let cause = "[fleet] is each machine's own, and cannot be pushed";
            let at = Location::File(key.span.clone());
            self.findings.push(Finding::error(at, cause, "move it to the file of each machine"));
        }
        // A file of the fleet was pushed together with all that it includes.
        let included = if self.is_pushed { Vec::new() } else { included(&table) };
        if self.around.files && !included.is_empty() {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            self.seen.entry(real.clone()).or_insert(Location::Nowhere);
            if self.chain.is_empty() {
                self.chain.push((real, path.display().to_string()));
            }
        }
        if self.document.is_empty() {
            self.document = table;
        } else {
            table.retain(|(key, _)| key.name != INCLUDE);
            merge(&mut self.document, table, "", &mut self.findings);
        }
        if self.around.files {
            included.into_iter().for_each(|(location, pattern)| self.include(location, &pattern));
        }
    }

    /// Adds the files of the fleet, if this machine takes them, and says which they are. Their relative paths begin where those
    /// of its own file do.
    fn pushed(&mut self) -> Option<Revision> {
        let (takes, state) = of_fleet(&self.document, self.source)?;
        let folder = self.source.folder_at(0).to_owned();
        let read;
        let kept = match self.around.pushed {
            Pushed::These(kept) => kept,
            Pushed::Kept => {
                let of_state = FleetFolder::new(&state);
                read = of_state.configuration().map_err(|error| {
                    let name = of_state.configuration_path().display().to_string();
                    let cause = format!("the configuration of the fleet in {name}: {error}");
                    let remedy = "remove the file, and AFPA takes it anew from the fleet";
                    self.findings.push(Finding::error(takes, cause, remedy));
                });
                read.as_ref().ok().and_then(Option::as_ref)
            }
        }?;
        self.is_pushed = true;
        for NamedText { name, text } in &kept.files.files {
            let name = format!("fleet:{name}");
            let start = self.source.push(name.clone(), folder.clone(), text.clone());
            self.file(Path::new(&name), text, start);
        }
        Some(kept.revision)
    }

    /// Adds every file that a path or a pattern names.
    fn include(&mut self, location: Location, pattern: &str) {
        let Location::File(span) = &location else { return };
        let folder = self.source.folder_at(span.start).to_owned();
        if !pattern.contains(['*', '?', '[']) {
            return self.add(location, &folder.join(pattern));
        }
        match matches(&folder, pattern) {
            Ok(paths) => paths.iter().for_each(|path| self.add(location.clone(), path)),
            Err((cause, remedy)) => {
                self.findings.push(Finding::error(location, cause, remedy));
            }
        }
    }

    fn add(&mut self, location: Location, path: &Path) {
        let name = path.display().to_string();
        let found = path.canonicalize().and_then(|real| Ok((real, read_text(path)?)));
        let (real, text) = match found {
            Ok(found) => found,
            Err(error) => {
                let (cause, remedy) = (format!("{name}: {error}"), unreadable_remedy(&error));
                return self.findings.push(Finding::error(location, cause, remedy));
            }
        };
        if let Some(at) = self.chain.iter().position(|(other, _)| *other == real) {
            let names = self.chain.iter().skip(at).map(|(_, name)| name.as_str());
            let chain = names.chain([name.as_str()]).collect::<Vec<_>>().join(" includes ");
            let cause = format!("a file that includes itself: {chain}");
            let remedy = "remove one of these lines";
            return self.findings.push(Finding::error(location, cause, remedy));
        }
        if let Some(other) = self.seen.get(&real) {
            let cause = format!("{name} is included twice");
            let twice = Finding::error(location, cause, "keep one of the two");
            return self.findings.push(twice.against(other.clone()));
        }
        self.seen.insert(real.clone(), location);
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let start = self.source.push(name.clone(), folder, text.clone());
        self.chain.push((real, name));
        self.file(path, &text, start);
        self.chain.pop();
    }
}

/// Where a machine says that it takes files of the fleet, and the folder in which it keeps them: relative to the file that
/// names it, as all that reads the setting has it.
fn of_fleet(document: &Table, source: &Source) -> Option<(Location, PathBuf)> {
    let fleet = document.iter().find(|(key, _)| key.name == OWN).map(|(_, node)| &node.value);
    let Some(Value::Table(fleet)) = fleet else { return None };
    let get = |name: &str| fleet.iter().find(|(key, _)| key.name == name).map(|(_, node)| node);
    let takes = get("configuration")?;
    let named = get("state").and_then(|node| match &node.value {
        Value::Text(path) => Some(source.folder_at(node.span.start).join(path)),
        _ => None,
    });
    let state = named.unwrap_or_else(|| PathBuf::from(crate::fleet::STATE));
    let is_on = match &takes.value {
        Value::Flag(is_on) => *is_on,
        Value::Text(text) => text == "true",
        _ => false,
    };
    let has_servers = matches!(get("servers").map(|node| &node.value), Some(Value::List(servers)) if !servers.is_empty());
    (is_on && has_servers).then(|| (takes.location(), state))
}

fn read_text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    fs::read_to_string(path)
}

/// The files and patterns that a file includes, and where each is named.
fn included(table: &Table) -> Vec<(Location, String)> {
    let found = table.iter().find(|(key, _)| key.name == INCLUDE);
    let items = match found.map(|(_, node)| &node.value) {
        Some(Value::List(items)) => &items[..],
        _ => &[],
    };
    let text = |node: &Node| match &node.value {
        Value::Text(text) if !text.is_empty() => Some((node.location(), text.clone())),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

/// The paths that fit, in the order of their names. Names that begin with a dot have to be written.
fn matches(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, (String, &'static str)> {
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    let folder = glob::Pattern::escape(&folder.to_string_lossy());
    let whole = Path::new(&folder).join(pattern);
    let paths = glob::glob_with(&whole.to_string_lossy(), options).map_err(|error| {
        (
            format!("\"{pattern}\" is not a pattern: {}", error.msg),
            "write for example \"sites/*.toml\"",
        )
    })?;
    let unreadable = |error: glob::GlobError| (error.to_string(), unreadable_remedy(error.error()));
    paths.collect::<Result<_, _>>().map_err(unreadable)
}

/// Adds the settings of another file. Sections that may appear several times stand behind one another.
fn merge(into: &mut Table, from: Table, section: &str, findings: &mut Vec<Finding>) {
    for (key, node) in from {
        let Some((_, known)) = into.iter_mut().find(|(other, _)| other.name == key.name) else {
            into.push((key, node));
            continue;
        };
        let name = format!("{section}{}", key.name);
        let several = known.is_several() && node.is_several();
        match (&mut known.value, node.value) {
            (Value::Table(into), Value::Table(from)) => {
                merge(into, from, &format!("{name}."), findings);
            }
            (Value::List(into), Value::List(from)) if several => into.extend(from),
            _ => {
                let cause = format!("`{name}` is set in two files");
                let twice = Finding::error(Location::File(key.span), cause, "keep one of the two");
                findings.push(twice.against(known.location()));
            }
        }
    }
}

fn moved(location: Location, by: usize) -> Location {
    match location {
        Location::File(span) => Location::File(span.start + by..span.end + by),
        other => other,
    }
}

/// Moves a table to the place of its file.
fn move_all(table: &mut Table, by: usize) {
    for (key, node) in table {
        key.span = key.span.start + by..key.span.end + by;
        move_node(node, by);
    }
}

fn move_node(node: &mut Node, by: usize) {
    node.span = node.span.start + by..node.span.end + by;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| move_node(item, by)),
        Value::Table(table) => move_all(table, by),
        _ => {}
    }
}
