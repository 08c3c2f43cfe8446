//! Holds docs/configuration.md and docs/afpa.example.toml to the code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::retired::{Now, RETIRED};
use crate::settings::{INTERNALS, heading};

/// A row of the manual: the kind of value, and the default.
type Row = (String, String);

#[test]
fn the_manual_has_every_setting_with_its_kind_and_default_and_nothing_else() {
    let code: BTreeMap<(String, String), Row> = settings()
        .iter()
        .filter(|s| s.section != INTERNALS)
        .map(|s| {
            let default = match s.default.as_str() {
                "required" => "required".to_owned(),
                default => format!("`{default}`"),
            };
            ((heading(s.section), s.key.to_owned()), (s.kind.clone(), default))
        })
        .collect();
    let manual = manual_rows(&document("configuration.md"));
    for (setting, row) in &code {
        assert_eq!(manual.get(setting), Some(row), "the manual's row for {setting:?}");
    }
    for setting in manual.keys() {
        assert!(
            code.contains_key(setting),
            "the manual explains {setting:?}, which does not exist"
        );
    }
}

#[test]
fn every_example_of_the_manual_is_a_configuration() {
    let manual = document("configuration.md");
    let examples: Vec<&str> = manual
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    assert!(examples.len() >= 10, "one for each section: {}", examples.len());
    for example in examples {
        let mut overrides = Overrides::default();
        if !example.contains("[[site]]") {
            overrides.path("site", "root", "DIR", Some("/".as_ref()));
        }
        let source = Source::new("example", example);
        if let Err(error) = parse_text(source, &overrides, &Machine::probe()) {
            panic!("{error}\nin\n{example}");
        }
    }
}

#[test]
fn the_example_file_sets_everything_to_its_default() {
    let text = document("afpa.example.toml");
    let source = Source::new("afpa.example.toml", text);
    let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
    for setting in loaded.settings.iter().filter(|s| s.section != INTERNALS) {
        let name = (setting.section, setting.key);
        assert!(matches!(setting.location, Location::File(_)), "{name:?} is not in the example");
        // The example serves a directory; without one it would do nothing.
        if setting.default != "required" && name != ("site", "root") {
            assert_eq!(setting.value, setting.default, "{name:?}");
        }
    }
}

#[test]
fn thirty_settings_that_exist_are_before_all_others() {
    let (settings, manual) = (settings(), document("configuration.md"));
    let (_, thirty) = manual.split_once("## The thirty that matter").expect("their table");
    let (thirty, _) = thirty.split_once("\n## ").expect("the next heading");
    let names = thirty.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once("`]"));
    let names: Vec<&str> = names.map(|(name, _)| name).collect();
    assert_eq!(names.len(), 30);
    for name in names {
        let (section, key) = name.rsplit_once('.').unwrap_or(("", name));
        assert!(settings.get(section, key).is_some(), "{name} is no setting");
    }
}

#[test]
fn the_manual_has_every_old_name_with_what_became_of_it() {
    let manual = document("configuration.md");
    let (_, table) = manual.split_once("## Constants").expect("their table");
    let rows = table.lines().filter(|line| line.starts_with("| `[")).count();
    assert_eq!(rows, RETIRED.len());
    for (section, key, now) in RETIRED {
        let row = match now {
            Now::Constant(value, reason) => format!("| `[{section}] {key}` | {value} | {reason} |"),
            Now::Called(name, line) => format!("| `[{section}] {key}` | `{name}` | {line} |"),
        };
        assert!(table.lines().any(|line| line == row), "{row} is missing");
    }
}

fn settings() -> Settings {
    known(&Machine::probe())
}

fn document(name: &str) -> String {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

/// Rows of the form `` | `key` | kind | default | meaning | `` under `### Section` headings.
fn manual_rows(manual: &str) -> BTreeMap<(String, String), Row> {
    let mut section = String::new();
    let mut rows = BTreeMap::new();
    for line in manual.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            section = title.trim_matches('`').to_owned().replace("The top level", "the top level");
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let [key, kind, default, _meaning] = cells.as_slice() else { continue };
        if let Some(key) = key.strip_prefix("| `") {
            let name = (section.clone(), key.trim_end_matches('`').to_owned());
            let row = ((*kind).to_owned(), (*default).to_owned());
            assert!(rows.insert(name.clone(), row).is_none(), "{name:?} is explained twice");
        }
    }
    rows
}
