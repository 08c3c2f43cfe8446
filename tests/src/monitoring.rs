//! The dashboard and the alerts of `monitoring/`.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// The folder.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../monitoring")
}

/// The names of metrics in dashboard and alerts; each ends as one of its samples does.
///
/// # Panics
/// When one of the files cannot be read.
pub fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in ["grafana.json", "afpa-alerts.yml", "afpa-alerts-test.yml"] {
        let text = std::fs::read_to_string(folder().join(file)).expect(file);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        names.extend(words.filter(|word| word.starts_with("afpa_")).map(str::to_owned));
    }
    assert!(names.len() > 30, "{names:?}");
    names
}

/// The names that no sample of a page of metrics has.
pub fn absent_from<'n>(page: &str, names: impl Iterator<Item = &'n String>) -> Vec<&'n String> {
    let samples: BTreeSet<_> =
        page.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    names.filter(|name| !samples.contains(name.as_str())).collect()
}
