//! A listener on loopback whose connections go on, encrypted, to a server that speaks TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Authority, TlsServer};
use afpa_testkit::Client;
use afpa_tls::machine::ServerName;
use afpa_tls::{ClientMachine, ClientTls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The way. Its connections end with it.
pub struct Way {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Way {
    /// A way to `server`, which has to show a certificate for `name`.
    ///
    /// # Panics
    /// When there is no port left.
    pub fn to(server: SocketAddr, tls: ClientTls, name: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let over = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&over);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let Ok(near) = near else { continue };
                if shared.load(Ordering::Relaxed) {
                    return;
                }
                let machine = ClientMachine::new(&tls, name.clone()).expect("a machine");
                let over = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let far = TcpStream::connect(server)?;
                    Passage::new(near, far, machine)?.run(&over)
                });
            }
        });
        Self { address, over }
    }

    /// A way to `server` whose clients speak HTTP/2.
    ///
    /// # Panics
    /// As [`to`](Self::to).
    pub fn by_h2(authority: &Authority, server: &TlsServer) -> Self {
        let tls = authority.client(|settings| settings.protocols = vec![b"h2".to_vec()]);
        Self::to(server.tls, tls, "localhost")
    }

    /// A connection by it.
    pub fn connect(&self) -> Client {
        Client::to(self.address)
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // The listener's thread sees it with its next connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// One connection.
struct Passage {
    near: TcpStream,
    far: TcpStream,
    machine: ClientMachine,
    /// On its way to the client, and to the server.
    to_near: Vec<u8>,
    to_far: Vec<u8>,
    near_ended: bool,
    far_ended: bool,
}

impl Passage {
    fn new(near: TcpStream, far: TcpStream, mut machine: ClientMachine) -> io::Result<Self> {
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let (mut to_near, mut to_far) = (Vec::new(), Vec::new());
        machine.process(&mut [], &mut to_near, &mut to_far).map_err(io::Error::other)?;
        Ok(Self { near, far, machine, to_near, to_far, near_ended: false, far_ended: false })
    }

    fn run(mut self, over: &AtomicBool) -> io::Result<()> {
        while !over.load(Ordering::Relaxed) {
            self.wait()?;
            let mut room = [0; 16 * 1024];
            if !self.near_ended && self.to_far.len() < room.len() && !self.machine.is_handshaking()
            {
                match now(self.near.read(&mut room))? {
                    Some(0) => {
                        self.near_ended = true;
                        let _ = self.machine.close(&mut self.to_far);
                    }
                    Some(n) => drop(self.machine.encrypt(&room[..n], &mut self.to_far)),
                    None => {}
                }
            }
            if !self.far_ended && self.to_near.len() < 4 * room.len() {
                match now(self.far.read(&mut room))? {
                    Some(0) => self.far_ended = true,
                    Some(n) => {
                        let (near, far) = (&mut self.to_near, &mut self.to_far);
                        let progress = self.machine.process(&mut room[..n], near, far);
                        self.far_ended |= progress.map_err(io::Error::other)?.peer_closed;
                    }
                    None => {}
                }
            }
            push(&mut self.near, &mut self.to_near)?;
            push(&mut self.far, &mut self.to_far)?;
            if self.far_ended && self.to_near.is_empty() {
                return self.end();
            }
            if self.near_ended && self.to_far.is_empty() {
                // The server may still be sending.
                let _ = self.far.shutdown(Shutdown::Write);
            }
        }
        Ok(())
    }

    /// Ends the connection as a server does. The client may still be sending: closing at once would reset the connection,
    /// and the reset would destroy what the client has not read.
    fn end(mut self) -> io::Result<()> {
        let _ = self.far.shutdown(Shutdown::Both);
        self.near.shutdown(Shutdown::Write)?;
        self.near.set_nonblocking(false)?;
        self.near.set_read_timeout(Some(Duration::from_secs(2)))?;
        let mut room = [0; 16 * 1024];
        while self.near.read(&mut room)? > 0 {}
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let wanted = |reads: bool, writes: bool| {
            let read = if reads { PollFlags::IN } else { PollFlags::empty() };
            read | if writes { PollFlags::OUT } else { PollFlags::empty() }
        };
        let reads_near = !self.near_ended && !self.machine.is_handshaking();
        let mut both = [
            PollFd::new(&self.near, wanted(reads_near, !self.to_near.is_empty())),
            PollFd::new(&self.far, wanted(!self.far_ended, !self.to_far.is_empty())),
        ];
        // It looks now and then whether the way is over.
        let patience = Timespec::try_from(Duration::from_millis(200)).map_err(io::Error::other)?;
        poll(&mut both, Some(&patience))?;
        Ok(())
    }
}

/// The number of bytes read; None if nothing is there yet.
fn now(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Ok(n) => Ok(Some(n)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

fn push(to: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    while !bytes.is_empty() {
        match now(to.write(bytes))? {
            Some(n) => drop(bytes.drain(..n)),
            None => break,
        }
    }
    Ok(())
}
