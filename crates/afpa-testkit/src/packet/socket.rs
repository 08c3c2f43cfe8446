//! A packet socket (AF_PACKET) bound to one interface: whole Ethernet frames in and out.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, bind, setsockopt, socket, sockopt,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

/// Room for bursts that arrive while the reader sleeps.
const BUFFER: usize = 16 << 20;

/// A non-blocking packet socket. It does not receive the frames that it sends itself.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
}

impl PacketSocket {
    /// Opens one on an interface of the calling thread's namespace.
    ///
    /// # Errors
    ///
    /// Without `CAP_NET_RAW`, or when there is no such interface.
    pub fn open(interface: &str) -> io::Result<Self> {
        let address = link_address(interface).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {interface}"))
        })?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        bind(fd.as_raw_fd(), &address)?;
        setsockopt(&fd, sockopt::RcvBufForce, &BUFFER)?;
        setsockopt(&fd, sockopt::SndBufForce, &BUFFER)?;
        Ok(Self { socket: Socket::from(fd) })
    }

    /// One frame, cut off at the end of `frame`; `None` when there is none now.
    ///
    /// # Errors
    ///
    /// Errors of the system, for example when the interface goes down.
    pub fn receive(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.socket).read(frame) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until there is something to receive, or the time is over.
    pub fn wait(&self, patience: Duration) {
        let timeout =
            Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        let _interrupted = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout));
    }

    /// Sends a frame; `false` when the device has no room for it now.
    ///
    /// # Errors
    ///
    /// Errors of the system, for example when the interface is down or the frame too long.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        match (&self.socket).write(frame) {
            Ok(_) => Ok(true),
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) =>
            {
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The one safe way to an address that names an interface: the system's own list of them.
fn link_address(interface: &str) -> Option<LinkAddr> {
    getifaddrs()
        .ok()?
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address?.as_link_addr().copied())
}
