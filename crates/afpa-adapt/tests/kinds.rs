//! Fourteen kinds of configuration, each with its translation and its notes beside it. `AFPA_WRITE=1` writes them anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use afpa_adapt::{Translation, adapt};

const KINDS: &[&str] = &[
    "balancer",
    "boilerplate",
    "cache",
    "discourse",
    "front-controller",
    "gitlab",
    "legacy",
    "mastodon",
    "nextcloud",
    "portal",
    "spa",
    "static",
    "tls-sites",
    "wordpress",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kinds")
}

/// The translation of a kind, on a machine without nginx.
fn translated(kind: &str) -> Translation {
    let name = format!("{kind}.conf");
    let text = std::fs::read_to_string(folder().join(&name)).expect("the kind");
    let mut files = |path: &str| Err(format!("{path} is not here"));
    adapt(&name, &text, &mut files).unwrap_or_else(|error| panic!("{error}"))
}

/// The notes as a file.
fn notes(done: &Translation) -> String {
    let mut text = format!("{} of {} directives\n", done.translated, done.directives);
    for note in &done.notes {
        writeln!(text, "{note}").expect("a text");
    }
    text
}

#[test]
fn each_kind_has_its_translation() {
    let write = std::env::var_os("AFPA_WRITE").is_some();
    for kind in KINDS {
        let done = translated(kind);
        for (ending, text) in [("toml", done.toml.clone()), ("notes", notes(&done))] {
            let path = folder().join(format!("{kind}.{ending}"));
            if write {
                std::fs::write(&path, &text).expect("written");
            }
            let expected = std::fs::read_to_string(&path).expect("the expected text");
            assert_eq!(text, expected, "{}", path.display());
        }
    }
}

#[test]
fn no_kind_is_without_its_files() {
    let files = std::fs::read_dir(folder()).expect("the folder");
    let names = files.map(|file| file.expect("a file").path());
    let mut kinds: Vec<String> = names
        .filter(|path| path.extension().is_some_and(|ending| ending == "conf"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    kinds.sort();
    assert_eq!(kinds, KINDS);
}
