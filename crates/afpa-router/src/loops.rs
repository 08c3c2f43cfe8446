//! Targets of rewrites that are routed back to where they come from.

use afpa_http::{Method, target};

use crate::ids::{ListenerId, RequestSetId};
use crate::question::Question;
use crate::router::{RequestSet, Router};
use crate::table::{Action, ContentGroup};

/// How often a request may get another target.
pub const MOST_REWRITES: u8 = 10;

/// The request sets that rewrite some plain request again and again. Only what depends on no condition is found.
pub(crate) fn find(router: &Router) -> impl Iterator<Item = &RequestSet> {
    let sets = (0..).map(RequestSetId).zip(router.sets());
    sets.filter(move |(id, set)| {
        let again = matches!(set.behaviour.action, Action::Again(_));
        again && samples(set).iter().any(|path| is_caught(router, (*id, set), path))
    })
    .map(|(_, set)| set)
}

/// Paths that the request set may have.
fn samples(set: &RequestSet) -> Vec<Vec<u8>> {
    let extensions = match &set.behaviour.group {
        ContentGroup::All => &[][..],
        ContentGroup::List { extensions, .. } => extensions,
    };
    let named = extensions.iter().map(|extension| format!("x.{extension}"));
    let others = ["", "x", "x.other"].map(str::to_owned);
    let ends = others.into_iter().chain(named);
    ends.map(|end| [&set.prefix, end.as_bytes()].concat()).collect()
}

/// Whether a request for a path of the request set still gets another target after the most that it may get.
fn is_caught(router: &Router, (id, set): (RequestSetId, &RequestSet), path: &[u8]) -> bool {
    let mut asked = path.to_vec();
    for round in 0..=MOST_REWRITES {
        let mut parts = asked.splitn(2, |byte| *byte == b'?');
        let (mut normal, mut spelled) = (Vec::new(), Vec::new());
        let path = parts.next().unwrap_or_default();
        let (Ok(path), Ok(spelled)) =
            (target::normalise(path, &mut normal), target::spell(path, &mut spelled))
        else {
            return false;
        };
        let (listener, host, method) = (ListenerId(0), "", Method::Get);
        let question = Question { listener, host, method, path, query: parts.next(), fields: () };
        let Ok(verdict) = router.route_in(set.site, &question) else { return false };
        let is_plain = verdict.content.conditions.is_empty();
        let again = is_plain && matches!(verdict.action, Action::Again(_));
        if !again || round == 0 && verdict.set != id {
            return false;
        }
        match verdict.target(&question, spelled) {
            // Texts of clients grow without an end only in a loop.
            Some(next) if next.len() < 64 << 10 => asked = next,
            Some(_) => return true,
            None => return false,
        }
    }
    true
}
