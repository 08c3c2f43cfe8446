//! Datagrams by the batch: one call takes many questions, and one gives their answers.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd as _;

use afpa_framework::datagram::walk;
use afpa_framework::{Datagram, Now, State, clock};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg,
    sendmmsg,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::module::Dns;

/// Datagrams that a call takes.
const BATCH: usize = 32;
/// Bytes of the longest question; a longer one is no question.
pub(crate) const LONGEST: usize = 4096;

/// Answers the questions of a socket until its task ends.
pub(crate) async fn serve(socket: std::net::UdpSocket, mut module: Dns) -> io::Result<()> {
    let socket = UdpSocket::from_std(socket)?;
    let mut batch = Batch::new();
    loop {
        socket.readable().await?;
        match socket.try_io(Interest::READABLE, || batch.turn(&socket, &mut module)) {
            // Others have a turn as well.
            Ok(()) => tokio::task::yield_now().await,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // An error of an earlier answer, which its client does not get.
            Err(error) => tracing::debug!(%error, "a datagram could not be received"),
        }
    }
}

/// From where an answer leaves.
#[derive(Clone, Copy)]
enum From {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
    Any,
}

impl From {
    fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (From::V4(a), From::V4(b)) => {
                (a.ipi_ifindex, a.ipi_spec_dst.s_addr) == (b.ipi_ifindex, b.ipi_spec_dst.s_addr)
            }
            (From::V6(a), From::V6(b)) => {
                (a.ipi6_ifindex, a.ipi6_addr.s6_addr) == (b.ipi6_ifindex, b.ipi6_addr.s6_addr)
            }
            (From::Any, From::Any) => true,
            _ => false,
        }
    }
}

struct Answer {
    to: SockaddrStorage,
    from: From,
    begin: usize,
    end: usize,
}

/// The memory of a socket's calls.
struct Batch {
    headers: MultiHeaders<SockaddrStorage>,
    buffers: Box<[[u8; LONGEST]]>,
    out: Vec<u8>,
    answers: Vec<Answer>,
}

impl Batch {
    fn new() -> Self {
        Self {
            headers: received_headers(),
            buffers: vec![[0; LONGEST]; BATCH].into(),
            out: Vec::new(),
            answers: Vec::with_capacity(BATCH),
        }
    }

    fn turn(&mut self, socket: &UdpSocket, module: &mut Dns) -> io::Result<()> {
        let now = now();
        self.out.clear();
        self.answers.clear();
        let mut slices: Vec<[IoSliceMut<'_>; 1]> =
            self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let received =
            recvmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), flags, None);
        let received: Vec<_> = received?
            .map(|message| {
                let is_whole = !message.flags.contains(MsgFlags::MSG_TRUNC);
                (message.address.filter(|_| is_whole), from(&message), message.bytes)
            })
            .collect();
        for ((address, from, length), buffer) in received.into_iter().zip(&self.buffers) {
            let Some((to, client)) = address.and_then(|to| Some((to, client(&to)?))) else {
                continue;
            };
            let bytes = buffer.get(..length).unwrap_or_default();
            let begin = self.out.len();
            let datagram = Datagram { client, is_connected: false, bytes };
            if walk(module, now, datagram, &mut self.out) == State::SendResponse {
                module.sample(now, datagram, self.out.get(begin..).unwrap_or_default());
                self.answers.push(Answer { to, from, begin, end: self.out.len() });
            }
        }
        self.send(socket);
        Ok(())
    }

    /// Sends the answers, those that leave from one address together. One that cannot be sent is lost, as on the way.
    fn send(&self, socket: &UdpSocket) {
        let mut rest = self.answers.as_slice();
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|other| other.from.is_same(first.from)).count();
            let (group, others) = rest.split_at(same);
            rest = others;
            let mut group = group;
            while !group.is_empty() {
                // An error is that of the first one.
                let sent = self.send_group(socket, group, first.from).unwrap_or(0).max(1);
                group = group.get(sent..).unwrap_or_default();
            }
        }
    }

    fn send_group(&self, socket: &UdpSocket, group: &[Answer], from: From) -> Result<usize, Errno> {
        let slice = |answer: &Answer| {
            [IoSlice::new(self.out.get(answer.begin..answer.end).unwrap_or_default())]
        };
        let slices: Vec<_> = group.iter().map(slice).collect();
        let to: Vec<_> = group.iter().map(|answer| Some(answer.to)).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let fd = socket.as_raw_fd();
        match &from {
            From::V4(info) => {
                let mut headers =
                    MultiHeaders::preallocate(group.len(), Some(cmsg_space!(libc::in_pktinfo)));
                let control = [ControlMessage::Ipv4PacketInfo(info)];
                sendmmsg(fd, &mut headers, slices.iter(), &to, control, flags).map(Iterator::count)
            }
            From::V6(info) => {
                let mut headers =
                    MultiHeaders::preallocate(group.len(), Some(cmsg_space!(libc::in6_pktinfo)));
                let control = [ControlMessage::Ipv6PacketInfo(info)];
                sendmmsg(fd, &mut headers, slices.iter(), &to, control, flags).map(Iterator::count)
            }
            From::Any => {
                let mut headers = MultiHeaders::preallocate(group.len(), None);
                sendmmsg(fd, &mut headers, slices.iter(), &to, [], flags).map(Iterator::count)
            }
        }
    }
}

fn received_headers() -> MultiHeaders<SockaddrStorage> {
    MultiHeaders::preallocate(BATCH, Some(cmsg_space!(libc::in6_pktinfo)))
}

fn from(message: &nix::sys::socket::RecvMsg<'_, '_, SockaddrStorage>) -> From {
    let Ok(mut control) = message.cmsgs() else { return From::Any };
    let found = control.find_map(|control| match control {
        ControlMessageOwned::Ipv4PacketInfo(mut info) => {
            // The route decides on the interface; the address alone is ours to say.
            info.ipi_ifindex = 0;
            info.ipi_addr.s_addr = 0;
            Some(From::V4(info))
        }
        ControlMessageOwned::Ipv6PacketInfo(mut info) => {
            let [first, second, ..] = info.ipi6_addr.s6_addr;
            // A link-local address has a meaning on its link only.
            if !(first == 0xfe && second & 0xc0 == 0x80) {
                info.ipi6_ifindex = 0;
            }
            Some(From::V6(info))
        }
        _ => None,
    });
    found.unwrap_or(From::Any)
}

fn client(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4(SocketAddrV4::from(*v4)));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6(SocketAddrV6::from(*v6))))
}

pub(crate) fn now() -> Now {
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Now { unix_us: unix.map_or(0, micros), steady_us: micros(clock::steady()) }
}
