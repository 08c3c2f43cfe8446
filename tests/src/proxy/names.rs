//! A name server with one host, whose address changes when a test says so.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_testkit::server::free_address;

/// A name server that answers over UDP for any name, with a time to live of a second. Ended when dropped.
#[derive(Debug)]
pub struct Names {
    address: SocketAddr,
    shared: Arc<NameServerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct NameServerState {
    /// The addresses in its answers; `None`: the server does not answer.
    addresses: Mutex<Option<Vec<Ipv4Addr>>>,
    asked: AtomicUsize,
    ended: AtomicBool,
}

impl Names {
    /// A name server that knows these addresses.
    ///
    /// # Panics
    /// When it has no port.
    pub fn start(addresses: &[Ipv4Addr]) -> Self {
        let socket = UdpSocket::bind((free_address().ip(), 0)).expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
        let address = socket.local_addr().expect("an address");
        let shared = Arc::new(NameServerState {
            addresses: Mutex::new(Some(addresses.to_vec())),
            asked: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let told = Arc::clone(&shared);
        let thread = std::thread::spawn(move || tell(&socket, &told));
        Self { address, shared, thread: Some(thread) }
    }

    /// Its address, as `name_servers` has it.
    pub fn to(&self) -> String {
        self.address.to_string()
    }

    /// The host's addresses from now on.
    pub fn change(&self, addresses: &[Ipv4Addr]) {
        self.set(Some(addresses.to_vec()));
    }

    /// No question is answered from now on.
    pub fn be_silent(&self) {
        self.set(None);
    }

    /// Questions so far.
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    fn set(&self, addresses: Option<Vec<Ipv4Addr>>) {
        *self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn tell(socket: &UdpSocket, shared: &NameServerState) {
    let mut question = [0; 512];
    while !shared.ended.load(Ordering::SeqCst) {
        let Ok((length, from)) = socket.recv_from(&mut question) else { continue };
        shared.asked.fetch_add(1, Ordering::SeqCst);
        let addresses = shared.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(addresses) = addresses else { continue };
        if let Some(answer) = answer(&question[..length], &addresses) {
            let _sent = socket.send_to(&answer, from);
        }
    }
}

/// The answer to a message with one question (RFC 1035, section 4): all addresses for type A, none
/// for any other type.
fn answer(message: &[u8], addresses: &[Ipv4Addr]) -> Option<Vec<u8>> {
    const HEAD: usize = 12;
    const TIME_TO_LIVE: u32 = 1;
    const TYPE_A: [u8; 2] = [0, 1];
    let name = message.get(HEAD..)?.iter().position(|byte| *byte == 0)?;
    let question = message.get(HEAD..HEAD + name + 1 + 4)?;
    let of_type_a = question[name + 1..].starts_with(&TYPE_A);
    let addresses = if of_type_a { addresses } else { &[] };
    let mut answer = message[..2].to_vec();
    // A response, recursion wanted and had, no error; one question.
    answer.extend([0x81, 0x80, 0, 1]);
    answer.extend([0, u8::try_from(addresses.len()).ok()?, 0, 0, 0, 0]);
    answer.extend(question);
    for address in addresses {
        // The name of the question, type A, class IN.
        answer.extend([0xc0, 12, 0, 1, 0, 1]);
        answer.extend(TIME_TO_LIVE.to_be_bytes());
        answer.extend([0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
