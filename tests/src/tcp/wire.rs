//! TCP by hand: every segment is made and read by the test.
//!
//! The address is one that no kernel owns, so nothing but the test answers.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use afpa_netlab::{Bed, PacketSocket};

use super::client::{find, get};
use super::frame::{self, ACK, CWR, ECE, FIN, PSH, Received, SYN, Segment};
use super::lab::PORT;

const PATIENCE: Duration = Duration::from_secs(10);
/// Clients of the bed have lower numbers.
const FIRST_ADDRESS: u32 = 3000;

/// What the client offers in its SYN.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Shift of its window; None: no scaling.
    pub scale: Option<u8>,
    /// Largest segment it takes.
    pub mss: u16,
    /// Explicit congestion notification.
    pub ecn: bool,
    /// Window field of its segments.
    pub window: u16,
}

impl Default for Habits {
    fn default() -> Self {
        Self { timestamps: true, sack: true, scale: Some(7), mss: 1460, ecn: false, window: 1000 }
    }
}

/// A hand-made client.
pub struct Wire {
    socket: PacketSocket,
    macs: Vec<u8>,
    client: SocketAddr,
    server: SocketAddr,
    /// Next sequence number to send.
    pub seq: u32,
    /// Next one expected.
    pub ack: u32,
    /// What it offers; set before [`Wire::connect`].
    pub habits: Habits,
    /// Newest timestamp of the server.
    pub ts_recent: u32,
    started: Instant,
    /// Segments that came.
    pub received: u64,
    /// Window field of what was accepted last.
    pub server_window: u16,
    /// What was accepted last carried the server's FIN.
    pub fin_accepted: bool,
    /// Accepted bytes that no response was made of yet.
    rest: Vec<u8>,
}

static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);

impl Wire {
    /// A client of this server address.
    pub fn new(bed: &Bed, server: IpAddr) -> Self {
        let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
        let address = Bed::client_address(server, FIRST_ADDRESS);
        let (to, from) = (mac(bed.server()), mac(bed.client()));
        let done = bed
            .server()
            .command("ip")
            .args(["neigh", "replace", &address.to_string(), "lladdr", from.trim()])
            .args(["dev", Bed::DEVICE])
            .status();
        assert!(done.expect("ip runs").success(), "a neighbour");
        let socket = bed.client().run(|| PacketSocket::open(Bed::DEVICE)).expect("inside");
        Self {
            socket: socket.expect("a packet socket"),
            macs: [parse_mac(&to), parse_mac(&from)].concat(),
            client: SocketAddr::new(address, port),
            server: SocketAddr::new(server, PORT),
            seq: u32::MAX - 900, // the sequence space wraps soon
            ack: 0,
            habits: Habits::default(),
            ts_recent: 0,
            started: Instant::now(),
            received: 0,
            server_window: 0,
            fin_accepted: false,
            rest: Vec::new(),
        }
    }

    /// The client's end.
    pub fn address(&self) -> SocketAddr {
        self.client
    }

    /// Speak from another address: a forger.
    pub fn disguise(&mut self, as_if: SocketAddr) {
        self.client = as_if;
    }

    /// Three-way handshake.
    pub fn connect(&mut self) {
        let syn = self.syn();
        self.send(&syn);
        let answer = self.await_segment("SYN-ACK", |segment| segment.flags & SYN != 0);
        assert_eq!((answer.flags & (SYN | ACK), answer.ack), (SYN | ACK, self.seq.wrapping_add(1)));
        assert_eq!(answer.flags & ECE != 0, self.habits.ecn, "ECN as offered: {answer:?}");
        self.seq = self.seq.wrapping_add(1);
        self.ack = answer.seq.wrapping_add(1);
        self.ts_recent = answer.ts_value;
        self.send(&self.next());
        // The first request proves the connection, which must be established by then.
        std::thread::sleep(Duration::from_millis(5));
    }

    fn syn(&self) -> Segment {
        let habits = self.habits;
        let mut options = vec![2, 4];
        options.extend(habits.mss.to_be_bytes());
        options.extend(if habits.sack { [4, 2, 1, 1] } else { [1; 4] });
        options.extend(habits.scale.map_or([1; 4], |shift| [1, 3, 3, shift]));
        options.extend(self.stamps(0));
        let flags = if habits.ecn { SYN | ECE | CWR } else { SYN };
        Segment { ack: 0, flags, options, ..self.next() }
    }

    /// The next segment as an honest client would send it.
    pub fn next(&self) -> Segment {
        Segment {
            seq: self.seq,
            ack: self.ack,
            flags: ACK,
            window: self.habits.window,
            payload: Vec::new(),
            options: self.stamps(self.ts_recent),
            ecn: 0,
        }
    }

    /// The same, with SACK blocks.
    pub fn sack(&self, blocks: &[(u32, u32)]) -> Segment {
        let mut segment = self.next();
        segment.options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for (from, to) in blocks {
            segment.options.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        }
        segment
    }

    /// Content.
    pub fn data(&self, content: impl AsRef<[u8]>) -> Segment {
        Segment { flags: ACK | PSH, payload: content.as_ref().to_vec(), ..self.next() }
    }

