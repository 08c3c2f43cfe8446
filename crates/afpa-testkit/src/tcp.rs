//! TCP by hand: every segment is made and read by the test, so that losing, repeating and reordering them needs no
//! other tool.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::packet::{
    ACK, CWR, ECE, FIN, MacPair, PSH, PacketSocket, RST, SYN, Segment, SynOptions,
};

const PATIENCE: Duration = Duration::from_secs(10);
/// As long as Linux waits with the acknowledgement of a part (RFC 9293, 3.8.6.3).
const DELAYED_ACK: Duration = Duration::from_millis(40);
const LARGEST_FRAME: usize = 65_600;

/// The carrier of the frames of a [`RawClient`].
pub trait Link: Send {
    /// Puts a frame on the wire.
    fn send(&self, frame: &[u8]);
    /// The length of the next frame, if one comes within the time.
    fn receive(&self, frame: &mut [u8], patience: Duration) -> Option<usize>;
}

impl Link for PacketSocket {
    fn send(&self, frame: &[u8]) {
        assert!(PacketSocket::send(self, frame).expect("sent"), "the device has room");
    }

    fn receive(&self, frame: &mut [u8], patience: Duration) -> Option<usize> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(length) = PacketSocket::receive(self, frame).expect("received") {
                return Some(length);
            }
            self.wait(deadline.checked_duration_since(Instant::now())?);
        }
    }
}

/// The options that the client offers in its SYN, and its window.
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

/// A client without a TCP stack. Its address is one that no kernel owns, so nothing but the test answers.
pub struct RawClient {
    link: Box<dyn Link>,
    macs: MacPair,
    client: SocketAddr,
    server: SocketAddr,
    /// Next sequence number to send.
    pub seq: u32,
    /// Next one expected.
    pub ack: u32,
    /// The options that it offers; set before [`RawClient::connect`].
    pub habits: Habits,
    /// Newest timestamp of the server.
    pub ts_recent: u32,
    started: Instant,
    /// Window field of the segment that was accepted last.
    pub server_window: u16,
    /// Whether the segment that was accepted last carried the server's FIN.
    pub fin_accepted: bool,
    /// The accepted part of responses that are not whole yet: the first segment, with all the bytes.
    rest: Option<Segment>,
}

