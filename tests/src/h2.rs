//! A client of HTTP/2 that sends whole requests, or any frames, as a test demands. It checks every frame that comes.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use afpa_h2::PREFACE;
use afpa_h2::frame::{FrameHeader, HEADER, flag, kind, put, put_settings, setting};
use afpa_h2::hpack::Decoder;
use afpa_testkit::response::{Framing, Response};
use afpa_testkit::{Server, until::with_patience};

/// A connection. Windows are opened as content comes, unless the test does that itself.
pub struct H2Client {
    stream: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
    next: u32,
    /// Each response, as far as it has come, by stream.
    responses: HashMap<u32, Partial>,
    /// Streams in the order in which their responses were complete.
    pub complete: Vec<u32>,
    /// The last stream and the error code of the last GOAWAY.
    pub goaway: Option<(u32, u32)>,
    /// The values of the server's SETTINGS.
    pub settings: HashMap<u16, u32>,
    /// Whether windows are opened as content comes.
    pub opens_windows: bool,
    /// The sum of the WINDOW_UPDATEs of each stream, and of the connection under 0.
    added: HashMap<u32, u64>,
    /// Whether the client sends nothing by itself, such as acknowledgements.
    pub is_silent: bool,
    /// Frames of each type that have come.
    pub frames: HashMap<u8, usize>,
}

/// A response, as far as it has come.
#[derive(Clone, Debug, Default)]
pub struct Partial {
    /// Status codes of interim responses.
    pub interims: Vec<u16>,
    /// The fields, the status among them.
    pub fields: Vec<(String, String)>,
    /// Content.
    pub body: Vec<u8>,
    /// Fields behind it.
    pub trailers: Vec<(String, String)>,
    /// END_STREAM has come.
    pub ended: bool,
    /// The code of RST_STREAM.
    pub reset: Option<u32>,
}

/// The pseudo-fields of a request for a target.
pub fn request<'a>(method: &'a str, target: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![(":method", method), (":scheme", "http"), (":path", target), (":authority", "test")]
}

