//! A worker's UDP socket: several datagrams a system call both ways (GRO and GSO), with their ECN marks.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::options;

/// A socket that is driven by readiness.
pub(super) struct QuicSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    /// The socket under another number: as long as this lives, it can be taken again.
    _kept: Arc<std::net::UdpSocket>,
    /// Room for datagrams that arrive together.
    room: Box<[u8]>,
    /// Packets that the socket did not take.
    waiting: VecDeque<(Transmit, Vec<u8>)>,
}

/// The facts of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) from: SocketAddr,
    pub(super) to: Option<IpAddr>,
    pub(super) ecn: Option<EcnCodepoint>,
}

/// Datagrams that arrive together, as one of the kernel's buffers.
const BUFFER: usize = 64 * 1024;

/// Buffers of a system call.
const BATCHES: usize = 8;

/// Bytes that a system call sends at most (RFC 768, less the headers of IPv4 with options and of UDP).
const LARGEST: usize = 65_535 - 60 - 8;

/// Packets that may wait for the socket. Further ones are lost, as in a queue of the network.
const MOST_WAITING: usize = 64;

impl QuicSocket {
    pub(super) fn new(kept: Arc<std::net::UdpSocket>) -> io::Result<Self> {
        let socket = kept.try_clone()?;
        let state = options::prepare(&socket)?;
        let socket = UdpSocket::from_std(socket)?;
        let room = vec![0; BUFFER * BATCHES].into_boxed_slice();
        Ok(Self { socket, state, _kept: kept, room, waiting: VecDeque::new() })
    }

    /// Whether the kernel never fragments its packets, so that their size can be searched for (RFC 9000 section 14.3).
    pub(super) fn knows_mtu(&self) -> bool {
        !self.state.may_fragment()
    }

    /// Packets of a length that one system call may take: as many as a datagram of the largest size would hold.
    pub(super) fn most_segments(&self, length: usize) -> usize {
        packets_of_a_call(length).min(self.state.max_gso_segments().max(1))
    }

    /// Receives once; `each` gets the datagrams.
    pub(super) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        mut each: impl FnMut(Arrived, &[u8]),
    ) -> Poll<io::Result<()>> {
        let Self { socket, state, room, .. } = self;
        let mut meta = [RecvMeta::default(); BATCHES];
        let count = loop {
            std::task::ready!(socket.poll_recv_ready(cx))?;
            let mut pieces = room.chunks_exact_mut(BUFFER);
            let mut buffers: [IoSliceMut<'_>; BATCHES] =
                std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
            let mut count = 0;
            let received = socket.try_io(Interest::READABLE, || {
                count = state.recv((&*socket).into(), &mut buffers, &mut meta)?;
                match count == BATCHES {
                    true => Ok(()),
                    // The kernel has given all that there was. Another call would say so, and nothing else; the next
                    // datagram makes the socket ready again.
                    false => Err(io::ErrorKind::WouldBlock.into()),
                }
            });
            match received {
                Ok(()) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && count > 0 => {
                    break count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A client has refused an earlier packet (ICMP).
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        };
        for (meta, buffer) in meta.iter().zip(room.chunks_exact(BUFFER)).take(count) {
            let arrived = Arrived {
                from: meta.addr,
                to: meta.dst_ip,
                ecn: meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
            };
            let bytes = buffer.get(..meta.len).unwrap_or_default();
            bytes.chunks(meta.stride.max(1)).for_each(|datagram| each(arrived, datagram));
        }
        Poll::Ready(Ok(()))
    }

    /// Sends packets, or keeps them until the socket has room. Whether more may be sent now.
    pub(super) fn send(&mut self, packets: Transmit, bytes: &[u8]) -> bool {
        if self.waiting.is_empty() && self.try_send(&packets, bytes) {
            return true;
        }
        if self.waiting.len() < MOST_WAITING {
            let bytes = bytes.get(..packets.size).unwrap_or_default().to_vec();
            self.waiting.push_back((packets, bytes));
        }
        false
    }

    /// Sends the packets that wait. Ready when there are none.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some((packets, bytes)) = self.waiting.pop_front() {
            if !self.try_send(&packets, &bytes) {
                self.waiting.push_front((packets, bytes));
                match self.socket.poll_send_ready(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => self.waiting.clear(),
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
        Poll::Ready(())
    }

    pub(super) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the socket has taken them. Packets that it refuses for another reason than room are lost.
    fn try_send(&self, packets: &Transmit, bytes: &[u8]) -> bool {
        let transmit = quinn_udp::Transmit {
            destination: packets.destination,
            ecn: packets.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: bytes.get(..packets.size).unwrap_or_default(),
            segment_size: packets.segment_size,
            src_ip: packets.src_ip,
        };
        let sent = self
            .socket
            .try_io(Interest::WRITABLE, || self.state.try_send((&self.socket).into(), &transmit));
        !matches!(sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Packets of a length that fit the largest datagram, where the kernel cuts it.
pub(super) const fn packets_of_a_call(length: usize) -> usize {
    if length == 0 || length > LARGEST { 1 } else { LARGEST / length }
}
