//! Questions to the server, by datagrams: as a stranger, and by this machine. Many may be under way at a time, each on a socket of
//! its own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::answer::{Exchange, Parts, ServerCookie, Tail, is_authoritative};
use super::cookies::{Cookies, has_cookie};
use super::key::{self, Key};
use super::learn::{Asking, PLAIN, query};
use super::timer::RetransmissionTimer;
use crate::stranger::{Stranger, datagrams};

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply<T> {
    /// The answer.
    Answer(T),
    /// Nothing in time.
    Silence,
    /// Nobody listens on the port.
    Closed,
}

impl<T> Reply<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Reply<U> {
        match self {
            Self::Answer(answer) => Reply::Answer(with(answer)),
            Self::Silence => Reply::Silence,
            Self::Closed => Reply::Closed,
        }
    }
}

/// Sockets to one address of the server.
pub(super) struct Asker {
    address: SocketAddr,
    stranger: Arc<Stranger>,
    as_stranger: RefCell<Idle>,
    here: RefCell<Idle>,
    /// Sockets that are kept without a question, of each kind.
    kept: usize,
    timer: Cell<RetransmissionTimer>,
    cookies: Option<Arc<Cookies>>,
    random: std::fs::File,
}

/// Sockets that have no question under way.
#[derive(Default)]
struct Idle {
    sockets: VecDeque<UdpSocket>,
    /// These, and those that have one.
    open: usize,
}

/// So many are used in turn at least, so that each process of the server is asked.
const SOCKETS: usize = 4;

impl Asker {
    pub(super) fn new(
        address: SocketAddr,
        stranger: &Arc<Stranger>,
        cookies: Option<&Arc<Cookies>>,
        kept: usize,
    ) -> io::Result<Self> {
        // If the address cannot be asked, that is an error of the start.
        stranger.datagrams(address)?;
        datagrams(address)?;
        Ok(Self {
            address,
            stranger: Arc::clone(stranger),
            as_stranger: RefCell::default(),
            here: RefCell::default(),
            kept: kept.max(SOCKETS),
            timer: Cell::default(),
            cookies: cookies.cloned(),
            random: std::fs::File::open("/dev/urandom")?,
        })
    }

    /// A number that nobody can guess.
    pub(super) fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        let _never_fails = (&self.random).read_exact(&mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// The question of a key.
    pub(super) async fn ask_key(&self, key: &Key, asking: Asking) -> Reply<Exchange> {
        let query = query(key, self.random() as u16, self.random(), asking);
        let told = self.ask(&query, asking.here).await;
        told.map(|(mut answer, own)| {
            let cookie = self.strip(&query, &mut answer, own);
            Exchange { query, answer, cookie }
        })
    }

    /// The SOA records that the server tells with authority, when asked for this name's.
    pub(super) async fn ask_soa(&self, name: &[u8]) -> Reply<Soa> {
        let Some(key) = key::key(name, 6, 0, 0) else { return Reply::Answer(Soa::None) };
        let query = query(&key, self.random() as u16, 0, PLAIN);
        let told = self.ask(&query, false).await;
        told.map(|(answer, _)| Soa::of(name, &key, query, answer))
    }

    /// Asks once, and waits for the answer. It comes with the address that was asked from.
    async fn ask(&self, query: &[u8], here: bool) -> Reply<(Vec<u8>, Option<SocketAddr>)> {
        let idle = if here { &self.here } else { &self.as_stranger };
        let Ok(socket) = self.take(idle, here) else { return Reply::Silence };
        let (timer, sent) = (self.timer.get(), Instant::now());
        let outcome = timeout(timer.time(), exchange(&socket, query)).await;
        let own = socket.local_addr().ok();
        let reply = match outcome {
            Ok(Ok(answer)) => {
                self.timer.set(self.timer.get().heard(sent.elapsed()));
                Reply::Answer((answer, own))
            }
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Reply::Closed,
            Ok(Err(_)) => {
                // The address may have gone and come back, so this socket is used no more.
                idle.borrow_mut().open -= 1;
                return Reply::Silence;
            }
            Err(_) => {
                self.timer.set(self.timer.get().not_heard(timer));
                Reply::Silence
            }
        };
        let mut idle = idle.borrow_mut();
        match idle.sockets.len() < self.kept {
            true => idle.sockets.push_back(socket),
            false => idle.open -= 1,
        }
        reply
    }

    fn take(&self, idle: &RefCell<Idle>, here: bool) -> io::Result<UdpSocket> {
        let mut idle = idle.borrow_mut();
        if idle.open >= SOCKETS
            && let Some(socket) = idle.sockets.pop_front()
        {
            return Ok(socket);
        }
        let made =
            if here { datagrams(self.address) } else { self.stranger.datagrams(self.address) };
        let socket = made.and_then(|socket| {
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket)
        })?;
        idle.open += 1;
        Ok(socket)
    }

    /// Takes the cookie off an answer, if it is one that the programs can make.
    fn strip(&self, query: &[u8], answer: &mut Vec<u8>, own: Option<SocketAddr>) -> ServerCookie {
        if !has_cookie(query, answer) {
            return ServerCookie::None;
        }
        let (Some(cookies), Some(own)) = (&self.cookies, own) else {
            return ServerCookie::Unknown;
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // Cookies have 32 bits for the time.
        match cookies.strip(query, answer, own.ip().to_canonical(), now.as_secs() as u32) {
            true => ServerCookie::Taken,
            false => ServerCookie::Unknown,
        }
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

impl Soa {
    /// By the answer to a query for the SOA record of the name.
    fn of(name: &[u8], key: &Key, query: Vec<u8>, answer: Vec<u8>) -> Self {
        let exchange = Exchange { query, answer, cookie: ServerCookie::None };
        if Tail::of(key, &exchange).is_err() || !is_authoritative(&exchange.answer) {
            return Self::None;
        }
        let serials = Parts::of(&exchange.answer).map(|parts| parts.serials).unwrap_or_default();
        let above = serials.into_iter().find(|(owner, _)| key::is_below(name, owner));
        above.map_or(Self::None, |(apex, content)| Self::Of { apex, content })
    }
}

async fn exchange(socket: &UdpSocket, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut buffer = [0; 4096];
    loop {
        // Answers that came too late, and errors that nobody waited for.
        match socket.try_recv(&mut buffer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(_) => break,
        }
    }
    socket.send(query).await?;
    loop {
        let length = socket.recv(&mut buffer).await?;
        let answer = buffer.get(..length).unwrap_or_default();
        if answer.get(..2) == query.get(..2) {
            return Ok(answer.to_vec());
        }
    }
}
