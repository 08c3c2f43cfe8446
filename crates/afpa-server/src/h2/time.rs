//! Time-outs for the client, and their consequences.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use afpa_framework::{Module, Now};
use afpa_h2::{ErrorCode, StreamId};

use super::H2;
use super::mux::Pace;
use crate::connection::{End, millis};
use crate::settings::Settings;
use crate::transport::Transport;

/// The deadlines of a connection, in steady milliseconds.
#[derive(Debug)]
pub(super) struct Times {
    /// By which the frame or field block that has begun has to be complete.
    begun_ms: Option<u64>,
    /// By which a stream has to be opened if none is open.
    idle_ms: u64,
    /// By which the client has to take some of the output; `None` while it takes everything.
    pub(super) blocked_ms: Option<u64>,
    /// By which the answer to the PING of a drain has to come.
    leaving_ms: Option<u64>,
    /// When streams end whose response has ended before their request; the first of them ends first.
    lingering: VecDeque<(u64, StreamId)>,
    /// Bytes have arrived that were not looked at, because there was too much output.
    pub(super) unfinished: bool,
    pub(super) pace: Pace,
}

/// The unit that has begun to arrive, and is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    Nothing,
    /// A DATA frame.
    Content,
    /// Another frame, or the preface.
    Frame,
    /// A field block, whose CONTINUATION frames are to come.
    Head,
}

fn pace(settings: &Settings) -> Pace {
    Pace { write_ms: millis(settings.write_timeout), least_rate: settings.least_rate }
}

/// How long a client may take to answer the PING of a drain.
const PING_MS: u64 = 1_000;

/// How long a client may go on with the content of a request that is answered. It has read the answer by then.
const LINGER_MS: u64 = 2_000;

/// From so many on, streams that have ended meanwhile are forgotten before their time.
const MOST_LINGERING: usize = 256;

impl Times {
    pub(super) fn begin(now: Now, settings: &Settings) -> Self {
        Self {
            begun_ms: Some(now.steady_ms() + millis(settings.head_timeout)),
            idle_ms: now.steady_ms() + millis(settings.idle_timeout),
            blocked_ms: None,
            leaving_ms: None,
            lingering: VecDeque::new(),
            unfinished: false,
            pace: pace(settings),
        }
    }

    /// Data has arrived, and leaves this unfinished. `progress`: a frame of it was complete.
    pub(super) fn arrived(
        &mut self,
        now: Now,
        left: Unfinished,
        progress: bool,
        settings: &Settings,
    ) {
        let now = now.steady_ms();
        self.pace = pace(settings);
        let head = Some(now + millis(settings.head_timeout));
        self.begun_ms = match left {
            Unfinished::Nothing => None,
            // Content may come slowly, as long as it comes.
            Unfinished::Content => Some(now + millis(settings.body_timeout)),
            Unfinished::Frame if progress => head,
            // Neither its own bytes nor further frames give a head more time.
            Unfinished::Frame | Unfinished::Head => self.begun_ms.or(head),
        };
    }

    /// A request has come, or one is being answered: the connection is not idle.
    pub(super) fn asked(&mut self, now: Now, settings: &Settings) {
        self.idle_ms = now.steady_ms() + millis(settings.idle_timeout);
    }

    pub(super) fn write_deadline(&self, now: Now) -> u64 {
        now.steady_ms() + self.pace.write_ms
    }
}

