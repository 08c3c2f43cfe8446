//! The processes that listen on an address, by `/proc`.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;

use afpa_bpf::Process;
use afpa_server::Address;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

/// The process that listens where `address` would; `None`: there is none, or this process may not see whose it is.
pub(crate) fn holder(address: &Address) -> Option<Process> {
    match address {
        Address::Tcp(address) => owner(Listening::now().socket(*address)?),
        Address::Unix(path) => peer(path),
    }
}

/// The process that receives datagrams at an address, likewise.
pub(crate) fn holder_of_datagrams(address: SocketAddr) -> Option<Process> {
    owner(Listening(afpa_bpf::receiving().unwrap_or_default()).socket(address)?)
}

/// The TCP addresses on which anybody listens, as far as `/proc` tells.
pub(crate) struct Listening(Vec<(SocketAddr, u64)>);

impl Listening {
    pub(crate) fn now() -> Self {
        Self(afpa_bpf::listening().unwrap_or_default())
    }

    /// Whether a connection to this local address finds anybody.
    pub(crate) fn has(&self, address: SocketAddr) -> bool {
        self.socket(address).is_some()
    }

    /// The inode of the socket that has the port, on this address or on all.
    fn socket(&self, address: SocketAddr) -> Option<u64> {
        let any = |address: SocketAddr| address.ip().is_unspecified();
        let meets = |found: SocketAddr| {
            let is_its = found.ip().to_canonical() == address.ip();
            found.port() == address.port() && (is_its || any(found) || any(address))
        };
        let mut all = self.0.iter();
        all.find(|(found, _)| meets(*found)).map(|(_, inode)| *inode)
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
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};

    #[test]
    fn the_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(holder(&Address::Tcp(address)).unwrap().id, std::process::id());
        let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
        assert_eq!(holder(&Address::Tcp(any)).unwrap().id, std::process::id());
        drop(listener);
        assert!(!Listening::now().has(address));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(holder_of_datagrams(address).unwrap().id, std::process::id());
        drop(socket);
        assert!(holder_of_datagrams(address).is_none());
    }
}
