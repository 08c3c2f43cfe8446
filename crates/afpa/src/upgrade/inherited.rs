//! Listening sockets that this process was started with: those of a service manager (`sd_listen_fds(3)`), or of the
//! process before.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use afpa_server::{Address, BoundListener};
use listenfd::ListenFd;
use rustix::net::sockopt::{ipv6_v6only, socket_acceptconn};

use super::CHANNEL;

/// All inherited sockets. The ones that no address of the configuration wants are closed when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    tcp: Vec<(String, SocketAddr, TcpListener)>,
    unix: Vec<(String, UnixListener)>,
    /// Of HTTP/3, for an address of TCP.
    udp: Vec<(SocketAddr, UdpSocket)>,
    /// To the workers of the processes before.
    ways: Vec<OwnedFd>,
    refused: Vec<String>,
    predecessor: Option<Predecessor>,
}

/// The process before, which serves until this one does.
#[derive(Debug)]
pub(crate) struct Predecessor(BufReader<UnixStream>);

/// The process before answers at once; a core that is busy may take a while.
const PATIENCE: Duration = Duration::from_secs(10);

impl Inherited {
    /// As the environment says. To be called once, and before another program is started: they are closed in those.
    pub(crate) fn take() -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let first = std::env::var("LISTEN_FDS_FIRST_FD").ok().and_then(|text| text.parse().ok());
        let mut all = ListenFd::from_env();
        let mut inherited = Self::default();
        for number in 0..all.len() {
            let name = names.next().unwrap_or_default();
            if let Err(error) = inherited.put(&mut all, number, name) {
                let number = number + first.unwrap_or(3);
                inherited.refused.push(format!("descriptor {number} ({name:?}): {error}"));
            }
        }
        inherited
    }

    /// These sockets of HTTP/3 alone, which this process has.
    pub(crate) fn of_udp(sockets: Vec<UdpSocket>) -> Self {
        let bound = |socket: UdpSocket| Some((socket.local_addr().ok()?, socket));
        Self { udp: sockets.into_iter().filter_map(bound).collect(), ..Self::default() }
    }

    fn put(&mut self, all: &mut ListenFd, number: usize, name: &str) -> io::Result<()> {
        if let Ok(Some(tcp)) = all.take_tcp_listener(number) {
            let address = tcp.local_addr()?;
            check_listens(socket_acceptconn(&tcp)?)?;
            self.tcp.push((name.to_owned(), address, tcp));
            return Ok(());
        }
        if let Ok(Some(udp)) = all.take_udp_socket(number) {
            self.udp.push((udp.local_addr()?, udp));
            return Ok(());
        }
        let (unix, packets) = (libc::AF_UNIX, libc::SOCK_SEQPACKET);
        if let Ok(Some(way)) = all.take_custom(number, unix, packets, "way to a worker") {
            self.ways.push(way);
            return Ok(());
        }
        let Ok(Some(unix)) = all.take_unix_listener(number) else {
            return Err(io::Error::other("it is no socket of TCP, UDP or Unix"));
        };
        if name == CHANNEL {
            let channel = UnixStream::from(std::os::fd::OwnedFd::from(unix));
            channel.set_read_timeout(Some(PATIENCE))?;
            channel.set_write_timeout(Some(PATIENCE))?;
            self.predecessor = Some(Predecessor(BufReader::new(channel)));
            return Ok(());
        }
        check_listens(socket_acceptconn(&unix)?)?;
        self.unix.push((name.to_owned(), unix));
        Ok(())
    }

    /// The process before, if there is one.
    pub(crate) fn predecessor(&mut self) -> Option<Predecessor> {
        self.predecessor.take()
    }

    /// The sockets that are bound to an address, if there are any.
    ///
    /// # Errors
    /// When they cannot be used.
    pub(crate) fn listener(
        &mut self,
        address: &Address,
        workers: usize,
        backlog: i32,
    ) -> io::Result<Option<BoundListener>> {
        match address {
            Address::Tcp(wanted) => {
                let sockets = self.tcp_of(*wanted);
                if sockets.is_empty() {
                    return Ok(None);
                }
                let mut bound = BoundListener::adopt_tcp(sockets, workers, backlog)?;
                if wanted.port() != 0 {
                    // A reload compares it with the configuration, also where the socket takes more than that.
                    bound.address = address.clone();
                }
                Ok(Some(bound))
            }
            Address::Unix(path) => {
                let socket = self.unix_of(path);
                socket.map(|one| BoundListener::adopt_unix(one, path, backlog)).transpose()
            }
        }
    }

    fn tcp_of(&mut self, wanted: SocketAddr) -> Vec<TcpListener> {
        let is_free = |address: SocketAddr| self.tcp.iter().any(|(_, bound, _)| *bound == address);
        // Of port 0, any: the process before got that port from the kernel.
        let of_kernel = |bound: SocketAddr| wanted.port() == 0 && bound.ip() == wanted.ip();
        // As a service manager binds a port without an address: for both families.
        let dual = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), wanted.port());
        let is_dual = |tcp: &TcpListener| ipv6_v6only(tcp).is_ok_and(|only| !only);
        let any_v4 = wanted.ip() == Ipv4Addr::UNSPECIFIED;
        let bound = match is_free(wanted) {
            true => Some(wanted),
            false => self.tcp.iter().find_map(|(_, bound, tcp)| {
                let fits = of_kernel(*bound) || any_v4 && *bound == dual && is_dual(tcp);
                fits.then_some(*bound)
            }),
        };
        let taken = self.tcp.extract_if(.., |(_, address, _)| Some(*address) == bound);
        taken.map(|(_, _, tcp)| tcp).collect()
    }

    /// Whether there are UDP sockets that are bound to an address.
    pub(crate) fn has_udp(&self, address: SocketAddr) -> bool {
        self.udp.iter().any(|(bound, _)| *bound == address)
    }

    /// The UDP sockets that are bound to an address.
    pub(crate) fn udp_of(&mut self, address: SocketAddr) -> Vec<UdpSocket> {
        let taken = self.udp.extract_if(.., |(bound, _)| *bound == address);
        taken.map(|(_, udp)| udp).collect()
    }

    /// The ways to the workers of the processes before.
    pub(crate) fn take_ways(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.ways)
    }

    fn unix_of(&mut self, path: &Path) -> Option<UnixListener> {
        let is_bound = |unix: &UnixListener| {
            unix.local_addr().is_ok_and(|address| address.as_pathname() == Some(path))
        };
        let at = self.unix.iter().position(|(_, unix)| is_bound(unix))?;
        Some(self.unix.swap_remove(at).1)
    }

    /// A line for each descriptor that nothing wants; they are closed.
    pub(crate) fn rest(self) -> Vec<String> {
        let Self { tcp, unix, refused, udp: _, ways: _, predecessor: _ } = self;
        let tcp = tcp.into_iter().map(|(name, address, _)| (name, address.to_string()));
        let unix = unix.into_iter().map(|(name, unix)| {
            let address = unix.local_addr().ok();
            let path = address.as_ref().and_then(|address| address.as_pathname());
            (name, path.map_or_else(String::new, |path| format!("unix:{}", path.display())))
        });
        let unwanted = tcp.chain(unix).map(|(name, address)| {
            format!(
                "the inherited socket {name:?} of {address} is closed, because no `listen` names this address: add it to a \
                 site, or take it out of the socket unit"
            )
        });
        let refused = refused.into_iter().map(|why| {
            format!("an inherited socket cannot be used: {why} (ListenStream= of the socket unit, with Accept=no)")
        });
        // Several workers had one each.
        let mut all: Vec<String> = unwanted.chain(refused).collect();
        all.dedup();
        all
    }
}

