//! Sockets are served, and not addresses: which listening sockets have the mark (`bpf/include/afpa/conn/served.h`).
//!
//! A process marks its own sockets by their descriptors. The sockets of another server are found among the open files of all
//! processes: the sockets that listen on the address, and then the other listening sockets of the same processes there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use std::time::Duration;

use afpa_abi::{Endpoint, Listening, Survey};
use libbpf_rs::libbpf_sys::bpf_iter_create;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::found::connections::listening;
use crate::net::links::create_iterator;
use crate::programs::Programs;
use crate::unavailable::Unavailable;

/// The listening sockets of a server, as they were found last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedSockets {
    /// Where the sockets listen that are served.
    pub served: BTreeSet<SocketAddr>,
    /// The processes that have them open.
    pub processes: BTreeSet<u32>,
    /// Where others listen that the address covers: other servers, or sockets that are bound to an interface.
    pub others: BTreeSet<SocketAddr>,
    /// It listens there with Multipath TCP, whose sockets cannot be marked.
    pub is_multipath: bool,
}

/// Which sockets are served.
pub struct Sockets {
    /// Runs as an iterator over the open files of all processes.
    program: OwnedFd,
    marks: MapHandle,
    /// Sockets of our own questions.
    questions: MapHandle,
    survey: MapHandle,
    inodes: MapHandle,
    servers: Mutex<Vec<Server>>,
}

/// A server of other processes, whose sockets are looked for again and again.
struct Server {
    address: SocketAddr,
    /// The listening sockets of its port when its own were last looked for ([`listening_now`]).
    listening: Vec<(SocketAddr, u64)>,
    found: ServedSockets,
    inodes: BTreeSet<u64>,
    /// Runs the iterator. Made when the process still has all its rights.
    iterator: OwnedFd,
}

impl Sockets {
    pub(crate) fn over(programs: &Programs) -> Result<Self, Unavailable> {
        Ok(Self {
            program: programs.program("afpa_served")?,
            marks: programs.map("served")?,
            questions: programs.map("questions")?,
            survey: programs.map("served_survey")?,
            inodes: programs.map("served_inodes")?,
            servers: Mutex::default(),
        })
    }

    /// Serves the connections of a listening socket of this process, from now on.
    pub fn serve_socket(&self, socket: impl AsFd) -> libbpf_rs::Result<()> {
        let socket = socket.as_fd().as_raw_fd();
        self.marks.update(&socket.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
    }

    /// Leaves those that the socket accepts from now on to user mode.
    pub fn leave_socket(&self, socket: impl AsFd) -> libbpf_rs::Result<()> {
        let _not_marked = self.marks.delete(&socket.as_fd().as_raw_fd().to_ne_bytes());
        Ok(())
    }

    /// Connects to a server of this machine. The programs leave the requests of this connection to user mode and do not
    /// count them. This holds for connections over `lo`: all those to the machine's own addresses.
    pub fn connect_to_user_mode(
        &self,
        address: SocketAddr,
        timeout: Duration,
    ) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        let socket = stream.as_raw_fd().to_ne_bytes();
        let marked = self.questions.update(&socket, &1u32.to_ne_bytes(), MapFlags::ANY);
        marked.map_err(io::Error::other)?;
        Ok(stream)
    }

    /// Serves the connections of the server that listens on `address`, in the network namespace of the calling
    /// thread. Is to be called again, once a second or so: a server that starts anew has other sockets. Where nothing
    /// has changed this costs little.
    pub fn serve_server(&self, address: SocketAddr) -> io::Result<ServedSockets> {
        let mut servers = self.servers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let at = match servers.iter().position(|server| server.address == address) {
            Some(at) => at,
            None => {
                servers.push(Server {
                    address,
                    listening: Vec::new(),
                    found: ServedSockets::default(),
                    inodes: BTreeSet::new(),
                    iterator: create_iterator(&self.program)?,
                });
                servers.len() - 1
            }
        };
        let server = &mut servers[at];
        let listening = listening_now(address.port())?;
        if listening != server.listening || server.inodes.is_empty() {
            let found = self.look_for(server)?;
            let (inodes, sockets) = choose(&found, address);
            self.mark(server, inodes)?;
            server.found = sockets;
            server.listening = listening;
        }
        Ok(server.found.clone())
    }

