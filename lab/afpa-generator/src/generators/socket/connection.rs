//! One connection's place: a stream that comes and goes, and what is asked on it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};

use anyhow::{Context, Result};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::measure::ClientSetup;
use crate::response::{Progress, Reader};
use crate::workload::{Request, Step};

/// Where it is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is no stream.
    Closed,
    /// There is one, and nothing is asked on it.
    Idle,
    Connecting,
    /// The request is being written.
    Asking,
    /// The response is being read.
    Waiting,
    /// The server is to close; nothing more is expected.
    Closing,
}

/// The result of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StepResult {
    /// The rest comes with another event.
    Pending,
    /// A response is complete and right.
    Answered { content: u64 },
    /// The stream is gone, as it should be.
    Ended,
    /// The server closed the connection between two requests, as it may; nothing of the
    /// response had come.
    Raced,
    /// The error message.
    Failed(String),
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: Option<TcpStream>,
    pub(super) phase: Phase,
    reader: Reader,
    /// Counts streams: events of an earlier one are stale.
    generation: u32,
    /// The further steps of this connection.
    pub(super) steps: VecDeque<Step>,
    /// The present step.
    pub(super) step: Step,
    written: usize,
    /// Bytes arrived while the request was being written.
    readable: bool,
    /// Responses on this stream.
    answered: u32,
    /// When the request should have been sent, when it was, and when something happened last.
    pub(super) due: u64,
    pub(super) begun: u64,
    pub(super) touched: u64,
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            stream: None,
            phase: Phase::Closed,
            reader: Reader::default(),
            generation: 0,
            steps: VecDeque::new(),
            step: Step { request: 0, last: true },
            written: 0,
            readable: false,
            answered: 0,
            due: 0,
            begun: 0,
            touched: 0,
        }
    }

    /// Is an event that carries this generation about the stream of now?
    pub(super) fn is_of(&self, generation: u32) -> bool {
        self.generation == generation && self.stream.is_some()
    }

    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Begins to connect. `number` comes back with the stream's events.
    pub(super) fn connect(
        &mut self,
        client: &ClientSetup,
        epoll: &OwnedFd,
        number: u32,
    ) -> Result<()> {
        let to = client.to;
        let socket =
            Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        if client.sources > 1 {
            let source = nth(client.first_source, number % client.sources);
            socket.bind(&SockAddr::from(std::net::SocketAddr::new(source, 0)))?;
        }
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&SockAddr::from(to)) {
            Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => {
                return Err(error).with_context(|| format!("cannot connect to {to}"));
            }
            _ => {}
        }
        self.generation = self.generation.wrapping_add(1);
        let data = EventData::new_u64(u64::from(self.generation) << 32 | u64::from(number));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let stream = TcpStream::from(socket);
        epoll::add(epoll, &stream, data, flags).context("epoll")?;
        self.stream = Some(stream);
        self.phase = Phase::Connecting;
        self.reader = Reader::default();
        self.answered = 0;
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.stream = None;
        self.phase = Phase::Closed;
    }

    /// Sends a request on a stream that is connected.
    pub(super) fn ask(&mut self, request: &[u8]) -> StepResult {
        (self.written, self.readable, self.phase) = (0, false, Phase::Asking);
        self.write(request)
    }

    /// Something has happened to the stream.
    pub(super) fn handle(
        &mut self,
        flags: EventFlags,
        request: &[u8],
        wanted: &Request,
        buffer: &mut [u8],
        received: &mut u64,
    ) -> StepResult {
        if self.phase == Phase::Connecting {
            let stream = self.stream.as_ref();
            match stream.map(TcpStream::take_error) {
                Some(Ok(None)) if flags.contains(EventFlags::OUT) => {}
                Some(Ok(None)) | None => return StepResult::Pending,
                Some(Ok(Some(error)) | Err(error)) => {
                    return StepResult::Failed(format!("cannot connect: {error}"));
                }
            }
            (self.written, self.readable, self.phase) = (0, false, Phase::Asking);
        }
        if self.phase == Phase::Asking {
            self.readable |= flags.intersects(READABLE);
            match self.write(request) {
                StepResult::Pending if self.phase == Phase::Waiting && self.readable => {}
                outcome => return outcome,
            }
        } else if !flags.intersects(READABLE) {
            return StepResult::Pending;
        }
        // An edge comes once: with the end in sight, it is read up to the end.
        let to_the_end = flags.intersects(ENDING);
        self.read(to_the_end, wanted, buffer, received)
    }

    fn write(&mut self, request: &[u8]) -> StepResult {
        let Some(stream) = &mut self.stream else { return StepResult::Pending };
        while let Some(rest) = request.get(self.written..).filter(|rest| !rest.is_empty()) {
            match stream.write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return StepResult::Pending,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.lost(&error.to_string()),
            }
        }
        self.phase = Phase::Waiting;
        StepResult::Pending
    }

    fn read(
        &mut self,
        to_the_end: bool,
        wanted: &Request,
        buffer: &mut [u8],
        received: &mut u64,
    ) -> StepResult {
        loop {
            let Some(stream) = &mut self.stream else { return StepResult::Pending };
            let count = match stream.read(buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return StepResult::Pending,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) if self.phase == Phase::Closing => return self.ended(),
                Err(error) => return self.lost(&error.to_string()),
            };
            *received += count as u64;
            let bytes = buffer.get(..count).unwrap_or_default();
            let progress = match (self.phase, count) {
                (Phase::Waiting, 0) if self.reader.is_fresh() => return self.lost("closed"),
                (Phase::Waiting, 0) => self.reader.end(wanted),
                (Phase::Waiting, _) => self.reader.take(bytes, wanted),
                (_, 0) => return self.ended(),
                _ => Err("data that nobody asked for".into()),
            };
            match progress {
                Err(words) => return StepResult::Failed(words),
                Ok(Progress::Done { keep, content }) => {
                    self.answered += 1;
                    self.phase = match (count, keep && !self.step.last) {
                        (0, _) => {
                            self.close();
                            Phase::Closed
                        }
                        (_, true) => Phase::Idle,
                        (_, false) => Phase::Closing,
                    };
                    return StepResult::Answered { content };
                }
                Ok(Progress::More) if count < buffer.len() && !to_the_end => {
                    return StepResult::Pending;
                }
                Ok(Progress::More) => {}
            }
        }
    }

    /// Reads on until the server has closed: its end may have come together with the response.
    pub(super) fn await_end(&mut self, wanted: &Request, buffer: &mut [u8]) -> StepResult {
        self.read(true, wanted, buffer, &mut 0)
    }

    fn ended(&mut self) -> StepResult {
        self.close();
        StepResult::Ended
    }

    fn lost(&mut self, words: &str) -> StepResult {
        let raced = self.answered > 0 && self.reader.is_fresh();
        self.close();
        if raced { StepResult::Raced } else { StepResult::Failed(format!("no answer: {words}")) }
    }
}

const READABLE: EventFlags =
    EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::HUP).union(EventFlags::ERR);
const ENDING: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);
/// EINPROGRESS: the result of a non-blocking connect.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

fn nth(first: IpAddr, number: u32) -> IpAddr {
    match first {
        IpAddr::V4(first) => IpAddr::V4(first.to_bits().wrapping_add(number).into()),
        IpAddr::V6(first) => IpAddr::V6(first.to_bits().wrapping_add(number.into()).into()),
    }
}
