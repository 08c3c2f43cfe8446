//! *Derive remote response* with the shared cache.

use std::rc::Rc;

use afpa_framework::ClientStream;
use afpa_http::caching::cache_status::Outcome;
use afpa_proxy::exchange::{Core, Job};

use crate::lead::{Answer, Answered, Round};
use crate::plan::{Plan, What};
use crate::request::ClientHead;
use crate::{alone, background};

/// Answers a request as planned.
pub async fn run(
    plan: Plan,
    head: ClientHead<'_>,
    job: &mut Job,
    core: &Rc<Core>,
    client: &mut dyn ClientStream,
) -> Answered {
    let Plan { cache, what } = plan;
    let fetching = match what {
        What::Fetch(fetching) => fetching,
        other => return alone::run((&cache, other), head, job, core, client).await,
    };
    if fetching.at_once
        && let Some(object) = fetching.stored.clone()
    {
        let (now, tells) = (client.cached_now(), cache.policy.status_field);
        background::validate(cache, fetching, head, job.again(), Rc::clone(core));
        let stored = object.header().response().map(|response| response.at(now));
        let outcome = stored.as_ref().map(Outcome::hit);
        return Answered::stored(Answer { object, outcome, tells, source: "stale" }, now);
    }
    let mut round = Round { cache: &cache, fetching, head, tries: 0 };
    round.run(job, core, client).await
}
