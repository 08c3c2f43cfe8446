//! How a core waits for its sockets: by *readiness* or by *completion*.
//!
//! With readiness (epoll) the core asks when an operation may succeed, and then does it. With completion (io_uring)
//! it hands operations to the kernel, which reports when they are done: fewer system calls for connections that are
//! kept, if many of them are ready at a time. `docs/decisions/completion.md` has the figures.

mod strategy;

use std::io;
use std::sync::Arc;

use afpa_ring::{CoreRing, PreparedRing, Ring};

use crate::counters::WorkerCounters;

pub(crate) use strategy::{Chooser, Load};
pub use strategy::{Reason, Strategy};

/// Which strategy the workers are to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Each worker takes the strategy that its load suggests, and changes with it.
    #[default]
    Auto,
    /// Always readiness.
    Readiness,
    /// Completion for all operations that it can do.
    Completion,
}

/// Why a connection left the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The worker has another strategy now.
    Strategy,
    /// An answer that is too long to be gathered: from a file, from where it is pinned, or from a server; or a tunnel.
    LongAnswer,
    /// The client sends more at a time than may wait in the ring.
    HeldBack,
    /// The client does not take its answer at once.
    SlowClient,
    /// The ring was out of buffers, or the kernel refused an operation.
    Refused,
}

impl Leaving {
    /// All reasons.
    pub const ALL: [Leaving; 5] = [
        Leaving::Strategy,
        Leaving::LongAnswer,
        Leaving::HeldBack,
        Leaving::SlowClient,
        Leaving::Refused,
    ];

    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strategy => "strategy",
            Self::LongAnswer => "long_answer",
            Self::HeldBack => "held_back",
            Self::SlowClient => "slow_client",
            Self::Refused => "refused",
        }
    }
}

/// The rings of the workers. They are made while the process has its privileges: some systems demand these for a ring.
#[derive(Debug, Default)]
pub struct Rings {
    prepared: Vec<PreparedRing>,
    /// Why there are none.
    refused: Option<io::Error>,
}

impl Rings {
    /// Makes a ring for each worker, unless `io` does without them. None at all if one cannot be made.
    pub fn prepare(workers: usize, io: Io) -> Self {
        if io == Io::Readiness {
            return Self::default();
        }
        let made = |_| PreparedRing::new(&afpa_ring::Settings::default());
        match (0..workers.max(1)).map(made).collect() {
            Ok(prepared) => Self { prepared, refused: None },
            Err(error) => Self { prepared: Vec::new(), refused: Some(error) },
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.prepared.is_empty()
    }

    /// Why there are none, if they were wanted.
    pub fn refused(&self) -> Option<&io::Error> {
        self.refused.as_ref()
    }

    pub(crate) fn take(&mut self) -> Option<PreparedRing> {
        self.prepared.pop()
    }
}

/// The strategy of a core, for its connections.
pub(crate) struct WorkerIo {
    ring: CoreRing,
    counters: Arc<WorkerCounters>,
}

impl WorkerIo {
    pub(crate) fn new(ring: CoreRing, counters: Arc<WorkerCounters>) -> Self {
        Self { ring, counters }
    }

    /// Whether connections enter the ring now.
    pub(crate) fn completes(&self) -> bool {
        self.ring.is_used()
    }

    pub(crate) fn ring(&self) -> Option<Ring> {
        self.ring.ring()
    }

    pub(crate) fn strategy(&self) -> Strategy {
        if self.completes() { Strategy::Completion } else { Strategy::Readiness }
    }

    /// Takes a strategy from now on. Connections follow when they wait for their next request.
    pub(crate) fn take(&self, wanted: Strategy, why: Reason) {
        let before = self.strategy();
        self.ring.set_used(wanted == Strategy::Completion);
        let taken = self.strategy();
        if before != taken {
            self.counters.strategy_changes(why).add(1);
            self.counters.strategy.set(taken, why);
        }
    }

    /// Nothing that is under way in the ring will be done.
    pub(crate) fn lose_ring(&self) {
        self.take(Strategy::Readiness, Reason::Lost);
        self.ring.lose();
    }

    pub(crate) fn entered(&self) {
        self.counters.in_ring.add(1);
        self.counters.entered_ring.add(1);
    }

    pub(crate) fn closed(&self) {
        self.counters.in_ring.sub(1);
    }

    pub(crate) fn left(&self, why: Leaving) {
        self.counters.in_ring.sub(1);
        self.counters.left_ring(why).add(1);
    }
}
