//! TCP by hand: every segment is made and read by the test, so that losing, repeating and reordering
//! them needs no other tool. IPv4, over a packet socket; the kernel of the namespace knows nothing of it.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, recv, send};

use super::frame::checksum;
use super::relay::packet_socket;
use super::{PORT, SERVER_V4};

/// The client's address: the namespace's kernel does not own it, so it stays out of the way.
pub const ADDRESS: &str = "10.99.0.3";

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;
pub const ECE: u8 = 64;
pub const CWR: u8 = 128;

/// A segment to send. `..client.next()` gives the usual ones.
#[derive(Clone, Debug)]
pub struct Segment {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub payload: Vec<u8>,
    pub sack: Vec<(u32, u32)>,
    pub ts_value: u32,
    pub ts_echo: u32,
    pub spoil_checksum: bool,
}

/// A segment that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub ts_value: u32,
    pub ts_echo: u32,
    pub payload: Vec<u8>,
    pub checksum_holds: bool,
    /// IP: routers may not cut it.
    pub whole: bool,
}

impl Received {
    pub fn is_from_kernel(&self) -> bool {
        String::from_utf8_lossy(&self.payload).contains("Server: afpa-kernel\r\n")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.payload).into_owned()
    }
}

pub struct RawClient {
    socket: OwnedFd,
    macs: [u8; 12],
    pub port: u16,
    /// Next sequence number to send, next expected.
    pub seq: u32,
    pub ack: u32,
    pub timestamps: bool,
    /// SACK is offered.
    pub sacks: bool,
    /// ECN is asked for.
    pub marks: bool,
    started: Instant,
    ts_recent: u32,
}

static NEXT_PORT: AtomicU16 = AtomicU16::new(20000);

fn parse_mac(text: &str) -> Vec<u8> {
    text.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect()
}

impl RawClient {
    pub fn open(server_mac: &str, client_mac: &str) -> Self {
        let socket = packet_socket("afpa0", 20);
        let mut macs = [0; 12];
        macs[..6].copy_from_slice(&parse_mac(server_mac));
        macs[6..].copy_from_slice(&parse_mac(client_mac));
        let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
        let (seq, started) = (u32::MAX - 2000, Instant::now()); // the sequence space wraps early
        Self {
            socket,
            macs,
            port,
            seq,
            ack: 0,
            timestamps: true,
            sacks: true,
            marks: false,
            started,
            ts_recent: 0,
        }
    }

    /// The next segment as an honest client would send it.
    pub fn next(&self) -> Segment {
        Segment {
            seq: self.seq,
            ack: self.ack,
            flags: ACK,
            window: 500,
            payload: Vec::new(),
            sack: Vec::new(),
            ts_value: 1000 + self.started.elapsed().as_millis() as u32,
            ts_echo: self.ts_recent,
            spoil_checksum: false,
        }
    }

    pub fn data(&self, text: &str) -> Segment {
        Segment { flags: ACK | PSH, payload: text.as_bytes().to_vec(), ..self.next() }
    }

    /// Three-way handshake; window scale 7.
    pub fn connect(&mut self) {
        let marks = if self.marks { ECE | CWR } else { 0 };
        self.send(&Segment { flags: SYN | marks, ack: 0, ..self.next() });
        let answer = self.receive(Duration::from_secs(2)).expect("SYN-ACK");
        assert_eq!((answer.flags & !ECE, answer.ack), (SYN | ACK, self.seq.wrapping_add(1)));
        self.seq = self.seq.wrapping_add(1);
        self.ack = answer.seq.wrapping_add(1);
        self.ts_recent = answer.ts_value;
        self.send(&self.next());
        std::thread::sleep(Duration::from_millis(5));
    }

