//! Connections on one thread and one epoll, and what is counted of them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event};
use rustix::fd::OwnedFd;

use super::arrivals::Arrivals;
use super::connection::{Connection, Phase, StepResult};
use crate::measure::{ClientSetup, Load, Measured, latency_of};
use crate::workload::{Request, Step, Steps, Workload};

const SEED: u64 = 1;
const BUFFER: usize = 256 << 10;
const EVENTS: usize = 512;
/// A connection on which nothing happens for so long is an error.
const PATIENCE: u64 = 5_000_000_000;
/// How often the engine looks for such connections.
const SWEEP: u64 = 250_000_000;
/// A connection rests after an error, so that a server that refuses gets no storm of connections.
const REST: u64 = 10_000_000;
/// Sleep is not more exact than this: the engine polls for requests that are due earlier.
const SLEEP: u64 = 1_500_000;
/// Longer latencies are counted as this long.
const LONGEST: u64 = 1_000_000_000_000;

pub(super) struct Engine<'w> {
    client: &'w ClientSetup,
    load: &'w Load,
    wanted: &'w [Request],
    sessions: bool,
    /// Bytes of each request: another may follow, or the connection ends with it.
    keeping: Vec<Vec<u8>>,
    closing: Vec<Vec<u8>>,
    steps: Steps<'w>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Open loop: places without a request, the one used last on top.
    idle: Vec<usize>,
    /// When each place that rests goes on.
    resting: VecDeque<(u64, usize)>,
    arrivals: Option<Arrivals>,
    buffer: Vec<u8>,
    began: Instant,
    swept: u64,
    tally: Tally,
}

struct Tally {
    measured: Measured,
    latency: Histogram<u64>,
    service: Histogram<u64>,
}

impl<'w> Engine<'w> {
    pub(super) fn new(
        client: &'w ClientSetup,
        workload: &'w Workload,
        load: &'w Load,
    ) -> Result<Self> {
        ensure!(load.connections > 0, "a load needs a connection");
        let (host, wanted) = (client.to.to_string(), workload.all_requests());
        let bytes = |keep: bool| wanted.iter().map(|request| request.bytes(&host, keep)).collect();
        Ok(Self {
            client,
            load,
            wanted,
            sessions: workload.has_sessions(),
            keeping: bytes(true),
            closing: bytes(false),
            steps: workload.requests(SEED),
            epoll: epoll::create(CreateFlags::CLOEXEC).context("epoll")?,
            connections: (0..load.connections).map(|_| Connection::new()).collect(),
            idle: Vec::new(),
            resting: VecDeque::new(),
            arrivals: load.rate.map(|rate| Arrivals::new(rate, SEED)),
            buffer: vec![0; BUFFER],
            began: Instant::now(),
            swept: 0,
            tally: Tally::new()?,
        })
    }

    /// Sets all connections going.
    pub(super) fn start(&mut self) {
        for number in 0..self.connections.len() {
            self.go_on(number);
        }
    }

    /// Something was answered, or was wrong, since counting began.
    pub(super) fn has_answers(&self) -> bool {
        self.tally.measured.requests + self.tally.measured.errors > 0
    }

    /// Begins the count; errors from before are kept.
    pub(super) fn reset(&mut self) -> Result<()> {
        let fresh = Tally::new()?;
        let before = std::mem::replace(&mut self.tally, fresh).measured;
        self.tally.measured.errors = before.errors;
        self.tally.measured.complaints = before.complaints;
        Ok(())
    }

