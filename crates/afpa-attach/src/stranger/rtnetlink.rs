//! Requests to rtnetlink: interfaces, addresses and routes are made without another program.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// A socket of the network namespace in which the calling thread was when it was opened.
pub(super) struct Rtnetlink(OwnedFd);

impl Rtnetlink {
    pub(super) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let route = SockProtocol::NetlinkRoute;
        Ok(Self(socket(AddressFamily::Netlink, SockType::Raw, flags, route)?))
    }

    /// A veth pair: one end here, up; the other in the namespace that the file names.
    pub(super) fn add_veth(&self, name: &str, peer: &str, namespace: RawFd) -> io::Result<()> {
        let mut far = link(0).to_vec(); // it cannot go up before the pair is whole
        attribute(&mut far, IFLA_IFNAME, &text(peer));
        attribute(&mut far, IFLA_NET_NS_FD, &namespace.to_ne_bytes());
        let mut data = Vec::new();
        attribute(&mut data, VETH_INFO_PEER, &far);
        let mut info = Vec::new();
        attribute(&mut info, IFLA_INFO_KIND, &text("veth"));
        attribute(&mut info, IFLA_INFO_DATA | NESTED, &data);
        let mut message = link(UP).to_vec();
        attribute(&mut message, IFLA_IFNAME, &text(name));
        attribute(&mut message, IFLA_LINKINFO | NESTED, &info);
        self.ask(RTM_NEWLINK, CREATE, &message)
    }

    pub(super) fn delete_link(&self, name: &str) -> io::Result<()> {
        let mut message = link(0).to_vec();
        attribute(&mut message, IFLA_IFNAME, &text(name));
        self.ask(RTM_DELLINK, 0, &message)
    }

    pub(super) fn bring_up(&self, name: &str) -> io::Result<()> {
        let mut message = link(UP).to_vec();
        attribute(&mut message, IFLA_IFNAME, &text(name));
        self.ask(RTM_NEWLINK, 0, &message)
    }

    /// An address that counts from now on: nobody else on a veth pair can have it.
    pub(super) fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = vec![family(address), prefix, 0, 0];
        message.extend(index.to_ne_bytes());
        attribute(&mut message, IFA_LOCAL, &octets(address));
        attribute(&mut message, IFA_ADDRESS, &octets(address));
        attribute(&mut message, IFA_FLAGS, &IFA_F_NODAD.to_ne_bytes());
        self.ask(RTM_NEWADDR, CREATE, &message)
    }

    pub(super) fn add_default_route(&self, index: u32, gateway: IpAddr) -> io::Result<()> {
        let mut message =
            vec![family(gateway), 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST];
        message.extend([0; 4]);
        attribute(&mut message, RTA_GATEWAY, &octets(gateway));
        attribute(&mut message, RTA_OIF, &index.to_ne_bytes());
        self.ask(RTM_NEWROUTE, CREATE, &message)
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    fn ask(&self, kind: u16, flags: u16, content: &[u8]) -> io::Result<()> {
        let mut message = ((HEADER + content.len()) as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend((REQUEST | ACK | flags).to_ne_bytes());
        message.extend([0; 8]); // sequence and port: one question at a time
        message.extend(content);
        send(self.0.as_raw_fd(), &message, MsgFlags::empty())?;
        let mut answer = [0; 4096];
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        outcome(answer.get(..length).unwrap_or_default())
    }
}

/// The result that an acknowledgement carries.
fn outcome(answer: &[u8]) -> io::Result<()> {
    let half = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let word = answer.get(HEADER..HEADER + 4).and_then(|bytes| bytes.try_into().ok());
    match (half, word.map(i32::from_ne_bytes)) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(code)) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Err(io::Error::other("rtnetlink says something else")),
    }
}

const HEADER: usize = 16;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
/// `NLM_F_CREATE | NLM_F_EXCL`
const CREATE: u16 = 0x600;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
/// `IFF_UP`
const UP: u32 = 1;
const NESTED: u16 = 0x8000;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_F_NODAD: u32 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;

/// `struct ifinfomsg` of an interface that is named by an attribute.
fn link(flags: u32) -> [u8; 16] {
    let mut link = [0; 16];
    link[8..12].copy_from_slice(&flags.to_ne_bytes());
    link[12..16].copy_from_slice(&flags.to_ne_bytes());
    link
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend((4 + value.len() as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_know_their_length() {
        let mut message = Vec::new();
        attribute(&mut message, IFLA_IFNAME, &text("abcd"));
        assert_eq!(message, [9, 0, 3, 0, b'a', b'b', b'c', b'd', 0, 0, 0, 0]);
    }

    #[test]
    fn acknowledgements_are_read() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = vec![0; HEADER];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes.extend(code.to_ne_bytes());
            outcome(&bytes)
        };
        assert!(answer(ERROR, 0).is_ok());
        assert_eq!(answer(ERROR, -17).unwrap_err().raw_os_error(), Some(17));
        assert!(answer(RTM_NEWLINK, 0).is_err() && outcome(&[]).is_err());
    }
}
