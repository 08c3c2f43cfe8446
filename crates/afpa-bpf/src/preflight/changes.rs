//! News of links, addresses, routes and rules, so that the host is looked at again when it changes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// `RTMGRP_LINK`, `RTMGRP_TC`, `RTMGRP_IPV4_IFADDR`, `_ROUTE`, `_RULE`, `RTMGRP_IPV6_IFADDR`, `_ROUTE`, and the group of
/// IPv6 rules.
const GROUPS: u32 = 0x1 | 0x8 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << 18;

/// A netlink socket on which the kernel tells of changes in the network namespace in which it was opened.
#[derive(Debug)]
pub struct Changes {
    socket: OwnedFd,
}

impl Changes {
    /// Begins to listen.
    ///
    /// # Errors
    /// When netlink sockets are not allowed.
    pub fn listen() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let route = SockProtocol::NetlinkRoute;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        Ok(Self { socket })
    }

    /// Whether anything has changed since the last question. Does not wait.
    pub fn any(&self) -> bool {
        let mut buffer = [0; 8192];
        let mut any = false;
        loop {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(0) => return any,
                Ok(_) => any = true,
                // There was more news than the queue holds.
                Err(Errno::ENOBUFS) => any = true,
                Err(Errno::EINTR) => {}
                Err(_) => return any,
            }
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
