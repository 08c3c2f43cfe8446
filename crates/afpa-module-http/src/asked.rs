//! A request as its answer needs it: while it lies in the input, and while it waits for a thread.

use std::rc::Rc;
use std::sync::Arc;

use afpa_framework::{Client, Now, Secured};
use afpa_http::edits::{Edits, KeptEdits};
use afpa_http::marks::Marks;
use afpa_http::{BodyLength, FieldSlots, Request, RequestLimits, Status, Version, request};
use afpa_proxy::exchange::Report;
use afpa_router::{RequestSetId, Router};

use crate::demand::Granted;
use crate::errors::{Errors, KeptErrors};
use crate::scope_stats::{InFlight, ScopeStats};

/// A request that is being answered: the client, the request itself, and the source of the answer.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a, 's, 'b> {
    /// The client as the log names it.
    pub(crate) client: Client,
    pub(crate) request: &'a Request<'s, 'b>,
    /// The counters of its request set or site; `None` if it belongs to no site.
    pub(crate) scope: Option<&'a Arc<ScopeStats>>,
    /// The source of the answer, as the log calls it.
    pub(crate) source: &'static str,
    /// When the request was derived; `now` is later if a thread had to find the answer.
    pub(crate) arrived: Now,
    pub(crate) now: Now,
    /// This has to be the last answer on the connection.
    pub(crate) must_close: bool,
    /// The result of the TLS handshake, on a connection with TLS.
    pub(crate) tls: Option<&'a Rc<Secured>>,
    /// The value of Strict-Transport-Security, if the answer is to have one.
    pub(crate) hsts: Option<&'a Arc<str>>,
    /// The operator's changes of the fields.
    pub(crate) edits: Option<Edits<'a>>,
    /// The operator's own error pages.
    pub(crate) errors: Option<Errors<'a>>,
    /// The client was checked.
    pub(crate) granted: Option<&'a Rc<Granted>>,
    /// The exchange with a server before this answer, which is not the server's own.
    pub(crate) exchange: Option<&'a Report>,
}

impl<'a> Asked<'a, '_, '_> {
    /// Adds Strict-Transport-Security to the head at the end of `out`, and the cookies of servers that have consented.
    #[inline]
    pub(crate) fn add_own(&self, out: &mut Vec<u8>) {
        if let Some(value) = self.hsts {
            add_field(out, "Strict-Transport-Security", value.as_bytes());
        }
        for lines in self.granted.iter().flat_map(|granted| granted.cookies()) {
            out.truncate(out.len().saturating_sub(b"\r\n".len()));
            out.extend_from_slice(lines);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Whether the answer may be for this client alone, so that it is neither kept nor one that was kept.
    #[inline]
    pub(crate) fn is_personal(&self) -> bool {
        self.granted.is_some_and(|granted| granted.is_personal())
    }

    /// Whether its client gets cookies of a server that has consented.
    #[inline]
    pub(crate) fn gets_cookies(&self) -> bool {
        self.granted.is_some_and(|granted| granted.cookies().next().is_some())
    }

    /// Makes the changes of the head that begins at `begin` and ends with `out`.
    #[inline]
    pub(crate) fn edit(&self, out: &mut Vec<u8>, begin: usize, status: u16) {
        if let Some(edits) = self.edits {
            edits.apply(out, begin, status, None);
        }
    }

    /// The marks of the request, if it has some.
    pub(crate) fn marks(&self) -> Option<&'a Marks> {
        self.edits.and_then(|edits| edits.marks)
    }

    /// Makes those that depend on the request. The head has the others already.
    #[inline]
    pub(crate) fn add_origin(&self, out: &mut Vec<u8>) {
        for (name, value) in self.edits.iter().flat_map(|edits| edits.own_fields()) {
            add_field(out, name, value);
        }
    }

    /// Whether the operator has a page for an error.
    pub(crate) fn has_page(&self, status: Status) -> bool {
        status.code() >= 400
            && self.errors.is_some_and(|errors| errors.pages.find(status.code()).is_some())
    }

    /// The name of the user, if the client was checked.
    pub(crate) fn user(&self) -> Option<&'a str> {
        self.granted.and_then(|granted| granted.name())
    }

    /// Counts the answer for its site and request set.
    #[inline]
    pub(crate) fn count(&self, status: u16) {
        if let Some(scope) = self.scope {
            scope.answered(status);
        }
    }
}

/// Whether the client sends nothing behind this request: it has asked for the end of the connection, after which it
/// sends no further request (RFC 9112 section 9.6), and the request has no content that may be on its way.
pub(crate) fn is_all_of_client(request: &Request<'_, '_>) -> bool {
    !request.keep_alive && request.body == BodyLength::None
}

/// Adds a field to a head that is complete.
fn add_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.truncate(out.len().saturating_sub(b"\r\n".len()));
    for text in [name.as_bytes(), b": ", value, b"\r\n\r\n"] {
        out.extend_from_slice(text);
    }
}

