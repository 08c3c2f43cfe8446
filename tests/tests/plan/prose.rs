//! Every comment and page is understood at the first reading: its sentences have a noun as subject.
//!
//! A sentence such as "Who has many of them is one client" makes the reader carry a clause before its verb. CONTRIBUTING.md has the
//! rule; this test knows its two commonest breaches.

use std::fs;

use crate::comments::sentences;
use crate::words::{files, house};

/// The first word of a clause that stands where a noun should.
const CLAUSES: &[&str] = &["who", "whoever", "whom", "what", "whatever", "whichever"];

/// Words before such a clause that change nothing.
const BEFORE: &[&str] = &["but", "and", "so", "then", "likewise", "also"];

const PASSIVES: &[&str] = &["is", "are", "was", "were", "be", "been", "being"];

#[test]
fn no_sentence_begins_with_a_clause_and_nothing_is_told() {
    let mut faults = Vec::new();
    let mut count = 0;
    for path in files() {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let ending = path.extension().map_or("", |ending| ending.to_str().unwrap_or_default());
        if !matches!(ending, "rs" | "c" | "h" | "md" | "sh" | "toml" | "py" | "") {
            continue;
        }
        let within = path.strip_prefix(house()).expect("below the house").display().to_string();
        for sentence in sentences(ending, &text) {
            count += 1;
            if let Some(fault) = fault(&sentence.text) {
                faults.push(format!("{within}:{}: {fault}: {}", sentence.line, sentence.text));
            }
        }
    }
    assert!(count > 10_000, "only {count} sentences were found");
    faults.sort();
    assert!(faults.is_empty(), "{} sentences:\n{}", faults.len(), faults.join("\n"));
}

fn fault(sentence: &str) -> Option<&'static str> {
    let asks = sentence.trim_end_matches(['*', '_', '`', '"', ')', ']']).ends_with('?');
    let words: Vec<String> = sentence
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let first = words.iter().find(|word| !BEFORE.contains(&word.as_str()));
    if !asks && first.is_some_and(|word| CLAUSES.contains(&word.as_str())) {
        return Some("begin with the noun that the sentence is about");
    }
    let is_told = |pair: &[String]| PASSIVES.contains(&pair[0].as_str()) && pair[1] == "told";
    words.windows(2).any(is_told).then_some("name the one that tells, or what it knows then")
}

#[test]
fn clauses_are_found_and_questions_are_not() {
    for sentence in [
        "Who asks waits.",
        "(What is left)",
        "But whoever has none gets none;",
        "**What goes**",
        "it is told so",
    ] {
        assert!(fault(sentence).is_some(), "{sentence}");
    }
    for sentence in [
        "What is left?",
        "A client that asks waits.",
        "Whatsapp is a name.",
        "It told so.",
        "Whether it is there",
    ] {
        assert_eq!(fault(sentence), None, "{sentence}");
    }
}
