//! The request as the server gets it: written anew from the parsed request, never copied.
//!
//! So AFPA and the server cannot disagree about where a request ends (RFC 9112 section 11.2): there is one Host
//! field, at most one of Content-Length and Transfer-Encoding, both from parsed values, and no field that
//! concerns only the connection to the client (RFC 9110 section 7.6.1).

mod marks;
mod origin;
mod policy;
mod upgrade;

use afpa_http::edits::Edits;
use afpa_http::syntax::{is_alike, list, number};
use afpa_http::{BodyLength, Known, Method, Request, Target, Version, target};

use crate::fields::{self, Kind, Nominated, put, put_length};
use crate::trailers::MayTrail;
pub use marks::{PSEUDONYM, scheme};
use marks::{put_host, put_marks};
pub use origin::Origin;
pub use policy::{HostPolicy, Mark, RequestPolicy};
pub use upgrade::Upgrade;

/// How often a request may have passed this proxy. A proxy that is configured as its own server would pass
/// the request on for ever; this breaks the loop.
const ROUNDS: usize = 8;

/// Why a request is not passed on to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotForwardable {
    /// CONNECT: this is not a forward proxy.
    #[error("tunnels to other servers are not offered")]
    Connect,
    /// TRACE: the answer would show fields to scripts that must not see them.
    #[error("TRACE is not answered")]
    Trace,
    /// `OPTIONS *`, which is about this server.
    #[error("the request is about this server")]
    AboutThisServer,
    /// Max-Forwards is 0 (RFC 9110 section 7.6.2): this proxy has to answer.
    #[error("the request goes no further, as it asks")]
    LastStop,
    /// It has passed this proxy too often.
    #[error("the request goes round in a ring")]
    Ring,
    /// It has more Connection lines than a sensible client sends.
    #[error("too many Connection fields")]
    Connection,
}

/// The head of a request to a server.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    bytes: Vec<u8>,
    /// The position at which the server's own name is inserted as the host.
    host_at: Option<usize>,
    upgrade: Upgrade,
    /// The fields that may trail the content.
    may_trail: MayTrail,
    takes_trailers: bool,
    /// It names a step of a trace that AFPA has made up for an exchange of this request.
    names_span: bool,
}

