//! How long answers take, and their cost on the network: the same requests, one by one on each of many
//! connections, whether the kernel or nginx answers.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use afpa_netlab::Bed;
use afpa_testkit::Random;

use super::response::{blank_date, read_by};
use super::transfer::Exchange;
use super::{Lab, PORT};

/// Requests of a connection before the next one.
const KEPT: u64 = 20;

/// A load: the requests, their number, and the connections that carry them.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'m> {
    /// One of these at a time.
    pub menu: &'m [&'m Exchange],
    /// In all.
    pub responses: u64,
    /// At a time.
    pub connections: usize,
    /// The same seed: the same requests in the same order on each connection.
    pub seed: u64,
    /// A response that takes longer counts as hung.
    pub deadline: Duration,
}

/// The results of a load.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    /// Whole responses: from the request to the last byte, and their length; sorted.
    pub times: Vec<(Duration, usize)>,
    /// With bytes that are not the server's.
    pub wrong: u64,
    /// Ended by the server before the last byte.
    pub cut: u64,
    /// Not there at the deadline.
    pub hung: u64,
    /// Bytes of whole responses.
    pub needed: u64,
    /// Bytes of payload that the server's side sent.
    pub sent: u64,
}

impl Completions {
    /// The time within which this share of the responses was there, in milliseconds.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.times.get(at).map_or(0.0, |(time, _)| time.as_secs_f64() * 1e3)
    }

    /// Bytes that were sent more than once.
    pub fn repeated(&self) -> u64 {
        self.sent.saturating_sub(self.needed)
    }

    /// Both as one.
    pub fn and(mut self, other: Self) -> Self {
        self.times.extend(other.times);
        self.times.sort();
        self.wrong += other.wrong;
        self.cut += other.cut;
        self.hung += other.hung;
        self.needed += other.needed;
        self.sent += other.sent;
        self
    }
}

/// Ask for all of it, through the network as it is.
pub fn run(lab: &Lab, plan: Plan<'_>) -> Completions {
    let injector = lab.bed.injector().expect("an injector");
    let before = injector.counts().1;
    let all = Mutex::new(Completions::default());
    std::thread::scope(|scope| {
        for number in 0..plan.connections as u64 {
            let all = &all;
            let work = move || {
                lab.bed.client().enter().expect("inside");
                let outcome = asker(plan, number);
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                *all = std::mem::take(&mut *all).and(outcome);
            };
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sent = injector.counts().1.payload - before.payload;
    all
}

/// One connection after the other until asker `number` has had its part.
fn asker(plan: Plan<'_>, number: u64) -> Completions {
    let mut random = Random::new(plan.seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let connections = plan.connections as u64;
    let mut left = plan.responses / connections + u64::from(number < plan.responses % connections);
    let mut outcome = Completions::default();
    while left > 0 {
        let server = match random.below(2) {
            0 => SocketAddr::from((Bed::SERVER_V4, PORT)),
            _ => SocketAddr::from((Bed::SERVER_V6, PORT)),
        };
        let asked: Vec<&Exchange> = (0..KEPT.min(left)).map(|_| *random.pick(plan.menu)).collect();
        left -= asked.len() as u64;
        match TcpStream::connect_timeout(&server, plan.deadline) {
            Ok(stream) => converse(stream, &asked, plan.deadline, &mut outcome),
            Err(_) => outcome.hung += asked.len() as u64,
        }
    }
    outcome
}

/// Sends all requests of `asked` on one connection, one after the other. The first response that is not as it
/// should be ends the connection, and the requests after it are not sent.
fn converse(
    mut stream: TcpStream,
    asked: &[&Exchange],
    patience: Duration,
    outcome: &mut Completions,
) {
    let mut got = Vec::with_capacity(1 << 17);
    let mut buffer = [0; 32768];
    if stream.set_nodelay(true).is_err() {
        outcome.cut += 1;
        return;
    }
    for exchange in asked {
        let begin = Instant::now();
        got.clear();
        if stream.write_all(&exchange.request).is_err() {
            outcome.cut += 1;
            return;
        }
        while got.len() < exchange.expected.len() {
            match read_by(&mut stream, &mut buffer, begin + patience) {
                Ok(length @ 1..) => got.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    outcome.hung += 1;
                    return;
                }
                Ok(0) | Err(_) => {
                    outcome.cut += 1;
                    return;
                }
            }
        }
        let time = begin.elapsed();
        if !blank_date(&got).is_ok_and(|blank| blank == exchange.expected) {
            outcome.wrong += 1;
            return;
        }
        outcome.times.push((time, got.len()));
        outcome.needed += got.len() as u64;
    }
}
