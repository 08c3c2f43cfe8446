//! A server of HTTP/2 that does as a test tells it, frame by frame.

use std::collections::VecDeque;
use std::sync::Arc;

use afpa_h2::Limits;
use afpa_h2::frame::{self, FrameHeader, HEADER, PREFACE, flag, kind};
use afpa_h2::hpack::{Decoder, encode};
use afpa_testkit::Client;

use crate::rig::{Backend, Conn, Plan, Rig};

/// The first field of a peer's response.
pub(crate) const OK: (&str, &str) = (":status", "200");

/// Has a group's servers asked by HTTP/2.
pub(crate) fn by_http2(plan: &mut Plan) {
    plan.group.http2 = Some(Limits::default());
}

/// Everything that comes until the connection ends, however it does.
pub(crate) fn until_closed(client: &mut Client) -> String {
    let mut all = Vec::new();
    let mut room = [0; 4096];
    while let Ok(n @ 1..) = client.read_raw(&mut room) {
        all.extend_from_slice(&room[..n]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// AFPA before a server that is asked by HTTP/2.
pub(crate) fn rig(server: &Backend) -> Rig {
    Rig::to(&[server], by_http2)
}

/// A connection to AFPA.
pub(crate) struct Peer {
    pub(crate) conn: Conn,
    decoder: Decoder,
    /// Frames that came while another was waited for, to be read next.
    held: VecDeque<(FrameHeader, Vec<u8>)>,
    /// PING is not answered.
    pub(crate) is_deaf: bool,
    /// Types and streams of frames that were passed over, with the first four bytes of their payload.
    pub(crate) passed: Vec<(u8, u32, u32)>,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: u32,
    /// `name=value`, a line each.
    pub(crate) fields: String,
    pub(crate) content: Vec<u8>,
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        let path = self.fields.lines().find_map(|line| line.strip_prefix(":path="));
        path.expect("a path")
    }
}

/// A server whose every connection begins with these settings, and is then the test's.
pub(crate) fn peers(
    settings: &'static [(u16, u32)],
    handle: impl Fn(Peer) + Send + Sync + 'static,
) -> Backend {
    let handle = Arc::new(handle);
    Backend::start(move |conn| {
        if let Some(peer) = Peer::begin(conn, settings) {
            handle(peer);
        }
    })
}

impl Peer {
    pub(crate) fn begin(mut conn: Conn, settings: &[(u16, u32)]) -> Option<Self> {
        assert_eq!(conn.exactly(PREFACE.len())?, PREFACE);
        let mut hello = Vec::new();
        frame::put_settings(&mut hello, settings);
        conn.send(hello);
        let (decoder, held, passed) = (Decoder::default(), VecDeque::new(), Vec::new());
        Some(Self { conn, decoder, held, is_deaf: false, passed })
    }

    /// The next frame; `None` at the end.
    pub(crate) fn frame(&mut self) -> Option<(FrameHeader, Vec<u8>)> {
        self.held.pop_front().or_else(|| self.arriving())
    }

    fn arriving(&mut self) -> Option<(FrameHeader, Vec<u8>)> {
        let header = FrameHeader::read(&self.conn.exactly(HEADER)?)?;
        let payload = self.conn.exactly(header.length)?;
        if header.kind == kind::SETTINGS && !header.has(flag::ACK) {
            self.send(kind::SETTINGS, flag::ACK, 0, b"");
        }
        if header.kind == kind::PING && !self.is_deaf {
            self.send(kind::PING, flag::ACK, 0, &payload);
        }
        Some((header, payload))
    }

    /// The request of a field block that is one frame.
    pub(crate) fn asked(&mut self, header: FrameHeader, block: &[u8]) -> Asked {
        assert!(header.has(flag::END_HEADERS));
        self.conn.count_head();
        Asked { id: header.stream, fields: self.fields(block), content: Vec::new() }
    }

    /// The next head of a request, and whether content follows.
    pub(crate) fn head(&mut self) -> Option<(Asked, bool)> {
        loop {
            let (header, mut payload) = self.frame()?;
            if header.kind == kind::HEADERS {
                let end = header.has(flag::END_STREAM);
                let mut whole = header.has(flag::END_HEADERS);
                while !whole {
                    let (more, fragment) = self.frame()?;
                    payload.extend(fragment);
                    whole = more.has(flag::END_HEADERS);
                }
                let fields = self.fields(&payload);
                self.conn.count_head();
                return Some((Asked { id: header.stream, fields, content: Vec::new() }, !end));
            }
            self.pass(header, &payload);
        }
    }

    fn fields(&mut self, block: &[u8]) -> String {
        let mut fields = String::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let field = |n: &[u8], v: &[u8]| fields += &format!("{}={}\n", text(n), text(v));
        self.decoder.decode(block, field).expect("decoded");
        fields
    }

    fn pass(&mut self, header: FrameHeader, payload: &[u8]) {
        let first = payload.first_chunk().map_or(0, |first| u32::from_be_bytes(*first));
        self.passed.push((header.kind, header.stream, first));
    }

    /// The next request with its content, for which windows are opened; trailers join the fields.
    pub(crate) fn request(&mut self) -> Option<Asked> {
        let (mut asked, mut more) = self.head()?;
        while more {
            let (header, payload) = self.frame()?;
            more = !header.has(flag::END_STREAM) || header.stream != asked.id;
            match header.kind {
                kind::DATA if !payload.is_empty() => {
                    asked.content.extend_from_slice(&payload);
                    let mut more = Vec::new();
                    frame::put_window_update(&mut more, 0, payload.len() as u32);
                    frame::put_window_update(&mut more, asked.id, payload.len() as u32);
                    self.conn.send(more);
                }
                kind::DATA => {}
                kind::HEADERS => asked.fields += &self.fields(&payload),
                _ => {
                    self.pass(header, &payload);
                    more = true;
                }
            }
        }
        Some(asked)
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        let mut out = Vec::new();
        frame::put(&mut out, kind, flags, id, payload);
        self.conn.send(out);
    }

    /// Sends a head, or a trailer section.
    pub(crate) fn fields_on(&mut self, id: u32, end: bool, fields: &[(&str, &str)]) {
        let mut block = Vec::new();
        for (name, value) in fields {
            put_literal(&mut block, name.as_bytes(), value.as_bytes());
        }
        let end = if end { flag::END_STREAM } else { 0 };
        self.send(kind::HEADERS, flag::END_HEADERS | end, id, &block);
    }

    pub(crate) fn data(&mut self, id: u32, end: bool, bytes: &[u8]) {
        self.send(kind::DATA, if end { flag::END_STREAM } else { 0 }, id, bytes);
    }

    /// A whole response.
    pub(crate) fn answer(&mut self, id: u32, content: &str) {
        let length = content.len().to_string();
        self.fields_on(id, false, &[(":status", "200"), ("content-length", &length)]);
        self.data(id, true, content.as_bytes());
    }

    /// Answers each request with its path.
    pub(crate) fn answer_all(&mut self) {
        while let Some(asked) = self.request() {
            let path = asked.path().to_owned();
            self.answer(asked.id, &path);
        }
    }

    pub(crate) fn reset(&mut self, id: u32, code: u32) {
        self.send(kind::RST_STREAM, 0, id, &code.to_be_bytes());
    }

    pub(crate) fn go_away(&mut self, last: u32, code: u32) {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.send(kind::GOAWAY, 0, 0, &payload);
    }

    /// Passes one frame over.
    pub(crate) fn pass_one(&mut self) -> Option<()> {
        let (header, payload) = self.frame()?;
        self.pass(header, &payload);
        Some(())
    }

    /// Reads until a RST_STREAM comes; its stream and code. Other frames are kept and read afterwards.
    pub(crate) fn wait_for_reset(&mut self) -> Option<(u32, u32)> {
        let known = self.passed.iter().find(|(passed, ..)| *passed == kind::RST_STREAM);
        if let Some((_, id, code)) = known {
            return Some((*id, *code));
        }
        loop {
            let (header, payload) = self.arriving()?;
            if header.kind == kind::RST_STREAM {
                self.pass(header, &payload);
                let code = payload.first_chunk().map(|code| u32::from_be_bytes(*code));
                return Some((header.stream, code.expect("four bytes")));
            }
            self.held.push_back((header, payload));
        }
    }
}

/// A field as it is, whatever its case.
fn put_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if name.iter().any(u8::is_ascii_uppercase) {
        assert!(name.len().max(value.len()) < 127);
        out.extend_from_slice(&[0, name.len() as u8]);
        out.extend_from_slice(name);
        out.push(value.len() as u8);
        out.extend_from_slice(value);
    } else {
        encode::put_field(out, name, value);
    }
}
