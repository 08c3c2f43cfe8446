//! The tap of a question to another machine: only an answer with its proof is one.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use afpa_framework::Now;
use afpa_proxy::exchange::{Passing, Report, Tap};
use afpa_proxy::response;

use crate::fetch::tap::Storing;
use crate::peers::PeerQuestion;

/// Passes on an answer that has the proof, and nothing of any other one.
pub(crate) struct Proven<'a, 'q> {
    pub(crate) storing: &'a mut Storing<'q>,
    pub(crate) asking: &'a dyn PeerQuestion,
    pub(crate) heard: &'a Cell<Heard>,
}

/// The part of an answer that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nothing.
    Nothing,
    /// A head without the proof, with this status.
    Strange(u16),
    /// A head with it.
    Proven,
}

/// How often a machine that has not answered yet is looked for in the fleet.
const LOOK: Duration = Duration::from_millis(250);

/// The report of an exchange with another machine. `None`: that one has fallen silent before it has answered.
pub(crate) async fn while_there(
    exchange: impl Future<Output = Report>,
    asking: &dyn PeerQuestion,
    heard: &Cell<Heard>,
) -> Option<Report> {
    let mut exchange = pin!(exchange);
    let mut look = tokio::time::interval(LOOK);
    poll_fn(|cx| {
        if let Poll::Ready(report) = exchange.as_mut().poll(cx) {
            return Poll::Ready(Some(report));
        }
        while look.poll_tick(cx).is_ready() {
            if heard.get() == Heard::Nothing && !asking.is_there() {
                return Poll::Ready(None);
            }
        }
        Poll::Pending
    })
    .await
}

impl Tap for Proven<'_, '_> {
    fn head(&mut self, response: &response::Response<'_, '_>, now: Now) -> Passing {
        let mut lines = response.lines();
        if !lines.any(|(name, value)| self.asking.is_proof(name, value)) {
            self.heard.set(Heard::Strange(response.status));
            return Passing::Withheld;
        }
        self.heard.set(Heard::Proven);
        self.storing.head(response, now)
    }

    /// Interim responses have no proof.
    fn passes_interim(&self) -> bool {
        false
    }

    fn put_fields(&self, out: &mut Vec<u8>) {
        self.storing.put_fields(out);
    }

    fn content(&mut self, data: &[u8]) {
        if self.heard.get() == Heard::Proven {
            self.storing.content(data);
        }
    }

    fn whole(&mut self, now: Now) {
        if self.heard.get() == Heard::Proven {
            self.storing.whole(now);
        }
    }
}

impl std::fmt::Debug for Proven<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proven").field("heard", &self.heard).finish_non_exhaustive()
    }
}
