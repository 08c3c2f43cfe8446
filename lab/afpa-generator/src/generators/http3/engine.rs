//! Connections on one thread and one epoll, their timers, and what is counted of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_h2::FieldCode;
use afpa_h3::Qpack;
use afpa_h3::frame::{kind, put_header};
use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use hdrhistogram::Histogram;
use quinn_proto::{ClientConfig, DatagramEvent, Endpoint, EndpointConfig, TransportConfig, VarInt};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use super::connection::{Connection, Requests, Told};
use super::socket::{Room, Socket};
use crate::measure::{ClientSetup, Measured, latency_of};
use crate::workload::{Request, Workload};

/// The life of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// So many requests are open at any time.
    Kept {
        /// How many.
        streams: u32,
    },
    /// One request, then its end, and the next connection.
    Fresh,
    /// One request, then nothing.
    Held,
}

/// Sockets of connections that have ended, to which the server may still send: without them its packets would be answered by
/// ICMP.
pub(super) const LINGERING: usize = 256;

const SEED: u64 = 1;
const EVENTS: usize = 512;
/// Longer latencies are counted as this long.
const LONGEST: u64 = 1_000_000_000_000;
/// The loop looks up at least so often.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Windows that no answer of a workload fills.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// After so many errors nothing more is asked.
const MOST_ERRORS: u64 = 1000;

pub(super) struct Engine<'w> {
    client: &'w ClientSetup,
    name: String,
    mode: Mode,
    config: ClientConfig,
    endpoint: Endpoint,
    epoll: OwnedFd,
    requests: Requests<'w>,
    places: Vec<Place>,
    /// The place of each connection, by its number in the endpoint.
    by_handle: Vec<usize>,
    alarms: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    lingering: VecDeque<Socket>,
    room: Room,
    packets: Vec<u8>,
    tally: Tally,
}

/// A place for one connection after the other.
struct Place {
    connection: Option<Connection>,
    /// Counts the connections that were here.
    number: u64,
    /// The earliest alarm that is set.
    alarm: Option<Instant>,
}

struct Tally {
    measured: Measured,
    latency: Histogram<u64>,
    lost: u64,
}

