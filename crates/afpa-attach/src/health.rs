//! The server's health. A server that hangs must look as it does without us: nothing is answered.
//!
//! Once in a while the server is asked, on a new connection, for something that the programs never answer. Any answer
//! will do, if it comes in time. Once none comes in time, the kernel stops answering; with [`EVERY`] and [`PATIENCE`]
//! that is within two seconds of the server's end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::filler::{Filler, spawn};
use crate::say::say;
use crate::server::Addresses;

/// From the beginning of one question to that of the next.
const EVERY: Duration = Duration::from_millis(750);
/// How long the server may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state of the server's health.
#[derive(Debug, Default)]
pub struct Health {
    away: AtomicBool,
    /// How often the server went away.
    ends: AtomicU64,
}

impl Health {
    /// Whether it answers.
    pub fn is_well(&self) -> bool {
        !self.away.load(Ordering::Relaxed)
    }

    /// How often it stopped answering.
    pub fn ends(&self) -> u64 {
        self.ends.load(Ordering::Relaxed)
    }

    fn note(&self, outcome: &io::Result<()>, filler: &Filler, address: SocketAddr) {
        match outcome {
            Err(error) if self.is_well() => {
                filler.server_is_away();
                self.away.store(true, Ordering::Relaxed);
                self.ends.fetch_add(1, Ordering::Relaxed);
                say(&format!(
                    "the server on {address} does not answer ({error}): the kernel stops answering"
                ));
            }
            Ok(()) if !self.is_well() => {
                filler.server_is_back();
                self.away.store(false, Ordering::Relaxed);
                say("the server answers again: asking for everything anew");
            }
            _ => {}
        }
    }
}

/// Asks until the process ends.
pub(crate) fn watch(
    health: Arc<Health>,
    filler: Arc<Filler>,
    addresses: Addresses,
) -> io::Result<()> {
    spawn("health", move || {
        loop {
            let began = Instant::now();
            // Loopback is the last to be filtered, and one that is there always.
            let all = addresses.get();
            let own = all.iter().find(|address| address.ip().is_loopback());
            if let Some(address) = own.or(all.first()) {
                let host = filler.sites().first().and_then(|hosts| hosts.names.first().cloned());
                let connect =
                    |patience| filler.fast_path.sockets.connect_to_user_mode(*address, patience);
                let outcome = ask(connect, &host.unwrap_or_default(), PATIENCE);
                health.note(&outcome, &filler, *address);
            }
            std::thread::sleep(EVERY.saturating_sub(began.elapsed()));
        }
    })?;
    Ok(())
}

/// One question on a connection of its own.
fn ask(
    connect: impl Fn(Duration) -> io::Result<TcpStream>,
    host: &str,
    patience: Duration,
) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let mut stream = connect(patience)?;
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_write_timeout(Some(left))?;
    stream.set_read_timeout(Some(left))?;
    let request = format!(
        "HEAD / HTTP/1.1\r\nHost: {host}\r\nAfpa-Attach:\thealth\r\nUser-Agent: afpa-attach\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = [0; 16];
    match stream.read(&mut answer) {
        Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_the_server_says_does_not_matter_if_it_says_something() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for says in ["HTTP/1.1 503 Busy\r\n\r\n", ""] {
                let (mut peer, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                let length = peer.read(&mut request).unwrap();
                assert!(request[..length].ends_with(b"\r\n\r\n"));
                peer.write_all(says.as_bytes()).unwrap();
            }
            let (silent, _) = listener.accept().unwrap();
            (listener, silent)
        });
        let patience = Duration::from_secs(5);
        let address = |patience| TcpStream::connect_timeout(&address, patience);
        assert!(ask(address, "a", patience).is_ok());
        assert_eq!(ask(address, "a", patience).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let short = Duration::from_millis(50);
        assert_eq!(ask(address, "a", short).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(server.join().unwrap());
        assert_eq!(
            ask(address, "a", patience).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
    }
}
