//! Purges of clients on their way to a fleet. A reload may put another fleet in its place: those that come meanwhile wait for that one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_shared_cache::{Cause, PassOn, Purge};

/// Purges that wait for a fleet at most. Behind these, everything is dropped everywhere.
const MOST: usize = 10_000;

/// The place where they go.
#[derive(Clone, Default)]
pub(super) struct Outgoing(Arc<Mutex<To>>);

#[derive(Default)]
enum To {
    /// There is no fleet.
    #[default]
    Nobody,
    /// One ends, and the next one gets these.
    Next(Vec<(Purge, Cause)>),
    Fleet(PassOn),
}

impl Outgoing {
    /// Takes them from the shared cache.
    pub(super) fn pass_on(&self) -> PassOn {
        let outgoing = self.clone();
        Arc::new(move |what: &Purge, cause: Cause| match &mut *outgoing.to() {
            To::Next(waiting) if waiting.len() < MOST => waiting.push((what.clone(), cause)),
            To::Nobody | To::Next(_) => {}
            To::Fleet(pass_on) => pass_on(what, cause),
        })
    }

    /// The fleet ends, and another one is going to take its place.
    pub(super) fn wait(&self) {
        *self.to() = To::Next(Vec::new());
    }

    /// They go to this fleet from now on, those first that have waited; `None`: there is none.
    pub(super) fn go_to(&self, fleet: Option<PassOn>) {
        let mut to = self.to();
        if let (To::Next(waiting), Some(pass_on)) = (&*to, &fleet) {
            match waiting.len() < MOST {
                true => waiting.iter().for_each(|(what, cause)| pass_on(what, *cause)),
                false => pass_on(&everything(), Cause::Ordered { soft: false }),
            }
        }
        *to = fleet.map_or(To::Nobody, To::Fleet);
    }

    /// Whether one ends, and the next one is not there yet.
    pub(super) fn waits(&self) -> bool {
        matches!(*self.to(), To::Next(_))
    }

    fn to(&self) -> MutexGuard<'_, To> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn everything() -> Purge {
    Purge::Prefix { host: None, path: b"/".to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Got = Arc<Mutex<Vec<(Purge, Cause)>>>;

    fn fleet() -> (Got, PassOn) {
        let got = Got::default();
        let gets = Arc::clone(&got);
        let pass_on = move |what: &Purge, cause: Cause| {
            gets.lock().expect("no panic").push((what.clone(), cause));
        };
        (got, Arc::new(pass_on))
    }

    fn tags(got: &Got) -> Vec<Purge> {
        got.lock().expect("no panic").iter().map(|(what, _)| what.clone()).collect()
    }

    #[test]
    fn those_that_come_while_no_fleet_is_there_go_to_the_next_one() {
        let outgoing = Outgoing::default();
        let take = outgoing.pass_on();
        let tag = |name: &str| Purge::Tag(name.as_bytes().to_vec());
        let soft = Cause::Ordered { soft: true };
        let ((first, to_first), (next, to_next), (last, to_last)) = (fleet(), fleet(), fleet());
        take(&tag("nobody"), soft);
        outgoing.go_to(Some(to_first));
        take(&tag("a"), soft);
        outgoing.wait();
        take(&tag("b"), Cause::Changed);
        assert_eq!((outgoing.waits(), tags(&first)), (true, vec![tag("a")]));
        outgoing.go_to(Some(to_next));
        take(&tag("c"), soft);
        assert!(!outgoing.waits());
        assert_eq!(*next.lock().expect("no panic"), [(tag("b"), Cause::Changed), (tag("c"), soft)]);
        outgoing.wait();
        (0..=MOST).for_each(|_| take(&tag("d"), soft));
        outgoing.go_to(Some(to_last));
        assert_eq!(tags(&last), [everything()]);
        outgoing.wait();
        outgoing.go_to(None);
        take(&tag("nobody"), soft);
        assert_eq!((tags(&first).len(), tags(&next).len(), tags(&last).len()), (1, 2, 1));
    }
}
