//! Notes on directives, line by line.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use crate::names;
use crate::syntax::Directive;

/// The fate of a directive that was not simply translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Translated; AFPA does something a little differently.
    Differs,
    /// Not translated.
    Left,
    /// Not translated, and the place that it guards, or whose answer it gives, answers with an error instead.
    Refused,
}

/// A note on one directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub file: Rc<str>,
    /// The line, from 1.
    pub line: u32,
    /// Its fate.
    pub kind: Kind,
    /// The directive, perhaps shortened.
    pub directive: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Differs => "differs",
            Kind::Left => "left out",
            Kind::Refused => "REFUSED",
        };
        let Note { file, line, directive, why, .. } = self;
        write!(f, "{file}:{line}: {kind}: {directive}: {why}")
    }
}

/// Notes while they are taken.
#[derive(Default)]
pub(crate) struct Ledger(RefCell<BTreeMap<(usize, Kind), Note>>);

/// The words of a note that are shown.
const LONGEST: usize = 60;

impl Ledger {
    pub(crate) fn differs(&self, directive: &Directive, why: impl Into<String>) {
        self.note(directive, Kind::Differs, why.into());
    }

    pub(crate) fn left(&self, directive: &Directive, why: impl Into<String>) {
        self.note(directive, Kind::Left, why.into());
    }

    pub(crate) fn refused(&self, directive: &Directive, why: impl Into<String>) {
        self.note(directive, Kind::Refused, why.into());
    }

    fn note(&self, directive: &Directive, kind: Kind, why: String) {
        let mut shown = directive.name.clone();
        for word in &directive.words {
            if word != ")" {
                shown.push(' ');
            }
            let needs_quotes = word.is_empty() || word.contains([' ', '\t', ';']);
            let quote = if word.contains('"') { '\'' } else { '"' };
            let word = if needs_quotes { format!("{quote}{word}{quote}") } else { word.clone() };
            shown.extend(word.chars().map(|c| if c.is_control() { ' ' } else { c }));
        }
        if shown.chars().count() > LONGEST {
            shown = shown.chars().take(LONGEST).collect::<String>() + "...";
        }
        let (file, line) = (Rc::clone(&directive.file), directive.line);
        let note = Note { file, line, kind, directive: shown, why };
        self.0.borrow_mut().entry((directive.id, kind)).or_insert(note);
    }

    /// Notes on directives that nothing looks at, and the sum.
    pub(crate) fn conclude(self, directives: &[Directive]) -> Sum {
        let mut sum = Sum::default();
        self.walk(directives, &mut sum);
        let failed = |kind: Kind| kind != Kind::Differs;
        let notes = self.0.into_inner();
        let left: BTreeSet<usize> =
            notes.keys().filter(|(_, kind)| failed(*kind)).map(|(id, _)| *id).collect();
        sum.translated = sum.directives - left.len();
        sum.notes = notes.into_values().collect();
        sum
    }

    fn walk(&self, directives: &[Directive], sum: &mut Sum) {
        for directive in directives {
            sum.directives += 1;
            if names::decided(&directive.name) {
                sum.decided.insert(directive.name.clone());
            } else if !names::known(&directive.name) {
                if !self.0.borrow().contains_key(&(directive.id, Kind::Refused)) {
                    self.left(directive, "AFPA has nothing like it");
                }
                sum.directives += count(directive.children());
                self.drop_within(directive.children());
                continue;
            }
            // The lines of these are no directives.
            if !matches!(&*directive.name, "types" | "map" | "geo" | "split_clients") {
                self.walk(directive.children(), sum);
            }
        }
    }

    /// Directives in a block that is left out are left out with it.
    fn drop_within(&self, directives: &[Directive]) {
        for directive in directives {
            self.left(directive, "the block around it is left out");
            self.drop_within(directive.children());
        }
    }
}

fn count(directives: &[Directive]) -> usize {
    directives.iter().map(|directive| 1 + count(directive.children())).sum()
}

/// The sum of a translation.
#[derive(Default)]
pub(crate) struct Sum {
    pub(crate) notes: Vec<Note>,
    pub(crate) decided: BTreeSet<String>,
    pub(crate) directives: usize,
    pub(crate) translated: usize,
}