    /// Asks and reads for a time.
    pub(super) fn run(&mut self, duration: Duration) -> Result<()> {
        let (began, mut events) = (Instant::now(), Vec::with_capacity(EVENTS));
        while began.elapsed() < duration {
            let wait = self.pause(duration.saturating_sub(began.elapsed()));
            epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)).or_else(
                |error| match error {
                    rustix::io::Errno::INTR => Ok(0),
                    error => Err(error),
                },
            )?;
            for event in events.drain(..) {
                self.handle(&event);
            }
            self.keep_time();
        }
        self.tally.measured.seconds += began.elapsed().as_secs_f64();
        Ok(())
    }

    /// The measurement. Requests of an open loop that still wait have waited so long at least.
    pub(super) fn finish(mut self) -> Measured {
        let now = self.now();
        let mut unanswered = 0;
        if let Some(arrivals) = &self.arrivals {
            for due in arrivals.overdue() {
                record(&mut self.tally.latency, now.saturating_sub(due));
                unanswered += 1;
            }
            self.tally.count("unanswered", unanswered);
            self.tally.count("not_asked", arrivals.lost);
        }
        let Tally { mut measured, latency, service } = self.tally;
        measured.latency = latency_of(&latency);
        measured.service = self.arrivals.is_some().then(|| latency_of(&service));
        measured
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// How long to sleep, at most.
    fn pause(&self, left: Duration) -> Timespec {
        let mut pause = (left.as_nanos() as u64).min(REST);
        if let Some(arrivals) = &self.arrivals {
            let until = arrivals.until_next(self.now());
            pause = if until < SLEEP { 0 } else { pause.min(until - SLEEP) };
        }
        Timespec { tv_sec: 0, tv_nsec: pause as _ }
    }

    /// Handles the passing of time: arrivals, and the ends of rests and of time limits.
    fn keep_time(&mut self) {
        let now = self.now();
        while let Some((_, number)) = self.resting.pop_front_if(|(until, _)| *until <= now) {
            self.go_on(number);
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.arrive(now);
        }
        while let Some(due) = self.next_due() {
            let Some(number) = self.idle.pop() else {
                self.put_back(due);
                break;
            };
            self.begin(number, due);
        }
        if now - self.swept > SWEEP {
            self.swept = now;
            self.sweep(now);
        }
    }

    fn next_due(&mut self) -> Option<u64> {
        self.arrivals.as_mut()?.take()
    }

    fn put_back(&mut self, due: u64) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.put_back(due);
        }
    }

    fn sweep(&mut self, now: u64) {
        for number in 0..self.connections.len() {
            let Some(connection) = self.connections.get_mut(number) else { continue };
            let waits = !matches!(connection.phase, Phase::Closed | Phase::Idle);
            if waits && now.saturating_sub(connection.touched) > PATIENCE {
                let words = format!("nothing happened for 5 s while {:?}", connection.phase);
                connection.close();
                self.rest(number, words);
            }
        }
    }

    /// A place has nothing to do: what is next?
    fn go_on(&mut self, number: usize) {
        if self.arrivals.is_none() {
            let now = self.now();
            self.begin(number, now);
        } else if let Some(due) = self.next_due() {
            self.begin(number, due);
        } else {
            self.idle.push(number);
        }
    }

    /// Takes the next step on a place.
    fn begin(&mut self, number: usize, due: u64) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(number) else { return };
        if connection.steps.is_empty() {
            refill(&mut connection.steps, &mut self.steps, self.sessions);
        }
        let Some(step) = connection.steps.pop_front() else { return };
        let last = step.last || !self.load.persistent;
        connection.step = Step { last, ..step };
        (connection.due, connection.begun, connection.touched) = (due, now, now);
        let outcome = if connection.is_open() {
            let request = bytes_of(&self.keeping, &self.closing, connection.step);
            connection.ask(request)
        } else {
            self.tally.measured.connections_opened += 1;
            match connection.connect(self.client, &self.epoll, number as u32) {
                Ok(()) => StepResult::Pending,
                Err(error) => StepResult::Failed(format!("{error:#}")),
            }
        };
        self.conclude(number, outcome);
    }

    fn handle(&mut self, event: &Event) {
        let data = event.data.u64();
        let (number, generation) = (data as u32 as usize, (data >> 32) as u32);
        let now = self.now();
        let Some(connection) = self.connections.get_mut(number) else { return };
        if !connection.is_of(generation) {
            return;
        }
        connection.touched = now;
        let Some(wanted) = self.wanted.get(connection.step.request) else { return };
        let request = bytes_of(&self.keeping, &self.closing, connection.step);
        // The event is packed, so its flags are copied out.
        let flags = event.flags;
        let received = &mut self.tally.measured.bytes;
        let was_idle = connection.phase == Phase::Idle;
        let outcome = connection.handle(flags, request, wanted, &mut self.buffer, received);
        match outcome {
            // The server closed an idle connection: the next request opens another.
            StepResult::Ended if was_idle => {}
            // Still in the list of idle ones, where it will be opened again.
            StepResult::Failed(words) if was_idle => {
                connection.close();
                self.tally.measured.complain(|| words);
            }
            outcome => self.conclude(number, outcome),
        }
    }

    fn conclude(&mut self, number: usize, outcome: StepResult) {
        let now = self.now();
        match outcome {
            StepResult::Pending => {}
            StepResult::Ended => self.go_on(number),
            StepResult::Failed(words) => {
                if let Some(connection) = self.connections.get_mut(number) {
                    connection.close();
                }
                self.rest(number, words);
            }
            StepResult::Raced => {
                self.tally.count("raced", 1);
                let Some(connection) = self.connections.get_mut(number) else { return };
                let (step, due) = (connection.step, connection.due);
                connection.steps.push_front(step);
                self.begin(number, due);
            }
            StepResult::Answered { content } => {
                let Some(connection) = self.connections.get_mut(number) else { return };
                self.tally.answer(content, now - connection.due, now - connection.begun);
                let Some(wanted) = self.wanted.get(connection.step.request) else { return };
                match connection.phase {
                    Phase::Closing => {
                        let outcome = connection.await_end(wanted, &mut self.buffer);
                        self.conclude(number, outcome);
                    }
                    _ => self.go_on(number),
                }
            }
        }
    }

    fn rest(&mut self, number: usize, words: String) {
        self.tally.measured.complain(|| words);
        self.resting.push_back((self.now() + REST, number));
    }
}

impl Tally {
    fn new() -> Result<Self> {
        let histogram = || Histogram::new_with_bounds(1, LONGEST, 3).context("histogram");
        Ok(Self { measured: Measured::default(), latency: histogram()?, service: histogram()? })
    }

    fn answer(&mut self, content: u64, latency: u64, service: u64) {
        self.measured.requests += 1;
        self.measured.body_bytes += content;
        record(&mut self.latency, latency);
        record(&mut self.service, service);
    }

    fn count(&mut self, name: &str, number: u64) {
        *self.measured.counts.entry(name.to_owned()).or_default() += number;
    }
}

fn record(histogram: &mut Histogram<u64>, nanoseconds: u64) {
    histogram.saturating_record(nanoseconds.clamp(1, LONGEST));
}

fn bytes_of<'b>(keeping: &'b [Vec<u8>], closing: &'b [Vec<u8>], step: Step) -> &'b [u8] {
    let all = if step.last { closing } else { keeping };
    all.get(step.request).map_or(&[], Vec::as_slice)
}

/// One step, or a whole connection's where the workload says which belong together.
fn refill(into: &mut VecDeque<Step>, from: &mut Steps<'_>, sessions: bool) {
    for step in from {
        into.push_back(step);
        if step.last || !sessions {
            break;
        }
    }
}
