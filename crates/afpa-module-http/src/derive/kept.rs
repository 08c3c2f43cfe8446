//! The shared cache, for a distributed request.

use afpa_cache::View;
use afpa_framework::{Outbox, Persistence};
use afpa_http::Status;
use afpa_http::caching::cache_status::Outcome;
use afpa_shared_cache::{
    Answering, CacheRequest, Found, KeyRoom, Plan, StoredResponse, look_up as look_up_key,
};

use crate::asked::Asked;
use crate::respond::Responder;

/// The result of the look-up.
#[expect(
    clippy::large_enum_variant,
    reason = "one is on the stack, where a box would be an allocation"
)]
pub(super) enum Kept {
    /// The answer is in the outbox.
    Answered(Persistence),
    /// No server is asked: the answer is an error page.
    Instead(Status),
    /// A server is asked, in this way if the cache has a part in it.
    Ask(Option<Plan>),
}

/// Looks the request up, and answers it if the cache can.
pub(super) fn look_up(
    (view, keys): (&mut View<StoredResponse>, &mut KeyRoom),
    lookup: CacheRequest<'_, '_, '_>,
    asked: Asked<'_, '_, '_>,
    responder: &mut Responder,
    out: &mut Outbox,
) -> Kept {
    match look_up_key(view, keys, lookup) {
        Found::Bypass => Kept::Ask(None),
        Found::Plan(plan) => Kept::Ask(Some(plan)),
        Found::TooEarly => Kept::Instead(Status::TOO_EARLY),
        Found::MayNotPurge => Kept::Instead(Status::FORBIDDEN),
        Found::NotThere => Kept::Instead(Status::GATEWAY_TIMEOUT),
        Found::Purged(count) => {
            let text = format!("{count}\n");
            let page = ("text/plain; charset=utf-8", text.as_bytes());
            Kept::Answered(responder.fixed(asked, Status::OK, page, out))
        }
        Found::Hit(object, stored) => {
            responder.counters.shared_hits.add(1);
            let tells = lookup.cache.policy.status_field;
            let cache_status = tells.then(|| Outcome::hit(&stored));
            let asked = Asked { source: "hit", ..asked };
            let answering = Answering { object, cache_status };
            Kept::Answered(responder.stored(asked, answering, out))
        }
    }
}