impl<M: Module, T: Transport> H2<M, T> {
    /// Waits for the deadline that comes first. Ready with an end, or with `None` if there is something to do.
    pub(super) fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        self.note_lingering();
        let worker = &self.inner.worker;
        if worker.draining.get() || worker.table.is_leaving(self.inner.entry) {
            let mut mux = self.mux.borrow_mut();
            if !mux.connection.is_leaving() {
                mux.connection.leave();
                let now = worker.clock.now().steady_ms();
                self.times.leaving_ms = Some(now + PING_MS);
                return Poll::Ready(None);
            }
        }
        if self.mux.borrow().connection.open() > 0 {
            self.times.asked(worker.clock.cached_now(), &worker.settings.borrow());
        } else {
            self.give_back_memory();
        }
        let worker = &self.inner.worker;
        let deadline = self.deadline();
        worker.table.set(self.inner.entry, deadline, true);
        match worker.table.wait(self.inner.entry, cx.waker()) {
            true => Poll::Ready(self.on_deadline()),
            // The sweep would wake this task only later: a deadline that has passed already must not be waited for.
            false if deadline.is_some_and(|deadline| self.is_past(deadline)) => {
                Poll::Ready(self.on_deadline())
            }
            false => Poll::Pending,
        }
    }

    /// Gives streams that are answered early their time.
    fn note_lingering(&mut self) {
        let mut mux = self.mux.borrow_mut();
        let lingering = &mut self.times.lingering;
        while let Some(id) = mux.connection.next_lingering() {
            if lingering.len() >= MOST_LINGERING {
                lingering.retain(|(_, id)| mux.connection.has(*id));
            }
            let now = self.inner.worker.clock.cached_now().steady_ms();
            lingering.push_back((now + LINGER_MS, id));
        }
    }

    fn is_past(&self, deadline: u64) -> bool {
        deadline <= self.inner.worker.clock.cached_now().steady_ms()
    }

    /// The first deadline.
    fn deadline(&self) -> Option<u64> {
        if self.ends.is_some() {
            return self.times.blocked_ms;
        }
        let mux = self.mux.borrow();
        let stalled = mux.streams.keys();
        let stalled = stalled.filter_map(|id| mux.deadline(*id)).min();
        let idle = (mux.connection.open() == 0).then_some(self.times.idle_ms);
        let Self { times, .. } = self;
        let early = self.inner.early.as_ref().map(|early| early.deadline_ms);
        let lingering = times.lingering.iter().find(|(_, id)| mux.connection.has(*id));
        let lingering = lingering.map(|(deadline, _)| *deadline);
        [times.begun_ms, times.blocked_ms, times.leaving_ms, stalled, idle, early, lingering]
            .into_iter()
            .flatten()
            .min()
    }

    /// A deadline has passed.
    fn on_deadline(&mut self) -> Option<End> {
        let worker = std::rc::Rc::clone(&self.inner.worker);
        let now = worker.clock.now();
        let is_over = |deadline: u64| deadline <= now.steady_ms();
        if self.times.blocked_ms.is_some_and(is_over) {
            worker.counters.timed_out.add(1);
            return Some(End::Gone);
        }
        if let Some(early) = self.inner.early.as_mut().filter(|early| is_over(early.deadline_ms)) {
            early.time_out();
            worker.counters.timed_out.add(1);
            return Some(End::Gone);
        }
        while let Some((_, id)) =
            self.times.lingering.pop_front_if(|(deadline, _)| is_over(*deadline))
        {
            self.mux.borrow_mut().connection.ask_to_stop(id);
        }
        for id in self.stalled(is_over) {
            worker.counters.timed_out.add(1);
            self.mux.borrow_mut().connection.reset(id, ErrorCode::Cancel);
            self.on_reset(id, now);
        }
        let is_idle = self.mux.borrow().connection.open() == 0 && is_over(self.times.idle_ms);
        let mut mux = self.mux.borrow_mut();
        if self.times.leaving_ms.is_some_and(is_over) {
            self.times.leaving_ms = None;
            mux.connection.finish_leaving();
        }
        if self.times.begun_ms.is_some_and(is_over) || is_idle {
            worker.counters.timed_out.add(1);
            mux.connection.finish_leaving();
            self.ends = Some(End::Finished);
            self.times.begun_ms = None;
        }
        None
    }

    /// Streams whose client has had its time.
    fn stalled(&self, is_over: impl Fn(u64) -> bool) -> Vec<StreamId> {
        let mux = self.mux.borrow();
        let is_stalled = |id: &StreamId| mux.deadline(*id).is_some_and(&is_over);
        mux.streams.keys().copied().filter(is_stalled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Now {
        Now { steady_us: ms * 1000, unix_us: 0 }
    }

    #[test]
    fn an_upload_whose_frames_never_end_with_an_arrival_goes_on() {
        let settings = Settings::default();
        let (head, body) = (millis(settings.head_timeout), millis(settings.body_timeout));
        let mut times = Times::begin(at(0), &settings);
        for second in 1..100 {
            times.arrived(at(second * 1000), Unfinished::Content, true, &settings);
            assert_eq!(times.begun_ms, Some(second * 1000 + body));
        }
        times.arrived(at(100_000), Unfinished::Frame, true, &settings);
        assert_eq!(times.begun_ms, Some(100_000 + head));
        times.arrived(at(101_000), Unfinished::Nothing, true, &settings);
        assert_eq!(times.begun_ms, None);
    }

    #[test]
    fn a_head_has_one_deadline() {
        let settings = Settings::default();
        let mut times = Times::begin(at(0), &settings);
        times.arrived(at(1000), Unfinished::Nothing, true, &settings);
        times.arrived(at(2000), Unfinished::Head, true, &settings);
        let deadline = times.begun_ms;
        assert_eq!(deadline, Some(2000 + millis(settings.head_timeout)));
        times.arrived(at(3000), Unfinished::Head, true, &settings);
        times.arrived(at(4000), Unfinished::Frame, false, &settings);
        assert_eq!(times.begun_ms, deadline);
    }
}
