//! Validates a stale response while it is being used (RFC 5861 section 3).

use std::rc::Rc;

use afpa_proxy::exchange::{Core, Job};

use crate::fetch::client::Nobody;
use crate::lead::{Lead, Round};
use crate::plan::Fetching;
use crate::request::{ClientHead, SiteCache};

/// Asks the server, in a task of its own on this core.
pub(crate) fn validate(
    cache: SiteCache,
    fetching: Fetching,
    head: ClientHead<'_>,
    mut job: Job,
    core: Rc<Core>,
) {
    // The client has its answer, and the request its span: none would be exported of what follows.
    job.head.forget_span();
    let (bytes, limits) = (head.bytes.to_vec(), head.limits);
    tokio::task::spawn_local(async move {
        let head = ClientHead { bytes: &bytes, limits };
        let stored = fetching.stored.clone();
        let (fetch, leads) = cache.responses.join(&fetching.fetch());
        if leads {
            let mut round = Round { cache: &cache, fetching, head, tries: 0 };
            let mut nobody = Nobody::default();
            let lead = Lead { fetch, keeps: true, for_nobody: true, may_ask: true };
            round.lead(&mut job, &core, &mut nobody, lead).await;
        }
        if let Some(stored) = stored.as_ref().and_then(|object| object.header().response()) {
            stored.end_validation();
        }
    });
}
