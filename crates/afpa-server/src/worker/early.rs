//! A handshake that is not complete while the early data of its client is answered (0-RTT; RFC 8446, section 2.3).

use std::rc::Rc;

use afpa_framework::{Module, Secured};
use afpa_tls::{Facts, Failure, Reason};

use super::Worker;
use crate::limits::Admission;

/// The handshake of a connection, or of the connection of a stream.
pub(crate) struct Early<M: Module> {
    /// Steady milliseconds by which the handshake has to be complete.
    pub(crate) deadline_ms: u64,
    facts: Facts,
    /// `None`: the connection of the stream counts it.
    counted: Option<Counted<M>>,
}

/// It counts against the limits of handshakes, and has their time.
struct Counted<M: Module> {
    worker: Rc<Worker<M>>,
    _place: Admission,
    /// The failure of the handshake that is counted if the connection ends now; `None`: the handshake is complete.
    failure: Option<Reason>,
}

impl<M: Module> Early<M> {
    pub(super) fn new(
        worker: &Rc<Worker<M>>,
        place: Admission,
        deadline_ms: u64,
        facts: Facts,
    ) -> Box<Self> {
        worker.counters.tls.in_progress.add(1);
        let (worker, failure) = (Rc::clone(worker), Some(Reason::Gone));
        let counted = Some(Counted { worker, _place: place, failure });
        Box::new(Self { deadline_ms, facts, counted })
    }

    /// For a stream of a connection with these facts, which is not complete.
    pub(crate) fn of_stream(deadline_ms: u64, facts: Facts) -> Box<Self> {
        Box::new(Self { deadline_ms, facts, counted: None })
    }

    /// The facts known of the connection so far.
    pub(super) fn so_far(&self) -> Rc<Secured> {
        Rc::new(secured(self.facts.clone(), true))
    }

    /// The handshake is complete: nothing that has arrived can be a replay any more.
    pub(crate) fn complete(mut self) -> Rc<Secured> {
        if let Some(counted) = &mut self.counted {
            counted.failure = None;
            counted.worker.counters.tls.complete(&self.facts);
        }
        Rc::new(secured(self.facts.clone(), false))
    }

    pub(crate) fn time_out(&mut self) {
        self.note(Reason::TimedOut);
    }

    /// The transport has failed.
    pub(crate) fn fail(&mut self, error: &std::io::Error) {
        let failure = error.get_ref().and_then(|error| error.downcast_ref::<Failure>());
        self.note(failure.map_or(Reason::Gone, |failure| failure.reason));
    }

    fn note(&mut self, why: Reason) {
        if let Some(counted) = &mut self.counted {
            counted.failure = Some(why);
        }
    }
}

impl<M: Module> Drop for Counted<M> {
    fn drop(&mut self) {
        self.worker.counters.tls.in_progress.sub(1);
        if let Some(reason) = self.failure {
            self.worker.counters.tls.failed(reason).add(1);
        }
    }
}

/// The facts of a handshake, as the module gets them.
pub(crate) fn secured(facts: Facts, is_early: bool) -> Secured {
    let Facts { version, cipher, resumed, protocol, peer, authorities, early_data: _ } = facts;
    let authorities = authorities.map(|id| id.0);
    Secured { version, cipher, resumed, protocol, subject: peer, authorities, is_early }
}
