//! One word for one thing: a word that `docs/glossary.md` retired must not come back.

use std::fs;
use std::path::{Path, PathBuf};

/// Where words are looked for.
const PLACES: &[&str] = &["bpf", "crates", "docs", "fuzz", "lab", "scripts", "site", "tests"];

/// Built, measured or fetched: not written by us today.
const LEFT_OUT: &[&str] =
    &["bpf/prebuilt", "docs/glossary.md", "fuzz/corpus", "lab/reports", "site/generated"];

const ENDINGS: &[&str] = &["c", "h", "json", "md", "py", "rs", "sh", "svg", "toml", "txt", ""];

/// TCP's own uses of a word that is retired otherwise.
const ALLOWED: &[&str] = &["in flight", "in-flight", "in_flight", "flight size", "flightsize"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A word of its own, also inside an identifier: `enter_flight`, `FlightEnds`.
    Part,
    /// A whole identifier.
    Identifier,
    /// As written, anywhere.
    Phrase,
}

#[derive(Debug)]
struct Retired {
    word: String,
    kind: Kind,
    now: String,
    /// The folders in which it is retired; elsewhere it may mean something else. None: everywhere.
    places: Vec<String>,
}

impl Retired {
    /// A row of the glossary's last table: `| word | kind | what to write | where |`.
    fn parse(row: &str) -> Option<Self> {
        let mut cells = row.strip_prefix('|')?.split('|').map(str::trim);
        let (word, kind, now) = (cells.next()?, cells.next()?, cells.next()?);
        let places = cells.next()?.split_whitespace().map(str::to_owned).collect();
        let kind = match kind {
            "part" => Kind::Part,
            "identifier" => Kind::Identifier,
            "phrase" => Kind::Phrase,
            _ => return None,
        };
        Some(Self { word: word.to_owned(), kind, now: now.to_owned(), places })
    }

    /// Is the word retired in this file at all?
    fn counts_in(&self, within: &Path) -> bool {
        self.places.is_empty() || self.places.iter().any(|place| within.starts_with(place))
    }

    fn is_in(&self, line: &str) -> bool {
        // Most lines have none of the letters; only the others are taken apart.
        let mut windows = line.as_bytes().windows(self.word.len());
        windows.any(|window| window.eq_ignore_ascii_case(self.word.as_bytes()))
            && self.stands_in(line)
    }

    fn stands_in(&self, line: &str) -> bool {
        match self.kind {
            Kind::Phrase => line.contains(&self.word),
            Kind::Identifier => identifiers(line).any(|found| found == self.word),
            Kind::Part => {
                let line = without_allowed(line);
                let plural = format!("{}s", self.word);
                parts(&line).iter().any(|part| *part == self.word || *part == plural)
            }
        }
    }
}

fn without_allowed(line: &str) -> String {
    let mut line = line.replace("InFlight", "").replace("FlightSize", "");
    for allowed in ALLOWED {
        while let Some(at) = line.to_ascii_lowercase().find(allowed) {
            line.replace_range(at..at + allowed.len(), "");
        }
    }
    line
}

fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The words of a line in lower case, identifiers taken apart at `_` and at capitals.
fn parts(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_small = false;
    for c in line.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_small) {
            parts.push(String::new());
        }
        after_small = c.is_lowercase();
        if c.is_alphanumeric() {
            parts.last_mut().expect("there is one").extend(c.to_lowercase());
        }
    }
    parts
}

pub(super) fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the house").to_owned()
}

fn retired() -> Vec<Retired> {
    let glossary = fs::read_to_string(house().join("docs/glossary.md")).expect("docs/glossary.md");
    let (_, section) = glossary.split_once("## Retired words").expect("the list of retired words");
    section.lines().filter_map(Retired::parse).collect()
}

/// Every file that people wrote, by its path below the house.
pub(super) fn files() -> Vec<PathBuf> {
    let house = house();
    let mut left: Vec<PathBuf> = PLACES.iter().map(|place| house.join(place)).collect();
    for entry in fs::read_dir(&house).expect("the house") {
        let path = entry.expect("an entry").path();
        if path.is_file() && path.extension().is_some_and(|ending| ending == "md") {
            left.push(path);
        }
    }
    let mut files = Vec::new();
    while let Some(path) = left.pop() {
        let within = path.strip_prefix(&house).expect("below the house");
        let name = path.file_name().expect("a name").to_string_lossy();
        if LEFT_OUT.iter().any(|out| within.starts_with(out))
            || name == "target"
            || name == "words.rs"
        {
            continue;
        }
        if path.is_dir() {
            left.extend(
                fs::read_dir(&path).expect("a folder").map(|e| e.expect("an entry").path()),
            );
        } else if ENDINGS.contains(&path.extension().map_or("", |e| e.to_str().unwrap_or("?"))) {
            files.push(path);
        }
    }
    files
}

#[test]
fn no_retired_word_comes_back() {
    let (house, retired) = (house(), retired());
    assert!(retired.len() > 20, "the glossary lists the retired words");
    let files = files();
    assert!(files.len() > 300, "only {} files were found", files.len());
    let mut found = Vec::new();
    for path in &files {
        let Ok(text) = fs::read_to_string(path) else { continue };
        let within = path.strip_prefix(&house).expect("below the house");
        let small = text.to_ascii_lowercase();
        for word in retired.iter().filter(|word| word.counts_in(within)) {
            // Most files have none of the letters; only the others are read line by line.
            if !small.contains(&word.word.to_ascii_lowercase()) {
                continue;
            }
            for (at, line) in text.lines().enumerate().filter(|(_, line)| word.is_in(line)) {
                let place = format!("{}:{}", within.display(), at + 1);
                found.push(format!(
                    "{place}: '{}' is now {}: {}",
                    word.word,
                    word.now,
                    line.trim()
                ));
            }
        }
    }
    found.sort();
    assert!(found.is_empty(), "{} retired words came back:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_part_is_found_in_identifiers_and_not_in_longer_words() {
    let flight =
        Retired { word: "flight".into(), kind: Kind::Part, now: String::new(), places: vec![] };
    for line in
        ["enter_flight(x)", "struct Flight;", "FlightEnds", "flights", "a flight.", "AFPA_FLIGHT"]
    {
        assert!(flight.is_in(line), "{line}");
    }
    for line in ["bytes in flight", "flight size", "InFlight", "flighty", "preflight", "in_flight"]
    {
        assert!(!flight.is_in(line), "{line}");
    }
}

#[test]
fn an_identifier_is_found_whole() {
    let word = Retired {
        word: "goes_by".into(),
        kind: Kind::Identifier,
        now: String::new(),
        places: vec![],
    };
    assert!(word.is_in("if (goes_by(skb))"));
    assert!(!word.is_in("who_goes_by_train") && !word.is_in("goes by"));
}
