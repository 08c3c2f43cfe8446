//! Requests that no other request waits for, and whose answers concern stored responses: HEAD, and methods that are not
//! safe.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::ClientStream;
use afpa_proxy::exchange::{self, Core, Job};

use crate::fetch::asking::Asking;
use crate::fetch::head::Comparing;
use crate::fetch::invalidate::Invalidating;
use crate::fetch::post::Posted;
use crate::lead::Ran;
use crate::plan::What;
use crate::request::{ClientHead, SiteCache};

/// Passes such a request on.
pub(crate) async fn run<C: ClientStream>(
    (cache, what): (&SiteCache, What),
    head: ClientHead<'_>,
    job: &mut Job,
    core: &Rc<Core>,
    client: &mut C,
) -> Ran {
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
            let fetch = fetching.fetch(&cache.responses);
            let asking = Asking::new((cache, &fetching, &fetch), head, job, now);
            exchange::run(job, core, client, Some(&mut Comparing(&asking))).await
        }
        What::Post { host, labels, own, fetching } => {
            let fetch = fetching.fetch(&cache.responses);
            let asking = &Asking::new((cache, &fetching, &fetch), head, job, now);
            let (invalidating, goes_on) = (invalidating(host, labels), &goes_on);
            let mut tap = Posted { invalidating, own, asking, goes_on, storing: None };
            exchange::run(job, core, client, Some(&mut tap)).await
        }
    };
    Ran { report, answer: None }
}