impl<'w> Engine<'w> {
    /// Of `compared` answers one is compared byte by byte.
    pub(super) fn new(
        (mut config, name): (ClientConfig, &str),
        client: &'w ClientSetup,
        workload: &'w Workload,
        (mode, compared): (Mode, u64),
    ) -> Result<Self> {
        let wanted = workload.all_requests();
        ensure!(!wanted.is_empty(), "a load needs a request");
        let knows_mtu = Socket::new(client.first_source)?.knows_mtu();
        config.transport_config(Arc::new(transport()));
        Ok(Self {
            client,
            name: name.to_owned(),
            mode,
            config,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, knows_mtu, None),
            epoll: epoll::create(CreateFlags::CLOEXEC).context("epoll")?,
            requests: Requests {
                wanted,
                frames: wanted.iter().map(|request| frame(request, name)).collect(),
                steps: workload.requests(SEED),
                heads: Default::default(),
                compared,
                asked: 0,
            },
            places: Vec::new(),
            by_handle: Vec::new(),
            alarms: BinaryHeap::new(),
            lingering: VecDeque::new(),
            room: Room::new(),
            packets: Vec::new(),
            tally: Tally::new()?,
        })
    }

    /// Begins so many further connections.
    pub(super) fn open(&mut self, count: u32) -> Result<()> {
        for _ in 0..count {
            self.places.push(Place { connection: None, number: 0, alarm: None });
            self.connect(self.places.len() - 1)?;
        }
        Ok(())
    }

    /// Connections that were begun, by [`open`](Self::open).
    pub(super) fn opened(&self) -> u32 {
        self.places.len() as u32
    }

    /// Answers, right or wrong, since counting began.
    pub(super) fn answered(&self) -> u64 {
        self.tally.measured.requests + self.tally.measured.errors
    }

    pub(super) fn has_answers(&self) -> bool {
        self.answered() > 0
    }

    /// Begins the count; errors from before are kept.
    pub(super) fn reset(&mut self) -> Result<()> {
        let before = std::mem::replace(&mut self.tally, Tally::new()?).measured;
        self.tally.measured.errors = before.errors;
        self.tally.measured.complaints = before.complaints;
        Ok(())
    }

    /// Asks and reads for a time, or until `done` says so.
    pub(super) fn run(&mut self, duration: Duration, done: impl Fn(&Self) -> bool) -> Result<()> {
        let began = Instant::now();
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut now = began;
        while now - began < duration && !done(self) && self.tally.measured.errors < MOST_ERRORS {
            let wait = self.pause(now, duration.saturating_sub(now - began))?;
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            now = Instant::now();
            for event in events.drain(..) {
                let place = event.data.u64() as usize;
                self.receive(place, now);
                self.drive(place, now)?;
            }
            self.expire(now)?;
        }
        self.tally.measured.seconds += began.elapsed().as_secs_f64();
        Ok(())
    }

    /// Ends all connections. The measurement.
    pub(super) fn finish(mut self) -> Measured {
        let now = Instant::now();
        for place in &mut self.places {
            if let Some(connection) = place.connection.take() {
                connection.close(&mut self.endpoint, now);
            }
        }
        let Tally { mut measured, latency, lost } = self.tally;
        measured.latency = latency_of(&latency);
        measured.counts.insert("packets_not_sent".into(), lost);
        measured
    }

    fn connect(&mut self, place: usize) -> Result<()> {
        let now = Instant::now();
        let socket = Socket::new(self.client.first_source)?;
        let data = EventData::new_u64(place as u64);
        epoll::add(&self.epoll, &socket, data, EventFlags::IN).context("epoll")?;
        let (handle, quic) =
            self.endpoint.connect(now, self.config.clone(), self.client.to, &self.name)?;
        if self.by_handle.len() <= handle.0 {
            self.by_handle.resize(handle.0 + 1, usize::MAX);
        }
        self.by_handle[handle.0] = place;
        let free = &mut self.places[place];
        free.connection = Some(Connection::new(handle, quic, socket));
        free.number += 1;
        free.alarm = None;
        self.tally.measured.connections_opened += 1;
        self.drive(place, now)
    }

    /// Takes what has come by the socket of a place.
    fn receive(&mut self, place: usize, now: Instant) {
        let Some(place) = self.places.get_mut(place) else { return };
        let Some(connection) = &mut place.connection else { return };
        let Self { endpoint, room, packets, .. } = self;
        let handle = connection.handle();
        let mut events = Vec::new();
        let received = connection.socket().receive(room, |batch| {
            let mut bytes = BytesMut::from(batch.bytes);
            while !bytes.is_empty() {
                let datagram = bytes.split_to(batch.each.min(bytes.len()));
                packets.clear();
                let (from, to, ecn) = (batch.from, batch.to, batch.ecn);
                match endpoint.handle(now, from, to, ecn, datagram, packets) {
                    Some(DatagramEvent::ConnectionEvent(of, event)) if of == handle => {
                        events.push(event);
                    }
                    _ => {}
                }
            }
        });
        events.into_iter().for_each(|event| connection.quic().handle_event(event));
        if let Err(error) = received {
            self.tally.measured.complain(|| format!("the socket: {error}"));
        }
    }

    /// Moves the connection of a place on.
    fn drive(&mut self, place: usize, now: Instant) -> Result<()> {
        let Self { places, endpoint, requests, tally, packets, mode, .. } = self;
        let Some(Place { connection: Some(connection), .. }) = places.get_mut(place) else {
            return Ok(());
        };
        let mut has_ended = false;
        while let Some(told) = connection.poll(endpoint, requests) {
            match told {
                Told::Open => {
                    connection.begin();
                    connection.ask(if let Mode::Kept { streams } = mode { *streams } else { 1 });
                }
                Told::Answered(asked, content) => {
                    tally.answered(now - asked, content);
                    connection.ask(u32::from(matches!(mode, Mode::Kept { .. })));
                    has_ended |= *mode == Mode::Fresh;
                }
                Told::Wrong(why) => {
                    tally.measured.complain(|| why);
                    connection.ask(u32::from(matches!(mode, Mode::Kept { .. })));
                    has_ended |= *mode == Mode::Fresh;
                }
                Told::Lost(why) => {
                    tally.measured.complain(|| format!("a connection is lost: {why}"));
                    // It is not made again: a server that refuses gets no storm of connections.
                    return self.end(place, now).map(|_| ());
                }
            }
        }
        if has_ended {
            self.end(place, now)?;
            return self.connect(place);
        }
        connection.send_requests(requests, now);
        tally.lost += connection.transmit(now, packets);
        let timeout = connection.quic().poll_timeout();
        self.set_alarm(place, timeout);
        Ok(())
    }

    fn end(&mut self, place: usize, now: Instant) -> Result<()> {
        let Some(connection) = self.places[place].connection.take() else { return Ok(()) };
        let socket = connection.close(&mut self.endpoint, now);
        epoll::delete(&self.epoll, &socket)?;
        self.lingering.push_back(socket);
        if self.lingering.len() > LINGERING {
            self.lingering.pop_front();
        }
        Ok(())
    }

    /// An alarm that rings too early is set again, so that most changes of a timer cost nothing.
    fn set_alarm(&mut self, place: usize, timeout: Option<Instant>) {
        let at = &mut self.places[place];
        let Some(timeout) = timeout else { return };
        if at.alarm.is_none_or(|alarm| timeout < alarm) {
            at.alarm = Some(timeout);
            self.alarms.push(Reverse((timeout, place, at.number)));
        }
    }

    fn expire(&mut self, now: Instant) -> Result<()> {
        while let Some(Reverse((when, place, number))) = self.alarms.peek().copied()
            && when <= now
        {
            self.alarms.pop();
            let at = &mut self.places[place];
            if at.number != number || at.alarm != Some(when) {
                continue;
            }
            at.alarm = None;
            let Some(connection) = &mut at.connection else { continue };
            match connection.quic().poll_timeout() {
                Some(timeout) if timeout <= now => {
                    connection.quic().handle_timeout(now);
                    self.drive(place, now)?;
                }
                timeout => self.set_alarm(place, timeout),
            }
        }
        Ok(())
    }

    fn pause(&self, now: Instant, left: Duration) -> Result<Timespec> {
        let alarm =
            self.alarms.peek().map(|Reverse((when, ..))| when.saturating_duration_since(now));
        let wait = alarm.unwrap_or(LONGEST_WAIT).min(left).min(LONGEST_WAIT);
        Ok(Timespec { tv_sec: 0, tv_nsec: wait.as_nanos().try_into()? })
    }
}

