//! Makes connections to servers, and keeps a machine that is short of ports from searching them at length.
//!
//! For each connection the kernel looks at one local port after the other until it finds one that is free for the
//! server's address. When most of them are in use, or rest in TIME_WAIT, that takes milliseconds, in which the core
//! serves nobody. So where it takes long, the kernel gets a short range of ports to search. It remembers nothing:
//! [`Short`] knows where the last free port was. Where none is free, the core does not search again for some time
//! (docs/rules/upstream.md, U3).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use afpa_framework::steady_ms;
use afpa_ring::CoreRing;
use foldhash::fast::RandomState;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

use crate::select::{Address, Lack, Tally};

/// Where a connection is to lead.
#[derive(Clone, Copy, Debug)]
pub struct To<'a> {
    /// The address of the server.
    pub address: &'a Address,
    /// Its name in logs.
    pub name: &'a str,
    /// Local addresses to connect from, each in its turn. If none is of the server's family, the system chooses.
    pub sources: &'a [IpAddr],
    /// The header of the PROXY protocol with which the connection begins, before TLS; empty: there is none.
    pub preface: &'a [u8],
    /// Where the connection is counted.
    pub tally: Option<&'a Tally>,
}

/// Makes the connections of one core.
#[derive(Debug)]
pub struct Connector {
    ring: CoreRing,
    /// The first and the last port that the system takes for connections. They are read at the start, because a worker may
    /// open no file later.
    ports: Option<(u16, u16)>,
    /// Where ports are short, by source and server.
    short: RefCell<HashMap<(Option<IpAddr>, SocketAddr), Short, RandomState>>,
    /// The source whose turn it is.
    turn: Cell<usize>,
    /// The last search was a long one.
    was_long: Cell<bool>,
}

impl Default for Connector {
    fn default() -> Self {
        Self::new(CoreRing::default())
    }
}

/// A connection over TCP.
#[derive(Debug)]
pub(super) enum Connected {
    /// Nothing had to be waited for, and the event loop does not know it.
    AtOnce(Socket),
    /// The event loop knows it.
    Later(TcpStream),
}

/// A source and a server between which ports are short.
#[derive(Clone, Copy, Debug)]
struct Short {
    /// The span of ports in which the last free one was.
    span: u16,
    /// Steady milliseconds until which the core does not search for a port.
    pause_ms: u64,
    /// Steady milliseconds at which the kernel may search all ports again.
    until_ms: u64,
}

/// A search that takes longer than this is a long one. Two in a row count: one may have been interrupted by other work of
/// the processor.
const LONG: Duration = Duration::from_millis(1);

/// Milliseconds after a long search for which the kernel may not search all ports.
const SHORT_MS: u64 = 60_000;

/// Ports that the kernel looks at at a time: a tenth of a millisecond.
const SPAN: u16 = 1024;

/// The pause after a search in vain: so many times its length, and at least so many milliseconds.
const PAUSES: u32 = 20;
const PAUSE_MS: u64 = 50;

/// Searches that are remembered at most.
const MOST_SHORT: usize = 4096;

/// `IP_LOCAL_PORT_RANGE` of ip(7), since Linux 6.3.
const IP_LOCAL_PORT_RANGE: i32 = 51;

#[derive(Clone, Copy, Debug)]
struct LocalPortRange;

nix::setsockopt_impl!(
    LocalPortRange,
    libc::IPPROTO_IP,
    IP_LOCAL_PORT_RANGE,
    u32,
    sockopt::SetStruct<u32>
);

/// A source address that is configured is not this machine's.
#[derive(Debug, thiserror::Error)]
#[error("the source address {0} is not an address of this machine")]
struct NoSource(IpAddr);

impl Connector {
    /// For a core with this ring. To be made before the core is confined.
    pub(crate) fn new(ring: CoreRing) -> Self {
        let (short, turn, was_long) = (RefCell::default(), Cell::new(0), Cell::new(false));
        Self { ring, ports: local_ports(), short, turn, was_long }
    }

    /// The ring of its core.
    pub(crate) fn ring(&self) -> &CoreRing {
        &self.ring
    }

