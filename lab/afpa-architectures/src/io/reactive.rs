//! Reactive I/O: an event loop that asks which connections are ready (epoll) and does what can be
//! done at once. Alone it is SPED; with helpers for the disk it is AMPED.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use afpa_cache::root::resident;
use anyhow::Result;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::net::SocketFlags;
use slab::Slab;

use super::arrival::{RECEIVE, is_passing};
use super::helpers::{Done, Helpers, Job};
use super::send::{Progress, Sending};
use crate::context::ServerContext;
use crate::{Answer, Body, Handler, Loaded, Step};

/// Serves many connections with one thread.
pub(super) fn serve(
    listener: &TcpListener,
    handler: Handler,
    shared: &ServerContext,
) -> Result<()> {
    let helpers = match shared.architecture.helped {
        true => Some(Helpers::start(handler.content(), shared.helpers)?),
        false => None,
    };
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    // Exclusive: of several loops on this listener one is woken, not all.
    let accept = EventFlags::IN | EventFlags::EXCLUSIVE;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), accept)?;
    if let Some(helpers) = &helpers {
        epoll::add(&epoll, helpers.bell(), EventData::new_u64(BELL), EventFlags::IN)?;
    }
    let most = shared.connections as usize;
    let gather = shared.gather;
    let (input, head) = (vec![0; RECEIVE].into(), Vec::with_capacity(1024));
    let connections = Slab::new();
    Loop { epoll, handler, helpers, connections, input, head, gather, most, born: 0 }.run(listener)
}

const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
/// So many connections are accepted before the open ones get their turn.
const ACCEPTED_AT_ONCE: usize = 64;
const EVENTS_AT_ONCE: usize = 256;

struct Loop {
    epoll: OwnedFd,
    handler: Handler,
    helpers: Option<Helpers>,
    connections: Slab<Connection>,
    /// Shared by all connections: an idle one has no buffer.
    input: Box<[u8]>,
    head: Vec<u8>,
    gather: bool,
    most: usize,
    /// Connections since the start: tells a connection from an earlier one in the same place.
    born: u32,
}

struct Connection {
    stream: TcpStream,
    number: u32,
    /// Bytes of requests that are not answered yet; nearly always none.
    carry: Vec<u8>,
    state: Phase,
}

enum Phase {
    /// For a request, or the rest of one.
    Reading,
    /// For the socket to take the rest of an answer.
    Sending { head: Vec<u8>, answer: Answer, sending: Sending },
    /// For a helper: an answer whose file is being fetched, or none while a path is being loaded.
    Helped(Option<(Vec<u8>, Answer)>),
}

/// Why a connection leaves the loop's hands.
enum Pause {
    Wait(Phase),
    Close,
}

