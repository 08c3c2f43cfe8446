//! The last segments of every connection, as the client's interface sees them.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use afpa_netlab::Bed;
use afpa_testkit::packet::{PacketSocket, SYN, Segment};

use super::lab::PORT;

/// Segments kept of each connection.
const KEPT: usize = 120;

/// A packet socket, and the thread that reads it.
pub struct Trace {
    seen: Arc<Mutex<Connections>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// By family (IPv6?) and client port.
type Connections = HashMap<(bool, u16), VecDeque<Seen>>;

struct Seen {
    at: Instant,
    up: bool,
    length: usize,
    segment: Segment,
}

impl Trace {
    /// Watch the client's interface.
    pub fn start(bed: &Bed) -> Self {
        let seen = Arc::<Mutex<Connections>>::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (into, asked) = (seen.clone(), stop.clone());
        let socket = bed.client().run(|| PacketSocket::open(Bed::DEVICE));
        let socket = socket.expect("inside").expect("a packet socket");
        let thread = std::thread::spawn(move || watch(&socket, &into, &asked));
        Self { seen, stop, thread: Some(thread) }
    }

    /// The last segments of the connection of this client, a line each.
    pub fn tell(&self, client: std::net::SocketAddr) -> String {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(segments) = seen.get(&(client.is_ipv6(), client.port())) else {
            return "no segment was seen\n".into();
        };
        let begin = segments.front().map(|first| first.at).expect("never empty");
        let mut text = String::new();
        for Seen { at, up, length, segment } in segments {
            let time = at.duration_since(begin).as_secs_f64() * 1000.0;
            let (arrow, flags) = (if *up { "->" } else { "<-" }, segment.letters());
            let Segment { seq, ack, window, ts_value, ts_echo, sack, .. } = segment;
            let _ = writeln!(
                text,
                "{time:>10.3} {arrow} {flags:<4} seq {seq:>10} +{length:<5} ack {ack:>10} \
                 win {window:>5} ts {ts_value}/{ts_echo} {sack:?}"
            );
        }
        text
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(socket: &PacketSocket, into: &Mutex<Connections>, stop: &AtomicBool) {
    let mut buffer = [0; 65600];
    while !stop.load(Ordering::Relaxed) {
        socket.wait(Duration::from_millis(50));
        let mut seen = into.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(Some(length)) = socket.receive(&mut buffer) {
            note(&mut seen, &buffer[..length.min(buffer.len())]);
        }
    }
}

fn note(seen: &mut Connections, bytes: &[u8]) {
    let Some((segment, length)) = Segment::parse_headers(bytes) else { return };
    let up = segment.to.port() == PORT;
    let client = if up { segment.from } else { segment.to };
    let kept = seen.entry((client.is_ipv6(), client.port())).or_default();
    if up
        && segment.flags & SYN != 0
        && kept.back().is_some_and(|last| last.segment.flags & SYN == 0)
    {
        kept.clear();
    }
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(Seen { at: Instant::now(), up, length, segment });
}
