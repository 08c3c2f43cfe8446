//! `afpa adapt FILE`: an nginx configuration in AFPA's words.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, absolute};
use std::process::ExitCode;

use afpa_adapt::Translation;
use afpa_config::{Machine, Overrides, Source, parse_text};
use anyhow::{Context as _, bail};

use super::print;
use crate::cli::Adapt;

/// `afpa adapt FILE`.
///
/// # Errors
/// When a file cannot be read, or is no configuration of nginx that has a server.
pub fn adapt(options: &Adapt) -> anyhow::Result<ExitCode> {
    let file = absolute(&options.file)?;
    let text = read(&file).map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?;
    let name = file.to_str().context("the name of the file is no UTF-8")?;
    let done = afpa_adapt::adapt(name, &text, &mut included)?;
    afpa_say::error(&notes(&done));
    if !done.toml.contains("[[site]]") {
        bail!("{name} has no server that AFPA could serve");
    }
    let source = Source::new("the translation", done.toml.clone());
    if let Err(error) = parse_text(source, &Overrides::default(), &Machine::probe()) {
        bail!("the translation is no configuration, which is a fault of `afpa adapt`:\n{error}");
    }
    match &options.output {
        Some(path) => write(path, &done.toml)?,
        None => print(&done.toml)?,
    }
    Ok(if done.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The notes, and the sum below them.
fn notes(done: &Translation) -> String {
    let mut text: String = done.notes.iter().map(|note| format!("{note}\n")).collect();
    if !done.decided.is_empty() {
        text.push_str(&format!("AFPA decides itself about: {}\n", done.decided.join(", ")));
    }
    let Translation { directives, translated, .. } = done;
    let percent = translated * 100 / directives.max(&1);
    text.push_str(&format!("{translated} of {directives} directives translated ({percent} %)\n"));
    text
}

/// Larger files are no configuration.
const LONGEST: u64 = 16 << 20;

fn read(path: &Path) -> Result<String, String> {
    let found = fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > LONGEST {
        return Err("this is no file of at most 16 MiB".to_owned());
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// The files of an `include`, with their texts.
fn included(pattern: &str) -> Result<Vec<(String, String)>, String> {
    if !pattern.contains(['*', '?', '[']) {
        return Ok(vec![(pattern.to_owned(), read(Path::new(pattern))?)]);
    }
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let paths = glob::glob_with(pattern, options).map_err(|error| error.to_string())?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| error.to_string())?;
        let text = read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        files.push((path.to_string_lossy().into_owned(), text));
    }
    Ok(files)
}

/// Writes a new file: one that is there may have been changed by hand.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| {
        format!("cannot write {}; name a file that does not exist", path.display())
    })
}
