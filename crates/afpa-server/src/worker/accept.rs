//! Accepting connections.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{poll_fn, ready};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use afpa_framework::{Client, Module, Peer, Preface, preface};
use afpa_tls::ListenerTls;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_incoming_cpu;
use rustix::net::{SocketFlags, acceptfrom_with};
use rustix::process::getpid;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::share::{Accepted, Change, Place, Preference, Share};
use super::{Worker, handshake};
use crate::connection::{Connection, pinned, say_last_words};
use crate::limits::Admission;
use crate::listener::{ListenerSettings, NO_CORE, WorkerSocket};
use crate::transport::{Direction, Socket, Stream, Transport};

/// The accept loops of a worker, by the number of their listener.
#[derive(Default)]
pub(super) struct Accepting {
    loops: HashMap<u64, AcceptLoops>,
}

struct AcceptLoops {
    settings: Rc<RefCell<ListenerSettings>>,
    /// One for each socket.
    all: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Accepting {
    pub(super) fn start<M: Module>(
        &mut self,
        worker: &Rc<Worker<M>>,
        id: u64,
        sockets: Vec<WorkerSocket>,
        settings: ListenerSettings,
    ) {
        let settings = Rc::new(RefCell::new(settings));
        let begin = |socket| {
            let (stop, stopped) = oneshot::channel();
            let (worker, shared) = (Rc::clone(worker), Rc::clone(&settings));
            let (socket, preference) = match socket {
                WorkerSocket::Udp(sockets) => {
                    return (stop, serve_datagrams(worker, sockets, shared, stopped));
                }
                WorkerSocket::Tcp(socket) => {
                    let now_ms = worker.clock.cached_now().steady_ms();
                    (OwnedFd::from(socket), Some(Preference::new(now_ms)))
                }
                WorkerSocket::Unix(socket) => (socket.into(), None),
            };
            let task = tokio::task::spawn_local(async move {
                match Acceptor::new(socket, preference) {
                    Ok(acceptor) => accept_until(worker, acceptor, shared, stopped).await,
                    Err(error) => {
                        tracing::error!(%error, "a core cannot accept connections on a listening socket");
                    }
                }
            });
            (stop, task)
        };
        let all = sockets.into_iter().map(begin).collect();
        self.loops.insert(id, AcceptLoops { settings, all });
    }

    /// Accepts connections with other settings from now on.
    pub(super) fn set(&mut self, id: u64, settings: ListenerSettings) {
        if let Some(accepting) = self.loops.get(&id) {
            accepting.settings.replace(settings);
        }
    }

    /// The number of the listener, if there is one.
    pub(super) async fn stop(&mut self, id: u64) -> Option<u32> {
        let AcceptLoops { settings, all } = self.loops.remove(&id)?;
        for (stop, task) in all {
            // If the loop has ended by itself, the message is not needed.
            let _ = stop.send(());
            let _ = task.await;
        }
        Some(settings.borrow().number)
    }

    pub(super) async fn stop_all(&mut self) {
        for id in self.loops.keys().copied().collect::<Vec<_>>() {
            self.stop(id).await;
        }
    }
}

/// Serves HTTP/3. The choice is no part of a task, which keeps the code of every branch: for a module without streams there is
/// none of HTTP/3 in the program.
fn serve_datagrams<M: Module>(
    worker: Rc<Worker<M>>,
    sockets: Vec<Arc<UdpSocket>>,
    settings: Rc<RefCell<ListenerSettings>>,
    stopped: oneshot::Receiver<()>,
) -> JoinHandle<()> {
    if M::TAKES_STREAMS {
        tokio::task::spawn_local(crate::h3::serve(worker, sockets, settings, stopped))
    } else {
        tokio::task::spawn_local(ready(()))
    }
}

/// A listening socket of any family.
struct Acceptor {
    socket: Socket,
    /// Of one that may prefer connections that arrive on the worker's core.
    preference: Option<Preference>,
}

impl Acceptor {
    fn new(socket: OwnedFd, preference: Option<Preference>) -> io::Result<Self> {
        let mut socket = Socket::new(socket);
        socket.register()?;
        Ok(Self { socket, preference })
    }

    /// The next connection; `others_only`: of another process.
    async fn accept(&mut self, others_only: bool) -> io::Result<(OwnedFd, Peer)> {
        const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
        let accept = |socket: BorrowedFd<'_>| Ok((acceptfrom_with(socket, FLAGS)?, false));
        let (socket, peer) = loop {
            let accepted = poll_fn(|cx| self.socket.poll(cx, Direction::Receive, accept)).await?;
            if !others_only || is_of_another(&accepted.0) {
                break accepted;
            }
            tracing::warn!("a connection of this process to its own control socket was closed");
        };
        let peer = match peer.map(SocketAddr::try_from) {
            Some(Ok(address)) => Peer::from(address),
            // A Unix socket, whose client has no address.
            Some(Err(_)) | None => Peer { client: Client::Unix, port: 0 },
        };
        Ok((socket, peer))
    }

