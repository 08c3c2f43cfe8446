//! The connections of a UDP socket: datagrams to the connection that they belong to, packets of each to the socket, and
//! the timers of all.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use afpa_framework::{Module, Peer as From};
use afpa_h3::ErrorCode;
use afpa_tls::quic::QuicTls;
use afpa_tls::{ListenerTls, Reason};
use quinn_proto::{
    ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    HashedConnectionIdGenerator, IdleTimeout, Incoming, ServerConfig, StreamEvent, StreamId,
    TransportConfig, VarInt,
};
use tokio::sync::oneshot;
use tokio::time::Sleep;

use super::peer::{Due, Peer, Touched};
use super::socket::{Arrived, QuicSocket};
use super::stream::Stream;
use crate::connection::Connection;
use crate::listener::ListenerSettings;
use crate::settings::Settings;
use crate::worker::Worker;
use crate::worker::handshake::secured;

/// Serves the clients of a socket. When the listener is given up, its connections end with the answers that are due: they
/// have a task of their own, and this returns.
pub(crate) async fn serve<M: Module>(
    worker: Rc<Worker<M>>,
    socket: std::net::UdpSocket,
    settings: Rc<RefCell<ListenerSettings>>,
    stopped: oneshot::Receiver<()>,
) {
    let socket = match QuicSocket::new(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "a core cannot serve HTTP/3 on its UDP socket");
            return;
        }
    };
    let mut served = Served::new(worker, socket, settings);
    let touched = Rc::clone(&served.touched);
    let (leave, mut left) = oneshot::channel();
    tokio::task::spawn_local(async move {
        poll_fn(|cx| {
            if !served.leaving && Pin::new(&mut left).poll(cx).is_ready() {
                served.leave();
            }
            served.poll(cx)
        })
        .await;
    });
    let _ = stopped.await;
    let _ = leave.send(());
    touched.wake();
}

/// A socket and its connections.
struct Served<M: Module> {
    worker: Rc<Worker<M>>,
    socket: QuicSocket,
    settings: Rc<RefCell<ListenerSettings>>,
    endpoint: Endpoint,
    /// The TLS settings of the listener that new connections get, as QUIC has them.
    tls: Option<(ListenerTls, Option<QuicTls>)>,
    /// Other settings that new connections get.
    times: (Duration, afpa_h2::Limits),
    peers: HashMap<ConnectionHandle, Rc<RefCell<Peer>>>,
    touched: Rc<Touched>,
    /// Connections that have packets to send, while the socket takes none.
    blocked: HashSet<ConnectionHandle>,
    /// The socket could not be read: it is tried again then.
    pause: Option<Instant>,
    timers: BTreeSet<(Instant, ConnectionHandle)>,
    due: HashMap<ConnectionHandle, Instant>,
    sleep: Pin<Box<Sleep>>,
    /// Packets that are being made.
    packets: Vec<u8>,
    leaving: bool,
}

/// How often datagrams are received before other connections of the core get their turn.
const ROUNDS: u32 = 8;

/// For how long a socket that cannot be read is left alone.
const PAUSE: Duration = Duration::from_millis(10);

/// Streams of a client that carry no requests: control, encoder, decoder, and some of unknown types.
const UNI_STREAMS: u32 = 8;

/// Bytes of answers that a connection keeps until its client has acknowledged them.
const SEND_WINDOW: u64 = 1024 * 1024;

impl<M: Module> Served<M> {
    fn new(
        worker: Rc<Worker<M>>,
        socket: QuicSocket,
        settings: Rc<RefCell<ListenerSettings>>,
    ) -> Self {
        let endpoint = Endpoint::new(endpoint_config(), None, socket.knows_mtu(), None);
        let times = times_of(&worker.settings.borrow());
        let mut served = Self {
            worker,
            socket,
            settings,
            endpoint,
            tls: None,
            times,
            peers: HashMap::new(),
            touched: Rc::default(),
            blocked: HashSet::new(),
            pause: None,
            timers: BTreeSet::new(),
            due: HashMap::new(),
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            packets: Vec::new(),
            leaving: false,
        };
        served.renew();
        served
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
        self.tls = tls.map(|tls| {
            let quic = QuicTls::of(&tls).unwrap_or_else(|error| {
                tracing::error!(%error, "the TLS settings cannot be used for HTTP/3");
                None
            });
            (tls, quic)
        });
        let quic = self.tls.as_ref().and_then(|(_, quic)| quic.as_ref());
        let config = quic.map(|quic| Arc::new(config(quic, &self.worker.settings.borrow())));
        self.endpoint.set_server_config(config);
    }

