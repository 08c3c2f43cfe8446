//! Both ends of a connection, as far as a judge must know them: the client on the wire, and the server's kernel with the
//! server behind it. Each panics when it gets a segment that it must not get.

use std::collections::BTreeMap;

use super::wire::Arrived;

const FAR: u32 = 1 << 16;
const ACK: u8 = 0x10;

/// One direction's bytes, as its receiver has them.
#[derive(Default)]
pub(super) struct Stream {
    first: u32,
    bytes: BTreeMap<u32, u8>,
    pub(super) next: u32,
}

impl Stream {
    pub(super) fn from(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// The number of the next byte.
    pub(super) fn number(&self) -> u32 {
        self.first.wrapping_add(self.next)
    }

    /// Stores bytes that came at this number. Bytes that came there before, and were not read yet, must be the same.
    /// Bytes below the next one are not looked at.
    fn put(&mut self, seq: u32, payload: &[u8], whose: &str) {
        let at = seq.wrapping_sub(self.first);
        let old = self.next;
        for (at, byte) in
            payload.iter().enumerate().map(|(i, byte)| (at.wrapping_add(i as u32), *byte))
        {
            if (at.wrapping_sub(old) as i32) < 0 {
                continue;
            }
            let known = *self.bytes.entry(at).or_insert(byte);
            assert_eq!(known, byte, "{whose} got another byte at {at} than before");
        }
        while self.bytes.contains_key(&self.next) {
            self.next += 1;
        }
    }

    /// The ranges behind gaps (SACK): up to three blocks.
    pub(super) fn blocks(&self) -> Vec<(u32, u32)> {
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        for at in self.bytes.range(self.next..).map(|(at, _)| self.first.wrapping_add(*at)) {
            let behind = at.wrapping_add(1);
            match blocks.last().copied() {
                Some((begin, end)) if end == at => {
                    blocks.pop();
                    blocks.push((begin, behind));
                }
                _ if blocks.len() == 3 => break,
                _ => blocks.push((at, behind)),
            }
        }
        blocks
    }

    pub(super) fn text(&self) -> String {
        let bytes = (0..self.next).map(|at| self.bytes[&at]).collect::<Vec<u8>>();
        String::from_utf8(bytes).expect("these tests speak ASCII")
    }
}

/// The page that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Pinned,
    Long,
    Missing,
}

impl Page {
    fn path(self) -> &'static str {
        match self {
            Self::Pinned => "/kernel.html",
            Self::Long => "/long.html",
            Self::Missing => "/user.html",
        }
    }

    pub(super) fn body(self) -> Vec<u8> {
        match self {
            Self::Long => (0..500).flat_map(|line| format!("{line:07}\n").into_bytes()).collect(),
            _ => b"from the kernel".to_vec(),
        }
    }
}

