//! How many IPsec policies there are.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};

use crate::net::rtnetlink::{HEADER, attributes, half, word};

const GET_SPD_INFO: u16 = 0x25;
const NEW_SPD_INFO: u16 = 0x24;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
/// `struct xfrmu_spdinfo`
const SPD_INFO: u16 = 1;

/// Policies of all directions. Needs `CAP_NET_ADMIN`.
pub(super) fn policies() -> io::Result<u32> {
    let made = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::XFRM),
    );
    let mut socket = match made {
        // The kernel has no IPsec.
        Err(rustix::io::Errno::PROTONOSUPPORT) => return Ok(0),
        socket => File::from(socket?),
    };
    let mut request = [0; HEADER + 4];
    request[..4].copy_from_slice(&((HEADER + 4) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&GET_SPD_INFO.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    socket.write_all(&request)?;
    let mut buffer = [0; 4096];
    let length = socket.read(&mut buffer)?;
    read(buffer.get(..length).unwrap_or_default())
}

pub(super) fn read(bytes: &[u8]) -> io::Result<u32> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let content = bytes.get(HEADER..).ok_or_else(broken)?;
    match half(bytes, 4) {
        Some(NEW_SPD_INFO) => {
            let info = attributes(content.get(4..).unwrap_or_default());
            let info = info.into_iter().find(|(kind, _)| *kind == SPD_INFO);
            let (_, counts) = info.ok_or_else(broken)?;
            // In, out and forwarded.
            Ok((0..3).filter_map(|place| word(counts, 4 * place)).sum())
        }
        Some(ERROR) => {
            let code = word(content, 0).unwrap_or_default() as i32;
            Err(io::Error::from_raw_os_error(code.saturating_neg()))
        }
        _ => Err(broken()),
    }
}