    /// Marks these sockets, and forgets the inodes of those before.
    fn mark(&self, server: &mut Server, inodes: BTreeSet<u64>) -> io::Result<()> {
        for gone in server.inodes.difference(&inodes) {
            let _absent = self.inodes.delete(&gone.to_ne_bytes());
        }
        for inode in &inodes {
            let told = self.inodes.update(&inode.to_ne_bytes(), &[0; 4], MapFlags::ANY);
            told.map_err(io::Error::other)?;
        }
        server.inodes = inodes;
        let marked = self.look_for(server)?;
        let all = server
            .inodes
            .iter()
            .all(|inode| marked.iter().any(|socket| socket.inode == *inode && socket.marked != 0));
        if all { Ok(()) } else { Err(io::Error::other("a listening socket cannot be marked")) }
    }

    /// All sockets that listen on the port here, once for each process that has one open.
    fn look_for(&self, server: &Server) -> io::Result<Vec<Listening>> {
        let network = std::fs::metadata("/proc/thread-self/ns/net")?.ino() as u32;
        let survey = Survey { network, port: server.address.port().into() };
        let told = self.survey.update(&0u32.to_ne_bytes(), &survey.to_bytes(), MapFlags::ANY);
        told.map_err(io::Error::other)?;
        // JUSTIFICATION: libbpf-rs makes iterators of links of its own only. SAFETY: plain system call wrapper.
        let run = unsafe { bpf_iter_create(server.iterator.as_raw_fd()) };
        if run < 0 {
            return Err(io::Error::from_raw_os_error(-run));
        }
        // SAFETY: a descriptor that the kernel has just made for us.
        let mut run = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(run) });
        let mut bytes = Vec::new();
        run.read_to_end(&mut bytes)?;
        let records = bytes.chunks_exact(size_of::<Listening>());
        Ok(records.filter_map(Listening::from_bytes).collect())
    }
}

/// The process that has the sockets of all services open that it starts at the first connection (systemd.socket).
const SERVICE_MANAGER: u32 = 1;

/// The sockets of the server that listens on `address`, and a report of them.
///
/// Sockets bound to this address, else the wildcard sockets that would accept its connections. With the wildcard `[::]`
/// come the other sockets of the same processes, as for nginx's `listen 80; listen [::]:80`. A socket bound to an
/// interface is not served: the same address may be another server's on another interface.
fn choose(found: &[Listening], address: SocketAddr) -> (BTreeSet<u64>, ServedSockets) {
    let covered = |socket: &&Listening| covers(address.ip(), ip(&socket.endpoint));
    let fit = |socket: &&Listening| socket.device == 0 && socket.multipath == 0;
    let at = |wanted: IpAddr, v4_too: bool| -> Vec<&Listening> {
        let here = found.iter().filter(fit).filter(|socket| ip(&socket.endpoint) == wanted);
        here.filter(|socket| !v4_too || socket.only_ipv6 == 0).collect()
    };
    let dual = address.is_ipv4();
    let mut own = at(address.ip(), false);
    if own.is_empty() && dual {
        own = at(std::net::Ipv4Addr::UNSPECIFIED.into(), false);
    }
    if own.is_empty() {
        own = at(Ipv6Addr::UNSPECIFIED.into(), dual);
    }
    let processes: BTreeSet<u32> = own.iter().map(|socket| socket.process).collect();
    let joins = |process: u32| process != SERVICE_MANAGER && processes.contains(&process);
    let siblings = found.iter().filter(fit).filter(covered).filter(|s| joins(s.process));
    let chosen: BTreeMap<u64, SocketAddr> =
        own.iter().copied().chain(siblings).map(|s| (s.inode, place(s))).collect();
    let others = found.iter().filter(covered).filter(|s| !chosen.contains_key(&s.inode));
    let sockets = ServedSockets {
        served: chosen.values().copied().collect(),
        processes,
        others: others.map(place).collect(),
        is_multipath: found.iter().filter(covered).any(|socket| socket.multipath != 0),
    };
    (chosen.into_keys().collect(), sockets)
}