    /// Serves a connection here, or passes it on to a worker that has fewer.
    fn place<M: Module>(
        &mut self,
        worker: &Rc<Worker<M>>,
        (socket, peer): (OwnedFd, Peer),
        settings: &RefCell<ListenerSettings>,
    ) {
        let (Some(share), Some(preference)) = (&worker.share, &mut self.preference) else {
            return welcome(
                worker,
                Stream::new(socket, Rc::clone(&worker.io)),
                peer,
                settings,
                None,
            );
        };
        let now_ms = worker.clock.cached_now().steady_ms();
        let (change, kept) = match share.is_full(worker.limits.connections.open()) {
            Some(other) => {
                let settings = settings.borrow().clone();
                let left = share.pass(other, Accepted { socket, peer, settings }).err();
                worker.counters.passed.add(u64::from(left.is_none()));
                (preference.passed(now_ms), left.map(|accepted| accepted.socket))
            }
            None => (preference.kept(now_ms), Some(socket)),
        };
        if let Some(change) = change {
            let core = match change {
                Change::Withdraw => NO_CORE,
                Change::Restore => share.core,
            };
            // A kernel that does not take it goes on as before.
            let _ = self.socket.descriptor().map(|socket| set_socket_incoming_cpu(socket, core));
        }
        if let Some(socket) = kept {
            let stream = Stream::new(socket, Rc::clone(&worker.io));
            welcome(worker, stream, peer, settings, Some(share.take()));
        }
    }
}

/// Serves a connection that another worker has accepted.
pub(super) fn take_over<M: Module>(worker: &Rc<Worker<M>>, accepted: Accepted) {
    let Accepted { socket, peer, settings } = accepted;
    let stream = Stream::new(socket, Rc::clone(&worker.io));
    let place = worker.share.as_ref().map(Share::taken);
    welcome(worker, stream, peer, &RefCell::new(settings), place);
}

/// Accepts until the order to stop, then accepts the connections that are already in the queue: closing a
/// `SO_REUSEPORT` socket would reset the connections that wait on it.
async fn accept_until<M: Module>(
    worker: Rc<Worker<M>>,
    mut acceptor: Acceptor,
    settings: Rc<RefCell<ListenerSettings>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let others_only = settings.borrow().others_only;
    let mut told_ms = None;
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            accepted = acceptor.accept(others_only) => match accepted {
                Ok(accepted) => acceptor.place(&worker, accepted, &settings),
                Err(error) => recover(&worker, &error, &mut told_ms).await,
            },
        }
    }
    while let Some(accepted) = now_or_never(acceptor.accept(others_only)).await {
        match accepted {
            Ok((socket, peer)) => {
                let stream = Stream::new(socket, Rc::clone(&worker.io));
                let place = worker.share.as_ref().map(Share::take);
                welcome(&worker, stream, peer, &settings, place);
            }
            Err(_) => break,
        }
    }
}

/// Whether another process has made this connection.
fn is_of_another(socket: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_peercred(socket).is_ok_and(|peer| peer.pid != getpid())
}

async fn now_or_never<F: Future>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

/// Where a connection comes from, and how its bytes are to be understood.
struct Arrival {
    peer: Peer,
    /// The number of the listener.
    listener: u32,
    /// Its TCP address, as configured.
    address: Option<SocketAddr>,
    /// Without TLS: whether it may begin with the preface of HTTP/2.
    http2: bool,
    tls: Option<ListenerTls>,
    /// In the count of this worker.
    place: Option<Place>,
}

fn welcome<M: Module, T: Transport + 'static>(
    worker: &Rc<Worker<M>>,
    stream: T,
    peer: Peer,
    settings: &RefCell<ListenerSettings>,
    place: Option<Place>,
) {
    let settings = settings.borrow();
    let ListenerSettings { number: listener, address, http2, .. } = *settings;
    let from = Arrival { peer, listener, address, http2, tls: settings.tls.clone(), place };
    if settings.expects_preface(peer.client) {
        let worker = Rc::clone(worker);
        tokio::task::spawn_local(async move { introduce(worker, stream, from).await });
    } else {
        admit(worker, stream, from, Vec::new());
    }
}

fn admit<M: Module, T: Transport + 'static>(
    worker: &Rc<Worker<M>>,
    stream: T,
    from: Arrival,
    input: Vec<u8>,
) {
    if !worker.lets_in(from.peer.client, from.address) {
        // Without a word, as the kernel's programs do it with a SYN.
        return worker.counters.refused.add(1);
    }
    match worker.place_for(from.peer.client) {
        Some(admission) => {
            worker.counters.accepted.add(1);
            begin(worker, stream, from, input, admission);
        }
        None => {
            worker.counters.refused.add(1);
            // A handshake for the sake of a refusal would cost more than a request. An answer of the kernel on this
            // connection was the client's one answer.
            if from.tls.is_none() && !kernel_has_answered(worker, &stream) {
                say_last_words(worker, stream, from.peer.client);
            }
        }
    }
}