impl RawClient {
    /// A client at one address of a server at another; `macs` has the server's first.
    pub fn new(
        link: impl Link + 'static,
        macs: MacPair,
        client: SocketAddr,
        server: SocketAddr,
    ) -> Self {
        Self {
            link: Box::new(link),
            macs,
            client,
            server,
            seq: u32::MAX - 900, // the sequence space wraps soon
            ack: 0,
            habits: Habits::default(),
            ts_recent: 0,
            started: Instant::now(),
            server_window: 0,
            fin_accepted: false,
            rest: None,
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
    #[track_caller]
    pub fn connect(&mut self) {
        self.send(&self.syn());
        let answer = self.await_segment("SYN-ACK", |segment| segment.flags & SYN != 0);
        assert_eq!((answer.flags & (SYN | ACK), answer.ack), (SYN | ACK, self.seq.wrapping_add(1)));
        assert_eq!(answer.flags & ECE != 0, self.habits.ecn, "ECN as offered: {answer:?}");
        self.seq = self.seq.wrapping_add(1);
        self.ack = answer.end();
        self.ts_recent = answer.ts_value;
        self.acknowledge();
        // The first request proves the connection, which must be established by then.
        std::thread::sleep(Duration::from_millis(5));
    }

    fn syn(&self) -> Segment {
        let Habits { sack, scale, mss, ecn, .. } = self.habits;
        let flags = if ecn { SYN | ECE | CWR } else { SYN };
        let syn = SynOptions { mss: Some(mss), sack, scale };
        Segment { ack: 0, flags, syn, ts_echo: 0, ..self.next() }
    }

    /// The next segment as an honest client would send it; `..client.next()` gives what a test leaves as it is.
    pub fn next(&self) -> Segment {
        let now = 1000 + self.started.elapsed().as_millis() as u32;
        let (ts_value, ts_echo) =
            if self.habits.timestamps { (now, self.ts_recent) } else { (0, 0) };
        Segment {
            seq: self.seq,
            ack: self.ack,
            flags: ACK,
            window: self.habits.window,
            ts_value,
            ts_echo,
            ..Segment::new(self.client, self.server)
        }
    }

    /// The same, with SACK blocks.
    pub fn sack(&self, blocks: &[(u32, u32)]) -> Segment {
        Segment { sack: blocks.to_vec(), ..self.next() }
    }

    /// Content.
    pub fn data(&self, content: impl AsRef<[u8]>) -> Segment {
        Segment { flags: ACK | PSH, payload: content.as_ref().to_vec(), ..self.next() }
    }

    /// A GET of the shortest kind.
    pub fn get(&self, path: &str) -> Segment {
        self.data(format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n"))
    }

    /// Puts a segment on the wire, from this client to its server, whatever addresses it names.
    pub fn send(&self, segment: &Segment) {
        self.link.send(&self.frame(segment));
    }

    /// The frame of a segment, as [`RawClient::send`] would put it on the wire.
    pub fn frame(&self, segment: &Segment) -> Vec<u8> {
        let segment = Segment { from: self.client, to: self.server, ..segment.clone() };
        segment.frame(&self.macs)
    }

    /// Puts any frame on the wire.
    pub fn send_frame(&self, frame: &[u8]) {
        self.link.send(frame);
    }

    /// Send and receive by another link from now on.
    pub fn relink(&mut self, link: impl Link + 'static) {
        self.link = Box::new(link);
    }

    /// Send content, and count it as sent.
    pub fn push(&mut self, segment: &Segment) {
        self.send(segment);
        self.seq = segment.seq.wrapping_add(segment.payload.len() as u32);
    }

    /// The same, and wait until the server's TCP has acknowledged it: only then is it sure that its packet was received,
    /// and not overtaken by one of another connection.
    #[track_caller]
    pub fn deliver(&mut self, segment: &Segment) {
        self.push(segment);
        self.await_segment("an acknowledgement", |answer| answer.ack == self.seq);
    }

    /// Acknowledge what was accepted.
    pub fn acknowledge(&self) {
        self.send(&self.next());
    }

    /// The next segment of this connection, in time.
    pub fn receive(&self, patience: Duration) -> Option<Segment> {
        let deadline = Instant::now() + patience;
        let mut frame = [0; LARGEST_FRAME];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let length = self.link.receive(&mut frame, left)?;
            let segment = Segment::parse(&frame[..length]);
            let ours = |s: &Segment| s.from == self.server && s.to.port() == self.client.port();
            if let Some(segment) = segment.filter(ours) {
                return Some(segment);
            }
        }
    }

    /// The next segment for which this holds.
    #[track_caller]
    pub fn await_segment(&self, what: &str, matches: impl Fn(&Segment) -> bool) -> Segment {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let segment = self.receive(left).unwrap_or_else(|| panic!("waited in vain for {what}"));
            if matches(&segment) {
                return segment;
            }
        }
    }

    /// The next segment, and all others within `time` after it. For the first one it waits as long as for anything.
    pub fn answers(&self, time: Duration) -> Vec<Segment> {
        let first = self.receive(PATIENCE);
        first.into_iter().chain(self.collect(time)).collect()
    }

    /// Everything that comes within the time, or is there at its end: only to show that something does *not* come.
    pub fn collect(&self, time: Duration) -> Vec<Segment> {
        let deadline = Instant::now() + time;
        std::iter::from_fn(|| self.receive(deadline.saturating_duration_since(Instant::now())))
            .collect()
    }

    /// Accepts the next segment in order, and does not acknowledge it yet.
    #[track_caller]
    pub fn accept(&mut self, segment: &Segment) {
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

    /// Accepts the next segment with new content, which must be in order. Earlier segments may come again meanwhile: a
    /// server's TCP retransmits when the test was kept from acknowledging them in time.
    #[track_caller]
    pub fn take(&mut self) -> Segment {
        let segment = self.await_segment("content", |segment| self.is_new(segment));
        self.accept(&segment);
        segment
    }

    /// Content that was not accepted yet.
    pub fn is_new(&self, segment: &Segment) -> bool {
        !segment.payload.is_empty() && segment.end().wrapping_sub(self.ack) as i32 > 0
    }

    /// Send a request and take its whole response; the last segment of it is not acknowledged yet.
    #[track_caller]
    pub fn ask(&mut self, request: &Segment) -> Segment {
        self.push(request);
        self.take_response()
    }

    /// The next whole response with a Content-Length, repetitions aside: its first segment, with the bytes of all.
    #[track_caller]
    pub fn take_response(&mut self) -> Segment {
        loop {
            if let Some(response) = self.rest.as_mut().and_then(split_response) {
                self.rest.take_if(|rest| rest.payload.is_empty());
                return response;
            }
            // A part is acknowledged in time: a server may keep the rest until then (Nagle's algorithm, RFC 9293, 3.7.4).
            let soon = self.rest.is_some().then(|| self.receive(DELAYED_ACK)).flatten();
            let segment = soon.filter(|segment| self.is_new(segment)).unwrap_or_else(|| {
                if self.rest.is_some() {
                    self.acknowledge();
                }
                self.await_segment("a response", |segment| self.is_new(segment))
            });
            self.accept(&segment);
            match &mut self.rest {
                Some(rest) => rest.payload.extend(segment.payload),
                None => self.rest = Some(segment),
            }
        }
    }

    /// The bytes that come, in order, acknowledged as they come: until they end so, and nothing follows for a moment.
    #[track_caller]
    pub fn absorb(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            let segment = self.take();
            text += &segment.text();
            self.acknowledge();
        }
        let more = self.collect(Duration::from_millis(20));
        assert!(!more.iter().any(|segment| self.is_new(segment)), "{more:?} behind {text}");
        text
    }

    /// Our FIN, and the numbers behind it.
    pub fn finish(&mut self) {
        self.send(&Segment { flags: FIN | ACK, ..self.next() });
        self.seq = self.seq.wrapping_add(1);
    }

    /// A reset with the numbers that the server expects.
    pub fn reset(&self) {
        self.send(&Segment { flags: RST | ACK, ..self.next() });
    }
}

/// Takes a response off the front of the bytes, once all of it is there.
fn split_response(rest: &mut Segment) -> Option<Segment> {
    let length = response_length(&rest.payload)?;
    let payload = rest.payload.drain(..length).collect();
    Some(Segment { payload, ..rest.clone() })
}

fn response_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let whole = end + 4 + length.map_or(0, |length| length.parse().expect("a number"));
    (bytes.len() >= whole).then_some(whole)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Segments in memory: those that the server will send in turn, and those that the client has sent.
    #[derive(Clone, Default)]
    struct Queue(Arc<Mutex<(VecDeque<Segment>, Vec<Segment>)>>);