    pub fn get(&self, path: &str) -> Segment {
        self.data(&format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n"))
    }

    /// Send a request, take the response as received, and move on. Panics when it does not come.
    pub fn ask(&mut self, request: &Segment) -> Received {
        self.send(request);
        self.seq = request.seq.wrapping_add(request.payload.len() as u32);
        let mut whole = self.take_data();
        while !complete(&whole.text()) {
            whole.payload.extend(self.take_data().payload);
        }
        whole
    }

    /// The stream of bytes that arrives within the time, acknowledged as it comes.
    pub fn absorb(&mut self, time: Duration) -> String {
        let deadline = Instant::now() + time;
        let mut stream = Vec::new();
        while let Some(segment) =
            deadline.checked_duration_since(Instant::now()).and_then(|time| self.receive(time))
        {
            let old = segment.seq.wrapping_sub(self.ack) > 1 << 31;
            if !segment.payload.is_empty() && !old {
                self.accept(&segment);
                stream.extend(segment.payload);
                self.send(&self.next());
            }
        }
        String::from_utf8_lossy(&stream).into_owned()
    }

    /// The next segment with payload, which must be in order.
    fn take_data(&mut self) -> Received {
        loop {
            let segment = self.receive(Duration::from_secs(2)).expect("an answer");
            // A server that waited for its acknowledgement sends the same again.
            let old = segment.seq.wrapping_sub(self.ack) > 1 << 31;
            if !segment.payload.is_empty() && !old {
                self.accept(&segment);
                return segment;
            }
        }
    }

    /// What came next in order was received.
    pub fn accept(&mut self, reply: &Received) {
        assert_eq!(reply.seq, self.ack, "in order");
        assert!(
            reply.ts_value.wrapping_sub(self.ts_recent) < 1 << 31,
            "timestamps never run backwards (PAWS)"
        );
        self.ack =
            reply.seq.wrapping_add(reply.payload.len() as u32 + u32::from(reply.flags & FIN != 0));
        self.ts_recent = reply.ts_value;
    }

    pub fn send(&self, segment: &Segment) {
        let frame = self.build(segment);
        send(self.socket.as_raw_fd(), &frame, MsgFlags::empty()).expect("sent");
    }

    fn build(&self, s: &Segment) -> Vec<u8> {
        let options = self.options(s);
        let mut tcp = Vec::new();
        tcp.extend(self.port.to_be_bytes());
        tcp.extend(PORT.to_be_bytes());
        tcp.extend(s.seq.to_be_bytes());
        tcp.extend(s.ack.to_be_bytes());
        tcp.extend([((20 + options.len()) / 4 * 16) as u8, s.flags]);
        tcp.extend(s.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(&s.payload);
        let (source, destination) = (address(ADDRESS), address(SERVER_V4));
        let sum =
            !checksum(&[&source, &destination, &[0, 6], &(tcp.len() as u16).to_be_bytes(), &tcp]);
        tcp[16..18].copy_from_slice(&(sum ^ u16::from(s.spoil_checksum)).to_be_bytes());

        let mut ip = vec![0x45, 0];
        ip.extend((20 + tcp.len() as u16).to_be_bytes());
        ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
        ip.extend(source);
        ip.extend(destination);
        let sum = !checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        [&self.macs[..], &[8, 0], &ip, &tcp].concat()
    }

    fn options(&self, s: &Segment) -> Vec<u8> {
        let mut options = Vec::new();
        if s.flags & SYN != 0 {
            let sack = if self.sacks { [4, 2] } else { [1, 1] };
            options.extend([2, 4, 5, 180, sack[0], sack[1], 1, 1, 1, 3, 3, 7]); // MSS 1460, SACK, scale 7
        }
        if self.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(s.ts_value.to_be_bytes());
            options.extend(s.ts_echo.to_be_bytes());
        }
        if !s.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * s.sack.len() as u8]);
            s.sack.iter().for_each(|(from, to)| {
                options.extend([from.to_be_bytes(), to.to_be_bytes()].concat())
            });
        }
        options
    }

    /// The next segment of this connection, or None in time.
    pub fn receive(&self, patience: Duration) -> Option<Received> {
        let deadline = Instant::now() + patience;
        let mut buffer = [0; 65536];
        while Instant::now() < deadline {
            let Ok(read) = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) else {
                continue;
            };
            if let Some(received) = self.parse(&buffer[..read]) {
                return Some(received);
            }
        }
        None
    }

    /// Everything that comes within the time.
    pub fn collect(&self, time: Duration) -> Vec<Received> {
        let deadline = Instant::now() + time;
        std::iter::from_fn(|| self.receive(deadline.checked_duration_since(Instant::now())?))
            .collect()
    }

    fn parse(&self, frame: &[u8]) -> Option<Received> {
        let word = |bytes: &[u8], at: usize| {
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
        };
        if frame.len() < 54
            || frame[12..14] != [8, 0]
            || frame[23] != 6
            || frame[26..30] != address(SERVER_V4)
        {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let tcp = frame.get(34..14 + length)?;
        if tcp[2..4] != self.port.to_be_bytes() {
            return None;
        }
        let header = usize::from(tcp[12] >> 4) * 4;
        // Linux puts the option behind two NOPs, in a SYN behind MSS and SACK-permitted.
        let stamps = [20, 24]
            .into_iter()
            .find(|at| tcp.get(at + 2..at + 4) == Some(&[8, 10]) && header >= at + 12);
        let length = (tcp.len() as u16).to_be_bytes();
        Some(Received {
            seq: word(tcp, 4),
            ack: word(tcp, 8),
            flags: tcp[13],
            window: u16::from_be_bytes([tcp[14], tcp[15]]),
            ts_value: stamps.map_or(0, |at| word(tcp, at + 4)),
            ts_echo: stamps.map_or(0, |at| word(tcp, at + 8)),
            payload: tcp[header..].to_vec(),
            whole: frame[20] & 0x40 != 0,
            checksum_holds: checksum(&[&frame[26..34], &[0, 6], &length, tcp]) == 0xffff,
        })
    }
}

/// Is this a whole response?
fn complete(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).expect("a length");
    body.len() >= length.parse().expect("a number")
}

fn address(text: &str) -> [u8; 4] {
    text.parse::<Ipv4Addr>().expect("an address").octets()
}
