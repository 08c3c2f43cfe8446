//! Other machines that keep answers: how this cache asks them, and is asked.
//!
//! A question is the request of the client, without what is about its connection, and with a line of its own. The cache knows
//! neither the line nor the machines: [`Peers`] does. An answer without the proof that was asked for is of a stranger.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use afpa_http::{FieldSlots, Method, request};
use afpa_proxy::exchange::Settings;
use afpa_proxy::select::Group;

use crate::key::{KeyRoom, Place, SCOPE_LEN, put_primary};
use crate::request::{CacheRequest, ClientHead};

/// The machines that keep answers for one another.
pub trait Peers: Send + Sync {
    /// The machine to ask for the answer with a key, of the place with these rules. `None`: a server is asked.
    fn choose(&self, place: &[u8; 16], key: &[u8]) -> Option<ToPeer>;

    /// Reads the question in a head. `None`: there is none, or it is not answered.
    fn read(&self, head: &[u8]) -> Option<FromPeer>;

    /// The hash of a key, the same on each machine.
    fn key(&self, place: &[u8; 16], key: &[u8]) -> u64;

    /// The question for this key is answered, or refused.
    fn served(&self, key: u64, is_answered: bool);
}

/// The machine to ask.
pub struct ToPeer {
    /// The machine, as a group of one server.
    pub group: Arc<Group>,
    /// Time-outs and limits towards it.
    pub settings: Arc<Settings>,
    /// Whether this machine keeps the answer as well.
    pub keeps: bool,
    /// The question.
    pub asking: Box<dyn Asking>,
}

/// A question to another machine.
pub trait Asking {
    /// Puts it behind a head that is complete. Whether it could be.
    fn put(&mut self, client: PeerClient, head: &mut Vec<u8>) -> bool;

    /// Whether a field is the proof that the other machine has answered it.
    fn is_proof(&self, name: &[u8], value: &[u8]) -> bool;

    /// Whether the other machine was heard just now.
    fn is_there(&self) -> bool;

    /// Counts it.
    fn ended(&self, end: PeerEnd);
}

/// The end of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// It was answered.
    Answered,
    /// It was refused.
    Refused,
    /// There was no answer.
    Failed,
}

/// The client for whom another machine is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerClient {
    /// Its address; none for one on a unix socket.
    pub address: Option<IpAddr>,
    /// Whether its connection is one of TLS.
    pub secure: bool,
}

/// A question of another machine.
#[derive(Clone, Debug)]
pub struct FromPeer {
    /// The digest of the rules of the place.
    pub place: [u8; 16],
    /// The hash of the key.
    pub key: u64,
    /// The client of the other machine.
    pub client: PeerClient,
    /// The lines of the answer that prove who has given it.
    pub proof: Arc<[u8]>,
}

/// The part of a primary key that is the same on each machine.
pub(crate) fn shared_key(primary: &[u8]) -> &[u8] {
    primary.split_at(primary.len().saturating_sub(SCOPE_LEN)).0
}

/// The key of a request, as other machines have it too.
pub fn key_of<'k>(room: &'k mut KeyRoom, wanted: &CacheRequest<'_, '_, '_>) -> &'k [u8] {
    let CacheRequest { cache, request, url, path, origin, sent, .. } = *wanted;
    let place = Place { scope: cache.scope, url, path, origin, sent };
    put_primary(&cache.policy, wanted.exchange, request, place, &mut room.primary);
    shared_key(&room.primary)
}

/// The head of a question; `None`: the request is none that is passed on to another machine. `with_conditions`: those of the
/// client stay.
pub(crate) fn head_of(head: ClientHead<'_>, with_conditions: bool) -> Option<Vec<u8>> {
    let mut slots = FieldSlots::new();
    let parsed = request::parse(head.bytes, &mut slots, &head.limits).ok()??;
    let path = parsed.target.path().filter(|_| parsed.method == Method::Get)?;
    if parsed.host.is_absent() {
        return None;
    }
    let mut text = Vec::with_capacity(head.bytes.len() + 320);
    text.extend_from_slice(b"GET ");
    text.extend_from_slice(path);
    if let Some(query) = parsed.target.query() {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    text.extend_from_slice(b" HTTP/1.1\r\n");
    let mut put = |name: &[u8], value: &[u8]| {
        [name, b": ", value, b"\r\n"].iter().for_each(|part| text.extend_from_slice(part));
    };
    put(b"Host", parsed.host.as_bytes());
    for (name, value) in parsed.fields() {
        let is = |known: &&str| name.eq_ignore_ascii_case(known);
        let is_condition = CONDITIONS.iter().any(is);
        if !LEFT_OUT.iter().any(is) && (with_conditions || !is_condition) {
            put(name.as_bytes(), value);
        }
    }
    text.extend_from_slice(b"\r\n");
    Some(text)
}

/// Conditions that the cache evaluates.
pub(crate) const CONDITIONS: [&str; 2] = ["If-None-Match", "If-Modified-Since"];

/// Fields about the connection, the content, or a part of the answer.
const LEFT_OUT: [&str; 15] = [
    "connection",
    "content-length",
    "early-data",
    "expect",
    "host",
    "http2-settings",
    "if-range",
    "keep-alive",
    "max-forwards",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl fmt::Debug for ToPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToPeer").field("group", &self.group.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_http::RequestLimits;

    #[test]
    fn a_question_has_nothing_of_the_connection_and_the_conditions_on_demand() {
        let bytes = b"GET http://a.test/x%2Fy?z HTTP/1.1\r\nHost: a.test\r\nCookie: b=c\r\nConnection: keep-alive, te\r\nTE: trailers\r\n\
            If-None-Match: \"x\"\r\nRange: bytes=0-1\r\nAccept-Encoding: br\r\nKeep-Alive: 5\r\n\r\n";
        let head = ClientHead { bytes, limits: RequestLimits::default() };
        let text = |with| String::from_utf8(head_of(head, with).unwrap()).unwrap();
        let begin = "GET /x%2Fy?z HTTP/1.1\r\nHost: a.test\r\nCookie: b=c\r\n";
        assert_eq!(text(false), format!("{begin}Accept-Encoding: br\r\n\r\n"));
        let conditions = "If-None-Match: \"x\"\r\n";
        assert_eq!(text(true), format!("{begin}{conditions}Accept-Encoding: br\r\n\r\n"));
        for other in [&b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"GET / HTTP/1.0\r\n\r\n"] {
            let head = ClientHead { bytes: other, limits: RequestLimits::default() };
            assert!(head_of(head, true).is_none());
        }
    }
}
