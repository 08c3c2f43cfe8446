//! A stranger: a client that the server knows nothing of.
//!
//! A thread lives in a network namespace of its own, which a veth pair joins to the server's. Its addresses
//! are of ranges that no network uses (RFC 2544, RFC 3849), and routed on the link only. Sockets that the
//! thread opens come from there, so the server sees neither loopback nor an address of the machine.
//!
//! Nothing is left behind: the namespace has no name, and ends with the thread and its sockets, however the
//! process ends; the pair of interfaces ends with the namespace.

mod rtnetlink;

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sched::{CloneFlags, unshare};

use self::rtnetlink::Rtnetlink;
use crate::filler::spawn;

/// How the names of its interfaces begin. A firewall may have to let them in.
pub const INTERFACE: &str = "afpa-ask-";

/// The other end of the pair, in the stranger's namespace.
const FAR: &str = "stranger";

/// A thread in a namespace of its own. It ends when this is dropped.
pub struct Stranger {
    wishes: Mutex<Sender<Wish>>,
    /// The interface in the server's namespace.
    interface: String,
}

/// A socket that somebody wants.
enum Wish {
    /// A connection.
    Stream { to: SocketAddr, patience: Duration, reply: SyncSender<io::Result<TcpStream>> },
    /// Datagrams to an address, and from it alone.
    Datagrams { to: SocketAddr, reply: SyncSender<io::Result<UdpSocket>> },
    /// Something that its thread alone can do.
    Act {
        act: Box<dyn FnOnce() -> anyhow::Result<()> + Send>,
        reply: SyncSender<anyhow::Result<()>>,
    },
}

impl Stranger {
    /// Makes the namespace. The number, a port, tells strangers of one machine apart.
    ///
    /// # Errors
    /// Without the right to make namespaces and interfaces.
    pub fn make(number: u16) -> anyhow::Result<Self> {
        let interface = format!("{INTERFACE}{number}");
        let here = Rtnetlink::open()?;
        // An interface may be left of a namespace whose end the kernel has not finished.
        let _gone = here.delete_link(&interface);
        let (wishes, wanted) = channel();
        let (left, arrived) = sync_channel(1);
        let (joined, settled) = sync_channel(1);
        let (done, outcome) = sync_channel(1);
        let [v4, v6] = addresses(number);
        spawn("stranger", move || {
            let there = match move_out() {
                Ok((there, namespace)) => left.send(Ok(namespace)).map(|()| there),
                Err(error) => return drop(left.send(Err(error))),
            };
            let Ok(there) = there else { return };
            let Ok(()) = settled.recv() else { return };
            let settled = settle(&there, v4, v6);
            let good = settled.is_ok();
            let _gone = done.send(settled);
            if good {
                live(&wanted);
            }
        })?;
        let ended = || anyhow::anyhow!("its thread has ended");
        let namespace = arrived.recv().map_err(|_| ended())??;
        here.add_veth(&interface, FAR, namespace.as_raw_fd())
            .with_context(|| format!("the interface {interface} cannot be made"))?;
        let index = if_nametoindex(interface.as_str())?;
        here.add_address(index, v4.0, 30).context("the interface gets no address")?;
        // A machine without IPv6 has no address of that family that it could be asked by.
        let _without = here.add_address(index, v6.0, 126);
        joined.send(()).map_err(|_| ended())?;
        outcome.recv().map_err(|_| ended())??;
        Ok(Self { wishes: Mutex::new(wishes), interface })
    }

    /// The interface in the server's namespace.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Takes the pair of interfaces away at once. Without the right to do so it ends with the namespace, which
    /// the kernel keeps until its last connection has ended.
    pub fn leave(&self) {
        let _later = Rtnetlink::open().and_then(|here| here.delete_link(&self.interface));
    }

    /// A connection from the stranger's address.
    ///
    /// # Errors
    /// Those of connect(2).
    pub fn connect(&self, to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
        let (reply, answer) = sync_channel(1);
        self.wish(Wish::Stream { to, patience, reply })?;
        answer.recv().map_err(|_| gone())?
    }

    /// A socket for datagrams to and from `to`, at the stranger's address.
    ///
    /// # Errors
    /// Those of connect(2).
    pub fn datagrams(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        let (reply, answer) = sync_channel(1);
        self.wish(Wish::Datagrams { to, reply })?;
        answer.recv().map_err(|_| gone())?
    }

    /// Does something on its thread.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn act(
        &self,
        act: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let (reply, answer) = sync_channel(1);
        self.wish(Wish::Act { act: Box::new(act), reply })?;
        answer.recv().map_err(|_| gone())?
    }

    fn wish(&self, wish: Wish) -> io::Result<()> {
        let sent = self.wishes.lock().unwrap_or_else(PoisonError::into_inner).send(wish);
        sent.map_err(|_| gone())
    }
}

fn gone() -> io::Error {
    io::Error::other("the stranger's thread has ended")
}

/// Opens sockets, and does what else is wished, until nobody is left to ask for it.
fn live(wanted: &Receiver<Wish>) {
    while let Ok(wish) = wanted.recv() {
        let _nobody_waits = match wish {
            Wish::Stream { to, patience, reply } => {
                reply.send(TcpStream::connect_timeout(&to, patience)).is_ok()
            }
            Wish::Datagrams { to, reply } => reply.send(datagrams(to)).is_ok(),
            Wish::Act { act, reply } => reply.send(act()).is_ok(),
        };
    }
}

/// A socket for datagrams to and from `to`.
pub(crate) fn datagrams(to: SocketAddr) -> io::Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    Ok(socket)
}

/// Moves the calling thread into a new namespace, which the file stands for.
fn move_out() -> anyhow::Result<(Rtnetlink, File)> {
    unshare(CloneFlags::CLONE_NEWNET).context("a network namespace cannot be made")?;
    Ok((Rtnetlink::open()?, File::open("/proc/thread-self/ns/net")?))
}

/// Gives the calling thread's namespace its addresses, and the way to the server.
fn settle(there: &Rtnetlink, v4: Pair, v6: Pair) -> anyhow::Result<()> {
    there.bring_up(FAR)?;
    let index = if_nametoindex(FAR)?;
    let join = |(near, far): Pair, prefix: u8| {
        there.add_address(index, far, prefix)?;
        there.add_default_route(index, near)
    };
    join(v4, 30).context("the stranger gets no address")?;
    let _without = join(v6, 126);
    wait_for_link();
    Ok(())
}

/// Packets are dropped until the kernel has noticed that both ends are up, a moment later.
fn wait_for_link() {
    let deadline = Instant::now() + Duration::from_secs(2);
    let runs = || {
        let all = getifaddrs().into_iter().flatten();
        let mut own = all.filter(|entry| entry.interface_name == FAR);
        own.any(|entry| entry.flags.contains(InterfaceFlags::IFF_RUNNING))
    };
    while !runs() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The near and the far address of a family.
type Pair = (IpAddr, IpAddr);

/// The addresses of both families. Each number has a small network of its own.
fn addresses(number: u16) -> [Pair; 2] {
    let first = 0xc612_0000 + u32::from(number & 0x7fff) * 4; // 198.18.0.0/15
    let v4 = |last: u32| IpAddr::V4(Ipv4Addr::from(first + last));
    let v6 = |last: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xaf9a, number, 0, 0, 0, last));
    [(v4(1), v4(2)), (v6(1), v6(2))]
}