/// Whether the kernel's fast path has answered on a connection that was just accepted.
fn kernel_has_answered<M: Module>(worker: &Worker<M>, stream: &impl Transport) -> bool {
    let activity = worker.settings.borrow().kernel_activity.clone();
    let since = activity.zip(stream.addresses());
    since.is_some_and(|(activity, (client, server))| activity.since(client, server).is_some())
}

/// Begins a connection that was admitted.
fn begin<M: Module, T: Transport + 'static>(
    worker: &Rc<Worker<M>>,
    mut stream: T,
    Arrival { peer, listener, http2, tls, place, .. }: Arrival,
    input: Vec<u8>,
    admission: Admission,
) {
    let from = (peer, listener);
    match tls {
        None => {
            let connection = Connection::new(Rc::clone(worker), stream, from, input);
            let connection = connection.that_may_be_h2(http2);
            // The runtime moves a task several times before it runs.
            tokio::task::spawn_local(pinned(|| async move {
                connection.run().await;
                drop((admission, place));
            }));
        }
        Some(settings) if M::TAKES_TLS => {
            // The first message of a handshake may be longer than a segment.
            stream.expects_more();
            let worker = Rc::clone(worker);
            tokio::task::spawn_local(pinned(|| async move {
                handshake::serve(worker, stream, from, settings, input).await;
                drop((admission, place));
            }));
        }
        // Closed: never served without the TLS that was asked for.
        Some(_) => {}
    }
}

/// Reads the PROXY protocol header of a router in front, and admits the client that it names. If the header
/// is missing or malformed, the connection is closed without an answer, because the router would pass an
/// answer on to some client.
async fn introduce<M: Module, T: Transport + 'static>(
    worker: Rc<Worker<M>>,
    mut stream: T,
    from: Arrival,
) {
    let (total, patience) = {
        let settings = worker.settings.borrow();
        (settings.connections, settings.head_timeout)
    };
    // It counts in the total, but not as a connection of the router: the connection is its client's.
    let place = worker.limits.connections.admit(Client::Unix, total, usize::MAX);
    let said = match place {
        Some(_) => tokio::time::timeout(patience, read_preface(&mut stream)).await.ok().flatten(),
        None => None,
    };
    drop(place);
    match &said {
        Some((_, rest)) if rest.is_empty() => stream.expects_more(),
        _ => {}
    }
    match said {
        Some((Preface::Client(client), rest)) => {
            let peer = Peer::from(client);
            admit(&worker, stream, Arrival { peer, ..from }, rest);
        }
        Some((Preface::Local, rest)) => admit(&worker, stream, from, rest),
        None => worker.counters.refused.add(1),
    }
}

/// Returns the header, and the bytes that had arrived behind it.
async fn read_preface<T: Transport>(stream: &mut T) -> Option<(Preface, Vec<u8>)> {
    let mut input = Vec::new();
    let mut room = vec![0; preface::MAX_PREFACE];
    while input.len() <= preface::MAX_PREFACE {
        let n = poll_fn(|cx| stream.poll_receive(cx, &mut room)).await.ok().filter(|n| *n > 0)?;
        input.extend_from_slice(room.get(..n)?);
        if let Some((said, length)) = preface::parse(&input).ok()? {
            return Some((said, input.split_off(length)));
        }
    }
    None
}

/// Milliseconds from one warning that connections cannot be accepted to the next.
const TOLD_EACH_MS: u64 = 60_000;

/// Errors of a connection that was taken from the queue, with which the next one has nothing to do (accept(2)).
const OF_ONE: [Errno; 12] = [
    Errno::CONNABORTED,
    Errno::CONNRESET,
    Errno::INTR,
    Errno::NETDOWN,
    Errno::PROTO,
    Errno::NOPROTOOPT,
    Errno::HOSTDOWN,
    Errno::NONET,
    Errno::HOSTUNREACH,
    Errno::OPNOTSUPP,
    Errno::NETUNREACH,
    Errno::PERM,
];

/// If descriptors or memory have run out, the loop waits a little; connections stay in the kernel's queue.
async fn recover<M: Module>(worker: &Rc<Worker<M>>, error: &io::Error, told_ms: &mut Option<u64>) {
    let errno = Errno::from_io_error(error);
    if errno.is_some_and(|errno| OF_ONE.contains(&errno)) {
        return;
    }
    worker.counters.accept_errors.add(1);
    let now = worker.clock.now().steady_ms();
    if told_ms.is_none_or(|told| now.saturating_sub(told) >= TOLD_EACH_MS) {
        *told_ms = Some(now);
        tracing::warn!(
            %error,
            "cannot accept connections; they wait in the kernel's queue. If descriptors have run out, raise the limit \
             (LimitNOFILE of systemd, ulimit -n)"
        );
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
}
