//! The connections of a UDP socket: datagrams to the connection that they belong to, packets of each to the socket, and
//! the timers of all.

mod drive;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use afpa_framework::{Module, Peer as From};
use afpa_h3::ErrorCode;
use afpa_tls::quic::QuicTls;
use afpa_tls::{ListenerTls, Reason};
use foldhash::fast::RandomState;
use quinn_proto::{ConnectionHandle, DatagramEvent, Endpoint, Incoming, StreamId};
use tokio::sync::oneshot;
use tokio::time::Sleep;

use super::peer::{Due, Peer};
use super::settings::{config, limits, times_of, told};
use super::socket::{Arrived, QuicSocket};
use super::steering::{Inbox, Taken, WorkerSteering};
use super::tokens::UsedTokens;
use super::touched::Touched;
use crate::limits::Met;
use crate::listener::ListenerSettings;
use crate::worker::Worker;

/// Serves the clients of an address, by one socket or several. When the listener is given up, its connections end with the
/// answers that are due: they have a task of their own, and this returns. If the address comes back meanwhile, that task
/// serves it again: datagrams come to its sockets.
pub(crate) async fn serve<M: Module>(
    worker: Rc<Worker<M>>,
    sockets: Vec<Arc<UdpSocket>>,
    settings: Rc<RefCell<ListenerSettings>>,
    stopped: oneshot::Receiver<()>,
) {
    let Some(steering) = worker.steering.borrow().clone() else { return };
    let address = sockets.first().and_then(|socket| socket.local_addr().ok());
    let (leave, left) = oneshot::channel();
    let taken = Taken { sockets, settings, left };
    let touched = match address.and_then(|address| steering.inbox(&address)) {
        Some(inbox) => inbox.take_again(taken),
        None => match Served::new(worker, taken, steering) {
            Ok(mut served) => {
                let touched = Rc::clone(&served.touched);
                tokio::task::spawn_local(async move { poll_fn(|cx| served.poll(cx)).await });
                touched
            }
            Err(error) => {
                tracing::error!(%error, "a core cannot serve HTTP/3 on its UDP socket");
                return;
            }
        },
    };
    let _ = stopped.await;
    let _ = leave.send(());
    touched.wake();
}

/// An address and its connections.
struct Served<M: Module> {
    worker: Rc<Worker<M>>,
    socket: QuicSocket,
    /// Sockets of a process before that had more workers: they are read, too.
    others: Vec<QuicSocket>,
    address: SocketAddr,
    steering: Rc<WorkerSteering>,
    inbox: Rc<Inbox>,
    settings: Rc<RefCell<ListenerSettings>>,
    endpoint: Endpoint,
    /// The TLS settings of the listener that new connections get, as QUIC has them.
    tls: Option<(ListenerTls, Option<QuicTls>)>,
    /// Other settings that new connections get.
    times: (Duration, afpa_h2::Limits),
    peers: HashMap<ConnectionHandle, Rc<RefCell<Peer>>, RandomState>,
    /// The tokens by which clients have proved their addresses.
    used: Arc<UsedTokens>,
    touched: Rc<Touched>,
    /// Connections that have packets to send, while the socket takes none.
    blocked: HashSet<ConnectionHandle>,
    /// The socket could not be read: it is tried again then.
    pause: Option<Instant>,
    /// When connections are looked at for their timers. A timer that is set to a later time stays here at the earlier one:
    /// most are, with each packet.
    alarms: BTreeSet<(Instant, ConnectionHandle)>,
    sleep: Pin<Box<Sleep>>,
    /// Connections that are looked at now.
    looked_at: Vec<ConnectionHandle>,
    /// Packets that are being made.
    packets: Vec<u8>,
    /// The outcomes of datagrams that have arrived together.
    events: Vec<Outcome>,
    /// Requests of the connection that is being driven, which have just come.
    opened: Vec<StreamId>,
    leaving: bool,
    left: oneshot::Receiver<()>,
    /// The next process has the sockets.
    handed_over: bool,
    /// Until then, requests are served after the first GOAWAY.
    grace: Option<Instant>,
}

/// The outcome of a datagram, with the bytes of an answer that is sent without a connection.
type Outcome = (DatagramEvent, Vec<u8>);

/// How often datagrams are received before their connections answer.
const READS: u32 = 4;

/// How often that is done before other connections of the core get their turn.
const ROUNDS: u32 = 4;

/// Datagrams of others that are looked at before the sockets are.
const MOST_PASSED: usize = 64;

