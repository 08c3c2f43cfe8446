//! Asks the server for every answer that the kernel may give instead.
//!
//! The server is asked for each kind of answer that the programs can give: whole, HEAD, 304, in every
//! coding. An answer is pinned only if the server gives it twice with the same bytes, except for Date.

mod ask;
mod stored;
mod talk;
#[cfg(test)]
mod tests;

use afpa_bpf::Coding;

use crate::answer::Answer;
use crate::codings::Class;
use crate::permit::{Permit, permit};

pub use self::ask::{Ask, AskError, Unfit, Wanted};
use self::stored::AnswerClass;
pub use self::stored::{Gathered, Stored};
use self::talk::Talk;

/// Asks `server` for everything. `fits` says whether an answer without a coding has the file's content,
/// `sibling` whether one in a coding has the content of the file that is stored for it.
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
