//! Requests that no other request waits for, and whose answers concern stored responses: HEAD, and methods that are not
//! safe.

use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::ClientStream;
use afpa_framework::Now;
use afpa_proxy::exchange::{self, Core, Job, Tap};

use crate::fetch::asking::Asking;
use crate::fetch::head::Comparing;
use crate::fetch::invalidate::Invalidating;
use crate::fetch::post::Posted;
use crate::look_up::SiteCache;
use crate::plan::{Fetching, What};
use crate::run::{ClientHead, Ran, Round};

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
    let now = client.cached_now();
    let tap: Box<dyn Tap> = match what {
        What::Invalidate { host, labels } => Box::new(invalidating(host, labels)),
        What::Head(fetching) | What::Fetch(fetching) => {
            Box::new(Comparing(Rc::new(asking(cache, fetching, head, job, now))))
        }
        What::Post { host, labels, own, fetching } => {
            let asking = Rc::new(asking(cache, fetching, head, job, now));
            let invalidating = invalidating(host, labels);
            Box::new(Posted { invalidating, own, asking, storing: None })
        }
    };
    job.tap = Some(tap);
    let report = exchange::run(job, core, client).await;
    job.tap = None;
    Ran { report, answer: None }
}

/// The question of such an exchange.
fn asking(
    cache: &SiteCache,
    fetching: Fetching,
    head: ClientHead<'_>,
    job: &Job,
    now: Now,
) -> Asking {
    let fetch = fetching.fetch(&cache.responses);
    let bytes = head.bytes.to_vec();
    Round { cache, fetching, head, tries: 0 }.asking(&fetch, job, false, (bytes, now))
}
