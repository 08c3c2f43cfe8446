//! Asking the server for everything that may be answered in its place.
//!
//! Each kind of answer that the programs can give is asked for: whole, HEAD, 304, in every coding.
//! What the server does not say twice in the same words, its Date aside, is not kept.

mod talk;
#[cfg(test)]
mod tests;

use std::time::Duration;

use afpa_bpf::{Coding, Response, Variant};

use self::talk::Talk;
use crate::answer::{Answer, Asked, Malformed};
use crate::codings::Class;
use crate::permit::{Permit, Refused, permit};

/// The server, for who asks it one question after the other.
pub trait Ask {
    /// Sends a whole request, and gives the whole answer to it.
    ///
    /// # Errors
    /// When none comes, or none that can be read.
    fn ask(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The server cannot be reached, or does not answer in time. Worth a retry.
    #[error("no answer from the server: {0}")]
    Unreachable(#[from] std::io::Error),
    /// It answered in a form that cannot be kept.
    #[error("its {0}")]
    Malformed(#[from] Malformed),
}

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Host values that lead to the same content. Never empty.
    pub hosts: &'a [String],
    /// The request target, as clients spell it.
    pub target: &'a str,
    /// Longest answer, head and content, that can be kept.
    pub longest: usize,
}

/// Why a target is not kept.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// No answer, or none that can be read.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The server's answer forbids it.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// The answer is not what the file says. A server that keeps files open sees it late: worth a retry.
    #[error("its content is not that of the file")]
    Content,
    /// Head and content are longer than answers of the kernel may be.
    #[error("it is too long")]
    Length,
    /// The same question, another answer.
    #[error("its answers differ: {0}")]
    Differs(&'static str),
}

/// Everything that may be answered for a target.
#[derive(Debug)]
pub struct Gathered {
    /// One for each coding that is stored.
    pub variants: Vec<Stored>,
    /// To be asked for again after this.
    pub lifetime: Option<Duration>,
}

/// One coding.
#[derive(Debug)]
pub struct Stored {
    coding: Coding,
    /// None: such requests go to the server.
    answers: Option<Answers>,
}

/// A class of answers, and an Accept-Encoding that they answer.
struct AnswerClass {
    text: Option<String>,
    answers: Answers,
    lifetime: Option<Duration>,
}

#[derive(Clone, Debug)]
struct Answers {
    whole: Answer,
    not_modified: Option<Answer>,
}

/// Ask `server` for all of it. `fits` says whether an identity body is the file's content; `sibling`
/// the same of a body in a coding.
///
/// # Errors
/// With the first reason why the target cannot be kept.
pub fn gather(
    server: &mut dyn Ask,
    wanted: &Wanted<'_>,
    fits: &dyn Fn(&Answer) -> bool,
    sibling: &dyn Fn(Coding, &Answer) -> bool,
) -> Result<Gathered, Unfit> {
    let mut talk = Talk { server, wanted };
    let whole = talk.get(&[])?;
    let Permit { varies, lifetime } = permit(&whole)?;
    if !fits(&whole) {
        return Err(Unfit::Content);
    }
    if whole.len() > wanted.longest {
        return Err(Unfit::Length);
    }
    talk.agree(&whole)?;
    let answers = talk.settle(None, whole)?;
    let mut classes = vec![AnswerClass { text: None, answers, lifetime }];
    let plan = if varies {
        talk.classify(&mut classes, sibling)?
    } else {
        let browser = talk.get(&[("Accept-Encoding", "gzip, deflate, br, zstd")])?;
        let same = classes.first().is_some_and(|class| class.answers.whole.same(&browser));
        if !same {
            return Err(Unfit::Differs("by Accept-Encoding, which its Vary does not name"));
        }
        vec![(Coding::Identity, Some(0))]
    };
    let class_of = |class: Class| class.and_then(|index| classes.get(index));
    let lifetime = plan.iter().filter_map(|(_, class)| class_of(*class)?.lifetime).min();
    let stored = plan.iter().map(|(coding, class)| Stored {
        coding: *coding,
        answers: class_of(*class).map(|class| class.answers.clone()),
    });
    let variants: Vec<_> = stored.collect();
    if variants.is_empty() {
        return Err(Unfit::Differs("in every coding"));
    }
    Ok(Gathered { variants, lifetime })
}

impl Gathered {
    /// Whether a tag is weak: Apache gives such tags to files of the last second, and others later.
    pub fn is_weakly_tagged(&self) -> bool {
        let answers = self.variants.iter().filter_map(|stored| stored.answers.as_ref());
        let mut tags = answers.filter_map(|answers| answers.whole.field("etag"));
        tags.any(|tag| tag.starts_with(b"W/"))
    }

    /// In the form that is pinned.
    pub fn variants(&self) -> Vec<Variant<'_>> {
        self.variants.iter().map(Stored::variant).collect()
    }
}

impl Stored {
    fn variant(&self) -> Variant<'_> {
        let whole = self.answers.as_ref().map(|answers| &answers.whole);
        Variant {
            coding: self.coding,
            etag: whole.and_then(|whole| whole.field("etag")).map(opaque).unwrap_or_default(),
            last_modified: whole.and_then(|w| w.field("last-modified")?.try_into().ok()),
            whole: whole.and_then(response),
            not_modified: self.answers.as_ref().and_then(|a| response(a.not_modified.as_ref()?)),
        }
    }
}

fn response(answer: &Answer) -> Option<Response<'_>> {
    let date_offset = answer.date_offset()?;
    Some(Response { head: answer.head(), date_offset, body: answer.body() })
}

/// The programs compare weakly (RFC 9110 section 13.1.2), without `W/`.
fn opaque(etag: &[u8]) -> &[u8] {
    etag.strip_prefix(b"W/").unwrap_or(etag)
}
