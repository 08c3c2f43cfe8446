//! Lists of the kernel, by rtnetlink: /sys may be that of another network namespace.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// Asks for a list, and shows each of its messages: type and content.
pub(crate) fn dump(what: u16, content: &[u8], mut visit: impl FnMut(u16, &[u8])) -> io::Result<()> {
    dump_while(what, content, |kind, message| {
        visit(kind, message);
        true
    })
}

/// `dump`, until `visit` wants no more.
pub(crate) fn dump_while(
    what: u16,
    content: &[u8],
    mut visit: impl FnMut(u16, &[u8]) -> bool,
) -> io::Result<()> {
    let mut wanted = true;
    let flags = SockFlag::SOCK_CLOEXEC;
    let route = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
    send(socket.as_raw_fd(), &request(what, content), MsgFlags::empty())?;
    let mut buffer = vec![0; 65536]; // the kernel's own largest part of a list is half of that
    loop {
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut show = |kind: u16, message: &[u8]| wanted = wanted && visit(kind, message);
        if read(buffer.get(..length).unwrap_or_default(), &mut show)? || !wanted {
            return Ok(());
        }
    }
}

pub(crate) const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST_DUMP: u16 = 0x301;

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

/// The first message: its type, its content, and the bytes behind it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = word(bytes, 0)? as usize;
    let content = bytes.get(HEADER..length)?;
    Some((half(bytes, 4)?, content, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Kinds and values of netlink attributes.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(half(bytes, 0)?);
        let value = bytes.get(4..length)?;
        // The two highest bits say how the value is made.
        let kind = half(bytes, 2)? & 0x3fff;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A name, as attributes have it.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// For tests: an attribute, padded.
#[cfg(test)]
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + content.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(content);
        bytes
    }

    fn sample() -> Vec<u8> {
        [packed(16, b"one"), vec![0], packed(16, b"two and more"), packed(DONE, &[0; 4])].concat()
    }

    #[test]
    fn the_messages_of_a_list_are_shown() {
        let mut seen = Vec::new();
        assert!(read(&sample(), &mut |kind, message| seen.push((kind, message.to_vec()))).unwrap());
        assert_eq!(seen, [(16, b"one".to_vec()), (16, b"two and more".to_vec())]);
        let refused = read(&packed(ERROR, &(-1i32).to_ne_bytes()), &mut |_, _| ());
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(1));
    }

    #[test]
    fn a_request_is_as_long_as_it_says() {
        let request = request(26, &[7; 12]);
        assert_eq!((request.len(), word(&request, 0), half(&request, 4)), (28, Some(28), Some(26)));
        assert_eq!(request[HEADER..], [7; 12]);
    }

    #[test]
    fn attributes_are_read_in_turn() {
        let two = [attribute(3, b"lo\0"), attribute(0x8012, b"")].concat();
        let found: Vec<_> = attributes(&two).map(|(kind, value)| (kind, text(value))).collect();
        assert_eq!(found, [(3, "lo".to_owned()), (0x12, String::new())]);
        assert_eq!(attributes(&two[..6]).count(), 0, "the first is cut");
    }

    #[test]
    fn cut_and_broken_messages_end_the_reading() {
        let whole = sample();
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut], &mut |_, message| {
                let _count = attributes(message).count();
            });
            for at in [0, 4, 6, cut] {
                let mut broken = whole.clone();
                broken[at] ^= 0xff;
                let _ = read(&broken, &mut |_, message| {
                    let _count = attributes(message).count();
                });
            }
        }
    }
}
