//! The socket of one connection.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context, Result};
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

/// A socket with a port of its own, that waits for nothing.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// Room for datagrams that arrive together.
pub(super) struct Room(Vec<u8>);

/// Bytes of a batch that the kernel has merged (GRO).
const BATCH: usize = 64 * 1024;
/// Batches of one system call.
const BATCHES: usize = 4;
/// Room for datagrams that have come, which browsers ask for as well: a client that loses them measures itself.
const RECEIVED: usize = 4 << 20;
/// Packets that one system call takes (GSO).
pub(super) const SEGMENTS: usize = 10;

/// A batch of datagrams of one length; the last one may be shorter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch<'r> {
    pub(super) from: SocketAddr,
    pub(super) to: Option<IpAddr>,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) bytes: &'r [u8],
    pub(super) each: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        Self(vec![0; BATCH * BATCHES])
    }
}

impl Socket {
    pub(super) fn new(from: IpAddr) -> Result<Self> {
        let socket = UdpSocket::bind((from, 0)).with_context(|| format!("a socket at {from}"))?;
        socket.set_nonblocking(true)?;
        // Without the right to it, the socket has the usual 208 KiB: three bursts of 64 KiB, the rest of which is lost here.
        let _ = set_socket_recv_buffer_size_force(&socket, RECEIVED);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    pub(super) fn knows_mtu(&self) -> bool {
        !self.state.may_fragment()
    }

    /// Receives once; whether anything had come.
    pub(super) fn receive(
        &self,
        Room(room): &mut Room,
        mut each: impl FnMut(Batch<'_>),
    ) -> io::Result<bool> {
        let mut meta = [RecvMeta::default(); BATCHES];
        let count = {
            let mut pieces = room.chunks_exact_mut(BATCH);
            let mut buffers: [IoSliceMut<'_>; BATCHES] =
                std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
            match self.state.recv((&self.socket).into(), &mut buffers, &mut meta) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        };
        for (meta, piece) in meta.iter().zip(room.chunks_exact(BATCH)).take(count) {
            each(Batch {
                from: meta.addr,
                to: meta.dst_ip,
                ecn: meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
                bytes: piece.get(..meta.len).unwrap_or_default(),
                each: meta.stride.max(1),
            });
        }
        Ok(count > 0)
    }

    /// Sends packets. Whether the kernel has taken them; else they are lost, and QUIC sends them again.
    pub(super) fn send(&self, packets: &Transmit, bytes: &[u8]) -> bool {
        let transmit = quinn_udp::Transmit {
            destination: packets.destination,
            ecn: packets.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: bytes.get(..packets.size).unwrap_or_default(),
            segment_size: packets.segment_size,
            src_ip: packets.src_ip,
        };
        self.state.try_send((&self.socket).into(), &transmit).is_ok()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