/// A field block of literals that are not indexed.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            put_length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// An integer of 7 bits and more (RFC 7541 section 5.1).
fn put_length(out: &mut Vec<u8>, length: usize) {
    if length < 127 {
        out.push(length as u8);
        return;
    }
    out.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

impl H2Client {
    /// A connection to a server, with the preface and empty SETTINGS.
    #[track_caller]
    pub fn connect(server: &Server) -> Self {
        Self::connect_with(server.address(), &[])
    }

    /// The same, with settings.
    #[track_caller]
    pub fn connect_with(server: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut client = Self::begin(server);
        let mut hello = PREFACE.to_vec();
        put_settings(&mut hello, settings);
        client.send(&hello);
        client
    }

    /// A connection on which nothing has been said.
    #[track_caller]
    pub fn begin(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).expect("connect");
        let patience = with_patience(Duration::from_secs(20));
        stream.set_read_timeout(Some(patience)).expect("a time-out");
        stream.set_write_timeout(Some(patience)).expect("a time-out");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream,
            decoder: Decoder::default(),
            input: Vec::new(),
            next: 1,
            responses: HashMap::new(),
            complete: Vec::new(),
            goaway: None,
            settings: HashMap::new(),
            opens_windows: true,
            added: HashMap::new(),
            is_silent: false,
            frames: HashMap::new(),
        }
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("sent");
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the server has closed the connection, or reads nothing for long.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends one frame.
    #[track_caller]
    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        put(&mut bytes, kind, flags, stream, payload);
        self.send(&bytes);
    }

    /// Sends a request with its content; returns its stream.
    #[track_caller]
    pub fn request(&mut self, fields: &[(&str, &str)], content: &[u8]) -> u32 {
        let id = self.open(fields, content.is_empty());
        if !content.is_empty() {
            let chunks = content.chunks(16_384).count();
            for (at, part) in content.chunks(16_384).enumerate() {
                let end = if at + 1 == chunks { flag::END_STREAM } else { 0 };
                self.frame(kind::DATA, end, id, part);
            }
        }
        id
    }

    /// Sends the head of a request; returns its stream.
    #[track_caller]
    pub fn open(&mut self, fields: &[(&str, &str)], end: bool) -> u32 {
        let id = self.next;
        self.next += 2;
        let end = if end { flag::END_STREAM } else { 0 };
        self.frame(kind::HEADERS, flag::END_HEADERS | end, id, &block(fields));
        id
    }

    /// Asks for a target, and waits for the response.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        let id = self.request(&request("GET", target), b"");
        self.response(id)
    }

    /// Waits for the response on a stream.
    #[track_caller]
    pub fn response(&mut self, id: u32) -> Response {
        let partial = self.whole(id);
        assert_eq!(partial.reset.filter(|code| *code != 0), None, "stream {id}: {partial:?}");
        let status = partial.fields.first().expect("a status");
        assert_eq!(status.0, ":status");
        Response {
            minor_version: 1,
            status: status.1.parse().expect("a number"),
            reason: String::new(),
            fields: partial.fields.get(1..).unwrap_or_default().to_vec(),
            body: partial.body,
            trailers: partial.trailers,
            framing: Framing::Length,
        }
    }

    /// Waits until the stream has ended, one way or the other.
    #[track_caller]
    pub fn whole(&mut self, id: u32) -> Partial {
        self.until("the response is whole", |client| {
            client.responses.get(&id).is_some_and(|p| p.ended || p.reset.is_some())
        });
        self.responses.remove(&id).expect("it is there")
    }

    /// The response on a stream, as far as it has come.
    pub fn so_far(&self, id: u32) -> Partial {
        self.responses.get(&id).cloned().unwrap_or_default()
    }

    /// Reads frames until `holds`.
    #[track_caller]
    pub fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            match self.next() {
                Ok(true) => {}
                Ok(false) => panic!("the connection ended before {what}; GOAWAY {:?}", self.goaway),
                Err(error) => panic!("{error} before {what}"),
            }
        }
    }

    /// Reads frames to the end of the connection; returns what GOAWAY said.
    #[track_caller]
    pub fn end(&mut self) -> Option<(u32, u32)> {
        loop {
            match self.next() {
                Ok(true) => {}
                Ok(false) => return self.goaway,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return self.goaway,
                Err(error) => panic!("{error} before the connection ended"),
            }
        }
    }

    /// Waits for the answer to a PING: everything before it has been read.
    #[track_caller]
    pub fn ping(&mut self) {
        let before = self.frames.get(&kind::PING).copied().unwrap_or_default();
        self.frame(kind::PING, 0, 0, b"are you?");
        self.until("PING is answered", |client| {
            client.frames.get(&kind::PING).is_some_and(|count| *count > before)
        });
    }

    /// Reads frames until a stream may have sent so many bytes since its beginning, and the connection so many.
    #[track_caller]
    pub fn until_open(&mut self, id: u32, of_stream: u64, of_connection: u64) {
        const INITIAL: u64 = 65_535; // RFC 9113, 6.9.2
        self.until("the windows are open", |client| {
            let added = |id| client.added.get(&id).copied().unwrap_or_default();
            let initial = client.settings.get(&setting::INITIAL_WINDOW_SIZE);
            let initial = initial.map_or(INITIAL, |size| u64::from(*size));
            initial + added(id) >= of_stream && INITIAL + added(0) >= of_connection
        });
    }

    /// Reads a frame; false at the end of the connection.
    fn next(&mut self) -> io::Result<bool> {
        let header = loop {
            if let Some(header) = FrameHeader::read(&self.input)
                && self.input.len() >= HEADER + header.length
            {
                break header;
            }
            let mut room = [0; 65_536];
            let n = self.stream.read(&mut room)?;
            if n == 0 {
                assert!(self.input.is_empty(), "the connection ended within a frame");
                return Ok(false);
            }
            self.input.extend_from_slice(&room[..n]);
        };
        assert!(header.length <= 16_384, "a frame is too long");
        let rest = self.input.split_off(HEADER + header.length);
        let frame = std::mem::replace(&mut self.input, rest);
        *self.frames.entry(header.kind).or_default() += 1;
        self.understand(header, &frame[HEADER..]);
        Ok(true)
    }

    fn understand(&mut self, header: FrameHeader, payload: &[u8]) {
        let id = header.stream;
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four"));
        match header.kind {
            kind::SETTINGS if header.has(flag::ACK) => assert!(payload.is_empty()),
            kind::SETTINGS => {
                for setting in payload.chunks(6) {
                    let id = u16::from_be_bytes([setting[0], setting[1]]);
                    let value = setting[2..6].try_into().expect("four bytes");
                    self.settings.insert(id, u32::from_be_bytes(value));
                }
                self.reply(kind::SETTINGS, flag::ACK, 0, &[]);
            }
            kind::PING if !header.has(flag::ACK) => {
                self.reply(kind::PING, flag::ACK, 0, payload);
            }
            kind::GOAWAY => self.goaway = Some((number(0), number(4))),
            kind::RST_STREAM => {
                self.responses.entry(id).or_default().reset = Some(number(0));
            }
            kind::HEADERS => self.on_head(header, payload),
            kind::DATA => {
                let partial = self.responses.entry(id).or_default();
                assert!(!partial.ended && !partial.fields.is_empty(), "DATA out of place");
                partial.body.extend_from_slice(payload);
                if header.has(flag::END_STREAM) {
                    self.ended(id);
                }
                if self.opens_windows && !payload.is_empty() {
                    let length = (payload.len() as u32).to_be_bytes();
                    self.reply(kind::WINDOW_UPDATE, 0, 0, &length);
                    self.reply(kind::WINDOW_UPDATE, 0, id, &length);
                }
            }
            kind::WINDOW_UPDATE => *self.added.entry(id).or_default() += u64::from(number(0)),
            kind::PING => {}
            kind => panic!("a frame of type {kind} from a server"),
        }
    }

    /// Sends a frame that answers another one. The server may be gone.
    fn reply(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        if !self.is_silent {
            let mut bytes = Vec::new();
            put(&mut bytes, kind, flags, stream, payload);
            let _ = self.try_send(&bytes);
        }
    }

    fn on_head(&mut self, header: FrameHeader, payload: &[u8]) {
        assert!(header.has(flag::END_HEADERS), "the tests ask for no long heads");
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        self.decoder
            .decode(payload, |name, value| fields.push((text(name), text(value))))
            .expect("a field block");
        for (name, _) in &fields {
            assert!(!name.chars().any(char::is_uppercase), "{name}");
            let about = ["connection", "keep-alive", "transfer-encoding", "upgrade"];
            assert!(!about.contains(&name.as_str()), "{name} is about a connection");
        }
        let partial = self.responses.entry(header.stream).or_default();
        let status = fields.first().filter(|(name, _)| name == ":status");
        match status.map(|(_, status)| status.as_str()) {
            None => partial.trailers = fields,
            Some(status) if status.starts_with('1') => {
                partial.interims.push(status.parse().expect("a number"));
            }
            Some(_) => {
                assert!(partial.fields.is_empty(), "two final heads");
                partial.fields = fields;
            }
        }
        if header.has(flag::END_STREAM) {
            self.ended(header.stream);
        }
    }

    fn ended(&mut self, id: u32) {
        self.responses.entry(id).or_default().ended = true;
        self.complete.push(id);
    }

    /// Makes the windows of all streams so large that they never matter, and opens none from then on.
    #[track_caller]
    pub fn open_wide(&mut self) {
        let window = 0x7fff_0000_u32;
        let mut bytes = Vec::new();
        put_settings(&mut bytes, &[(setting::INITIAL_WINDOW_SIZE, window)]);
        put(&mut bytes, kind::WINDOW_UPDATE, 0, 0, &window.to_be_bytes());
        self.send(&bytes);
        self.opens_windows = false;
    }
}