/// A request that has left the deferred-interrupt context. It owns its head, which is parsed again for
/// the answer.
pub(crate) struct KeptRequest {
    pub(crate) head: Vec<u8>,
    pub(crate) limits: RequestLimits,
    pub(crate) arrived: Now,
    version: Version,
    /// See [`is_all_of_client`].
    pub(crate) is_all_of_client: bool,
    /// The client as the log names it.
    pub(crate) client: Client,
    /// The result of the TLS handshake, on a connection with TLS.
    pub(crate) tls: Option<Rc<Secured>>,
    /// The value of Strict-Transport-Security, if the answer is to have one.
    pub(crate) hsts: Option<Arc<str>>,
    /// The operator's changes of the fields.
    pub(crate) edits: Option<KeptEdits>,
    /// The operator's own error pages.
    errors: Option<Box<KeptErrors>>,
    /// The client was checked.
    pub(crate) granted: Option<Rc<Granted>>,
    /// Counts the request as in flight, if it belongs to a site.
    in_flight: Option<InFlight>,
    /// The target that has taken the place of that in the head.
    pub(crate) rewritten: Option<Box<Rewritten>>,
}

/// A target in the place of that which a client has sent.
pub(crate) struct Rewritten {
    /// Path and query.
    pub(crate) target: Vec<u8>,
    /// How often there was another.
    pub(crate) times: u8,
    /// The request set of this router that answers; `None`: the router says it.
    pub(crate) within: Option<(RequestSetId, Arc<Router>)>,
}

impl Rewritten {
    fn of(request: &Request<'_, '_>) -> Option<Box<Self>> {
        let path = request.target.path().filter(|_| request.rewrites > 0)?;
        let target = match request.target.query() {
            Some(query) => [path, b"?", query].concat(),
            None => path.to_vec(),
        };
        Some(Box::new(Self { target, times: request.rewrites, within: None }))
    }
}

impl KeptRequest {
    /// The facts for its answer; `parsed` is its head, parsed again.
    pub(crate) fn asked<'a, 's, 'b>(
        &'a self,
        parsed: &'a Request<'s, 'b>,
        source: &'static str,
        (now, must_close): (Now, bool),
    ) -> Asked<'a, 's, 'b> {
        Asked {
            client: self.client,
            request: parsed,
            scope: self.scope(),
            source,
            arrived: self.arrived,
            now,
            must_close,
            tls: self.tls.as_ref(),
            hsts: self.hsts.as_ref(),
            edits: self.edits(),
            errors: self.errors(),
            granted: self.granted.as_ref(),
            exchange: None,
        }
    }

    pub(crate) fn new(asked: &Asked<'_, '_, '_>, head: Vec<u8>, limits: RequestLimits) -> Self {
        let (arrived, client, version) = (asked.arrived, asked.client, asked.request.version);
        let (tls, hsts) = (asked.tls.cloned(), asked.hsts.cloned());
        let is_all_of_client = is_all_of_client(asked.request);
        let in_flight = asked.scope.map(InFlight::count);
        let edits = asked.edits.map(Edits::keep);
        let errors = asked.errors.map(|errors| Box::new(errors.keep()));
        let granted = asked.granted.cloned();
        let rewritten = Rewritten::of(asked.request);
        Self {
            head,
            limits,
            arrived,
            version,
            is_all_of_client,
            client,
            tls,
            hsts,
            edits,
            errors,
            granted,
            in_flight,
            rewritten,
        }
    }

    pub(crate) fn edits(&self) -> Option<Edits<'_>> {
        self.edits.as_ref().map(KeptEdits::as_edits)
    }

    /// The marks that it has had so far.
    pub(crate) fn marks(&self) -> Option<Box<Marks>> {
        self.edits().and_then(|edits| edits.marks.copied()).map(Box::new)
    }

    pub(crate) fn errors(&self) -> Option<Errors<'_>> {
        self.errors.as_deref().map(KeptErrors::as_errors)
    }

    pub(crate) fn scope(&self) -> Option<&Arc<ScopeStats>> {
        self.in_flight.as_ref().map(InFlight::scope)
    }

    /// The request set that answers, if the router is not asked. After a reload it is, for the target that was sent.
    pub(crate) fn within(&mut self, router: Option<&Arc<Router>>) -> Option<RequestSetId> {
        let (set, own) = self.rewritten.as_ref()?.within.as_ref()?;
        let set = router.filter(|router| Arc::ptr_eq(own, router)).map(|_| *set);
        if set.is_none() {
            self.rewritten = None;
        }
        set
    }

    /// Parses the head again. It was parsed before under the same limits, so `None` is a defect; it
    /// harms only the answer to this request.
    pub(crate) fn parse<'s, 'b>(
        &'b self,
        slots: &'s mut FieldSlots<'b>,
    ) -> Option<Request<'s, 'b>> {
        match request::parse(&self.head, slots, &self.limits) {
            Ok(Some(mut parsed)) => {
                parsed.version = self.version;
                if let Some(rewritten) = &self.rewritten {
                    parsed.rewrite(&rewritten.target);
                    parsed.rewrites = rewritten.times;
                }
                Some(parsed)
            }
            Ok(None) | Err(_) => {
                debug_assert!(false, "a request that was parsed is one");
                None
            }
        }
    }
}
