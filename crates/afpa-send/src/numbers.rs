//! The whole state as numbers: how a program for the kernel is held against the model.

use crate::flight::{Flight, Probe, Recovery, Timer};

impl Flight {
    /// Every field, in an order that whoever compares knows too. What is without meaning at the moment
    /// is zero.
    pub fn numbers(&self) -> Vec<u64> {
        let (recovery, until) = match self.recovery {
            Recovery::Open => (0, 0),
            Recovery::Fast(until) => (1, until),
            Recovery::Slow(until) => (2, until),
        };
        let (probe, probe_segment) = match self.probe {
            Probe::None => (0, 0),
            Probe::Due => (1, 0),
            Probe::Fresh => (2, 0),
            Probe::Repeated(segment) => (3, segment),
        };
        let timer = match self.timer {
            Timer::None => 0,
            Timer::Reorder => 1,
            Timer::Probe => 2,
            Timer::Repeat => 3,
            Timer::Persist => 4,
        };
        let sent_at = |segment: u8| u64::from(self.sent_at[usize::from(segment & 127)]);
        let path = &self.path;
        let times = [self.deadline().unwrap_or(0), self.base, self.progress, path.used];
        let trips = [path.rtt.smoothed, path.rtt.variation, path.rtt.shortest].map(u64::from);
        let window = [path.window, path.threshold].map(u64::from);
        let reordering = [path.reordering.into(), path.patience, path.persist].map(u64::from);
        let sets = [self.sacked, self.lost, self.again].map(|set| set.words());
        let bytes = [self.length, self.unit, self.una, self.edge].map(u64::from);
        let newest = [self.newest.sent_at, self.newest.round_trip].map(u64::from);
        let shorts = [path.credit, self.peak].map(u64::from);
        let undo = [path.undo.window, path.undo.threshold, path.undo.open].map(u64::from);
        let small = [
            self.count,
            self.next,
            self.front,
            self.newest.known.into(),
            self.newest.segment,
            recovery,
            until,
            self.urgent.into(),
            probe,
            probe_segment,
            self.asking.into(),
            timer,
            self.backoff,
            path.reduced.into(),
            self.reduced_until,
            self.patient_until,
            self.narrow.into(),
        ];
        let stamps = [sent_at(0), sent_at(self.next), sent_at(self.next.wrapping_sub(1))];
        let parts: [&[u64]; 10] = [
            &times,
            &trips,
            &window,
            &reordering,
            sets.as_flattened(),
            &bytes,
            &newest,
            &shorts,
            &undo,
            &small.map(u64::from),
        ];
        parts.into_iter().flatten().chain(&stamps).copied().collect()
    }
}
