//! Questions to the server, by datagrams: as a stranger, and by this machine.

use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::answer::{Exchange, Parts, ServerCookie, Tail, is_authoritative};
use super::cookies::{Cookies, has_cookie};
use super::key::{self, Key};
use super::learn::{Asking, PLAIN, Told, query};
use crate::stranger::{Stranger, datagrams};

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// An answer with the question's id.
    Answer(Vec<u8>),
    /// Nothing in time.
    Silence,
    /// Nobody listens on the port.
    Closed,
}

/// Sockets to one address of the server. Several, in turn, so that each process of the server is asked.
pub(super) struct Asker {
    address: SocketAddr,
    stranger: Arc<Stranger>,
    sockets: Vec<UdpSocket>,
    turn: usize,
    here: UdpSocket,
    cookies: Option<Arc<Cookies>>,
    random: std::fs::File,
}

const SOCKETS: usize = 4;

impl Asker {
    pub(super) fn new(
        address: SocketAddr,
        stranger: &Arc<Stranger>,
        cookies: Option<&Arc<Cookies>>,
    ) -> std::io::Result<Self> {
        let sockets =
            (0..SOCKETS).map(|_| stranger.datagrams(address)).collect::<Result<_, _>>()?;
        Ok(Self {
            address,
            stranger: Arc::clone(stranger),
            sockets,
            turn: 0,
            here: datagrams(address)?,
            cookies: cookies.cloned(),
            random: std::fs::File::open("/dev/urandom")?,
        })
    }

    /// A number that nobody can guess.
    pub(super) fn random(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let _never_fails = self.random.read_exact(&mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(&mut self, query: &[u8], here: bool, patience: Duration) -> Reply {
        self.turn = (self.turn + 1) % SOCKETS;
        let socket = if here { Some(&self.here) } else { self.sockets.get(self.turn) };
        match socket.map_or(Ok(Reply::Silence), |socket| exchange(socket, query, patience)) {
            Ok(reply) => reply,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Reply::Closed,
            Err(_) => {
                // The address may have gone and come back.
                self.sockets.clear();
                self.sockets
                    .extend((0..SOCKETS).flat_map(|_| self.stranger.datagrams(self.address)));
                Reply::Silence
            }
        }
    }

    /// The question of a key.
    pub(super) fn ask_key(&mut self, key: &Key, asking: Asking, patience: Duration) -> Told {
        let id = self.random() as u16;
        let query = query(key, id, self.random(), asking);
        match self.ask(&query, asking.here, patience) {
            Reply::Answer(mut answer) => {
                let cookie = self.strip(&query, &mut answer, asking.here);
                Some(Exchange { query, answer, cookie })
            }
            _ => None,
        }
    }

    /// Takes the cookie off an answer, if it is one that the programs can make.
    fn strip(&self, query: &[u8], answer: &mut Vec<u8>, here: bool) -> ServerCookie {
        if !has_cookie(query, answer) {
            return ServerCookie::None;
        }
        let Some(cookies) = &self.cookies else { return ServerCookie::Unknown };
        let socket = if here { Some(&self.here) } else { self.sockets.get(self.turn) };
        let Some(Ok(own)) = socket.map(UdpSocket::local_addr) else { return ServerCookie::Unknown };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // Cookies have 32 bits for the time.
        match cookies.strip(query, answer, own.ip().to_canonical(), now.as_secs() as u32) {
            true => ServerCookie::Taken,
            false => ServerCookie::Unknown,
        }
    }

    /// The SOA records that the server tells with authority, when asked for this name's.
    pub(super) fn ask_soa(&mut self, name: &[u8], patience: Duration) -> Result<Soa, Reply> {
        let Some(key) = key::key(name, 6, 0, 0) else { return Ok(Soa::None) };
        let id = self.random() as u16;
        let query = query(&key, id, 0, PLAIN);
        let answer = match self.ask(&query, false, patience) {
            Reply::Answer(answer) => answer,
            other => return Err(other),
        };
        let exchange = Exchange { query, answer, cookie: ServerCookie::None };
        if Tail::of(&key, &exchange).is_err() || !is_authoritative(&exchange.answer) {
            return Ok(Soa::None);
        }
        let answer = exchange.answer;
        let serials = Parts::of(&answer).map(|parts| parts.serials).unwrap_or_default();
        let above = serials.into_iter().find(|(owner, _)| key::is_below(name, owner));
        Ok(above.map_or(Soa::None, |(apex, content)| Soa::Of { apex, content }))
    }
}

/// Whose zone a name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Soa {
    /// This zone's.
    Of { apex: Vec<u8>, content: Vec<u8> },
    /// None that the server has.
    None,
}

fn exchange(socket: &UdpSocket, query: &[u8], patience: Duration) -> std::io::Result<Reply> {
    socket.set_nonblocking(true)?;
    let mut buffer = [0; 4096];
    loop {
        // Answers that came too late, and errors that nobody waited for.
        match socket.recv(&mut buffer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(_) => break,
        }
    }
    socket.set_nonblocking(false)?;
    let deadline = Instant::now() + patience;
    socket.send(query)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Reply::Silence);
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let answer = buffer.get(..length).unwrap_or_default();
                if answer.get(..2) == query.get(..2) {
                    return Ok(Reply::Answer(answer.to_vec()));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(Reply::Silence);
            }
            Err(error) => return Err(error),
        }
    }
}
