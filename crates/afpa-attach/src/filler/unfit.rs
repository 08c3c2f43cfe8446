//! Why URLs are not answered in the kernel, in the operator's words: the latest reasons of each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The reasons, by URL. At most so many URLs are held; further ones are left out.
#[derive(Debug)]
pub(super) struct Reasons {
    most: usize,
    of: HashMap<Box<[u8]>, BTreeSet<Arc<str>>>,
    /// Each text once, however many URLs have it.
    texts: BTreeSet<Arc<str>>,
}

/// Texts that are kept; a server may say something else for each URL.
const TEXTS: usize = 256;
/// In place of more texts.
const OTHER: &str = "for other reasons";

impl Reasons {
    pub(super) fn new(most: usize) -> Self {
        Self { most, of: HashMap::new(), texts: BTreeSet::new() }
    }

    /// One more reason, of one site perhaps.
    pub(super) fn note(&mut self, url: &[u8], why: &str) {
        if !self.of.contains_key(url) && self.of.len() >= self.most {
            return;
        }
        let text = self.text(why);
        self.of.entry(url.into()).or_default().insert(text);
    }

    /// The URL is asked for anew, or is no more.
    pub(super) fn forget(&mut self, url: &[u8]) {
        self.of.remove(url);
    }

    pub(super) fn forget_all(&mut self) {
        self.of.clear();
        self.texts.clear();
    }

    /// Each reason with its number of URLs, the most frequent one first.
    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for text in self.of.values().flatten() {
            *counts.entry(text).or_default() += 1;
        }
        let mut counts: Vec<_> =
            counts.into_iter().map(|(text, count)| (text.to_owned(), count)).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    fn text(&mut self, why: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(why) {
            return Arc::clone(known);
        }
        let why = if self.texts.len() < TEXTS { why } else { OTHER };
        let text: Arc<str> = why.into();
        self.texts.insert(Arc::clone(&text));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_counted_and_not_questions() {
        let mut reasons = Reasons::new(3);
        for _ in 0..5 {
            reasons.note(b"/a", "too long");
        }
        reasons.note(b"/b", "too long");
        reasons.note(b"/c", "private");
        reasons.note(b"/d", "private");
        assert_eq!(reasons.counts(), [("too long".into(), 2), ("private".into(), 1)]);
        reasons.forget(b"/a");
        reasons.note(b"/c", "too long");
        assert_eq!(reasons.counts(), [("too long".into(), 2), ("private".into(), 1)]);
        reasons.forget_all();
        assert_eq!(reasons.counts(), []);
    }

    #[test]
    fn a_server_with_a_text_for_each_url_takes_no_more_room() {
        let mut reasons = Reasons::new(1000);
        for number in 0..1000 {
            reasons.note(format!("/{number}").as_bytes(), &format!("because of {number}"));
        }
        assert_eq!(reasons.counts().first(), Some(&(OTHER.into(), 744)));
    }
}