/// For how long a socket that cannot be read is left alone.
const PAUSE: Duration = Duration::from_millis(10);

impl<M: Module> Served<M> {
    fn new(
        worker: Rc<Worker<M>>,
        Taken { sockets, settings, left }: Taken,
        steering: Rc<WorkerSteering>,
    ) -> io::Result<Self> {
        let address = sockets.first().ok_or(io::ErrorKind::NotFound)?.local_addr()?;
        let (socket, others) = open(sockets)?;
        let endpoint = Endpoint::new(steering.config(address), None, socket.knows_mtu(), None);
        let times = times_of(&worker.settings.borrow());
        let touched = Rc::default();
        let inbox = Rc::new(Inbox::new(&touched));
        steering.enter(address, Rc::clone(&inbox));
        let mut served = Self {
            worker,
            socket,
            others,
            address,
            steering,
            inbox,
            settings,
            endpoint,
            tls: None,
            times,
            peers: HashMap::default(),
            used: Arc::default(),
            touched,
            blocked: HashSet::new(),
            pause: None,
            alarms: BTreeSet::new(),
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            looked_at: Vec::new(),
            packets: Vec::new(),
            events: Vec::new(),
            opened: Vec::new(),
            leaving: false,
            left,
            handed_over: false,
            grace: None,
        };
        served.renew();
        Ok(served)
    }

    /// New connections get the settings of the listener as they are now.
    fn renew(&mut self) {
        let tls = self.settings.borrow().tls.clone();
        let times = times_of(&self.worker.settings.borrow());
        let is_known = self.tls.as_ref().map(|(listener, _)| listener) == tls.as_ref();
        if is_known && self.times == times {
            return;
        }
        self.times = times;
        let told = told(&self.worker.settings.borrow(), self.worker.largest_head);
        self.tls = tls.map(|tls| {
            let quic = QuicTls::of(&tls, &told).unwrap_or_else(|error| {
                tracing::error!(%error, "the TLS settings cannot be used for HTTP/3");
                None
            });
            (tls, quic)
        });
        let quic = self.tls.as_ref().and_then(|(_, quic)| quic.as_ref());
        let keys = self.steering.keys();
        let settings = self.worker.settings.borrow();
        let keys = (keys, self.address);
        let config = quic.map(|quic| Arc::new(config(quic, keys, &self.used, &settings)));
        drop(settings);
        self.endpoint.set_server_config(config);
    }

    /// The listener was given up: connections end with the answers that are due. If the next process has the socket, their
    /// clients get a GOAWAY first, and are served until they can have taken note of it (RFC 9114 section 5.2).
    fn leave(&mut self) {
        self.leaving = true;
        let idle = self.worker.hands_over.get();
        self.handed_over = idle.is_some();
        self.grace = idle.map(|idle| Instant::now() + idle);
        self.tell_all();
    }

    /// The address is listened on again. Clients that know of the end go all the same; new ones are welcome.
    fn take_again(&mut self, Taken { sockets, settings, left }: Taken) {
        (self.settings, self.left, self.leaving, self.grace) = (settings, left, false, None);
        match open(sockets) {
            Ok(opened) => (self.socket, self.others) = opened,
            // It has them already, as a rule.
            Err(error) => tracing::error!(%error, "a core keeps its UDP socket of HTTP/3"),
        }
        self.pause = None;
        self.blocked.drain().for_each(|handle| self.touched.touch(handle));
        self.renew();
    }

    fn tell_all(&self) {
        for (handle, peer) in &self.peers {
            self.tell(&mut peer.borrow_mut());
            self.touched.touch(*handle);
        }
    }

    /// Sends a client the GOAWAY that is due, if any is.
    fn tell(&self, peer: &mut Peer) {
        match (self.leaving, self.grace) {
            (true, Some(_)) => peer.announce(),
            (true, None) => peer.leave(),
            (false, _) => {}
        }
    }

    /// Whether this process reads the sockets: not while the next one does. Those of an address that was given up before
    /// stay with it.
    fn reads(&self) -> bool {
        !self.handed_over || self.steering.is_back()
    }

