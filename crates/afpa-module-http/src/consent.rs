//! Asks a server whether a request may be answered (D14 of `docs/rules`).
//!
//! A success lets the request through: the client gets nothing of it but its cookies, and the response is derived again.
//! Everything else is the answer to the request, and goes to the client as the server has said it.

use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::{ClientStream, Now};
use afpa_http::{Method, Request};
use afpa_proxy::exchange::{self, Core, End, Job, Passing, Report, Tap};
use afpa_proxy::response::Response;

use crate::demand::{Consent, ServerDemand};
use crate::learnt::Learnt;

/// A question that waits for the consent of a server.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) demand: Arc<ServerDemand>,
    pub(crate) learnt: Learnt,
    /// The client has asked by HEAD.
    pub(crate) asks_head: bool,
}

impl Question {
    /// About a request.
    pub(crate) fn new(
        demand: Arc<ServerDemand>,
        learnt: Learnt,
        request: &Request<'_, '_>,
    ) -> Self {
        Self { demand, learnt, asks_head: request.method == Method::Head }
    }
}

/// Asks. `None`: the server has not consented; the report says whether the client has its answer.
pub(crate) async fn ask(
    question: &Question,
    job: &mut Job,
    core: &Rc<Core>,
    client: &mut dyn ClientStream,
) -> (Option<Consent>, Report) {
    let mut listening = Listening { question, consent: None };
    let report = exchange::run(job, core, client, Some(&mut listening)).await;
    let consent = listening.consent.filter(|_| matches!(report.end, End::Relayed(_)));
    (consent, report)
}

/// Reads the answer for the request that waits.
#[derive(Debug)]
struct Listening<'q> {
    question: &'q Question,
    consent: Option<Consent>,
}

impl Tap for Listening<'_> {
    fn head(&mut self, response: &Response<'_, '_>, _now: Now) -> Passing {
        let is_success = (200..300).contains(&response.status);
        self.consent = is_success.then(|| read(&self.question.demand, response));
        match self.question.asks_head {
            _ if is_success => Passing::Withheld,
            true => Passing::HeadAlone,
            false => Passing::On,
        }
    }

    /// No client goes on to send content before the server has consented.
    fn passes_interim(&self) -> bool {
        false
    }

    fn put_fields(&self, _out: &mut Vec<u8>) {}

    fn content(&mut self, _data: &[u8]) {}

    fn whole(&mut self, _now: Now) {}
}

/// The words of a server beside its consent.
fn read(demand: &Arc<ServerDemand>, response: &Response<'_, '_>) -> Consent {
    let lines = || response.end_to_end().filter(|(_, value)| !value.is_empty());
    let mut fields = Vec::new();
    for name in &demand.copy {
        let is_it = |line: &(&[u8], &[u8])| line.0.eq_ignore_ascii_case(name.as_bytes());
        fields.extend(lines().filter(is_it).map(|(_, value)| (name.clone(), value.into())));
    }
    let mut cookies = Vec::new();
    for (name, value) in lines().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
        for part in [name, b": ", value, b"\r\n"] {
            cookies.extend_from_slice(part);
        }
    }
    Consent { demand: Arc::clone(demand), fields, cookies }
}
