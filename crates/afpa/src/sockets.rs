//! The processes that listen on an address, by `/proc`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;

use afpa_bpf::Process;
use afpa_server::Address;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

/// The process that listens where `address` would; `None`: there is none, or this process may not see whose it is.
pub(crate) fn holder(address: &Address) -> Option<Process> {
    match address {
        Address::Tcp(address) => owner(listening_on(*address)?),
        Address::Unix(path) => peer(path),
    }
}

/// Whether anybody listens on a local TCP address, as far as `/proc` tells.
pub(crate) fn is_listened_on(address: SocketAddr) -> bool {
    listening_on(address).is_some()
}

/// The inode of the listening socket that has the port, on this address or on all.
fn listening_on(address: SocketAddr) -> Option<u64> {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(fs::read_to_string);
    let rows = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    let mut listening = rows.filter_map(listening);
    let meets = |found: SocketAddr| {
        let any = |address: SocketAddr| address.ip().is_unspecified();
        found.port() == address.port() && (found.ip() == address.ip() || any(found) || any(address))
    };
    listening.find(|(found, _)| meets(*found)).map(|(_, inode)| inode)
}

/// Address and inode of a row of `/proc/net/tcp` (proc_net_tcp.txt of the kernel), if its socket listens.
fn listening(row: &str) -> Option<(SocketAddr, u64)> {
    const LISTEN: &str = "0A";
    let mut words = row.split_whitespace().skip(1);
    let (local, _, state) = (words.next()?, words.next()?, words.next()?);
    let inode = words.nth(5)?.parse().ok()?;
    (state == LISTEN).then_some(())?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(ip(address)?, port), inode))
}

/// Words of 32 bits, each in the byte order of the host.
fn ip(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(digits.get(8 * at..8 * at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes = words.as_flattened();
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical())
        }
        _ => None,
    }
}

/// The first process that has the socket open.
fn owner(inode: u64) -> Option<Process> {
    let wanted = format!("socket:[{inode}]");
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |id: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let mut links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
        links.any(|link| link.as_path() == Path::new(&wanted))
    };
    ids.find(has).map(Process::new)
}

fn peer(path: &Path) -> Option<Process> {
    let stream = UnixStream::connect(path).ok()?;
    let pid = getsockopt(&stream, PeerCredentials).ok()?.pid().unsigned_abs();
    (pid != 0).then(|| Process::new(pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(holder(&Address::Tcp(address)).unwrap().id, std::process::id());
        let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
        assert_eq!(holder(&Address::Tcp(any)).unwrap().id, std::process::id());
        drop(listener);
        assert!(!is_listened_on(address));
    }

    #[test]
    fn rows_of_both_families_are_read() {
        let v4 = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0";
        let v6 = "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1";
        if cfg!(target_endian = "little") {
            assert_eq!(listening(v4), Some(("127.0.0.1:8080".parse().unwrap(), 4711)));
            assert_eq!(listening(v6), Some(("[::1]:80".parse().unwrap(), 12)));
        }
        assert_eq!(listening(&v4.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening("nonsense"), None);
    }
}