    /// The listener was given up: connections end with the answers that are due. If the next process has the socket, it
    /// would get their packets, so they end at once, and their clients ask it again.
    fn leave(&mut self) {
        self.leaving = true;
        let now = Instant::now();
        for (handle, peer) in &self.peers {
            let mut peer = peer.borrow_mut();
            match self.worker.hands_over.get() {
                true => peer.close(ErrorCode::NoError, now),
                false => peer.leave(),
            }
            self.touched.touch(*handle);
        }
    }

    /// Ready when the listener was given up, and all connections have ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut rounds = ROUNDS;
        loop {
            let now = Instant::now();
            if self.socket.poll_send(cx).is_ready() {
                self.blocked.drain().for_each(|handle| self.touched.touch(handle));
            }
            let received = match self.leaving && self.worker.hands_over.get() {
                true => Poll::Pending,
                false => self.receive(cx, now),
            };
            self.expire(now);
            for handle in self.touched.take() {
                self.drive(handle, now);
            }
            if self.leaving && self.peers.is_empty() {
                return Poll::Ready(());
            }
            let is_idle = received.is_pending() && self.touched.is_empty();
            let waits_for_socket =
                !self.socket.is_blocked() || self.socket.poll_send(cx).is_pending();
            if is_idle && waits_for_socket && self.sleeps(cx) {
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
        let first = self.timers.first().map(|(first, _)| *first);
        let Some(first) = first.into_iter().chain(self.pause).min() else { return true };
        if self.sleep.deadline() != first.into() {
            self.sleep.as_mut().reset(first.into());
        }
        self.sleep.as_mut().poll(cx).is_pending()
    }

    fn receive(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        if self.pause.is_some_and(|until| now < until) {
            return Poll::Pending;
        }
        self.pause = None;
        let Self { socket, endpoint, packets, .. } = self;
        let mut events = Vec::new();
        let received = socket.poll_receive(cx, |Arrived { from, to, ecn }, datagram| {
            packets.clear();
            let event = endpoint.handle(now, from, to, ecn, datagram.into(), packets);
            events.extend(event.map(|event| match event {
                DatagramEvent::Response(packet) => (None, Some((packet, packets.clone()))),
                other => (Some(other), None),
            }));
        });
        for (event, response) in events {
            if let Some((packet, bytes)) = response {
                self.socket.send(packet, &bytes);
            }
            match event {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(peer) = self.peers.get(&handle) {
                        peer.borrow_mut().quic.handle_event(event);
                        self.touched.touch(handle);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => self.meet(incoming, now),
                _ => {}
            }
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

    /// A client that is not known.
    fn meet(&mut self, incoming: Incoming, now: Instant) {
        self.renew();
        let address = incoming.remote_address();
        let from = From::from(address);
        let worker = Rc::clone(&self.worker);
        let settings = worker.settings.borrow();
        let listener = self.settings.borrow().address;
        if self.leaving || !worker.lets_in(from.client, listener) {
            worker.counters.refused.add(1);
            return self.endpoint.ignore(incoming);
        }
        let handshakes = &worker.limits.handshakes;
        // Under pressure a client proves its address before it costs memory (RFC 9000 section 8.1.2).
        let is_crowded = handshakes.open() * 2 >= settings.handshakes;
        if is_crowded && !incoming.remote_address_validated() && incoming.may_retry() {
            self.packets.clear();
            if let Ok(packet) = self.endpoint.retry(incoming, &mut self.packets) {
                self.socket.send(packet, &self.packets);
            }
            return;
        }
        let (total, per_client) = (settings.handshakes, settings.handshakes_per_client);
        let place = handshakes.admit(from.client, total, per_client);
        let admission = worker.place_for(from.client);
        let (Some(place), Some(admission)) = (place, admission) else {
            worker.counters.refused.add(1);
            self.packets.clear();
            let packet = self.endpoint.refuse(incoming, &mut self.packets);
            self.socket.send(packet, &self.packets);
            return;
        };
        self.packets.clear();
        match self.endpoint.accept(incoming, now, &mut self.packets, None) {
            Ok((handle, quic)) => {
                worker.counters.accepted.add(1);
                let limits = limits(&settings, worker.largest_head);
                let deadline = now + settings.handshake_timeout;
                let quic = (handle, quic);
                let mut peer = Peer::new(quic, limits, &self.touched, from, admission, deadline);
                peer.handshake_place = Some(place);
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
            self.timers.first().copied().filter(|(when, _)| *when <= now)
        {
            self.timers.remove(&(when, handle));
            self.due.remove(&handle);
            let Some(peer) = self.peers.get(&handle) else { continue };
            let mut peer = peer.borrow_mut();
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

    /// Moves a connection on: its events, its packets, its timer.
    fn drive(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(shared) = self.peers.get(&handle).map(Rc::clone) else { return };
        let mut peer = shared.borrow_mut();
        loop {
            self.tell_endpoint(&mut peer);
            let Some(event) = peer.quic.poll() else { break };
            self.on_event(&shared, &mut peer, event, now);
        }
        if self.leaving {
            peer.leave();
        }
        if peer.is_done() && !peer.is_lost {
            peer.close(ErrorCode::NoError, now);
        }
        peer.note_idle(now, self.times.0);
        self.send(&mut peer, now);
        // Packets that were sent may have freed an identifier.
        self.tell_endpoint(&mut peer);
        let timeout = [peer.quic.poll_timeout(), peer.deadline()];
        let is_drained = peer.quic.is_drained();
        // Only QUIC knows a connection longer, for packets that come late: nothing waits for that.
        if peer.is_lost || is_drained {
            let entry = peer.entry.take();
            entry.into_iter().for_each(|entry| self.worker.table.leave(entry));
        }
        drop(peer);
        if let Some(before) = self.due.remove(&handle) {
            self.timers.remove(&(before, handle));
        }
        if is_drained {
            self.peers.remove(&handle);
            return;
        }
        if let Some(next) = timeout.into_iter().flatten().min() {
            self.timers.insert((next, handle));
            self.due.insert(handle, next);
        }
    }

    /// Exchanges what a connection and the endpoint have to tell each other: identifiers, and that it has ended.
    fn tell_endpoint(&mut self, peer: &mut Peer) {
        while let Some(event) = peer.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(peer.handle, event) {
                peer.quic.handle_event(event);
            }
        }
    }

    fn send(&mut self, peer: &mut Peer, now: Instant) {
        let segments = self.socket.most_segments();
        while !self.socket.is_blocked() {
            self.packets.clear();
            let Some(packet) = peer.quic.poll_transmit(now, segments, &mut self.packets) else {
                return;
            };
            self.worker.counters.sent_bytes.add(packet.size as u64);
            self.socket.send(packet, &self.packets);
        }
        self.blocked.insert(peer.handle);
    }

    fn on_event(&self, shared: &Rc<RefCell<Peer>>, peer: &mut Peer, event: Event, now: Instant) {
        match event {
            Event::Connected => {
                let quic = self.tls.as_ref().and_then(|(_, quic)| quic.as_ref());
                match quic.and_then(|quic| quic.facts(peer.quic.crypto_session())) {
                    Some(facts) => {
                        self.worker.counters.tls.complete(&facts);
                        self.worker.counters.h3_connections.add(1);
                        peer.begin(secured(facts, false));
                        if self.leaving {
                            peer.leave();
                        }
                        self.open_requests(shared, peer);
                    }
                    None => {
                        let refused = Reason::PeerCertificate;
                        self.worker.counters.tls.failed(refused).add(1);
                        peer.close(ErrorCode::NoError, now);
                    }
                }
            }
            Event::ConnectionLost { reason } => {
                tracing::debug!(%reason, "a connection of HTTP/3 is lost");
                if peer.secured.is_none() {
                    self.worker.counters.tls.failed(why_failed(&reason)).add(1);
                }
                peer.lose();
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => self.open_requests(shared, peer),
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                while let Some(id) = peer.quic.streams().accept(Dir::Uni) {
                    self.read_control(peer, id, now);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => match id.dir() {
                Dir::Uni => self.read_control(peer, id, now),
                Dir::Bi => peer.wake_receiver(id),
            },
            Event::Stream(StreamEvent::Writable { id }) => peer.wake_sender(id),
            Event::Stream(StreamEvent::Finished { id }) => peer.finished(id),
            Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                let now_ms = self.worker.clock.cached_now().steady_ms();
                if let Err(fatal) = peer.stopped(id, error_code, now_ms) {
                    self.worker.counters.h3_faults.add(1);
                    peer.fail(fatal, now);
                }
            }
            Event::Stream(StreamEvent::Available { dir: Dir::Uni }) => peer.open_control(),
            Event::Stream(StreamEvent::Available { dir: Dir::Bi })
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => {}
        }
    }

    fn read_control(&self, peer: &mut Peer, id: StreamId, now: Instant) {
        let now_ms = self.worker.clock.cached_now().steady_ms();
        if let Err(fatal) = peer.read_control(id, now_ms) {
            self.worker.counters.h3_faults.add(1);
            peer.fail(fatal, now);
        }
    }

    /// Gives each new request a connection of its own, as HTTP/1.1 has one.
    fn open_requests(&self, shared: &Rc<RefCell<Peer>>, peer: &mut Peer) {
        let Some(secured) = peer.secured.clone() else { return };
        let number = self.settings.borrow().number;
        for id in peer.accept() {
            let worker = Rc::clone(&self.worker);
            let stream = Stream::new(&worker, shared, id);
            let from = (peer.client, number);
            let secured = Box::new(secured.clone());
            tokio::task::spawn_local(async move {
                let mut connection = Connection::new(worker, stream, from, Vec::new());
                connection.secured(secured);
                connection.run().await;
            });
        }
    }
}

impl<M: Module> Drop for Served<M> {
    /// The process ends: clients learn of it, as those of TCP do from its system.
    fn drop(&mut self) {
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

/// The settings of new connections. A stream has a window as one of HTTP/2.
fn config(quic: &QuicTls, settings: &Settings) -> ServerConfig {
    let http2 = &settings.http2;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(http2.streams.into())
        .max_concurrent_uni_streams(UNI_STREAMS.into())
        .stream_receive_window(http2.stream_window.into())
        .receive_window(http2.connection_window.into())
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(
            IdleTimeout::try_from(settings.idle_timeout.max(SILENCE))
                .ok()
                .or(Some(VarInt::MAX.into())),
        );
    let mut config = ServerConfig::with_crypto(quic.crypto());
    config.transport_config(Arc::new(transport)).max_incoming(MOST_INCOMING);
    config
}

/// A client that says nothing for this long is gone, even if an answer is due. Clients that wait for one are asked for a
/// sign of life.
const SILENCE: Duration = Duration::from_secs(30);

/// The settings of connections that are not those of TLS.
fn times_of(settings: &Settings) -> (Duration, afpa_h2::Limits) {
    (settings.idle_timeout, settings.http2)
}

/// One for all sockets of the process: a core that gets datagrams of another core's connection, as when its client's
/// address has changed, can tell the client that this connection is over (RFC 9000 section 10.3).
fn endpoint_config() -> Arc<EndpointConfig> {
    static CONFIG: OnceLock<Arc<EndpointConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let mut config = EndpointConfig::default();
        let key = RandomState::new().hash_one(std::process::id());
        config
            .cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(key)))
            // Not the drafts, which quinn speaks, too.
            .supported_versions(vec![1]);
        Arc::new(config)
    });
    Arc::clone(config)
}

fn why_failed(lost: &ConnectionError) -> Reason {
    match lost {
        ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) => {
            Reason::Alert
        }
        ConnectionError::TimedOut | ConnectionError::Reset => Reason::Gone,
        ConnectionError::TransportError(_) => Reason::Malformed,
        _ => Reason::Other,
    }
}

/// Clients whose first packet waits to be looked at: each is looked at at once.
const MOST_INCOMING: usize = 64;

fn limits(settings: &Settings, largest_head: usize) -> afpa_h3::Limits {
    let http2 = settings.http2.with_head(largest_head);
    afpa_h3::Limits {
        head: largest_head,
        section: http2.block,
        resets: http2.resets,
        overhead: http2.overhead,
    }
}
