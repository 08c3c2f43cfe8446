//! Listening sockets.

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use afpa_framework::{Address, Client, Network};
use afpa_tls::ListenerTls;
use rustix::net::sockopt::{set_socket_incoming_cpu, set_tcp_quickack};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::socket_file::{self, SocketFile};

/// Listening sockets for one address: one per worker for TCP (`SO_REUSEPORT` lets the kernel
/// spread connections over them without a lock), one shared socket for a unix path.
///
/// TCP clients are refused until [`BoundListener::listen`] is called: bound early, so that an address that cannot be had
/// ends the start early, and so that no client waits for a server that is not ready yet.
#[derive(Debug)]
pub struct BoundListener {
    /// The address as configured; port 0 replaced by the port the kernel chose.
    pub address: Address,
    /// How its connections are accepted.
    pub settings: ListenerSettings,
    sockets: Sockets,
    backlog: i32,
    /// Another process has bound it, and may listen still.
    is_adopted: bool,
    /// Sockets of the same address for HTTP/3, one for each worker.
    udp: Vec<Arc<std::net::UdpSocket>>,
}

/// How the connections of a listener are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerSettings {
    /// The program's number for it, which modules get with each connection.
    pub number: u32,
    /// Its TCP address as configured, by which the police know it.
    pub address: Option<SocketAddr>,
    /// Routers in front that begin each connection with a PROXY protocol header. From other clients such a
    /// header is an invalid request.
    pub proxy_from: Arc<[Network]>,
    /// Connections begin with a handshake of TLS, with these settings.
    pub tls: Option<ListenerTls>,
    /// Whether clients may begin with the preface of HTTP/2.
    pub http2: bool,
    /// Other machines of the fleet ask here, so the kernel's programs answer nothing on it.
    pub is_inner: bool,
    /// Of a unix socket: connections of this process itself are closed. Only a hijacked thread would make one.
    pub others_only: bool,
}

impl ListenerSettings {
    /// Whether a connection of this peer begins with a header.
    pub(crate) fn expects_preface(&self, peer: Client) -> bool {
        match peer {
            Client::Ip(peer) => self.proxy_from.iter().any(|network| network.contains(peer)),
            Client::Unix => false,
        }
    }
}

