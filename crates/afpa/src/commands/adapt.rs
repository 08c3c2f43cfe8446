//! `afpa adapt FILE`: an nginx configuration in AFPA's words.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
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
    let (name, text) = if options.file == Path::new("-") {
        ("standard input".to_owned(), standard_input().map_err(|why| anyhow::anyhow!("{why}"))?)
    } else {
        let file = absolute(&options.file)?;
        let text = read(&file).map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?;
        (file.to_str().context("the name of the file is no UTF-8")?.to_owned(), text)
    };
    let done = match dumped(&text) {
        None => afpa_adapt::adapt(&name, &text, &mut included),
        Some(files) => {
            let (first, text) = files.first().context("the output of `nginx -T` has no file")?;
            afpa_adapt::adapt(first, text, &mut |pattern: &str| of_dump(&files, pattern))
        }
    };
    let stranger = stranger(&name, &text);
    let done = match (done, stranger) {
        (Ok(done), None) => done,
        (Err(error), None) => return Err(error.into()),
        (Ok(done), Some(_)) if done.toml.contains("[[site]]") => done,
        (_, Some(server)) => bail!(
            "{name} looks like a configuration of {server}, and `afpa adapt` translates those of nginx: \
             docs/README.md has a page for each job, with Caddy's lines beside ours"
        ),
    };
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

fn standard_input() -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(LONGEST + 1).read_to_end(&mut bytes);
    match read {
        Err(error) => Err(error.to_string()),
        Ok(length) if length as u64 > LONGEST => Err("this is more than 16 MiB".to_owned()),
        Ok(_) => text_of(bytes),
    }
}

/// The files of the output of `nginx -T`, the first of which includes the others. `None`: it is none.
fn dumped(text: &str) -> Option<Vec<(String, String)>> {
    let name = |line: &str| {
        let name = line.strip_prefix("# configuration file /")?.trim_end().strip_suffix(':')?;
        Some(format!("/{name}"))
    };
    let mut files: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        match (name(line), files.last_mut()) {
            (Some(name), _) => files.push((name, String::new())),
            (None, Some((_, text))) => text.push_str(line),
            // Lines that nginx writes to standard error.
            (None, None) if line.trim().is_empty() || line.starts_with("nginx: ") => {}
            (None, None) => return None,
        }
    }
    (!files.is_empty()).then_some(files)
}

/// The files of an `include`, of those in such an output.
fn of_dump(files: &[(String, String)], pattern: &str) -> Result<Vec<(String, String)>, String> {
    if !is_pattern(pattern) {
        let found = files.iter().find(|(name, _)| name == pattern).cloned();
        return found.map(|file| vec![file]).ok_or("it is not in this output".to_owned());
    }
    let pattern = glob::Pattern::new(pattern).map_err(|error| error.to_string())?;
    let fits = |name: &str| pattern.matches_with(name, OPTIONS);
    let mut found: Vec<_> = files.iter().filter(|(name, _)| fits(name)).cloned().collect();
    found.sort();
    Ok(found)
}

/// The server whose configuration a text looks like, if that is not nginx.
fn stranger(name: &str, text: &str) -> Option<&'static str> {
    let begins = |words: &[&str]| {
        text.lines().any(|line| words.iter().any(|word| line.trim_start().starts_with(word)))
    };
    let is_caddy = name.ends_with("Caddyfile")
        || begins(&["reverse_proxy ", "file_server", "php_fastcgi ", "root * ", "handle_path "]);
    if is_caddy {
        return Some("Caddy");
    }
    begins(&["<VirtualHost", "<Directory", "DocumentRoot ", "LoadModule "]).then_some("Apache")
}

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

/// As nginx reads a pattern.
const OPTIONS: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files of an `include`, with their texts.
fn included(pattern: &str) -> Result<Vec<(String, String)>, String> {
    if !is_pattern(pattern) {
        return Ok(vec![(pattern.to_owned(), read(Path::new(pattern))?)]);
    }
    let paths = glob::glob_with(pattern, OPTIONS).map_err(|error| error.to_string())?;
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

    #[test]
    fn the_output_of_nginx_has_the_files_that_it_includes() {
        let text = "nginx: the configuration file /n/nginx.conf syntax is ok\n\
                    # configuration file /n/nginx.conf:\nhttp { include sites/*; include mime.types; }\n\n\
                    # configuration file /n/sites/b:\nserver { listen 81; root /b; }\n\
                    # configuration file /n/sites/a:\nserver { listen 80; root /a; }\n\
                    # configuration file /n/sites/.hidden:\nserver { listen 83; root /c; }\n";
        let files = dumped(text).expect("such an output");
        assert_eq!(files.len(), 4);
        let names = |pattern: &str| -> Vec<String> {
            of_dump(&files, pattern).unwrap_or_default().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names("/n/sites/*"), ["/n/sites/a", "/n/sites/b"]);
        assert_eq!(names("/n/sites/b"), ["/n/sites/b"]);
        assert!(of_dump(&files, "/n/other").is_err() && names("/n/other/*").is_empty());
        let (name, first) = files.first().expect("the main one");
        let done = afpa_adapt::adapt(name, first, &mut |pattern| of_dump(&files, pattern));
        let done = done.expect("read");
        assert!(done.toml.contains("root = \"/a\"") && done.toml.contains("root = \"/b\""));
        assert!(!done.toml.contains("root = \"/c\""));
        assert_eq!(dumped("http { }\n# configuration file /n/a:\n"), None);
    }

    #[test]
    fn configurations_of_other_servers_are_known() {
        let caddy = "a.example {\n\troot * /srv\n\tfile_server\n}\n";
        assert_eq!(stranger("/etc/x", caddy), Some("Caddy"));
        assert_eq!(stranger("/etc/caddy/Caddyfile", ""), Some("Caddy"));
        assert_eq!(stranger("/x", "<VirtualHost *:80>\n"), Some("Apache"));
        assert_eq!(stranger("/x", "server {\n listen 80;\n root /a;\n}\n"), None);
    }
}