impl RequestHead {
    /// An empty head that uses the memory of a vector.
    pub fn in_memory(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes, ..Self::default() }
    }

    /// A head that is written already: it is complete, and the same for all servers.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// Its memory, for another head.
    pub fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes of the head, for a server of the given name and port.
    pub fn bytes_for(&mut self, server: impl std::fmt::Display) -> &[u8] {
        if let Some(at) = self.host_at {
            let end = memchr::memchr(b'\r', self.bytes.get(at..).unwrap_or_default());
            self.bytes.splice(at..at + end.unwrap_or(0), server.to_string().into_bytes());
        }
        &self.bytes
    }

    /// Whether the head is the same for all servers.
    pub fn is_final(&self) -> bool {
        self.host_at.is_none()
    }

    /// The head, if it is the same for all servers.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it asks to change the protocol.
    pub fn asks_upgrade(&self) -> bool {
        self.upgrade != Upgrade::None
    }

    /// To which protocols.
    pub fn upgrade(&self) -> Upgrade {
        self.upgrade
    }

    /// Takes fields out, and puts others in: for a cache, whose conditions go before those of the client.
    pub fn edit(&mut self, without: &[&str], with: &[(&str, &[u8])]) {
        let head = std::mem::take(&mut self.bytes);
        self.bytes.reserve(head.len() + 128);
        for line in head.split_inclusive(|&byte| byte == b'\n') {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            if line == b"\r\n"
                || without.iter().any(|out| name.eq_ignore_ascii_case(out.as_bytes()))
            {
                continue;
            }
            self.bytes.extend_from_slice(line);
        }
        for (name, value) in with {
            put(&mut self.bytes, name.as_bytes(), value);
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Takes out all fields that servers may take for one of these names, also as trailers, and puts others in: nobody
    /// but AFPA tells servers what these say.
    pub fn claim<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str> + Clone,
        with: &[(&str, &[u8])],
    ) {
        let is_claimed =
            |name: &[u8]| names.clone().any(|claimed| is_alike(name, claimed.as_bytes()));
        let without: Vec<String> = self
            .bytes
            .split(|&byte| byte == b'\n')
            .skip(1)
            .map(|line| line.split(|&byte| byte == b':').next().unwrap_or_default())
            .filter(|name| is_claimed(name))
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        self.may_trail.remove(is_claimed);
        if !without.is_empty() || !with.is_empty() {
            let without: Vec<&str> = without.iter().map(String::as_str).collect();
            self.edit(&without, with);
        }
    }

    /// Makes the operator's changes of its fields. The host is not among them, and stays before them. Some servers read
    /// trailers as fields of the head, so that no client's marks may trail.
    pub fn apply(&mut self, edits: Edits<'_>) {
        edits.apply_to_request(&mut self.bytes);
        self.names_span = edits.marks.is_some_and(|marks| marks.trace.is_some());
        if edits.marks.is_some() {
            self.may_trail.remove(|name| edits.rules.is_mark(name));
        }
    }

    /// Has it the marks of the request, and none of the operator's changes.
    pub fn mark(&mut self, edits: Edits<'_>) {
        edits.put_marks(&mut self.bytes);
        self.names_span = edits.marks.is_some_and(|marks| marks.trace.is_some());
    }

    /// Takes out the step of a trace that AFPA has made up, because nobody will tell of that step.
    pub fn forget_span(&mut self) {
        if std::mem::take(&mut self.names_span) {
            self.claim(["traceparent", "tracestate"].into_iter(), &[]);
        }
    }

    /// Whether the client waits for a 100 (Continue).
    pub(crate) fn expects_continue(&self) -> bool {
        memchr::memmem::find(&self.bytes, b"\r\nExpect: ").is_some()
    }

    /// Puts the whole content behind the head, with its length and without an expectation.
    pub(crate) fn put_content(&mut self, content: &[u8]) {
        let mut digits = itoa::Buffer::new();
        let length = digits.format(content.len()).as_bytes();
        let framing = ["content-length", "transfer-encoding", "trailer", "expect"];
        self.edit(&framing, &[("Content-Length", length)]);
        self.bytes.extend_from_slice(content);
    }

    /// Which trailer fields are passed on.
    pub(crate) fn may_trail(&self) -> &MayTrail {
        &self.may_trail
    }

    /// Whether the client takes the trailer fields of a response.
    pub fn takes_trailers(&self) -> bool {
        self.takes_trailers
    }

    /// Writes the head of `request` in the memory of an earlier one. `path`: in the spelling that servers get
    /// ([`target::spell`]).
    ///
    /// # Errors
    /// See [`NotForwardable`]; the head must not be used then.
    pub fn write(
        &mut self,
        request: &Request<'_, '_>,
        path: &[u8],
        policy: &RequestPolicy,
        origin: Origin,
    ) -> Result<(), NotForwardable> {
        self.bytes.clear();
        self.host_at = None;
        self.names_span = false;
        let query = admit(request)?;
        let survey = Survey::of(request)?;
        let is_allowed = survey.wants_upgrade(request) && policy.allows_upgrade(survey.upgrade);
        self.upgrade = match is_allowed {
            true => Upgrade::of(request, survey.upgrade),
            false => Upgrade::None,
        };
        self.may_trail = MayTrail::of_request(request, survey.nominated, policy);
        self.takes_trailers = self.upgrade == Upgrade::None && survey.takes_trailers(request);

        let out = &mut self.bytes;
        // One allocation holds it: the fields that are added are short.
        out.reserve(request.head_len + 256);
        out.extend_from_slice(request.method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(path);
        if let Some(query) = query {
            out.push(b'?');
            target::encode_query(query, out);
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        match &policy.host {
            HostPolicy::Keep if !request.host.is_absent() => put_host(request, out),
            HostPolicy::Name(name) => out.extend_from_slice(name.as_bytes()),
            HostPolicy::Keep | HostPolicy::Server => self.host_at = Some(out.len()),
        }
        out.extend_from_slice(b"\r\n");
        put_fields(request, &survey, policy, origin, out);
        put_framing(request, out);
        put_marks(request, policy, origin, out);
        if self.upgrade != Upgrade::None {
            put(out, b"Connection", b"upgrade");
            put(out, b"Upgrade", survey.upgrade);
        } else if self.takes_trailers {
            put(out, b"Connection", b"TE");
            put(out, b"TE", b"trailers");
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// The query of a request that may be passed on.
fn admit<'b>(request: &Request<'_, 'b>) -> Result<Option<&'b [u8]>, NotForwardable> {
    match (request.method, request.target) {
        (Method::Connect, _) | (_, Target::Authority(_)) => Err(NotForwardable::Connect),
        (Method::Trace, _) => Err(NotForwardable::Trace),
        (_, Target::Asterisk) => Err(NotForwardable::AboutThisServer),
        (_, Target::Origin { query, .. } | Target::Absolute { query, .. }) => Ok(query),
    }
}

/// The findings of one pass over the fields.
#[derive(Default)]
struct Survey<'b> {
    nominated: Nominated<'b>,
    upgrade: &'b [u8],
    /// A TE line asks for trailer fields.
    te_trailers: bool,
    max_forwards: Option<u64>,
}

impl<'b> Survey<'b> {
    fn of(request: &Request<'_, 'b>) -> Result<Self, NotForwardable> {
        let mut survey = Self::default();
        let mut rounds = 0;
        for (name, value) in request.fields() {
            match fields::kind(name.as_bytes()) {
                Kind::Connection => {
                    survey.nominated.add(value).map_err(|_| NotForwardable::Connection)?;
                }
                Kind::Upgrade => survey.upgrade = value,
                Kind::Te => {
                    let mut codings = list(value);
                    survey.te_trailers |=
                        codings.any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
                }
                Kind::Via => rounds += list(value).filter(|hop| is_ours(hop)).count(),
                Kind::MaxForwards if request.method == Method::Options => {
                    survey.max_forwards = number(value);
                }
                _ => {}
            }
        }
        if rounds >= ROUNDS {
            return Err(NotForwardable::Ring);
        }
        if survey.max_forwards == Some(0) {
            return Err(NotForwardable::LastStop);
        }
        Ok(survey)
    }

    fn wants_upgrade(&self, request: &Request<'_, '_>) -> bool {
        !self.upgrade.is_empty()
            && request.version != Version::Http10
            && request.body == BodyLength::None
            && self.nominated.contains(b"upgrade")
    }

    /// Whether the client itself accepts trailer fields (RFC 9110 section 10.1.4): its TE is named in
    /// Connection. HTTP/1.0 has no trailer fields.
    fn takes_trailers(&self, request: &Request<'_, '_>) -> bool {
        // HTTP/2 and HTTP/3 have no Connection to name it in (RFC 9113 section 8.2.2).
        let is_said = request.version.has_streams() || self.nominated.contains(b"te");
        self.te_trailers && request.version != Version::Http10 && is_said
    }
}

fn is_ours(hop: &[u8]) -> bool {
    hop.rsplit(|&byte| byte == b' ').next() == Some(PSEUDONYM.as_bytes())
}

fn put_fields(
    request: &Request<'_, '_>,
    survey: &Survey<'_>,
    policy: &RequestPolicy,
    origin: Origin,
    out: &mut Vec<u8>,
) {
    let fields = request.fields().filter(|(name, _)| !policy.tells(name.as_bytes()));
    for (name, value) in fields {
        let name = name.as_bytes();
        let passes = match fields::kind(name) {
            Kind::EndToEnd | Kind::ContentType | Kind::Date | Kind::Via => {
                !survey.nominated.contains(name)
            }
            // A client's own Early-Data is passed on (RFC 8470 section 5.1), unless AFPA writes the field itself.
            Kind::EarlyData => !origin.is_early,
            Kind::Forwarded => policy.forwarded.for_origin(origin) == Mark::Keep,
            Kind::XForwardedFor | Kind::XForwardedHost | Kind::XForwardedProto => {
                policy.x_forwarded.for_origin(origin) == Mark::Keep
            }
            // Nothing is written in their place, so to append is to leave them as they are.
            Kind::FrontRequest | Kind::FrontClient => {
                policy.x_forwarded.for_origin(origin).passes() && !survey.nominated.contains(name)
            }
            Kind::MaxForwards => {
                if let Some(left) = survey.max_forwards {
                    let left = left.saturating_sub(1);
                    put(out, b"Max-Forwards", itoa::Buffer::new().format(left).as_bytes());
                }
                false
            }
            Kind::Trailer => {
                request.body == BodyLength::Chunked && !survey.nominated.contains(name)
            }
            Kind::Connection
            | Kind::HopByHop
            | Kind::Te
            | Kind::ContentLength
            | Kind::TransferEncoding
            | Kind::Host
            | Kind::Expect
            | Kind::Upgrade => false,
        };
        if passes {
            put(out, name, value);
        }
    }
}

fn put_framing(request: &Request<'_, '_>, out: &mut Vec<u8>) {
    match request.body {
        BodyLength::Length(length) => put_length(out, length),
        BodyLength::Chunked => put(out, b"Transfer-Encoding", b"chunked"),
        // Methods that mean content say so when there is none (RFC 9110 section 8.6).
        BodyLength::None => {
            let means_content =
                matches!(request.method, Method::Post | Method::Put | Method::Patch);
            if means_content || request.has(Known::ContentLength) {
                put_length(out, 0);
            }
        }
    }
    if request.expect_continue {
        put(out, b"Expect", b"100-continue");
    }
}

#[cfg(test)]
mod tests;
