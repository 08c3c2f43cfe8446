//! A wire that loses, repeats and reorders: frames are carried between two interfaces by a thread.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// A packet socket on an interface of the current namespace; reads give up after some milliseconds.
pub fn packet_socket(interface: &str, patience: i64) -> OwnedFd {
    let every = SockProtocol::EthAll;
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, every)
        .expect("a packet socket");
    let link: LinkAddr = nix::ifaddrs::getifaddrs()
        .expect("interfaces")
        .find_map(|i| {
            (i.interface_name == interface).then_some(i.address?)?.as_link_addr().copied()
        })
        .expect("the interface");
    bind(socket.as_raw_fd(), &link).expect("bound");
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::milliseconds(patience))
        .expect("a timeout");
    socket
}

/// Running wire; ends when dropped.
pub struct Relay {
    stop: Arc<AtomicBool>,
    pub lost: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Carry frames between two sockets. Of a hundred IP packets each way, `percent` are lost, as
    /// many repeated, as many held back for a few milliseconds. The same seed, the same fate.
    pub fn start(a: OwnedFd, b: OwnedFd, percent: u64, seed: u64) -> Self {
        let (stop, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (a, b) = (Arc::new(a), Arc::new(b));
        let direction = |from: &Arc<OwnedFd>, to: &Arc<OwnedFd>, seed: u64| {
            let (from, to, stop, lost) = (from.clone(), to.clone(), stop.clone(), lost.clone());
            std::thread::spawn(move || carry(&from, &to, &stop, &lost, percent, seed))
        };
        let threads = vec![direction(&a, &b, seed), direction(&b, &a, seed ^ 0xdead_beef)];
        Self { stop, lost, threads }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn carry(
    from: &OwnedFd,
    to: &OwnedFd,
    stop: &AtomicBool,
    lost: &AtomicU64,
    percent: u64,
    seed: u64,
) {
    let mut held: Vec<(Instant, Vec<u8>)> = Vec::new();
    let mut dice = seed | 1;
    let mut buffer = [0; 2048];
    let forward = |frame: &[u8]| {
        let _full = send(to.as_raw_fd(), frame, MsgFlags::empty());
    };
    while !stop.load(Ordering::Relaxed) {
        let read = recv(from.as_raw_fd(), &mut buffer, MsgFlags::empty());
        let now = Instant::now();
        held.retain(|(due, frame)| {
            if *due <= now {
                forward(frame);
            }
            *due > now
        });
        let Ok(read) = read else { continue };
        let frame = &buffer[..read];
        let ip = frame.get(12..14).is_some_and(|kind| kind == [8, 0] || kind == [0x86, 0xdd]);
        match roll(&mut dice) % 100 {
            fate if !ip || fate >= 3 * percent => forward(frame),
            fate if fate < percent => drop(lost.fetch_add(1, Ordering::Relaxed)),
            fate if fate < 2 * percent => {
                forward(frame);
                forward(frame);
            }
            _ => held.push((now + Duration::from_millis(1 + roll(&mut dice) % 8), frame.to_vec())),
        }
    }
}

/// xorshift64
fn roll(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 20
}
