//! The answers of the server in one coding, and the classes of Accept-Encoding that get them.

use std::time::Duration;

use afpa_bpf::Coding;

use crate::answer::Answer;
use crate::codings::Class;

/// A class of answers, and an Accept-Encoding that they answer.
pub(super) struct AnswerClass {
    pub(super) text: Option<String>,
    pub(super) answers: Answers,
    pub(super) closing: Option<Answers>,
    pub(super) lifetime: Option<Duration>,
}

/// The whole answer, and the 304 if the server gives one.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) whole: Answer,
    pub(crate) not_modified: Option<Answer>,
    /// Whether HEAD gets the head of `whole`.
    pub(crate) head: bool,
    /// Whether a tag gets the 304 with `W/` as well; if not, without it alone.
    pub(crate) weakly: bool,
}

/// The classes that a plan stores.
pub(super) fn pinned<'c>(
    classes: &'c [AnswerClass],
    plan: &'c [(Coding, Class)],
) -> impl Iterator<Item = &'c AnswerClass> {
    let stored = |at: usize| plan.iter().any(|(_, class)| *class == Some(at));
    classes.iter().enumerate().filter(move |(at, _)| stored(*at)).map(|(_, class)| class)
}

/// The programs compare weakly (RFC 9110 section 13.1.2), without `W/`.
pub(crate) fn opaque(etag: &[u8]) -> &[u8] {
    etag.strip_prefix(b"W/").unwrap_or(etag)
}