#[derive(Debug)]
enum Sockets {
    Tcp(Vec<std::net::TcpListener>),
    /// The file is dropped first: as long as it is there, the socket listens, and no process takes it for stale.
    Unix(#[allow(dead_code, reason = "kept for its drop")] SocketFile, UnixListener),
}

/// The value of `SO_INCOMING_CPU` that prefers none.
pub(crate) const NO_CORE: u32 = u32::MAX;

/// One worker's share of a [`BoundListener`].
#[derive(Debug)]
pub(crate) enum WorkerSocket {
    Tcp(std::net::TcpListener),
    /// For HTTP/3: one, or more after a process with more workers.
    Udp(Vec<Arc<std::net::UdpSocket>>),
    Unix(UnixListener),
}

impl BoundListener {
    /// Binds `address` for `workers` workers.
    ///
    /// # Errors
    /// The error of the system: the address is in use, or needs a privilege.
    pub fn bind(address: &Address, workers: usize, backlog: i32) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => Self::bind_tcp(*address, workers.max(1), backlog),
            Address::Unix(path) => Self::bind_unix(path, backlog),
        }
    }

    fn bind_tcp(mut address: SocketAddr, workers: usize, backlog: i32) -> io::Result<Self> {
        refuse_if_another_process_listens(address)?;
        let mut sockets = Vec::with_capacity(workers);
        for _ in 0..workers {
            let socket = tcp_socket(address)?;
            // Port 0: the first socket finds the port that the others share.
            address.set_port(socket.local_addr()?.port());
            sockets.push(socket);
        }
        Ok(Self {
            address: Address::Tcp(address),
            settings: ListenerSettings::default(),
            sockets: Sockets::Tcp(sockets),
            backlog,
            is_adopted: false,
            udp: Vec::new(),
        })
    }

    /// Takes the sockets that another process has bound to `address`, for so many workers. A socket that is closed
    /// resets the connections in its queue, so all of them are used: by several workers if they are fewer, and several
    /// by one worker if they are more.
    ///
    /// # Errors
    /// When one of them is no listening socket, or there is none.
    pub fn adopt_tcp(
        mut sockets: Vec<std::net::TcpListener>,
        workers: usize,
        backlog: i32,
    ) -> io::Result<Self> {
        let first = sockets.first().ok_or(io::ErrorKind::NotFound)?;
        let address = first.local_addr()?;
        for socket in &sockets {
            socket.set_nonblocking(true)?;
            SockRef::from(socket).set_tcp_nodelay(true)?;
        }
        // Where the system does not allow further ones, the workers share those that there are.
        let further = std::iter::repeat_with(|| tcp_socket(address)).map_while(io::Result::ok);
        sockets.extend(further.take(workers.saturating_sub(sockets.len())));
        Ok(Self {
            address: Address::Tcp(address),
            settings: ListenerSettings::default(),
            sockets: Sockets::Tcp(sockets),
            backlog,
            is_adopted: true,
            udp: Vec::new(),
        })
    }

    /// Takes the socket that another process has bound to `path`.
    ///
    /// # Errors
    /// When the file is not there.
    pub fn adopt_unix(listener: UnixListener, path: &Path, backlog: i32) -> io::Result<Self> {
        let file = SocketFile::of_another(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: Address::Unix(path.to_owned()),
            settings: ListenerSettings::default(),
            sockets: Sockets::Unix(file, listener),
            backlog,
            is_adopted: true,
            udp: Vec::new(),
        })
    }

    fn bind_unix(path: &Path, backlog: i32) -> io::Result<Self> {
        socket_file::remove_stale(path)?;
        let listener = UnixListener::bind(path)?;
        let file = SocketFile::of(path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: Address::Unix(path.to_owned()),
            settings: ListenerSettings::default(),
            sockets: Sockets::Unix(file, listener),
            backlog,
            is_adopted: false,
            udp: Vec::new(),
        })
    }

    /// Binds the address for HTTP/3, too, for so many workers.
    ///
    /// # Errors
    /// The error of the system: the address is in use, or needs a privilege.
    pub fn bind_udp(&mut self, workers: usize) -> io::Result<()> {
        if let Address::Tcp(address) = self.address {
            let sockets = std::iter::repeat_with(|| udp_socket(address)).take(workers.max(1));
            self.udp = sockets.map(|socket| socket.map(Arc::new)).collect::<io::Result<_>>()?;
        }
        Ok(())
    }

    /// From now on clients may connect.
    ///
    /// # Errors
    /// Another process that bound the address as well was faster.
    pub(crate) fn listen(&self) -> io::Result<()> {
        let (Address::Tcp(address), Sockets::Tcp(sockets)) = (&self.address, &self.sockets) else {
            return Ok(()); // a Unix socket listens since it was bound, by which others see that it is in use
        };
        match refuse_if_another_process_listens(*address) {
            _ if self.is_adopted => {}
            // A port below 1024, which was asked about when it was bound: the privilege for it is gone by now.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            asked => asked?,
        }
        for socket in sockets {
            SockRef::from(socket).listen(self.backlog)?;
            acknowledge_by_answers(socket);
        }
        Ok(())
    }

    /// Has the kernel prefer, for a connection whose packets arrive on a worker's core, the socket of that worker. Of a
    /// socket that the process before had on a core, the preference ends if the workers have no `cores` of their own.
    pub(crate) fn prefer(&self, cores: &[u32]) {
        for (index, socket) in self.tcp_sockets().enumerate() {
            let core = index.checked_rem(cores.len()).and_then(|worker| cores.get(worker));
            if core.is_some() || self.is_adopted {
                // Kernels before 6.2 take it and hash all the same; one that refuses it hashes, too.
                let _ = set_socket_incoming_cpu(socket, core.copied().unwrap_or(NO_CORE));
            }
        }
    }

    /// Accepts connections with these settings.
    #[must_use]
    pub fn with(mut self, settings: ListenerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Takes sockets that another process has bound for HTTP/3, for so many workers. It stops reading from them when this
    /// one serves. Where the system does not allow further ones, workers share those that there are.
    pub fn adopt_udp(&mut self, mut sockets: Vec<std::net::UdpSocket>, workers: usize) {
        if let Some(Ok(address)) = sockets.first().map(std::net::UdpSocket::local_addr) {
            let further = std::iter::repeat_with(|| udp_socket(address)).map_while(io::Result::ok);
            sockets.extend(further.take(workers.saturating_sub(sockets.len())));
        }
        self.udp = sockets.into_iter().map(Arc::new).collect();
    }

    /// Whether it has sockets for HTTP/3.
    pub fn has_datagrams(&self) -> bool {
        !self.udp.is_empty()
    }

    /// Its sockets for HTTP/3, in the order in which they were bound.
    pub(crate) fn udp(&self) -> &[Arc<std::net::UdpSocket>] {
        &self.udp
    }

    /// Its sockets for HTTP/3.
    pub fn udp_sockets(&self) -> impl Iterator<Item = &std::net::UdpSocket> {
        self.udp.iter().map(Arc::as_ref)
    }

    /// Its TCP sockets.
    pub fn tcp_sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let sockets = match &self.sockets {
            Sockets::Tcp(sockets) => &sockets[..],
            Sockets::Unix(..) => &[],
        };
        sockets.iter().map(AsFd::as_fd)
    }

    /// All of its sockets, for the next process.
    pub fn all_sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let unix = match &self.sockets {
            Sockets::Tcp(_) => None,
            Sockets::Unix(_, listener) => Some(listener.as_fd()),
        };
        self.tcp_sockets().chain(unix).chain(self.udp.iter().map(AsFd::as_fd))
    }

    /// Another process has its sockets by now: a unix socket's file is left to that one.
    pub fn leave_file(&self) {
        if let Sockets::Unix(file, _) = &self.sockets {
            file.leave();
        }
    }

    /// The process that made its sockets has left them to this one: a unix socket's file is removed at the end.
    pub fn take_file(&self) {
        if let Sockets::Unix(file, _) = &self.sockets {
            file.take();
        }
    }

    /// The sockets of worker `index` of so many. This value keeps the address bound, too; those for HTTP/3 stay bound until
    /// the last connection of theirs has ended.
    pub(crate) fn for_worker(&self, index: usize, workers: usize) -> io::Result<Vec<WorkerSocket>> {
        match &self.sockets {
            Sockets::Tcp(sockets) => {
                let shared = index % sockets.len().max(1);
                let own = sockets.iter().skip(shared).step_by(workers.max(1));
                let tcp = own.map(|socket| Ok(WorkerSocket::Tcp(socket.try_clone()?)));
                let shared = index % self.udp.len().max(1);
                let own = self.udp.iter().skip(shared).step_by(workers.max(1));
                let udp: Vec<_> = own.map(Arc::clone).collect();
                let udp = (!udp.is_empty()).then_some(Ok(WorkerSocket::Udp(udp)));
                tcp.chain(udp).collect()
            }
            Sockets::Unix(_, listener) => Ok(vec![WorkerSocket::Unix(listener.try_clone()?)]),
        }
    }

    /// Gives the unix socket file to `uid`, so that it can be removed after privileges are dropped. A link in its
    /// place is not followed.
    ///
    /// # Errors
    /// With the error of `lchown`.
    pub fn give_to(&self, uid: u32, gid: u32) -> io::Result<()> {
        match &self.address {
            Address::Unix(path) => std::os::unix::fs::lchown(path, Some(uid), Some(gid)),
            Address::Tcp(_) => Ok(()),
        }
    }
}

