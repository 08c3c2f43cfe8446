//! The rules of `docs/rules`: each names code and tests that are there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::comments::sentences;
use crate::words::files;

struct Rule {
    /// `K1`.
    name: String,
    code: Vec<Citation>,
    tests: Vec<Citation>,
}

struct Citation {
    path: String,
    symbol: String,
}

#[test]
fn rules_cite_code_and_tests_that_are_there() {
    let mut faults = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let rules = read(&text);
        let name = page.file_name().unwrap().to_str().unwrap();
        if rules.is_empty() {
            faults.push(format!("{name}: has no rule"));
        }
        for rule in rules {
            faults.extend(
                rule.faults().into_iter().map(|fault| format!("{name}: {}: {fault}", rule.name)),
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_of_rules_is_listed_once_and_has_a_letter_of_its_own() {
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap();
        let letters = read(&fs::read_to_string(&page).unwrap())
            .into_iter()
            .map(|rule| rule.name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
            .collect::<std::collections::BTreeSet<_>>();
        assert_eq!(letters.len(), 1, "{name} has rules of several letters: {letters:?}");
        let row = format!("| {} | [{name}]({name}) |", letters.first().unwrap());
        assert_eq!(
            index.matches(&row).count(),
            1,
            "docs/rules/README.md wants one row that begins `{row}`"
        );
    }
}

/// A rule that is cited in brackets, as `(K2)` is, is on a page.
#[test]
fn sentences_cite_rules_that_are_there() {
    let texts = pages().into_iter().map(|page| fs::read_to_string(page).unwrap());
    let known: Vec<Rule> = texts.flat_map(|text| read(&text)).collect();
    let mut count = 0;
    for path in files() {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let ending = path.extension().map_or("", |ending| ending.to_str().unwrap_or_default());
        for sentence in sentences(ending, &text) {
            let brackets = sentence.text.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
            for (name, _) in brackets.filter(|(name, _)| is_name(name)) {
                count += 1;
                let there = known.iter().any(|rule| rule.name == name);
                assert!(there, "{}:{}: no page has {name}", path.display(), sentence.line);
            }
        }
    }
    assert!(count > 50, "only {count} citations were found");
}

impl Rule {
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.code.is_empty() {
            faults.push("has no line `- code:`".to_owned());
        }
        if self.tests.is_empty() {
            faults.push("has no line `- test:`".to_owned());
        }
        faults.extend(self.code.iter().filter_map(|cited| cited.fault("")));
        faults.extend(
            self.tests.iter().filter_map(|cited| {
                cited.fault(if cited.path.ends_with(".rs") { "fn " } else { "" })
            }),
        );
        faults
    }
}

impl Citation {
    fn fault(&self, before: &str) -> Option<String> {
        match fs::read_to_string(root().join(&self.path)) {
            Err(error) => Some(format!("{}: {error}", self.path)),
            Ok(text) if !text.contains(&format!("{before}{}", self.symbol)) => {
                Some(format!("{} has no `{before}{}`", self.path, self.symbol))
            }
            Ok(_) => None,
        }
    }
}

/// A rule begins with `**K1. `; its lines `- code:` and `- test:` each name a file and a symbol of it.
fn read(text: &str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for line in text.lines() {
        if let Some(name) = name_of_rule(line) {
            rules.push(Rule { name, code: Vec::new(), tests: Vec::new() });
        } else if let (Some(rule), Some(cited)) = (rules.last_mut(), line.strip_prefix("- code: "))
        {
            rule.code.push(citation(cited));
        } else if let (Some(rule), Some(cited)) = (rules.last_mut(), line.strip_prefix("- test: "))
        {
            rule.tests.push(citation(cited));
        }
    }
    rules
}

fn name_of_rule(line: &str) -> Option<String> {
    let name = line.strip_prefix("**")?.split_once(". ")?.0;
    is_name(name).then(|| name.to_owned())
}

fn is_name(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
    matches!(text.len() - number.len(), 1 | 2) && number.parse::<u32>().is_ok()
}

fn citation(text: &str) -> Citation {
    let mut quoted = text.split('`').skip(1).step_by(2);
    let mut next = || quoted.next().unwrap_or_default().to_owned();
    Citation { path: next(), symbol: next() }
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|ext| ext == "md") && !path.ends_with("README.md")
        })
        .collect();
    pages.sort();
    pages
}

fn folder() -> PathBuf {
    root().join("docs/rules")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn what_is_no_citation_is_found_out() {
    let text = "**K1. One.** Why.\n- code: `docs/rules/README.md` `Rules`\n- test: `tests/tests/plan/rules.rs` `nowhere`\n\
                **K2. Two.**\n- code: `docs/absent.md` `Rules`\n";
    let text = text.replace("nowhere", &["no", "where_at_all"].concat());
    let faults: Vec<_> = read(&text).iter().map(|rule| rule.faults().len()).collect();
    assert_eq!(faults, [1, 2], "no such test; no such file, and no test");
}
