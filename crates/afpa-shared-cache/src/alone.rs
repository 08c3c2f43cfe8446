//! Requests that no other request waits for, and whose answers concern stored responses: HEAD, and methods that are not
//! safe.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::ClientStream;
use afpa_proxy::exchange::{self, Core, Job};

use crate::fetch::head::Comparing;
use crate::fetch::invalidate::Invalidating;
use crate::fetch::post::Posted;
use crate::fetch::question::Question;
use crate::lead::Answered;
use crate::plan::What;
use crate::request::{ClientHead, SiteCache};

/// Passes such a request on.
pub(crate) async fn run(
    (cache, what): (&SiteCache, What),
    head: ClientHead<'_>,
    job: &mut Job,
    core: &Rc<Core>,
    client: &mut dyn ClientStream,
) -> Answered {
    let invalidating = |host, labels| {
        let responses = Arc::clone(&cache.responses);
        Invalidating { responses, host, labels, purges: 0 }
    };
    let (now, goes_on) = (client.cached_now(), Cell::new(false));
    let report = match what {
        What::Invalidate { host, labels } => {
            let mut tap = invalidating(host, labels);
            exchange::run(job, core, client, Some(&mut tap)).await
        }
        What::Head(fetching) | What::Fetch(fetching) => {
            let fetch = fetching.fetch();
            let question = Question::new((cache, &fetching, &fetch), head, job, now);
            exchange::run(job, core, client, Some(&mut Comparing(&question))).await
        }
        What::Post { about, fetching } => {
            let (host, labels, own) = *about;
            let fetch = fetching.fetch();
            let question = &Question::new((cache, &fetching, &fetch), head, job, now);
            let (invalidating, goes_on) = (invalidating(host, labels), &goes_on);
            let mut tap = Posted { invalidating, own, question, goes_on, storing: None };
            exchange::run(job, core, client, Some(&mut tap)).await
        }
    };
    Answered { report, answer: None }
}