fn check_listens(listens: bool) -> io::Result<()> {
    match listens {
        true => Ok(()),
        false => Err(io::Error::other("it does not listen")),
    }
}

impl Predecessor {
    /// Asks for the right to answer in the kernel, and waits until the process before has given it up.
    ///
    /// # Errors
    /// When it does not answer. If it has ended, its rights are free as well.
    pub(crate) fn take_fast_path(&mut self) -> io::Result<()> {
        self.say("fast path")
    }

    /// This process serves: the one before ends. Waits until it has told that to the service manager.
    ///
    /// # Errors
    /// As [`take_fast_path`](Self::take_fast_path).
    pub(crate) fn take_over(mut self) -> io::Result<()> {
        self.say("serving")
    }

    fn say(&mut self, what: &str) -> io::Result<()> {
        let Self(channel) = self;
        channel.get_mut().write_all(format!("{what}\n").as_bytes())?;
        let mut answer = String::new();
        channel.read_line(&mut answer)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tcp: Vec<TcpListener>) -> Inherited {
        let named = |tcp: TcpListener| ("web".to_owned(), tcp.local_addr().unwrap(), tcp);
        Inherited { tcp: tcp.into_iter().map(named).collect(), ..Inherited::default() }
    }

    fn take(from: &mut Inherited, address: SocketAddr) -> Option<Address> {
        let bound = from.listener(&Address::Tcp(address), 1, 16).unwrap();
        bound.map(|bound| bound.address)
    }

    #[test]
    fn sockets_are_matched_by_address_and_the_rest_is_told() {
        let bind = |address: &str| TcpListener::bind(address).unwrap();
        let (one, two) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
        let [first, second] = [&one, &two].map(|bound| bound.local_addr().unwrap());
        let mut inherited = of(vec![one, two]);
        assert_eq!(take(&mut inherited, "127.0.0.2:1".parse().unwrap()), None);
        assert_eq!(take(&mut inherited, second), Some(Address::Tcp(second)));
        assert_eq!(take(&mut inherited, second), None, "it was taken");
        let rest = inherited.rest();
        assert_eq!(rest.len(), 1);
        let named = format!("\"web\" of {first}");
        assert!(rest[0].contains(&named) && rest[0].contains("`listen`"), "{}", rest[0]);
    }

    #[test]
    fn a_socket_of_both_families_is_that_of_all_ipv4_addresses() {
        let Ok(dual) = TcpListener::bind("[::]:0") else { return println!("SKIP: no IPv6") };
        if ipv6_v6only(&dual).unwrap() {
            return println!("SKIP: net.ipv6.bindv6only is 1");
        }
        let port = dual.local_addr().unwrap().port();
        let wanted = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        assert_eq!(take(&mut of(vec![dual]), wanted), Some(Address::Tcp(wanted)));
    }

    #[test]
    fn the_port_that_the_kernel_chose_for_the_process_before_is_taken_for_port_0() {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let bound = one.local_addr().unwrap();
        let wanted = "127.0.0.1:0".parse().unwrap();
        assert_eq!(take(&mut of(vec![one]), wanted), Some(Address::Tcp(bound)));
    }
}
