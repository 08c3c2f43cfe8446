//! The kernel's list of interfaces, by rtnetlink: /sys may be that of another network namespace.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// What a message says of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) up: bool,
    pub(crate) loopback: bool,
    /// Its packets begin with an Ethernet header.
    pub(crate) ethernet: bool,
    /// It is a port of a bridge, a bond or the like.
    pub(crate) has_master: bool,
}

/// All interfaces of the calling thread's network namespace.
pub(crate) fn links() -> io::Result<Vec<Link>> {
    let mut links = Vec::new();
    dump(GET_LINK, &[0; INFO], |kind, message| {
        if kind == NEW_LINK {
            links.extend(link(message));
        }
    })?;
    Ok(links)
}

/// Asks for a list, and shows each of its messages: type and content.
pub(crate) fn dump(what: u16, content: &[u8], mut visit: impl FnMut(u16, &[u8])) -> io::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let route = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
    send(socket.as_raw_fd(), &request(what, content), MsgFlags::empty())?;
    let mut buffer = vec![0; 65536]; // the kernel's own largest part of a list is half of that
    loop {
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        if read(buffer.get(..length).unwrap_or_default(), &mut visit)? {
            return Ok(());
        }
    }
}

pub(crate) const HEADER: usize = 16;
const INFO: usize = 16;
const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST_DUMP: u16 = 0x301;
const NAME: u16 = 3;
const MASTER: u16 = 10;
const UP: u32 = 1;
const LOOPBACK: u32 = 8;
/// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK`
const ETHERNET: [u16; 2] = [1, 772];

fn request(what: u16, content: &[u8]) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message.extend_from_slice(content);
    let length = (message.len() as u32).to_ne_bytes();
    message[..4].copy_from_slice(&length);
    message[4..6].copy_from_slice(&what.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    message
}

/// Shows the messages in `bytes`. True: that was the end of the list.
fn read(mut bytes: &[u8], visit: &mut impl FnMut(u16, &[u8])) -> io::Result<bool> {
    while let Some((kind, message, rest)) = message(bytes) {
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let code = word(message, 0).unwrap_or_default() as i32;
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            kind => visit(kind, message),
        }
        bytes = rest;
    }
    Ok(false)
}

/// The first message: type, content, and what follows.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = word(bytes, 0)? as usize;
    let content = bytes.get(HEADER..length)?;
    Some((half(bytes, 4)?, content, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn link(message: &[u8]) -> Option<Link> {
    let (index, flags) = (word(message, 4)?, word(message, 8)?);
    let mut name = String::new();
    let mut has_master = false;
    let mut attributes = message.get(INFO..)?;
    while let Some(length) = half(attributes, 0).filter(|length| *length >= 4) {
        let value = attributes.get(4..usize::from(length))?;
        match half(attributes, 2)? {
            NAME => name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            MASTER => has_master = word(value, 0)? != 0,
            _ => {}
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    let (up, loopback) = (flags & UP != 0, flags & LOOPBACK != 0);
    let ethernet = ETHERNET.contains(&half(message, 2)?);
    Some(Link { index, name, up, loopback, ethernet, has_master })
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn packed(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + content.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(content);
        bytes
    }

    fn new_link(kind: u16, index: u32, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let words = [u32::from(kind).rotate_left(16).to_le(), index, flags, 0];
        let mut content: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        content.extend(attributes.concat());
        packed(NEW_LINK, &content)
    }

    fn sample() -> Vec<u8> {
        let port = [attribute(NAME, b"port0\0"), attribute(MASTER, &7u32.to_ne_bytes())];
        let lo = [attribute(4, b"odd"), attribute(NAME, b"lo\0")];
        let tunnel = [attribute(NAME, b"wg0\0"), attribute(MASTER, &[0; 4])];
        let links =
            [new_link(772, 1, 9, &lo), new_link(1, 2, 1, &port), new_link(65534, 3, 0, &tunnel)];
        [links.concat(), packed(DONE, &[0; 4])].concat()
    }

    #[test]
    fn the_list_is_read() {
        let mut links = Vec::new();
        assert!(read(&sample(), &mut |_, message| links.extend(link(message))).unwrap());
        let expect = |index, name: &str, [up, loopback, ethernet, has_master]: [bool; 4]| Link {
            index,
            name: name.into(),
            up,
            loopback,
            ethernet,
            has_master,
        };
        let expected = [
            expect(1, "lo", [true, true, true, false]),
            expect(2, "port0", [true, false, true, true]),
            expect(3, "wg0", [false, false, false, false]),
        ];
        assert_eq!(links, expected);
        let refused = read(&packed(ERROR, &(-1i32).to_ne_bytes()), &mut |_, _| ());
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(1));
    }

    #[test]
    fn cut_and_broken_messages_end_the_reading() {
        let whole = sample();
        for cut in 0..whole.len() {
            let mut links = Vec::new();
            let mut add = |_, message: &[u8]| links.extend(link(message));
            let _ = read(&whole[..cut], &mut add);
            for at in [0, 4, 6, cut] {
                let mut broken = whole.clone();
                broken[at] ^= 0xff;
                let _ = read(&broken, &mut add);
            }
        }
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let links = links().unwrap();
        assert!(links.iter().any(|link| link.loopback && !link.has_master), "{links:?}");
    }
}
