//! Sockets of an address: one for datagrams and one for connections, for each thread.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

const BACKLOG: i32 = 256;
/// A burst of questions waits here while its thread answers others.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The sockets of an address, before threads have them.
#[derive(Debug)]
pub struct BoundZoneSockets {
    /// The address as configured; port 0 replaced by the port that the kernel chose.
    pub address: SocketAddr,
    pub(crate) sockets: Vec<(UdpSocket, TcpListener)>,
}

impl BoundZoneSockets {
    /// Binds an address for so many threads. `is_shared`: another process of ours may have it, and will leave it.
    ///
    /// # Errors
    /// The error of the system: the address is in use, or needs a privilege.
    pub fn bind(mut address: SocketAddr, threads: usize, is_shared: bool) -> io::Result<Self> {
        if !is_shared && address.port() != 0 {
            refuse_if_another_process_has_it(address)?;
        }
        let mut sockets = Vec::with_capacity(threads);
        for _ in 0..threads.max(1) {
            let tcp = socket(address, Type::STREAM)?;
            if let Some(bound) = tcp.local_addr()?.as_socket() {
                address.set_port(bound.port());
            }
            tcp.listen(BACKLOG)?;
            let udp = socket(address, Type::DGRAM)?;
            // The kernel may allow less.
            let _ = udp.set_recv_buffer_size(RECEIVE_BUFFER);
            tell_destination(&udp, address)?;
            sockets.push((udp.into(), tcp.into()));
        }
        Ok(Self { address, sockets })
    }
}

/// On an address that stands for all of the machine, an answer has to leave from the one that was asked.
fn tell_destination(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?,
        SocketAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?,
    }
    Ok(())
}

fn socket(address: SocketAddr, kind: Type) -> io::Result<Socket> {
    let socket = unbound(address, kind)?;
    socket.set_reuse_port(true)?;
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
        socket.set_tcp_nodelay(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn unbound(address: SocketAddr, kind: Type) -> io::Result<Socket> {
    let protocol = if kind == Type::STREAM { Protocol::TCP } else { Protocol::UDP };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// With `SO_REUSEPORT` a second server could take half of the questions in silence.
fn refuse_if_another_process_has_it(address: SocketAddr) -> io::Result<()> {
    unbound(address, Type::DGRAM)?.bind(&address.into())?;
    let tcp = unbound(address, Type::STREAM)?;
    tcp.set_reuse_address(true)?;
    tcp.bind(&address.into())
}
