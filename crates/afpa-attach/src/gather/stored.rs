//! The answers of the server, in the form in which they are pinned.

use std::time::Duration;

use afpa_bpf::{Coding, PinRules, Response, Variant};
use afpa_http::request::FieldClasses;

use super::answers::{Answers, opaque};
use super::claim::Claim;
use crate::answer::Answer;
use crate::kept::Copy;
use crate::permit::timeout;

/// Everything that may be answered for a target.
#[derive(Debug)]
pub struct Gathered {
    /// The answers for each coding that is stored.
    pub variants: Vec<Stored>,
    /// Whether requests that ask for the connection's end were asked as well.
    pub(super) closes: bool,
    /// Whether HTTP/1.0 gets the same answers as these.
    pub(super) old_alike: bool,
    /// To be asked for again after this.
    pub lifetime: Option<Duration>,
    /// Which requests get them.
    pub(super) rules: Rules,
    /// The claim that the server must confirm meanwhile.
    pub claim: Claim,
    /// The answer to the first question.
    pub first: Answer,
}

/// Which requests get the answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The server distinguishes the codings by their entity tags.
    pub(super) other_tag: bool,
    /// Fields that do not matter.
    pub(super) fields: FieldClasses,
}

/// One coding.
#[derive(Debug)]
pub struct Stored {
    pub(super) coding: Coding,
    /// `None`: such requests go to the server.
    pub(super) answers: Option<Answers>,
    /// The answers to requests that ask for the connection's end. `None`: these go to the server.
    pub(super) closing: Option<Answers>,
}

impl Gathered {
    /// Whether a tag is weak. Apache gives a weak tag to a file of the last second, and another one later.
    pub fn is_weakly_tagged(&self) -> bool {
        let answers = self.variants.iter().filter_map(|stored| stored.answers.as_ref());
        let mut tags = answers.filter_map(|answers| answers.whole.field("etag"));
        tags.any(|tag| tag.starts_with(b"W/"))
    }

    /// The longest time for which an answer says that the server keeps idle connections, in seconds.
    pub fn timeout(&self) -> Option<u32> {
        let stored = self.variants.iter().flat_map(|s| [&s.answers, &s.closing]).flatten();
        let answers = stored.flat_map(|a| [Some(&a.whole), a.not_modified.as_ref()]).flatten();
        answers.filter_map(|answer| timeout(answer).ok().flatten()).max()
    }

    /// The rules in the form that is pinned.
    pub fn rules(&self) -> PinRules {
        let mut head = [false; 4];
        for stored in &self.variants {
            head[stored.coding as usize] = stored.answers.as_ref().is_some_and(|a| a.head);
        }
        PinRules {
            fields: self.rules.fields.bits(),
            other_tag_gets_whole: self.rules.other_tag,
            // nginx wants the date to fit as well.
            tag_wins: false,
            tag_weakly: self.variants.iter().all(|stored| stored.compares_weakly()),
            old_alike: self.old_alike,
            codings: None,
            head,
        }
    }

    /// In the form that is pinned for as long as it is fresh: with an Age of so many digits. `heard` says the same, and was
    /// asked for last.
    pub fn copies(&self, heard: &Answer, digits: u32) -> Vec<Copy> {
        let copy = |stored: &Stored, closing: bool| {
            let answers = if closing { &stored.closing } else { &stored.answers };
            Copy::of((stored.coding, closing), answers.as_ref(), heard, digits)
        };
        let closing = self.variants.iter().filter(|_| self.closes).map(|stored| copy(stored, true));
        self.variants.iter().map(|stored| copy(stored, false)).chain(closing).collect()
    }

    /// In the form that is pinned.
    pub fn variants(&self) -> Vec<Variant<'_>> {
        let closing = self.variants.iter().filter(|_| self.closes).map(Stored::closing);
        self.variants.iter().map(Stored::variant).chain(closing).collect()
    }
}

impl Stored {
    fn compares_weakly(&self) -> bool {
        let both = [&self.answers, &self.closing].into_iter().flatten();
        both.into_iter().all(|answers| answers.weakly || answers.not_modified.is_none())
    }

    fn variant(&self) -> Variant<'_> {
        self.variant_of(self.answers.as_ref(), false)
    }

    fn closing(&self) -> Variant<'_> {
        self.variant_of(self.closing.as_ref(), true)
    }

    fn variant_of<'s>(&self, answers: Option<&'s Answers>, closing: bool) -> Variant<'s> {
        let whole = answers.map(|answers| &answers.whole);
        Variant {
            coding: self.coding,
            closing,
            etag: whole.and_then(|whole| whole.field("etag")).map(opaque).unwrap_or_default(),
            last_modified: whole.and_then(|w| w.field("last-modified")?.try_into().ok()),
            freshness: None,
            whole: whole.and_then(response),
            not_modified: answers.and_then(|answers| response(answers.not_modified.as_ref()?)),
        }
    }
}

fn response(answer: &Answer) -> Option<Response<'_>> {
    let date_offset = answer.date_offset()?;
    Some(Response { head: answer.head(), date_offset, body: answer.body() })
}