    /// Ready when the listener was given up, and all connections have ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.leaving && Pin::new(&mut self.left).poll(cx).is_ready() {
            self.leave();
        }
        if let Some(taken) = self.inbox.again() {
            self.take_again(taken);
        }
        let mut rounds = ROUNDS;
        loop {
            let now = Instant::now();
            if self.socket.poll_send(cx).is_ready() {
                self.blocked.drain().for_each(|handle| self.touched.touch(handle));
            }
            if self.grace.take_if(|until| *until <= now).is_some() {
                self.tell_all();
            }
            self.take_passed(now);
            let received = match self.reads() {
                true => self.receive_some(cx, now),
                false => Poll::Pending,
            };
            self.expire(now);
            let mut looked_at = std::mem::take(&mut self.looked_at);
            self.touched.take(&mut looked_at);
            for handle in looked_at.drain(..) {
                self.drive(handle, now, cx);
            }
            self.looked_at = looked_at;
            if self.leaving && self.peers.is_empty() {
                return Poll::Ready(());
            }
            let is_idle = received.is_pending() && self.touched.is_empty() && self.inbox.is_empty();
            let waits_for_socket =
                !self.socket.is_blocked() || self.socket.poll_send(cx).is_pending();
            if is_idle && waits_for_socket && self.sleeps(cx) {
                self.worker.h3_answers.tidy();
                // Until here nothing else could touch a connection: one thread runs all tasks.
                self.touched.wait(cx.waker());
                return Poll::Pending;
            }
            rounds -= 1;
            if rounds == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    /// Whether no timer is due now: then this task is woken when the first one is.
    fn sleeps(&mut self, cx: &mut Context<'_>) -> bool {
        let first = self.alarms.first().map(|(first, _)| *first);
        let all = first.into_iter().chain(self.pause).chain(self.grace);
        let Some(first) = all.min() else { return true };
        if self.sleep.deadline() != first.into() {
            self.sleep.as_mut().reset(first.into());
        }
        self.sleep.as_mut().poll(cx).is_pending()
    }

    /// Receives all that has come, within bounds, before any connection answers: those of which several datagrams have come
    /// send more by one call, and in fuller packets. Ready if more may be there.
    fn receive_some(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        for _ in 0..READS {
            std::task::ready!(self.receive(cx, now));
        }
        Poll::Ready(())
    }

    fn receive(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        if self.pause.is_some_and(|until| now < until) {
            return Poll::Pending;
        }
        self.pause = None;
        let mut received = self.receive_by(0, cx, now);
        for further in 1..=self.others.len() {
            let by_it = self.receive_by(further, cx, now);
            received = if received.is_ready() { received } else { by_it };
        }
        match received {
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "the socket of HTTP/3 does not receive");
                self.pause = Some(now + PAUSE);
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Receives once by the socket of this number.
    fn receive_by(
        &mut self,
        number: usize,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<io::Result<()>> {
        let Self { socket, others, endpoint, packets, events, steering, address, .. } = self;
        let from = number.checked_sub(1).and_then(|further| others.get_mut(further));
        let received = from.unwrap_or(socket).poll_receive(cx, |arrived, datagram| {
            if !steering.pass_on(*address, arrived, datagram) {
                events.extend(handle(endpoint, packets, (arrived, datagram), now));
            }
        });
        self.follow_events(now);
        received
    }

    /// Takes what other workers and the next process have received.
    fn take_passed(&mut self, now: Instant) {
        for _ in 0..MOST_PASSED {
            let Some((arrived, datagram)) = self.inbox.take() else { break };
            let Self { endpoint, packets, events, .. } = self;
            events.extend(handle(endpoint, packets, (arrived, &datagram), now));
        }
        self.follow_events(now);
    }

    fn follow_events(&mut self, now: Instant) {
        let mut events = std::mem::take(&mut self.events);
        for (event, bytes) in events.drain(..) {
            match event {
                DatagramEvent::Response(packet) => {
                    self.socket.send(packet, &bytes);
                }
                DatagramEvent::ConnectionEvent(handle, event) => {
                    if let Some(peer) = self.peers.get(&handle) {
                        peer.borrow_mut().quic.handle_event(event);
                        self.touched.touch(handle);
                    }
                }
                DatagramEvent::NewConnection(incoming) => self.meet(incoming, now),
            }
        }
        self.events = events;
    }

    /// A client that is not known.
    fn meet(&mut self, incoming: Incoming, now: Instant) {
        self.renew();
        let address = incoming.remote_address();
        let from = From::from(address);
        let worker = Rc::clone(&self.worker);
        let settings = worker.settings.borrow();
        let listener = self.settings.borrow().address;
        let is_proven = incoming.remote_address_validated();
        let met = match self.leaving {
            true => Met::Denied,
            false => worker.meet(from.client, listener, is_proven),
        };
        let held = match met {
            Met::Admitted(held) => held,
            Met::Unproven => {
                self.packets.clear();
                if let Ok(packet) = self.endpoint.retry(incoming, &mut self.packets) {
                    self.socket.send(packet, &self.packets);
                }
                return;
            }
            Met::Denied => {
                worker.counters.refused.add(1);
                return self.endpoint.ignore(incoming);
            }
            Met::Full => {
                worker.counters.refused.add(1);
                self.packets.clear();
                let packet = self.endpoint.refuse(incoming, &mut self.packets);
                self.socket.send(packet, &self.packets);
                return;
            }
        };
        self.packets.clear();
        match self.endpoint.accept(incoming, now, &mut self.packets, None) {
            Ok((handle, quic)) => {
                worker.counters.accepted.add(1);
                let limits = limits(&settings, worker.largest_head);
                let deadline = now + settings.handshake_timeout;
                let quic = (handle, quic);
                let mut peer = Peer::new(quic, limits, &self.touched, from, held, deadline);
                peer.entry = Some(worker.table.enter(self.settings.borrow().number));
                self.peers.insert(handle, Rc::new(RefCell::new(peer)));
                self.touched.touch(handle);
            }
            Err(error) => {
                if let Some(packet) = error.response {
                    self.socket.send(packet, &self.packets);
                }
            }
        }
    }

    /// Runs the timers that are due.
    fn expire(&mut self, now: Instant) {
        while let Some((when, handle)) =
            self.alarms.first().copied().filter(|(when, _)| *when <= now)
        {
            self.alarms.remove(&(when, handle));
            let Some(peer) = self.peers.get(&handle).map(Rc::clone) else { continue };
            let mut peer = peer.borrow_mut();
            peer.alarm = None;
            if peer.first_timer().is_none_or(|first| first > now) {
                self.set_alarm(&mut peer);
                continue;
            }
            match peer.due(now) {
                Some(Due::Handshake) => {
                    self.worker.counters.tls.failed(Reason::TimedOut).add(1);
                    peer.close(ErrorCode::NoError, now);
                }
                Some(Due::Idle) => peer.close(ErrorCode::NoError, now),
                Some(Due::Sign) => peer.quic.ping(),
                None => {}
            }
            peer.quic.handle_timeout(now);
            self.touched.touch(handle);
        }
    }

    /// Has a connection looked at when its first timer is due, or before.
    fn set_alarm(&mut self, peer: &mut Peer) {
        let Some(first) = peer.first_timer() else { return };
        if peer.alarm.is_none_or(|alarm| first < alarm) {
            self.stop_alarm(peer);
            peer.alarm = Some(first);
            self.alarms.insert((first, peer.handle));
        }
    }

    fn stop_alarm(&mut self, peer: &mut Peer) {
        let alarm = peer.alarm.take();
        alarm.into_iter().for_each(|alarm| {
            self.alarms.remove(&(alarm, peer.handle));
        });
    }
}

impl<M: Module> Drop for Served<M> {
    /// The process ends: clients learn of it, as those of TCP do from its system.
    fn drop(&mut self) {
        self.steering.leave(&self.address, &self.inbox);
        let now = Instant::now();
        for peer in std::mem::take(&mut self.peers).into_values() {
            let Ok(mut peer) = peer.try_borrow_mut() else { continue };
            if !peer.is_lost {
                peer.close(ErrorCode::NoError, now);
                self.packets.clear();
                if let Some(packet) = peer.quic.poll_transmit(now, 1, &mut self.packets) {
                    self.socket.send(packet, &self.packets);
                }
            }
            if let Some(entry) = peer.entry.take() {
                self.worker.table.leave(entry);
            }
        }
    }
}

/// The first socket, and the others.
fn open(sockets: Vec<Arc<UdpSocket>>) -> io::Result<(QuicSocket, Vec<QuicSocket>)> {
    let mut sockets = sockets.into_iter().map(QuicSocket::new);
    let first = sockets.next().ok_or(io::ErrorKind::NotFound)??;
    Ok((first, sockets.collect::<io::Result<_>>()?))
}

/// Gives a datagram to the endpoint.
fn handle(
    endpoint: &mut Endpoint,
    packets: &mut Vec<u8>,
    (Arrived { from, to, ecn }, datagram): (Arrived, &[u8]),
    now: Instant,
) -> Option<Outcome> {
    packets.clear();
    let event = endpoint.handle(now, from, to, ecn, datagram.into(), packets)?;
    let answer = match event {
        DatagramEvent::Response(_) => packets.clone(),
        _ => Vec::new(),
    };
    Some((event, answer))
}