/// The server's response to a request: it has the request's number.
fn response(id: usize) -> String {
    let body = format!("the server's, {id}. ").repeat(1 + id * 37 % 90);
    format!("HTTP/1.1 200 OK\r\nX-Request: {id}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// The client.
pub(super) struct Client {
    pub(super) sent: Vec<u8>,
    pub(super) first: u32,
    pub(super) asked: Vec<Page>,
    /// Bytes of its own that were acknowledged.
    pub(super) acked: u32,
    pub(super) got: Stream,
    pub(super) answered: usize,
    pub(super) ts_recent: u32,
}

impl Client {
    pub(super) fn new(first: u32, server: u32) -> Self {
        Self {
            sent: Vec::new(),
            first,
            asked: Vec::new(),
            acked: 0,
            got: Stream::from(server),
            answered: 0,
            ts_recent: 0,
        }
    }

    /// One more request; its bytes count as sent.
    pub(super) fn ask(&mut self, page: Page) {
        let id = self.asked.len();
        self.asked.push(page);
        let head =
            format!("GET {} HTTP/1.1\r\nHost: server\r\nUser-Agent: {id}\r\n\r\n", page.path());
        self.sent.extend(head.into_bytes());
    }

    pub(super) fn receive(&mut self, arrived: &Arrived) {
        let acked = arrived.ack.wrapping_sub(self.first);
        if arrived.flags & ACK != 0 {
            let sane = acked <= self.sent.len() as u32 || acked > u32::MAX - FAR;
            assert!(
                sane,
                "the client's bytes end at {}, and {acked} are acknowledged",
                self.sent.len()
            );
            if acked <= self.sent.len() as u32 {
                self.acked = self.acked.max(acked);
            }
        }
        assert!(arrived.flags & 0x07 == 0, "nobody ends this connection: {arrived:?}");
        if let Some(value) = arrived.ts_value {
            if !arrived.payload.is_empty() && (value.wrapping_sub(self.ts_recent) as i32) < 0 {
                return; // older than the latest segment (PAWS)
            }
            self.ts_recent = self.ts_recent.max(value);
        }
        self.got.put(arrived.seq, &arrived.payload, "the client");
        self.judge();
    }

    /// Whole responses: each is the one that belongs to its request.
    fn judge(&mut self) {
        let text = self.got.text();
        let mut rest = text.as_str();
        self.answered = 0;
        while let Some((head, after)) = rest.split_once("\r\n\r\n") {
            let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
            let length: usize = field("Content-Length: ").expect("a length").parse().expect("one");
            let Some(body) = after.get(..length) else { return };
            let page = self.asked.get(self.answered).expect("no more responses than requests");
            if field("X-Request: ").is_some() {
                let whole = &rest[..head.len() + 4 + length];
                assert_eq!(whole, response(self.answered), "the server's response");
            } else {
                assert!(head.contains("Server: afpa-kernel") && *page != Page::Missing, "{head}");
                assert_eq!(body.as_bytes(), page.body(), "the kernel's answer");
            }
            self.answered += 1;
            rest = &after[length..];
        }
    }

    pub(super) fn has_all(&self) -> bool {
        self.answered == self.asked.len() && self.acked as usize == self.sent.len()
    }
}

/// The server, and its kernel's TCP.
pub(super) struct Server {
    pub(super) got: Stream,
    pub(super) sent: Vec<u8>,
    pub(super) first: u32,
    pub(super) acked: u32,
    pub(super) owes_ack: bool,
    pub(super) ts_recent: u32,
    requests: usize,
    last: Option<usize>,
}

impl Server {
    pub(super) fn new(client: u32, first: u32) -> Self {
        Self {
            got: Stream::from(client),
            sent: Vec::new(),
            first,
            acked: 0,
            owes_ack: false,
            ts_recent: 0,
            requests: 0,
            last: None,
        }
    }

    /// RFC 9293, 3.10.7.4, as Linux has it.
    pub(super) fn receive(&mut self, arrived: &Arrived) {
        if arrived.flags & ACK == 0 {
            return;
        }
        assert!(arrived.flags & 0x07 == 0, "nobody ends this connection: {arrived:?}");
        let stale = |value: u32| (value.wrapping_sub(self.ts_recent) as i32) < 0;
        let begin = arrived.seq.wrapping_sub(self.got.number()) as i32;
        let end = begin.wrapping_add(arrived.payload.len() as i32);
        let acked = arrived.ack.wrapping_sub(self.first);
        let window = FAR as i32;
        self.owes_ack |= !arrived.payload.is_empty();
        if arrived.ts_value.is_some_and(stale) || end < 0 || begin > window {
            self.owes_ack = true;
            return;
        }
        if acked > self.sent.len() as u32 && acked < u32::MAX - FAR {
            self.owes_ack = true;
            return;
        }
        if acked <= self.sent.len() as u32 {
            self.acked = self.acked.max(acked);
        }
        if begin <= 0 {
            self.ts_recent = arrived.ts_value.unwrap_or(self.ts_recent);
        }
        self.got.put(arrived.seq, &arrived.payload, "the server");
        self.serve();
    }

    /// The requests that it got are whole ones of the client's, each once and in order.
    fn serve(&mut self) {
        let text = self.got.text();
        let heads: Vec<&str> = text.split_inclusive("\r\n\r\n").collect();
        let whole = heads.iter().filter(|head| head.ends_with("\r\n\r\n")).count();
        for head in &heads[self.requests..whole] {
            let id = head.lines().find_map(|line| line.strip_prefix("User-Agent: "));
            let id: usize = id.expect("a whole request").parse().expect("a number");
            assert!(head.starts_with("GET /") && self.last.is_none_or(|last| last < id), "{head}");
            self.last = Some(id);
            self.sent.extend(response(id).into_bytes());
        }
        self.requests = whole;
    }
}