impl Tally {
    fn new() -> Result<Self> {
        let latency = Histogram::new_with_bounds(1, LONGEST, 3)?;
        Ok(Self { measured: Measured::default(), latency, lost: 0 })
    }

    fn answered(&mut self, took: Duration, content: u64) {
        self.measured.requests += 1;
        self.measured.bytes += content;
        self.measured.body_bytes += content;
        let took = u64::try_from(took.as_nanos()).unwrap_or(LONGEST);
        self.latency.saturating_record(took.max(1));
    }
}

/// A request's HEADERS frame.
fn frame(request: &Request, host: &str) -> Bytes {
    let mut section = Vec::new();
    Qpack::begin(&mut section);
    let own =
        [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", &request.path)];
    let further = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.into_iter().chain(further) {
        Qpack::put_field(&mut section, name.as_bytes(), value.as_bytes());
    }
    let mut bytes = Vec::new();
    put_header(&mut bytes, kind::HEADERS, section.len() as u64);
    bytes.extend_from_slice(&section);
    bytes.into()
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .max_concurrent_bidi_streams(0u32.into())
        .max_concurrent_uni_streams(8u32.into())
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(None);
    transport
}

#[cfg(test)]
mod tests {
    use afpa_h3::frame::read_header;
    use afpa_h3::qpack;

    use super::*;
    use crate::workload::Object;

    #[test]
    fn a_request_is_one_frame_of_its_fields() {
        let headers = vec![("Accept".to_owned(), "*/*".to_owned())];
        let request = Request::get(&Object::new("/a", 5)).with_headers(headers);
        let bytes = frame(&request, "lab.example");
        let (kind, length, n) = read_header(&bytes).unwrap();
        assert_eq!((kind, length as usize), (kind::HEADERS, bytes.len() - n));
        let mut fields = Vec::new();
        qpack::decode(&bytes[n..], |name, value| {
            fields.push(format!("{} {}", name.escape_ascii(), value.escape_ascii()));
        })
        .unwrap();
        let expected =
            [":method GET", ":scheme https", ":authority lab.example", ":path /a", "accept */*"];
        assert_eq!(fields, expected);
    }
}