    impl Link for Queue {
        fn send(&self, frame: &[u8]) {
            self.0.lock().expect("whole").1.push(Segment::parse(frame).expect("TCP"));
        }

        fn receive(&self, frame: &mut [u8], _patience: Duration) -> Option<usize> {
            let next = self.0.lock().expect("whole").0.pop_front()?.frame(&MacPair::default());
            frame[..next.len()].copy_from_slice(&next);
            Some(next.len())
        }
    }

    fn client() -> (Queue, RawClient) {
        let (here, there) = ("10.0.0.9:40000", "10.0.0.1:80");
        let queue = Queue::default();
        let (here, there) = (here.parse().expect("an address"), there.parse().expect("an address"));
        let mut client = RawClient::new(queue.clone(), MacPair::default(), here, there);
        let begin = Segment::new(there, here);
        let answer = Segment {
            seq: 7,
            ack: client.seq.wrapping_add(1),
            flags: SYN | ACK,
            ts_value: 3,
            ..begin
        };
        queue.0.lock().expect("whole").0.push_back(answer);
        client.connect();
        (queue, client)
    }

    /// The server says this next, in a segment at `seq`.
    fn says(queue: &Queue, client: &RawClient, seq: u32, text: &str) {
        let segment = Segment {
            seq,
            ts_value: 4,
            payload: text.as_bytes().to_vec(),
            ..Segment::new(client.server, client.client)
        };
        queue.0.lock().expect("whole").0.push_back(segment);
    }

    #[test]
    fn a_handshake_offers_what_it_was_told_and_learns_the_numbers() {
        let (queue, client) = client();
        let said = queue.0.lock().expect("whole").1.clone();
        assert_eq!((said[0].flags, said[1].flags), (SYN, ACK));
        assert_eq!(said[0].syn, SynOptions { mss: Some(1460), sack: true, scale: Some(7) });
        assert_eq!((said[1].seq, said[1].ack, said[1].ts_echo), (said[0].end(), 8, 3));
        assert_eq!((client.seq, client.ack), (said[0].end(), 8));
    }

    #[test]
    fn responses_are_put_together_and_parted() {
        let (queue, mut client) = client();
        let one = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        says(&queue, &client, 8, one);
        says(&queue, &client, 8, one); // sent again
        let at = 8 + one.len() as u32;
        says(&queue, &client, at, "hiHTTP/1.1 304 Not Modified\r\n\r\n");
        assert!(client.ask(&client.get("/")).text().ends_with("\r\n\r\nhi"));
        assert_eq!(client.take_response().text(), "HTTP/1.1 304 Not Modified\r\n\r\n");
        assert!(client.rest.is_none() && client.receive(Duration::ZERO).is_none());
    }
}