    /// Connects over TCP.
    ///
    /// # Errors
    /// With the error of the system.
    pub(super) async fn tcp(&self, to: SocketAddr, sources: &[IpAddr]) -> io::Result<Connected> {
        let socket = self.begin(to, sources)?;
        // On this machine the server's kernel has answered within the call.
        if to.ip().is_loopback() && socket.peer_addr().is_ok() {
            return Ok(Connected::AtOnce(socket));
        }
        let stream = TcpStream::from_std(socket.into())?;
        stream.writable().await?;
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(Connected::Later(stream)),
        }
    }

    /// Begins to connect, from a source with a free port.
    fn begin(&self, to: SocketAddr, sources: &[IpAddr]) -> io::Result<Socket> {
        let fitting = || sources.iter().filter(|source| source.is_ipv4() == to.is_ipv4());
        let count = fitting().count();
        if count == 0 {
            return self.begin_from(None, to);
        }
        let first = self.turn.get();
        self.turn.set(first.wrapping_add(1));
        let mut failed = no_port();
        for source in fitting().cycle().skip(first % count).take(count) {
            match self.begin_from(Some(*source), to) {
                Err(error) if lack(&error) == Some(Lack::Ports) => failed = error,
                done => return done,
            }
        }
        Err(failed)
    }

    fn begin_from(&self, source: Option<IpAddr>, to: SocketAddr) -> io::Result<Socket> {
        let now = steady_ms();
        let pair = (source, to);
        let known = self.short.borrow().get(&pair).copied().filter(|short| now < short.until_ms);
        if known.is_some_and(|short| now < short.pause_ms) {
            return Err(no_port());
        }
        let socket = socket_at(source, to)?;
        let begun = Instant::now();
        let (connected, span) = match known {
            None => (connect(&socket, to), None),
            Some(short) => search(&socket, to, self.ports, short.span),
        };
        let took = begun.elapsed();
        let is_vain = matches!(&connected, Err(error) if lack(error) == Some(Lack::Ports));
        let is_long = took > LONG;
        let is_long_again = self.was_long.replace(is_long) && is_long;
        if is_vain || known.is_some() || is_long_again {
            let span = span.or(known.map(|short| short.span)).unwrap_or_else(|| any_span(begun));
            let pause = if is_vain { PAUSE_MS.max(millis(took * PAUSES)) } else { 0 };
            let until_ms = match known {
                Some(short) if !is_vain => short.until_ms,
                _ => now + SHORT_MS,
            };
            self.remember(pair, Short { span, pause_ms: now + pause, until_ms }, now);
        }
        connected.map(|()| socket)
    }

    fn remember(&self, pair: (Option<IpAddr>, SocketAddr), short: Short, now_ms: u64) {
        let mut all = self.short.borrow_mut();
        if all.len() >= MOST_SHORT {
            all.retain(|_, short| now_ms < short.until_ms);
        }
        if all.len() < MOST_SHORT {
            all.insert(pair, short);
        }
    }
}

/// The resource for lack of which a connection could not be made, if that was the reason.
pub(crate) fn lack(error: &io::Error) -> Option<Lack> {
    if error.get_ref().is_some_and(|inner| inner.is::<NoSource>()) {
        return Some(Lack::Source);
    }
    match Errno::from_io_error(error) {
        Some(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => Some(Lack::Ports),
        Some(Errno::MFILE | Errno::NFILE) => Some(Lack::Descriptors),
        Some(Errno::NOMEM | Errno::NOBUFS | Errno::NOSPC) => Some(Lack::Memory),
        _ => None,
    }
}

fn no_port() -> io::Error {
    Errno::ADDRNOTAVAIL.into()
}

/// A socket that does not block, bound to the source. The port is chosen when it connects: chosen before, it could not be
/// another connection's to another server.
fn socket_at(source: Option<IpAddr>, to: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None)?;
    if let Some(source) = source {
        setsockopt(&socket.as_fd(), sockopt::IpBindAddressNoPort, &true)?;
        socket.bind(&SocketAddr::new(source, 0).into()).map_err(
            |error| match Errno::from_io_error(&error) {
                Some(Errno::ADDRNOTAVAIL) => io::Error::other(NoSource(source)),
                _ => error,
            },
        )?;
    }
    Ok(socket)
}

fn connect(socket: &Socket, to: SocketAddr) -> io::Result<()> {
    match socket.connect(&to.into()) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => Ok(()),
        done => done,
    }
}

/// Has the kernel search one span of ports after the other, beginning with the span of the last free port. Returns the
/// span in which a port was free; `None`: there was none, or the kernel cannot search by spans.
fn search(
    socket: &Socket,
    to: SocketAddr,
    ports: Option<(u16, u16)>,
    first: u16,
) -> (io::Result<()>, Option<u16>) {
    let Some((low, high)) = ports else { return (connect(socket, to), None) };
    let spans = (high - low) / SPAN + 1;
    for span in (0..spans).map(|step| (first % spans + step) % spans) {
        let from = low + span * SPAN;
        let to_port = from.saturating_add(SPAN - 1).min(high);
        let range = u32::from(to_port) << 16 | u32::from(from);
        if setsockopt(&socket.as_fd(), LocalPortRange, &range).is_err() {
            // An older kernel.
            return (connect(socket, to), None);
        }
        match connect(socket, to) {
            Err(error) if lack(&error) == Some(Lack::Ports) => {}
            done => return (done, Some(span)),
        }
    }
    (Err(no_port()), None)
}

