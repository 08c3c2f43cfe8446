//! Asks the server for every answer that the kernel may give instead.
//!
//! The server is asked for each kind of answer that the programs can give: whole, HEAD, 304, in every
//! coding; with decoys for all request fields that it could make something of; and in the end from every
//! viewpoint, by every name. An answer is pinned only if the server gives it each time with the same bytes,
//! except for Date.

mod answers;
mod ask;
mod claim;
mod fields;
mod stored;
mod talk;
#[cfg(test)]
mod tests;

use afpa_bpf::Coding;

use crate::answer::Answer;
use crate::codings::Class;
use crate::permit::Permit;

use self::answers::{AnswerClass, pinned};
pub(crate) use self::answers::{Answers, opaque};
use self::ask::Moving;
pub use self::ask::{Ask, AskError, Unfit, Wanted};
pub use self::claim::Claim;
use self::stored::Rules;
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
    let viewpoints = server.viewpoints();
    let mut server = Moving { server, moves: wanted.kept };
    let mut talk = Talk { server: &mut server, wanted, viewpoints };
    let whole = talk.get(&[])?;
    let first = whole.clone();
    let Permit { varies, lifetime } = wanted.permit(&whole)?;
    if !fits(&whole) {
        return Err(Unfit::Content);
    }
    if whole.len() > wanted.longest {
        return Err(Unfit::Length);
    }
    if !talk.get(&[])?.same(&whole) {
        return Err(Unfit::Differs("each time"));
    }
    if wanted.kept && !talk.seems_alike(&whole)? {
        return Err(BY_FIELD);
    }
    let answers = talk.settle(None, whole)?;
    let mut classes = vec![AnswerClass { text: None, answers, closing: None, lifetime }];
    let browser = talk.coded(Some("gzip, deflate, br, zstd"));
    let alike = browser.is_ok_and(|browser| classes.iter().all(|c| c.answers.whole.same(&browser)));
    // Some servers compress without saying so in Vary. All sets of codings are asked for, so it is known.
    let plan = if varies || !alike {
        talk.classify(&mut classes, sibling)?
    } else {
        vec![(Coding::Identity, Some(0))]
    };
    let rules =
        Rules { other_tag: talk.apart(&classes)?, fields: talk.fields(&mut classes, &plan)? };
    if wanted.kept && rules.fields != wanted.fields(&classes) {
        return Err(BY_FIELD);
    }
    talk.everywhere(&classes, &plan)?;
    let mut old_alike = false;
    if wanted.closes {
        talk.closing(&mut classes)?;
        old_alike = talk.old_alike(&classes)?;
    }
    let class_of = |class: Class| class.and_then(|index| classes.get(index));
    let lifetime = plan.iter().filter_map(|(_, class)| class_of(*class)?.lifetime).min();
    let stored = plan.iter().map(|(coding, class)| Stored {
        coding: *coding,
        answers: class_of(*class).map(|class| class.answers.clone()),
        closing: class_of(*class).and_then(|class| class.closing.clone()),
    });
    let variants: Vec<_> = stored.collect();
    if variants.is_empty() {
        return Err(Unfit::Differs("in every coding"));
    }
    let claim = Claim::new(wanted, pinned(&classes, &plan), rules.fields);
    Ok(Gathered { variants, closes: wanted.closes, old_alike, lifetime, rules, claim, first })
}

/// An answer that no file stands behind may not depend on a field that its Vary does not name: no cache would know of
/// it.
const BY_FIELD: Unfit = Unfit::Differs("by a field that its Vary does not name");