/// Would the programs take a connection to `local` for one of `address`?
fn covers(address: IpAddr, local: IpAddr) -> bool {
    match address {
        IpAddr::V6(v6) if v6.is_unspecified() => true,
        IpAddr::V4(v4) if v4.is_unspecified() => local.is_ipv4(),
        one => one == local,
    }
}

fn place(socket: &Listening) -> SocketAddr {
    SocketAddr::new(ip(&socket.endpoint), socket.endpoint.port)
}

fn ip(endpoint: &Endpoint) -> IpAddr {
    let v6 = Ipv6Addr::from(endpoint.address);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
}

/// The sockets that listen on a port: these change when one comes or goes.
fn listening_now(port: u16) -> io::Result<Vec<(SocketAddr, u64)>> {
    let mut all = listening()?;
    all.retain(|(address, _)| address.port() == port);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(inode: u64, process: u32, address: &str) -> Listening {
        let endpoint = Endpoint::new(address.parse().unwrap());
        Listening { inode, process, endpoint, ..Listening::ZERO }
    }

    fn chosen(found: &[Listening], address: &str) -> Vec<u64> {
        choose(found, address.parse().unwrap()).0.into_iter().collect()
    }

    #[test]
    fn another_server_on_the_same_port_is_not_served() {
        let found = [
            Listening { only_ipv6: 1, ..socket(1, 10, "[::]:80") },
            socket(2, 20, "0.0.0.0:80"),
            socket(3, 30, "10.0.0.1:80"),
        ];
        assert_eq!(chosen(&found, "[::]:80"), [1]);
        assert_eq!(chosen(&found, "0.0.0.0:80"), [2]);
        assert_eq!(chosen(&found, "10.0.0.1:80"), [3]);
        assert_eq!(chosen(&found, "10.0.0.2:80"), [2], "the wildcard would take it");
        let (_, sockets) = choose(&found, "[::]:80".parse().unwrap());
        assert_eq!(sockets.others.len(), 2);
    }

    #[test]
    fn both_wildcards_of_one_server_are_served() {
        let found = [
            Listening { only_ipv6: 1, ..socket(1, 10, "[::]:80") },
            socket(2, 10, "0.0.0.0:80"),
            socket(1, 11, "[::]:80"), // a worker that inherited it
            socket(3, 11, "10.0.0.1:80"),
            socket(4, 20, "10.0.0.2:80"),
        ];
        assert_eq!(chosen(&found, "[::]:80"), [1, 2, 3]);
        assert_eq!(chosen(&found, "0.0.0.0:80"), [2], "process 10 alone listens there");
        let of_systemd = [socket(1, SERVICE_MANAGER, "[::]:80"), socket(2, 1, "0.0.0.0:80")];
        assert_eq!(chosen(&of_systemd, "[::]:80"), [1], "they may be of two services");
    }

    #[test]
    fn a_wildcard_of_both_families_takes_addresses_of_both() {
        let dual = [socket(1, 10, "[::]:80")];
        assert_eq!(chosen(&dual, "10.0.0.1:80"), [1]);
        assert_eq!(chosen(&dual, "0.0.0.0:80"), [1]);
        let only_ipv6 = [Listening { only_ipv6: 1, ..dual[0] }];
        assert_eq!(chosen(&only_ipv6, "10.0.0.1:80"), [0; 0]);
        assert_eq!(chosen(&only_ipv6, "[fd00::1]:80"), [1]);
    }

    #[test]
    fn what_is_bound_to_an_interface_or_multipath_is_not_served() {
        let found = [
            Listening { device: 2, ..socket(1, 10, "0.0.0.0:80") },
            Listening { multipath: 1, ..socket(2, 10, "0.0.0.0:80") },
        ];
        let (inodes, sockets) = choose(&found, "0.0.0.0:80".parse().unwrap());
        assert!(inodes.is_empty() && sockets.is_multipath && sockets.others.len() == 1);
    }
}
