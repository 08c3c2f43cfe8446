//! One connection's life: how requests are sent on it, and how it ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use afpa_testkit::Random;
use socket2::SockRef;

use super::{Exchange, Menu, TransferRun};
use crate::tcp::response::{blank_date, read_by};

/// Turns of a connection that nginx has to itself for the rest of its life.
const LATER: usize = 4;

/// How requests are sent. After all but the first two nobody but nginx answers on the connection.
const WAYS: [(&str, usize); 7] = [
    ("one by one", 200),
    ("one behind the other, in segments of their own", 3),
    ("pipelined", 2),
    ("one and a half", 2),
    ("split at one byte", 3),
    ("byte by byte", 1),
    ("post", 3),
];

pub(super) struct Connection<'s> {
    stream: TcpStream,
    shared: &'s TransferRun<'s>,
    got: Vec<u8>,
    pub(super) by_way: BTreeMap<&'static str, u64>,
    pub(super) times: Vec<Duration>,
}

impl<'s> Connection<'s> {
    pub(super) fn new(shared: &'s TransferRun<'s>, stream: TcpStream) -> Self {
        let (got, by_way, times) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { stream, shared, got, by_way, times }
    }

    pub(super) fn live(&mut self, random: &mut Random) -> Result<(), String> {
        let told = |error: std::io::Error| error.to_string();
        self.stream.set_nodelay(true).map_err(told)?;
        self.stream.set_write_timeout(Some(self.shared.load.deadline)).map_err(told)?;
        let mut turns = 1 + random.below(60);
        while turns > 0 {
            turns -= 1;
            if self.shared.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let (way, exchanges, pieces) = choose(self.shared.menu, random);
            let count = exchanges.len() as u64;
            let less = |left: u64| left.checked_sub(count.min(left)).filter(|_| left > 0);
            if self.shared.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
                break;
            }
            let begin = Instant::now();
            for piece in pieces {
                self.stream.write_all(&piece).map_err(|error| format!("{way}: write: {error}"))?;
            }
            for exchange in exchanges {
                self.compare(exchange).map_err(|what| format!("{way}: {what}"))?;
            }
            *self.by_way.entry(way).or_default() += count;
            if way == WAYS[0].0 {
                self.times.push(begin.elapsed());
            }
            if way != WAYS[0].0 {
                turns = turns.min(LATER);
            }
        }
        self.end(random)
    }

    /// The next response must be this one, in time.
    fn compare(&mut self, exchange: &Exchange) -> Result<(), String> {
        let deadline = Instant::now() + self.shared.load.deadline;
        let mut buffer = [0; 32768];
        while self.got.len() < exchange.expected.len() {
            match read_by(&mut self.stream, &mut buffer, deadline) {
                Ok(0) => return Err(self.differs(exchange, "the server ended the connection")),
                Ok(length) => self.got.extend_from_slice(&buffer[..length]),
                Err(error) => return Err(self.differs(exchange, &error.to_string())),
            }
        }
        match blank_date(&self.got[..exchange.expected.len()]) {
            Ok(blank) if blank == exchange.expected => {
                self.got.drain(..exchange.expected.len());
                Ok(())
            }
            Ok(_) => Err(self.differs(exchange, "another response than nginx's")),
            Err(why) => Err(self.differs(exchange, &why)),
        }
    }

    fn differs(&self, exchange: &Exchange, why: &str) -> String {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let same = self.got.iter().zip(&exchange.expected).take_while(|(a, b)| a == b).count();
        format!(
            "{why}\nrequest: {}\nexpected {} bytes: {}\ngot {} bytes (the same up to {same}): {}",
            text(&exchange.request[..exchange.request.len().min(2000)]),
            exchange.expected.len(),
            text(&exchange.expected[..exchange.expected.len().min(2000)]),
            self.got.len(),
            text(&self.got)
        )
    }

    /// A reset, a plain end, or a half-close after which nothing but the server's end may come.
    fn end(&mut self, random: &mut Random) -> Result<(), String> {
        if !self.got.is_empty() {
            return Err(format!("stray bytes: {}", self.got.escape_ascii()));
        }
        match random.below(4) {
            0 => {
                let now = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
                now.map_err(|error| error.to_string())
            }
            1 => Ok(()),
            _ => {
                let shut = self.stream.shutdown(Shutdown::Write);
                shut.map_err(|error| format!("half-close: {error}"))?;
                let deadline = Instant::now() + self.shared.load.deadline;
                match read_by(&mut self.stream, &mut [0; 1024], deadline) {
                    Ok(0) => Ok(()),
                    Ok(stray) => Err(format!("{stray} stray bytes after the half-close")),
                    Err(error) => Err(format!("after the half-close: {error}")),
                }
            }
        }
    }
}

/// Chooses the next requests: the way, the exchanges, and the pieces that are written one by one.
fn choose<'m>(
    menu: &'m Menu,
    random: &mut Random,
) -> (&'static str, Vec<&'m Exchange>, Vec<Vec<u8>>) {
    let way = random.weighted(&WAYS);
    let many = match way {
        1 => 2 + random.below(2),
        2 => [2, 3, 10][random.below(3)],
        3 => 2,
        _ => 1,
    };
    let pick = |random: &mut Random| match (way, random.below(20)) {
        (6, _) => random.pick(&menu.posts),
        (5, _) | (_, 3..) => random.pick(&menu.pinned),
        _ => random.pick(&menu.other),
    };
    let exchanges: Vec<&Exchange> = (0..many).map(|_| pick(random)).collect();
    let all: Vec<u8> = exchanges.iter().flat_map(|e| e.request.iter().copied()).collect();
    let first = exchanges[0].request.len();
    let cut_at = |at: usize| vec![all[..at].to_vec(), all[at..].to_vec()];
    let pieces = match way {
        1 => exchanges.iter().map(|exchange| exchange.request.clone()).collect(),
        3 => cut_at(first + 1 + random.below(all.len() - first - 1)),
        4 => cut_at(1 + random.below(first - 1)),
        5 => all.chunks(1).map(<[u8]>::to_vec).collect(),
        _ => vec![all],
    };
    (WAYS[way].0, exchanges, pieces)
}
