//! Keep-alive connections to the attached server, one for each viewpoint from which it is asked.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::answer::{Answer, Asked};
use crate::filler::Filler;
use crate::gather::{Ask, AskError};
use crate::stranger::Stranger;

/// The server, called by one of its addresses. It gets one request at a time; a new connection is made when there is
/// none.
pub struct Server {
    address: SocketAddr,
    timeout: Duration,
    /// The client that asks; `None`: this machine.
    stranger: Option<Arc<Stranger>>,
    /// The fast path whose programs let this machine's questions pass to the server; `None`: no programs are loaded
    /// yet.
    filler: Option<Arc<Filler>>,
    connection: Option<TcpStream>,
}

impl Server {
    /// The server that listens on `address`, asked from this machine.
    pub fn new(address: SocketAddr, timeout: Duration) -> Self {
        Self { address, timeout, stranger: None, filler: None, connection: None }
    }

    /// The same server, once programs are loaded: they let the questions pass, and do not count them.
    fn behind(filler: &Arc<Filler>, address: SocketAddr, timeout: Duration) -> Self {
        Self { filler: Some(Arc::clone(filler)), ..Self::new(address, timeout) }
    }

    /// The same server, asked by a stranger.
    pub fn asked_by(stranger: Arc<Stranger>, address: SocketAddr, timeout: Duration) -> Self {
        Self { stranger: Some(stranger), ..Self::new(address, timeout) }
    }

    /// Whether it accepts a connection.
    ///
    /// # Errors
    /// When it does not.
    pub fn reach(&mut self) -> io::Result<()> {
        let (address, timeout) = (self.address, self.timeout);
        let stream = match (&self.stranger, &self.filler) {
            (Some(stranger), _) => stranger.connect(address, timeout)?,
            (None, Some(filler)) => {
                filler.fast_path.sockets.connect_to_user_mode(address, timeout)?
            }
            (None, None) => TcpStream::connect_timeout(&address, timeout)?,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        self.connection = Some(stream);
        Ok(())
    }

    fn exchange(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError> {
        if self.connection.is_none() {
            self.reach()?;
        }
        // Put back only after a whole answer on a connection that goes on.
        let mut stream =
            self.connection.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        stream.write_all(request.as_bytes())?;
        let mut input = Vec::new();
        loop {
            if let Some(answer) = Answer::read(&input, asked)? {
                if answer.len() == input.len() && !closes(&answer) {
                    self.connection = Some(stream);
                }
                return Ok(answer);
            }
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => input.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
    }
}

impl Server {
    /// Servers close connections that were idle, or after a number of requests, and may say so in an answer.
    /// Then the request is sent again on a new connection.
    fn ask(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError> {
        let fresh = self.connection.is_none();
        match self.exchange(asked, request) {
            Err(AskError::Unreachable(_)) if !fresh => self.exchange(asked, request),
            Ok(answer) if !fresh && closes(&answer) => self.exchange(asked, request),
            outcome => outcome,
        }
    }
}

/// The addresses by which the server is asked; they change while the machine's do.
#[derive(Clone, Default)]
pub struct Addresses(Arc<Mutex<Vec<SocketAddr>>>);

impl Addresses {
    /// All addresses.
    pub fn get(&self) -> Vec<SocketAddr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these.
    pub fn set(&self, addresses: Vec<SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }
}

/// The server as it is seen from everywhere: by a stranger on each of its addresses, and from this machine
/// as loopback.
pub struct Viewpoints {
    addresses: Addresses,
    timeout: Duration,
    stranger: Option<Arc<Stranger>>,
    filler: Arc<Filler>,
    /// The addresses that `servers` is of.
    seen: Vec<SocketAddr>,
    servers: Vec<Server>,
}

impl Viewpoints {
    /// Without a stranger the server is only asked from this machine.
    pub fn new(
        addresses: Addresses,
        stranger: Option<Arc<Stranger>>,
        filler: Arc<Filler>,
        timeout: Duration,
    ) -> Self {
        Self { addresses, timeout, stranger, filler, seen: Vec::new(), servers: Vec::new() }
    }

    /// The viewpoint of an address. A stranger cannot reach loopback, and on loopback this machine is the only client.
    fn of(&self, address: SocketAddr) -> Server {
        match &self.stranger {
            Some(stranger) if !address.ip().is_loopback() => {
                Server::asked_by(Arc::clone(stranger), address, self.timeout)
            }
            _ => Server::behind(&self.filler, address, self.timeout),
        }
    }
}

impl Ask for Viewpoints {
    fn viewpoints(&mut self) -> usize {
        let now = self.addresses.get();
        if now != self.seen {
            let mut ordered = now.clone();
            ordered.sort_by_key(|address| address.ip().is_loopback()); // strangers come first
            let mut servers: Vec<_> = ordered.iter().map(|address| self.of(*address)).collect();
            let foreign = servers.iter().any(|server| server.stranger.is_some());
            let own = servers.iter().any(|server| server.stranger.is_none());
            if let Some(first) = ordered.first().filter(|_| foreign && !own) {
                servers.push(Server::behind(&self.filler, *first, self.timeout));
            }
            (self.seen, self.servers) = (now, servers);
        }
        self.servers.len()
    }

    fn ask_at(
        &mut self,
        viewpoint: usize,
        asked: Asked,
        request: &str,
    ) -> Result<Answer, AskError> {
        let server = self.servers.get_mut(viewpoint);
        let server = server.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
        server.ask(asked, request)
    }
}

/// Addresses of the machine by which a server that listens on `listen` may be called. Link-local addresses, which no
/// stranger can call, are left out.
pub fn callable(listen: SocketAddr, all: &[afpa_bpf::Interface]) -> Vec<SocketAddr> {
    if !listen.ip().is_unspecified() {
        return vec![listen];
    }
    let fits = |address: &IpAddr| match address {
        IpAddr::V4(_) => true, // [::] takes both, as a dual-stack socket does
        IpAddr::V6(address) => listen.is_ipv6() && !address.is_unicast_link_local(),
    };
    let addresses = all.iter().flat_map(|interface| &interface.addresses).copied().filter(fits);
    let mut addresses: Vec<_> =
        addresses.map(|address| SocketAddr::new(address, listen.port())).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn closes(answer: &Answer) -> bool {
    answer.values("connection").any(|value| value.eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn asks_again_where_the_server_has_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut served = 0;
            // One request a connection, the end announced, or not.
            for fields in ["", "Connection: close\r\n", "", ""] {
                let (mut peer, _) = listener.accept().unwrap();
                let mut buffer = [0; 1024];
                if peer.read(&mut buffer).unwrap() > 0 {
                    served += 1;
                    let text = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 1\r\n\r\nx");
                    peer.write_all(text.as_bytes()).unwrap();
                }
            }
            served
        });
        let mut asker = Server::new(address, Duration::from_secs(5));
        let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for _ in 0..4 {
            assert_eq!(asker.ask(Asked::Get, request).unwrap().body(), b"x");
        }
        assert_eq!(server.join().unwrap(), 4);
        assert!(matches!(asker.ask(Asked::Get, request), Err(AskError::Unreachable(_))));
    }
}
