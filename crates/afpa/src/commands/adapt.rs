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
    fs::read(path).map_err(|error| error.to_string()).and_then(text_of)
}

/// The text of a file. As for nginx, comments may be in any charset.
fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let mut text = String::with_capacity(bytes.len());
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let line = String::from_utf8_lossy(line);
        if line.contains(char::REPLACEMENT_CHARACTER) && !line.trim_start().starts_with('#') {
            let why = "is not in UTF-8; convert the file: iconv -f latin1 -t utf-8 FILE";
            return Err(format!("line {number} {why}"));
        }
        text.push_str(&line);
    }
    Ok(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_may_be_in_any_charset_and_nothing_else() {
        let text = text_of(b"a;\n  # \xfcber\nb \"\xc3\xbc\";\n".to_vec());
        assert_eq!(text.as_deref(), Ok("a;\n  # \u{fffd}ber\nb \"\u{fc}\";\n"));
        let refused = text_of(b"a;\n# \xfc\nroot /\xfc;\n".to_vec());
        assert!(refused.is_err_and(|why| why.starts_with("line 3 is not in UTF-8")));
    }
}
