//! A way for one connection that records what its client sends, and holds back what the server sends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The way. It is held until it is released.
pub(crate) struct Tap {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    from_client: Mutex<Vec<u8>>,
    from_server: AtomicU64,
    released: AtomicBool,
    cut: AtomicBool,
}

impl Tap {
    /// A way to `server`.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            let (client, _) = listener.accept()?;
            let server = TcpStream::connect(server)?;
            let (up, down) = (client.try_clone()?, server.try_clone()?);
            let for_up = Arc::clone(&own);
            std::thread::spawn(move || carry_up(up, down, &for_up));
            carry_down(server, client, &own)
        });
        Self { address, shared }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bytes that the client has sent so far.
    pub(crate) fn client_has_sent(&self) -> Vec<u8> {
        self.shared.from_client.lock().expect("not poisoned").clone()
    }

    /// How much the server has sent so far, whether the client has it or not.
    pub(crate) fn server_has_sent(&self) -> u64 {
        self.shared.from_server.load(Ordering::Relaxed)
    }

    /// Gives the client what the server has sent, and will send.
    pub(crate) fn release(&self) {
        self.shared.released.store(true, Ordering::Relaxed);
    }

    /// Ends both connections.
    pub(crate) fn cut(&self) {
        self.shared.cut.store(true, Ordering::Relaxed);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.cut();
    }
}

fn carry_up(mut from: TcpStream, mut to: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut room = [0; 4096];
    loop {
        let n = from.read(&mut room)?;
        if n == 0 {
            return to.shutdown(Shutdown::Write);
        }
        shared.from_client.lock().expect("not poisoned").extend_from_slice(&room[..n]);
        to.write_all(&room[..n])?;
    }
}

fn carry_down(mut from: TcpStream, mut to: TcpStream, shared: &Shared) -> std::io::Result<()> {
    from.set_read_timeout(Some(Duration::from_millis(10)))?;
    let (mut held, mut room) = (Vec::new(), [0; 4096]);
    let mut is_over = false;
    while !shared.cut.load(Ordering::Relaxed) {
        match from.read(&mut room) {
            Ok(0) => is_over = true,
            Ok(n) => {
                shared.from_server.fetch_add(n as u64, Ordering::Relaxed);
                held.extend_from_slice(&room[..n]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => is_over = true,
        }
        if shared.released.load(Ordering::Relaxed) {
            to.write_all(&held)?;
            held.clear();
            if is_over {
                break;
            }
        } else if is_over {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    to.shutdown(Shutdown::Both)
}
