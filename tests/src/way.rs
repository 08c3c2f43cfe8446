//! A way between clients and a server that loses, repeats and delays datagrams by a rule, as bad networks do.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A datagram on its way.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'b> {
    /// From a client.
    pub to_server: bool,
    /// Datagrams of this direction before it.
    pub number: u64,
    /// Its bytes.
    pub bytes: &'b [u8],
}

/// The fate of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Pass,
    /// It is lost.
    Lose,
    /// It arrives twice.
    Twice,
    /// It arrives later, behind others.
    Late(Duration),
}

type Rule = dyn FnMut(Passing<'_>) -> Fate + Send;

/// A datagram that is late, by its time and number.
type Late = (Instant, u64, Arc<UdpSocket>, SocketAddr, Vec<u8>);

/// The way. Each client has a socket of its own behind it. It ends when this is dropped.
#[derive(Debug)]
pub struct Way {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

/// How often threads look whether the way is over.
const LOOK: Duration = Duration::from_millis(200);

impl Way {
    /// A way to a server, by a rule.
    ///
    /// # Panics
    /// When there are no sockets.
    pub fn to(server: SocketAddr, rule: impl FnMut(Passing<'_>) -> Fate + Send + 'static) -> Self {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("bound"));
        let address = near.local_addr().expect("an address");
        let is_over = Arc::new(AtomicBool::new(false));
        let (late, all) = channel();
        let pass = Arc::new(Mutex::new(Passes { rule: Box::new(rule), counts: [0; 2], late }));
        std::thread::spawn(move || deliver_late(&all));
        let over = Arc::clone(&is_over);
        std::thread::spawn(move || go_there(server, &near, &pass, &over));
        Self { address, is_over }
    }

    /// Where clients send.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct Passes {
    rule: Box<Rule>,
    counts: [u64; 2],
    late: Sender<Late>,
}

impl Passes {
    fn pass(&mut self, to_server: bool, bytes: &[u8], by: &Arc<UdpSocket>, to: SocketAddr) {
        let count = &mut self.counts[usize::from(to_server)];
        let number = *count;
        *count += 1;
        let times = match (self.rule)(Passing { to_server, number, bytes }) {
            Fate::Pass => 1,
            Fate::Lose => 0,
            Fate::Twice => 2,
            Fate::Late(by_so_much) => {
                let late =
                    (Instant::now() + by_so_much, number, Arc::clone(by), to, bytes.to_vec());
                let _gone = self.late.send(late);
                0
            }
        };
        for _ in 0..times {
            // A full queue loses it, as any network may.
            let _lost = by.send_to(bytes, to);
        }
    }
}

fn go_there(
    server: SocketAddr,
    near: &Arc<UdpSocket>,
    pass: &Arc<Mutex<Passes>>,
    is_over: &Arc<AtomicBool>,
) {
    near.set_read_timeout(Some(LOOK)).expect("set");
    let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut room = vec![0; 65_536];
    while !is_over.load(Ordering::Relaxed) {
        let Ok((n, client)) = near.recv_from(&mut room) else { continue };
        let far = clients.entry(client).or_insert_with(|| {
            let far = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("bound"));
            far.set_read_timeout(Some(LOOK)).expect("set");
            let (near, pass, is_over) = (Arc::clone(near), Arc::clone(pass), Arc::clone(is_over));
            let back = Arc::clone(&far);
            std::thread::spawn(move || {
                let mut room = vec![0; 65_536];
                while !is_over.load(Ordering::Relaxed) {
                    let Ok((n, _)) = back.recv_from(&mut room) else { continue };
                    lock(&pass).pass(false, &room[..n], &near, client);
                }
            });
            far
        });
        lock(pass).pass(true, &room[..n], far, server);
    }
}

fn lock(pass: &Mutex<Passes>) -> std::sync::MutexGuard<'_, Passes> {
    pass.lock().unwrap_or_else(PoisonError::into_inner)
}

fn deliver_late(all: &Receiver<Late>) {
    let mut waiting: BinaryHeap<Reverse<Entry>> = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|Reverse(Entry((when, ..)))| *when <= now) {
            if let Some(Reverse(Entry((_, _, by, to, bytes)))) = waiting.pop() {
                let _lost = by.send_to(&bytes, to);
            }
        }
        let next = waiting.peek().map(|Reverse(Entry((when, ..)))| *when);
        let wait = next.map_or(Duration::from_secs(60), |next| next.saturating_duration_since(now));
        match all.recv_timeout(wait) {
            Ok(late) => waiting.push(Reverse(Entry(late))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// In the order of time.
struct Entry(Late);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0.0, self.0.1) == (other.0.0, other.0.1)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.0, self.0.1).cmp(&(other.0.0, other.0.1))
    }
}

/// A network of which so many of a hundred datagrams are lost, come twice, and come late.
pub fn bad(
    seed: u64,
    [lost, twice, late]: [u64; 3],
) -> impl FnMut(Passing<'_>) -> Fate + Send + 'static {
    let mut state = seed | 1;
    move |_| {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state % 100 {
            chance if chance < lost => Fate::Lose,
            chance if chance < lost + twice => Fate::Twice,
            chance if chance < lost + twice + late => {
                Fate::Late(Duration::from_micros(500 + state / 100 % 5000))
            }
            _ => Fate::Pass,
        }
    }
}

/// Whether a datagram of a client has a packet that can be made behind an answer of the server alone: one of the kind
/// Handshake, or a short one (RFC 9000 section 17).
pub fn is_behind_an_answer(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    while let Some(&first) = rest.first() {
        if first & 0x80 == 0 || first >> 4 & 3 == 2 {
            // Padding behind the last packet is none.
            return first != 0;
        }
        let Some(next) = behind(rest, first >> 4 & 3 == 0) else { return false };
        rest = next;
    }
    false
}

/// The bytes behind a packet with a long header.
fn behind(packet: &[u8], has_token: bool) -> Option<&[u8]> {
    let mut at = 5;
    for _ in 0..2 {
        at += 1 + usize::from(*packet.get(at)?);
    }
    if has_token {
        let (length, n) = number(packet.get(at..)?)?;
        at += n + length;
    }
    let (length, n) = number(packet.get(at..)?)?;
    packet.get(at + n + length..)
}

fn number(bytes: &[u8]) -> Option<(usize, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    let value =
        rest.iter().fold(usize::from(first & 0x3f), |value, byte| value << 8 | usize::from(*byte));
    Some((value, length))
}