/// The first and the last port that the system takes for connections (`net.ipv4.ip_local_port_range`).
fn local_ports() -> Option<(u16, u16)> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ports = text.split_ascii_whitespace().map(str::parse);
    let (low, high) = (ports.next()?.ok()?, ports.next()?.ok()?);
    (low <= high).then_some((low, high))
}

/// Most likely each core gets another number.
fn any_span(now: Instant) -> u16 {
    use std::hash::BuildHasher as _;
    RandomState::default().hash_one(now) as u16
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(connected: &Connected) -> SocketAddr {
        match connected {
            Connected::AtOnce(socket) => {
                socket.local_addr().expect("one").as_socket().expect("of IP")
            }
            Connected::Later(stream) => stream.local_addr().expect("one"),
        }
    }

    #[test]
    fn what_this_machine_lacks_is_told_from_what_a_server_refuses() {
        let of = |errno: Errno| lack(&errno.into());
        assert_eq!(of(Errno::ADDRNOTAVAIL), Some(Lack::Ports));
        assert_eq!(of(Errno::MFILE), Some(Lack::Descriptors));
        assert_eq!(of(Errno::NOBUFS), Some(Lack::Memory));
        for errno in [Errno::CONNREFUSED, Errno::TIMEDOUT, Errno::NETUNREACH, Errno::ACCESS] {
            assert_eq!(of(errno), None, "{errno}");
        }
        assert_eq!(lack(&io::ErrorKind::TimedOut.into()), None);
    }

    #[tokio::test]
    async fn a_source_that_is_not_this_machine_s_is_said_to_be_so() {
        let to = SocketAddr::from(([127, 0, 0, 1], 9));
        // Of the addresses for documentation (RFC 5737).
        let source = IpAddr::from([192, 0, 2, 1]);
        let error = Connector::default().tcp(to, &[source]).await.expect_err("not ours");
        assert_eq!(lack(&error), Some(Lack::Source));
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
    }

    #[tokio::test]
    async fn sources_take_turns_and_those_of_another_family_have_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let to = listener.local_addr().expect("its address");
        let sources = ["127.0.0.2", "::1", "127.0.0.3"].map(|text| text.parse().expect("one"));
        let connector = Connector::default();
        let mut seen = Vec::new();
        for _ in 0..4 {
            let stream = connector.tcp(to, &sources).await.expect("connected");
            seen.push(near(&stream).ip().to_string());
        }
        assert_eq!(seen, ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"]);
        let stream = connector.tcp(to, &["::1".parse().expect("one")]).await.expect("connected");
        assert_eq!(near(&stream).ip(), to.ip());
    }

    #[tokio::test]
    async fn after_a_long_search_the_kernel_looks_at_a_few_ports_only() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let to = listener.local_addr().expect("its address");
        let connector = Connector::default();
        let now = steady_ms();
        let short = Short { span: 3, pause_ms: 0, until_ms: now + SHORT_MS };
        connector.remember((None, to), short, now);
        let (low, _) = local_ports().expect("a range");
        let mut ports = Vec::new();
        for _ in 0..8 {
            let stream = connector.tcp(to, &[]).await.expect("connected");
            ports.push(near(&stream).port());
        }
        let supports = {
            let socket = socket_at(None, to).expect("a socket");
            setsockopt(&socket.as_fd(), LocalPortRange, &0).is_ok()
        };
        if !supports {
            println!("SKIP: this kernel has no IP_LOCAL_PORT_RANGE");
            return;
        }
        let span = low + 3 * SPAN..low + 4 * SPAN;
        assert!(ports.iter().all(|port| span.contains(port)), "{ports:?} of {span:?}");
    }

    #[tokio::test]
    async fn while_a_pause_lasts_nobody_looks_for_a_port() {
        let to = SocketAddr::from(([127, 0, 0, 1], 9));
        let connector = Connector::default();
        let now = steady_ms();
        let short = Short { span: 0, pause_ms: now + SHORT_MS, until_ms: now + SHORT_MS };
        connector.remember((None, to), short, now);
        let error = connector.tcp(to, &[]).await.expect_err("a pause");
        assert_eq!(lack(&error), Some(Lack::Ports));
    }
}
