//! The questions of other machines for answers of servers that may be kept.
//!
//! The other machine has routed the request of its client, let it in, and counted it. So the place is taken from the question,
//! and this machine does nothing but to look the answer up, or to ask a server for it.

use std::rc::Rc;

use afpa_framework::{Cached, Client, Now, Outbox, Secured, Table};
use afpa_http::{BodyLength, Method, Status, Version};
use afpa_shared_cache::{NoQuestion, shared_key_of};

use super::cached::errors_of;
use super::kept::{self, Kept};
use super::miss::AskedByPeer;
use super::{Http, HttpConnection, HttpRequest, Missed};
use crate::asked::Asked;
use crate::remote::put_lines;
use crate::route::{self, Route};

impl<T: Table> Http<T> {
    /// Answers the question of another machine, or refuses it: that one asks its server then. Strangers get an error, and the end
    /// of the connection.
    pub(super) fn derive_for_peer<'m, 's, 'b>(
        &'m mut self,
        connection: &mut HttpConnection,
        now: Now,
        request: &'m HttpRequest<'s, 'b>,
        out: &mut Outbox,
    ) -> Cached<Missed<'m, 's, 'b>>
    where
        'b: 's,
        's: 'm,
    {
        let Self {
            global, responses, keys, responder, scopes, core, left, paths, tls, marker, ..
        } = self;
        let parsed = &request.parsed;
        let must_close = left.contains(&connection.listener);
        *tls = None;
        let asked = Asked {
            client: connection.client,
            request: parsed,
            scope: None,
            source: "peer",
            arrived: now,
            now,
            must_close,
            tls: None,
            hsts: None,
            edits: None,
            errors: None,
            granted: None,
            exchange: None,
        };
        let peers = global.responses.as_ref().and_then(|responses| responses.peers());
        let plain = parsed.method == Method::Get
            && parsed.body == BodyLength::None
            && parsed.version == Version::Http11;
        let question = match peers.as_ref().filter(|_| plain) {
            // Only the question itself tells who asks.
            Some(peers) => peers.read(request.head),
            None => Err(NoQuestion::Strange),
        };
        let (peers, question) = match (peers, question) {
            (Some(peers), Ok(question)) => (peers, question),
            (Some(_), Err(NoQuestion::Behind)) => {
                return Cached::Hit(responder.page(asked, Status::SERVICE_UNAVAILABLE, out));
            }
            _ => {
                let asked = Asked { must_close: true, ..asked };
                return Cached::Hit(responder.page(asked, Status::NOT_FOUND, out));
            }
        };
        let refuse = |status, responder: &mut crate::respond::Responder, out: &mut Outbox| {
            peers.served(question.key, false);
            Cached::Hit(responder.page(asked, status, out))
        };
        // This machine and the other one do not mean the same.
        let differs = Status::MISDIRECTED_REQUEST;
        let set = global.peers.sets.get(&question.place).copied();
        let found = set.and_then(|set| Some((set, route::for_peer(global, set, parsed, paths)?)));
        let (Some((set, (to, edits))), Some(view)) = (found, responses.as_mut()) else {
            return refuse(differs, responder, out);
        };
        *tls = question.client.secure.then(|| Rc::new(secured()));
        let client = question.client.address.map_or(Client::Unix, Client::Ip);
        let way = (client, tls.as_deref(), now);
        let Some(lookup) = global.shared_request(parsed, (&to, set), way) else {
            return refuse(differs, responder, out);
        };
        if peers.key(&question.place, shared_key_of(keys, &lookup)) != question.key {
            return refuse(differs, responder, out);
        }
        let scope = Some((to.site, Some(set)));
        let asked =
            Asked { client, scope: scopes.get(to.site, Some(set)), tls: tls.as_ref(), ..asked };
        let begin = out.bytes.len();
        let plan = match kept::look_up((view, keys), lookup, asked, responder, out) {
            Kept::Answered(persistence) => {
                put_lines(&question.proof, begin, &mut out.bytes);
                peers.served(question.key, true);
                return Cached::Hit(persistence);
            }
            Kept::Ask(Some(plan)) => {
                // An error of a server passes with the proof: the other machine has the page for its client.
                let errors = errors_of(global, scope, client);
                plan.for_peer(errors.and_then(|errors| errors.pages.replaces.clone()))
            }
            Kept::Ask(None) | Kept::Instead(_) => None,
        };
        let Some(plan) = plan else { return refuse(Status::SERVICE_UNAVAILABLE, responder, out) };
        peers.served(question.key, true);
        let mut edits = edits;
        if let Some(edits) = edits.as_mut().filter(|edits| edits.rules.marks()) {
            edits.marks = Some(marker.mark(edits.rules, parsed, (true, None)));
        }
        let (head, route, learnt) = (request.head, Route::Distributed(to), None);
        let (plan, peer) = (Some(plan), Some(AskedByPeer { question, edits }));
        Cached::Miss(Missed {
            asked,
            head,
            route,
            scope,
            plan,
            learnt,
            peer,
            global,
            responder,
            core,
        })
    }
}

/// The connection of the other machine's client is one of TLS; nothing else of it is known.
fn secured() -> Secured {
    Secured {
        version: "",
        cipher: "",
        resumed: false,
        protocol: None,
        subject: None,
        authorities: None,
        is_early: false,
    }
}