    /// A request.
    pub fn get(&self, path: &str) -> Segment {
        self.data(get(path))
    }

    fn stamps(&self, echo: u32) -> Vec<u8> {
        let value = 1000 + self.started.elapsed().as_millis() as u32;
        let stamps = [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat();
        if self.habits.timestamps { stamps } else { Vec::new() }
    }

    /// Put it on the wire.
    pub fn send(&self, segment: &Segment) {
        let frame = frame::build(&self.macs, self.client, self.server, segment);
        assert!(self.socket.send(&frame).expect("sent"), "room");
    }

    /// Send content, and count it as sent.
    pub fn push(&mut self, segment: &Segment) {
        self.send(segment);
        self.seq = segment.seq.wrapping_add(segment.payload.len() as u32);
    }

    /// The next segment of this connection, in time.
    pub fn receive(&mut self, patience: Duration) -> Option<Received> {
        let deadline = Instant::now() + patience;
        let mut buffer = [0; 65600];
        loop {
            while let Some(length) = self.socket.receive(&mut buffer).expect("received") {
                let received = Received::whole(&buffer[..length]);
                let ours = |r: &Received| r.source == PORT && r.destination == self.client.port();
                if let Some(received) = received.filter(ours) {
                    self.received += 1;
                    return Some(received);
                }
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            frame::await_readable(&self.socket, left);
        }
    }

    /// The next segment for which this holds.
    pub fn await_segment(&mut self, what: &str, matches: impl Fn(&Received) -> bool) -> Received {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let segment = self.receive(left).unwrap_or_else(|| panic!("waited in vain for {what}"));
            if matches(&segment) {
                return segment;
            }
        }
    }

    /// Everything that comes within the time: only to show that something does *not* come.
    pub fn collect(&mut self, time: Duration) -> Vec<Received> {
        let deadline = Instant::now() + time;
        std::iter::from_fn(|| self.receive(deadline.checked_duration_since(Instant::now())?))
            .collect()
    }

    /// What came next in order was received; not acknowledged yet.
    pub fn accept(&mut self, segment: &Received) {
        assert_eq!(segment.seq, self.ack, "in order: {segment:?}");
        if self.habits.timestamps {
            let step = segment.ts_value.wrapping_sub(self.ts_recent);
            assert!(step < 1 << 31, "timestamps never run backwards (PAWS): {segment:?}");
            self.ts_recent = segment.ts_value;
        }
        self.server_window = segment.window;
        self.fin_accepted = segment.flags & FIN != 0;
        self.ack = segment.end();
    }

    /// The next segment with content, which must be in order; accepted.
    pub fn take(&mut self) -> Received {
        let segment = self.await_segment("content", |segment| !segment.payload.is_empty());
        self.accept(&segment);
        segment
    }

    /// Send a request and take its whole response; the last segment of it is not acknowledged yet.
    pub fn ask(&mut self, request: &Segment) -> String {
        self.push(request);
        self.take_response()
    }

    /// The next whole response with a Content-Length, repetitions aside.
    pub fn take_response(&mut self) -> String {
        loop {
            if let Some(length) = response_length(&self.rest) {
                let response: Vec<u8> = self.rest.drain(..length).collect();
                return String::from_utf8_lossy(&response).into_owned();
            }
            let begin = self.ack;
            let fresh =
                |s: &Received| !s.payload.is_empty() && s.end().wrapping_sub(begin) as i32 > 0;
            let segment = self.await_segment("a response", fresh);
            self.accept(&segment);
            self.rest.extend(segment.payload);
        }
    }

    /// Acknowledge what was accepted.
    pub fn acknowledge(&self) {
        self.send(&self.next());
    }

    /// GET from user mode, acknowledged.
    pub fn ask_user(&mut self) {
        let reply = self.ask(&self.get("/user.html"));
        assert!(reply.ends_with("from nginx"), "{reply}");
        self.acknowledge();
    }

    /// GET from the kernel, acknowledged.
    pub fn ask_kernel(&mut self) {
        let reply = self.ask(&self.get("/kernel.html"));
        assert!(reply.contains("afpa-kernel") && reply.ends_with("from the kernel"), "{reply}");
        self.acknowledge();
    }
}

/// Of a response that is there completely.
fn response_length(bytes: &[u8]) -> Option<usize> {
    let end = find(bytes, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let whole = end + 4 + length.map_or(0, |length| length.parse().expect("a number"));
    (bytes.len() >= whole).then_some(whole)
}

fn mac(namespace: &afpa_netlab::Namespace) -> String {
    let path = format!("/sys/class/net/{}/address", Bed::DEVICE);
    let out = namespace.command("cat").arg(path).output().expect("cat runs");
    String::from_utf8(out.stdout).expect("a MAC")
}

fn parse_mac(text: &str) -> Vec<u8> {
    let byte = |digits: &str| u8::from_str_radix(digits, 16).expect("hexadecimal");
    text.trim().split(':').map(byte).collect()
}