/// Whether datagrams can be received at an address.
pub fn takes_datagrams(address: SocketAddr) -> bool {
    udp_socket(address).is_ok()
}

fn tcp_socket(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // [::] means IPv6 only, as in nginx: 0.0.0.0 can then be listened on beside it.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    // Accepted sockets inherit this: one system call a listener instead of one a connection.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Has accepted sockets acknowledge a request by its answer, and by nothing before, as they do from their second request on. A
/// connection that waits for the rest of a request takes that back: [`Transport::expects_more`](crate::transport::Transport). To be
/// called behind `listen`, which forgets it.
fn acknowledge_by_answers(socket: impl AsFd) {
    // A system that does not take it goes on as before.
    let _ = set_tcp_quickack(socket, false);
}

/// A datagram goes to the socket that its client's address and port choose.
fn udp_socket(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // Room for a burst of a few hundred packets, as far as the system allows it.
    let _ = socket.set_recv_buffer_size(1024 * 1024);
    let _ = socket.set_send_buffer_size(1024 * 1024);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// With `SO_REUSEPORT` a second server of the same user could silently take half of the
/// connections. A bind without it fails if another server is there already.
fn refuse_if_another_process_listens(address: SocketAddr) -> io::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    let probe = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        probe.set_only_v6(true)?;
    }
    probe.set_reuse_address(true)?;
    probe.bind(&address.into())
}
