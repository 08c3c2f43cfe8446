//! Which strategy costs less for the load at hand. It reads neither clock nor counter.

/// How a core waits for its sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Asks when an operation may succeed, and then does it.
    #[default]
    Readiness,
    /// Hands operations to the kernel, which reports when they are done.
    Completion,
}

/// Why a core has its strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// It begins so, and no load has spoken against it.
    #[default]
    Start,
    /// The configuration says so.
    Configured,
    /// The ring has failed.
    Lost,
    /// Kept connections, short answers, and several requests at a time.
    BusyKept,
    /// Too few requests on a connection.
    FewRequests,
    /// Too many answers are long, or come from files or helper threads.
    FewHits,
    /// Requests come one at a time.
    OneAtATime,
}

/// The load of a core in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Connections accepted.
    pub(crate) accepted: u64,
    /// How often something was received from a client, or the answer to a short request from a server. Bytes that came
    /// together count once.
    pub(crate) receives: u64,
    /// Requests answered in the deferred-interrupt context, and requests whose exchange with a server was short.
    pub(crate) answered: u64,
    /// The part of `answered` whose exchange with a server was short.
    pub(crate) exchanged: u64,
    /// Answers too long to be gathered, and other requests that left that context. A request can count as both, which
    /// only makes it weigh more.
    pub(crate) others: u64,
    /// How often the core asked the kernel for ready sockets or completed operations: calls of epoll, and of the ring.
    pub(crate) waits: u64,
}

/// Chooses by load. A change takes two periods in a row that ask for it, and a load between the bounds asks for
/// none.
#[derive(Debug, Default)]
pub(crate) struct Chooser {
    strategy: Strategy,
    /// Periods in a row that asked for the other one.
    asked: u32,
}

/// With fewer requests in a period there is nothing to gain, and too little to choose by.
const ENOUGH: u64 = 100;
/// Periods in a row.
const PERSISTENCE: u32 = 2;

/// Requests a connection.
const KEPT: Bounds = Bounds { enter: 8, leave: 3 };
/// Receives a wait. By completion a lone request takes two, one to arrive and one to be answered.
const AT_A_TIME: Bounds = Bounds { enter: 4, leave: 1 };
/// Receives a wait, where most requests go to servers: each takes four calls by readiness, not two, and leaves by two messages, of which
/// those that leave together wake another core once.
const DISTRIBUTED: Bounds = Bounds { enter: 2, leave: 1 };
/// Requests for each one of `others`. A connection with a long answer leaves the ring, and comes back later: with
/// SPECweb96's sizes these are one in eight, and completion costs more.
const HERE: Bounds = Bounds { enter: 16, leave: 10 };

/// A ratio at which completion begins to pay, and one at which it no longer does.
struct Bounds {
    enter: u64,
    leave: u64,
}

impl Chooser {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self { strategy, asked: 0 }
    }

    /// Takes the load of a period into account. Returns the strategy from now on, if it changes, and the reason.
    pub(crate) fn observe(&mut self, load: &Load) -> Option<(Strategy, Reason)> {
        let asked = match self.strategy {
            Strategy::Readiness => load.suits().then_some(Reason::BusyKept),
            Strategy::Completion => load.objection(),
        };
        self.asked = if asked.is_some() { self.asked + 1 } else { 0 };
        let why = asked.filter(|_| self.asked >= PERSISTENCE)?;
        self.asked = 0;
        self.strategy = match self.strategy {
            Strategy::Readiness => Strategy::Completion,
            Strategy::Completion => Strategy::Readiness,
        };
        Some((self.strategy, why))
    }
}

impl Load {
    fn requests(&self) -> u64 {
        self.answered + self.others
    }

    fn at_a_time(&self) -> &'static Bounds {
        match 2 * self.exchanged > self.requests() {
            true => &DISTRIBUTED,
            false => &AT_A_TIME,
        }
    }

    /// Whether completion pays.
    fn suits(&self) -> bool {
        let requests = self.requests();
        requests >= ENOUGH
            && requests >= KEPT.enter * self.accepted
            && self.receives >= self.at_a_time().enter * self.waits
            && requests >= HERE.enter * self.others
    }

    /// Why it does not.
    fn objection(&self) -> Option<Reason> {
        let requests = self.requests();
        if requests < ENOUGH {
            None
        } else if requests < KEPT.leave * self.accepted {
            Some(Reason::FewRequests)
        } else if requests < HERE.leave * self.others {
            Some(Reason::FewHits)
        } else if self.receives <= self.at_a_time().leave * self.waits {
            Some(Reason::OneAtATime)
        } else {
            None
        }
    }
}