impl Loop {
    fn run(mut self, listener: &TcpListener) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS_AT_ONCE);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for &Event { flags, data } in &events {
                match data.u64() {
                    LISTENER => self.accept(listener)?,
                    BELL => self.hear(),
                    place => self.ready(place as usize, flags),
                }
            }
        }
    }

    fn accept(&mut self, listener: &TcpListener) -> Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let stream = match rustix::net::accept_with(listener, flags) {
                Ok(socket) => TcpStream::from(socket),
                Err(error) if is_passing(&error.into()) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if self.connections.len() >= self.most {
                continue;
            }
            self.born = self.born.wrapping_add(1);
            let entry = self.connections.vacant_entry();
            let data = EventData::new_u64(entry.key() as u64);
            epoll::add(&self.epoll, &stream, data, EventFlags::IN)?;
            let (number, carry) = (self.born, Vec::new());
            entry.insert(Connection { stream, number, carry, state: Phase::Reading });
        }
        Ok(())
    }

    /// A connection can be read or written, or has ended. The event may be of one that was closed
    /// a moment ago, in the same place: then nothing is there to be read, and nothing happens.
    fn ready(&mut self, place: usize, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        match std::mem::replace(&mut connection.state, Phase::Reading) {
            Phase::Reading => self.read(place),
            Phase::Sending { head, answer, sending } => self.resume(place, head, answer, sending),
            // It ended while a helper works for it.
            Phase::Helped(_) if flags.intersects(EventFlags::HUP | EventFlags::ERR) => {
                self.close(place);
            }
            helped => connection.state = helped,
        }
    }

    fn read(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        match (&connection.stream).read(&mut self.input) {
            Ok(0) => self.close(place),
            Ok(count) => {
                let mut input = std::mem::take(&mut self.input);
                let arrived = input.get_mut(..count).unwrap_or_default();
                if connection.carry.is_empty() {
                    self.converse(place, arrived, None);
                } else {
                    let mut carry = std::mem::take(&mut connection.carry);
                    carry.extend_from_slice(arrived);
                    self.converse(place, &carry, None);
                }
                self.input = input;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.close(place),
        }
    }

    /// Answers all requests of `input`, and keeps what is left of it.
    fn converse(&mut self, place: usize, mut input: &[u8], mut loaded: Option<Loaded>) {
        let pause = loop {
            let Some(connection) = self.connections.get_mut(place) else { return };
            match self.handler.answer(input, loaded.take(), &mut self.head) {
                Step::More => break Pause::Wait(Phase::Reading),
                Step::Miss(path) => match &self.helpers {
                    None => loaded = Some(self.handler.content().load(&path)),
                    Some(helpers) => {
                        helpers.ask(ticket(place, connection.number), Job::Load(path));
                        break Pause::Wait(Phase::Helped(None));
                    }
                },
                Step::Answer(answer) => {
                    input = input.get(answer.consumed..).unwrap_or_default();
                    if let (Some(helpers), Body::File(file, length)) = (&self.helpers, &answer.body)
                        && !resident(file, 0, *length)
                    {
                        let job = Job::Fetch(file.clone(), *length);
                        helpers.ask(ticket(place, connection.number), job);
                        let head = std::mem::take(&mut self.head);
                        break Pause::Wait(Phase::Helped(Some((head, answer))));
                    }
                    match send(connection, &self.head, answer, Sending::default(), self.gather) {
                        None => {}
                        Some(pause) => break pause,
                    }
                }
            }
        };
        self.pause(place, input, pause);
    }

    /// Goes on with an answer that did not fit, then with what arrived in the meantime.
    fn resume(&mut self, place: usize, head: Vec<u8>, answer: Answer, sending: Sending) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let carry = std::mem::take(&mut connection.carry);
        match send(connection, &head, answer, sending, self.gather) {
            None => {
                self.converse(place, &carry, None);
                self.watch(place);
            }
            Some(pause) => self.pause(place, &carry, pause),
        }
    }

    /// The helpers have done something.
    fn hear(&mut self) {
        let done = self.helpers.as_ref().map(Helpers::collect).unwrap_or_default();
        for (ticket, done) in done {
            let (place, number) = ((ticket >> 32) as usize, ticket as u32);
            let Some(connection) = self.connections.get_mut(place) else { continue };
            if connection.number != number {
                continue;
            }
            let state = std::mem::replace(&mut connection.state, Phase::Reading);
            match (state, done) {
                (Phase::Helped(None), Done::Loaded(loaded)) => {
                    let carry = std::mem::take(&mut connection.carry);
                    self.converse(place, &carry, Some(loaded));
                    self.watch(place);
                }
                (Phase::Helped(Some((head, answer))), _) => {
                    self.resume(place, head, answer, Sending::default());
                }
                (state, _) => connection.state = state,
            }
        }
    }

    fn pause(&mut self, place: usize, left: &[u8], pause: Pause) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        match pause {
            Pause::Close => self.close(place),
            Pause::Wait(state) => {
                connection.carry.extend_from_slice(left);
                connection.state = state;
                if !matches!(connection.state, Phase::Reading) {
                    self.watch(place);
                }
            }
        }
    }

    /// Asks for the events that the connection's state waits for.
    fn watch(&mut self, place: usize) {
        let Some(connection) = self.connections.get(place) else { return };
        let flags = match connection.state {
            Phase::Reading => EventFlags::IN,
            Phase::Sending { .. } => EventFlags::OUT,
            Phase::Helped(_) => EventFlags::empty(),
        };
        let data = EventData::new_u64(place as u64);
        if epoll::modify(&self.epoll, &connection.stream, data, flags).is_err() {
            self.close(place);
        }
    }

    /// Closing the socket also removes it from the epoll set.
    fn close(&mut self, place: usize) {
        self.connections.try_remove(place);
    }
}

/// Sends what is left of an answer; `None` when the next request may be answered.
fn send(
    connection: &Connection,
    head: &[u8],
    answer: Answer,
    mut sending: Sending,
    gather: bool,
) -> Option<Pause> {
    match sending.some(&connection.stream, head, &answer.body, gather) {
        Ok(Progress::Done) if answer.keep => None,
        Ok(Progress::Done) | Err(_) => Some(Pause::Close),
        Ok(Progress::Blocked) => {
            Some(Pause::Wait(Phase::Sending { head: head.to_vec(), answer, sending }))
        }
    }
}

/// The number by which helpers know a connection, so that a later one in its place gets none of its answers.
fn ticket(place: usize, number: u32) -> u64 {
    (place as u64) << 32 | u64::from(number)
}