impl Strategy {
    /// Both strategies.
    pub const ALL: [Strategy; 2] = [Strategy::Readiness, Strategy::Completion];

    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Readiness => "readiness",
            Self::Completion => "completion",
        }
    }
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 7] = [
        Reason::Start,
        Reason::Configured,
        Reason::Lost,
        Reason::BusyKept,
        Reason::FewRequests,
        Reason::FewHits,
        Reason::OneAtATime,
    ];

    /// Its name in statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Configured => "configured",
            Self::Lost => "ring_lost",
            Self::BusyKept => "busy_kept",
            Self::FewRequests => "few_requests",
            Self::FewHits => "few_hits",
            Self::OneAtATime => "one_at_a_time",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Load = Load {
        accepted: 0,
        receives: 10_000,
        answered: 10_000,
        exchanged: 0,
        others: 0,
        waits: 100,
    };

    fn completing() -> Chooser {
        Chooser::new(Strategy::Completion)
    }

    #[test]
    fn a_busy_core_with_kept_connections_changes_after_two_periods() {
        let mut chooser = Chooser::new(Strategy::Readiness);
        assert_eq!(chooser.observe(&BUSY), None);
        assert_eq!(chooser.observe(&BUSY), Some((Strategy::Completion, Reason::BusyKept)));
        assert_eq!(chooser.observe(&BUSY), None, "once");
    }

    #[test]
    fn one_period_that_differs_changes_nothing() {
        let mut chooser = Chooser::new(Strategy::Readiness);
        for _ in 0..5 {
            assert_eq!(chooser.observe(&BUSY), None);
            assert_eq!(chooser.observe(&Load { accepted: 10_000, ..BUSY }), None);
        }
        let mut chooser = completing();
        for _ in 0..5 {
            assert_eq!(chooser.observe(&Load { accepted: 10_000, ..BUSY }), None);
            assert_eq!(chooser.observe(&BUSY), None);
        }
    }

    #[test]
    fn each_load_that_completion_does_not_suit_ends_it_with_its_reason() {
        for (load, why) in [
            (Load { accepted: 9_000, ..BUSY }, Reason::FewRequests),
            (Load { answered: 5_000, others: 5_000, ..BUSY }, Reason::FewHits),
            (Load { waits: 10_000, ..BUSY }, Reason::OneAtATime),
            // One client that sends many requests at once.
            (Load { receives: 100, ..BUSY }, Reason::OneAtATime),
        ] {
            let mut chooser = completing();
            assert_eq!(chooser.observe(&load), None);
            assert_eq!(chooser.observe(&load), Some((Strategy::Readiness, why)));
        }
    }

    #[test]
    fn a_load_between_the_bounds_keeps_either_strategy() {
        for load in [
            Load { accepted: 2_000, ..BUSY },
            Load { waits: 5_000, ..BUSY },
            Load { answered: 9_200, others: 800, ..BUSY },
        ] {
            for mut chooser in [completing(), Chooser::new(Strategy::Readiness)] {
                assert!((0..10).all(|_| chooser.observe(&load).is_none()), "{load:?}");
            }
        }
    }

    #[test]
    fn fewer_at_a_time_are_enough_where_servers_answer() {
        let load = Load { receives: 20_000, waits: 8_000, ..BUSY };
        let mut hits = Chooser::new(Strategy::Readiness);
        assert!((0..10).all(|_| hits.observe(&load).is_none()));
        let load = Load { exchanged: 6_000, ..load };
        let mut distributed = Chooser::new(Strategy::Readiness);
        assert_eq!(distributed.observe(&load), None);
        assert_eq!(distributed.observe(&load), Some((Strategy::Completion, Reason::BusyKept)));
        // Two clients, which seldom meet.
        let load = Load { receives: 20_000, waits: 15_000, exchanged: 10_000, ..BUSY };
        for mut chooser in [completing(), Chooser::new(Strategy::Readiness)] {
            assert!((0..10).all(|_| chooser.observe(&load).is_none()));
        }
    }

    #[test]
    fn an_idle_core_keeps_its_strategy() {
        let idle =
            Load { accepted: 10, receives: 20, answered: 20, exchanged: 0, others: 0, waits: 30 };
        for mut chooser in [completing(), Chooser::new(Strategy::Readiness)] {
            assert!((0..10).all(|_| chooser.observe(&idle).is_none()));
        }
    }
}
