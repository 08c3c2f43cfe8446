//! Certificates on demand: a client asks for a name that may have one, and waits while it is ordered.
//!
//! Clients are strangers, so a name must be on the list of the operator, and there are bounds for how many certificates
//! there are, and for how many new ones are ordered in an hour: authorities have limits of their own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::due::pause_after;

/// For which names certificates are ordered on demand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnDemand {
    /// In lower case. `*.example.org` stands for every name with one label more.
    pub names: Vec<String>,
    /// Certificates at most.
    pub most: usize,
    /// New ones within an hour.
    pub per_hour: usize,
}

impl OnDemand {
    /// Whether a name, in lower case, is on the list.
    pub fn allows(&self, name: &str) -> bool {
        let parent = name.find('.').and_then(|dot| name.get(dot..));
        self.names.iter().any(|allowed| match allowed.strip_prefix('*') {
            Some(rest) => Some(rest) == parent && !name.starts_with('.'),
            None => allowed == name,
        })
    }
}

/// The instruction for a connection whose client asks for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A certificate is there, or has been ordered: wait until it is loaded.
    Wait,
    /// No certificate will come for now: go on without one.
    GoOn,
}

/// The names that clients have asked for, shared between the server and the manager.
#[derive(Clone, Debug, Default)]
pub struct Demand(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    /// The manager has something to do.
    asked: Notify,
    /// A certificate has come, or is not going to.
    settled: Notify,
}

#[derive(Debug, Default)]
struct State {
    settings: OnDemand,
    names: BTreeMap<String, Name>,
    /// When new ones were ordered within the last hour.
    ordered: VecDeque<u64>,
    /// A warning that the limits are reached has been logged.
    told: bool,
}

/// How it stands with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// A client waits for its certificate. Its order has failed so many times in a row.
    Wanted { failures: u32 },
    /// It has a certificate. `asked`: a client has asked for the name since that was issued.
    Here { asked: bool },
    /// Its order has failed so many times in a row. It is not tried again before this second.
    Failed { times: u32, until: u64 },
}

const HOUR: u64 = 3600;

/// How long a failure is remembered behind the time at which it may be tried again.
const MEMORY: u64 = 24 * HOUR;

impl Demand {
    /// Applies new settings. Names that they no longer allow are forgotten.
    pub fn set(&self, settings: &OnDemand) {
        let mut state = self.state();
        state.settings = settings.clone();
        state.names.retain(|name, _| settings.allows(name));
    }

    /// A client asks for a name, in lower case, that has a certificate: if it was ordered on demand, it is in use.
    pub fn note(&self, name: &str) {
        if let Some(Name::Here { asked }) = self.state().names.get_mut(name) {
            *asked = true;
        }
    }

    /// A client asks for a name, in lower case, that has no certificate, at this second.
    pub fn ask(&self, name: &str, now: u64) -> Answer {
        let mut guard = self.state();
        let state = &mut *guard;
        match state.names.get(name) {
            Some(Name::Wanted { .. } | Name::Here { .. }) => return Answer::Wait,
            Some(Name::Failed { until, .. }) if now < *until => return Answer::GoOn,
            Some(Name::Failed { .. }) => {}
            None if state.settings.allows(name) => {}
            None => return Answer::GoOn,
        }
        if !state.has_room(name, now) {
            return Answer::GoOn;
        }
        state.ordered.push_back(now);
        let failures = state.failures(name);
        state.names.insert(name.to_owned(), Name::Wanted { failures });
        drop(guard);
        self.0.asked.notify_one();
        Answer::Wait
    }

    /// The names that have a certificate on demand.
    pub fn names(&self) -> Vec<String> {
        self.those(|name| matches!(name, Name::Here { .. }))
    }

    /// Waits until a certificate has come, or is not going to.
    pub async fn settled(&self) {
        self.0.settled.notified().await;
    }

    /// Waits until a client asks for another name.
    pub(crate) async fn asked(&self) {
        self.0.asked.notified().await;
    }

    /// The names for whose certificates clients wait.
    pub(crate) fn wanted(&self) -> Vec<String> {
        self.those(|name| matches!(name, Name::Wanted { .. }))
    }

    /// Whether a client has asked for the name since its certificate was issued.
    pub(crate) fn is_in_use(&self, name: &str) -> bool {
        matches!(self.state().names.get(name), Some(Name::Here { asked: true }))
    }

    /// Its certificate has been issued, or was there.
    pub(crate) fn is_here(&self, name: &str) {
        self.state().names.insert(name.to_owned(), Name::Here { asked: false });
        self.0.settled.notify_one();
    }

    /// Its order has failed at this second. Until the next one there is a pause, which grows with each failure.
    pub(crate) fn has_failed(&self, name: &str, now: u64) {
        let mut state = self.state();
        let times = state.failures(name).saturating_add(1);
        let until = now.saturating_add(pause_after(times, 0).as_secs());
        state.names.insert(name.to_owned(), Name::Failed { times, until });
        drop(state);
        self.0.settled.notify_one();
    }

    /// The name's certificate has expired, and no client asks for it.
    pub(crate) fn forget(&self, name: &str) {
        self.state().names.remove(name);
        self.0.settled.notify_one();
    }

    fn those(&self, which: impl Fn(&Name) -> bool) -> Vec<String> {
        let state = self.state();
        state.names.iter().filter(|(_, is)| which(is)).map(|(name, _)| name.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether another certificate may be ordered.
    fn has_room(&mut self, name: &str, now: u64) -> bool {
        self.ordered.retain(|at| now < at.saturating_add(HOUR));
        self.names.retain(|_, is| match is {
            Name::Failed { until, .. } => now < until.saturating_add(MEMORY),
            Name::Wanted { .. } | Name::Here { .. } => true,
        });
        let held = self.names.values().filter(|is| !matches!(is, Name::Failed { .. })).count();
        let (most, per_hour) = (self.settings.most, self.settings.per_hour);
        let has_room = held < most && self.ordered.len() < per_hour;
        if !has_room && !self.told {
            tracing::warn!(
                "no certificate is ordered for {name}: there are {held} on demand of at most {most} ([acme] \
                 on_demand_limit), and {} were ordered within the hour of at most {per_hour}",
                self.ordered.len()
            );
        }
        self.told = !has_room;
        has_room
    }

    /// How often its order has failed in a row.
    fn failures(&self, name: &str) -> u32 {
        match self.names.get(name) {
            Some(Name::Failed { times, .. } | Name::Wanted { failures: times }) => *times,
            Some(Name::Here { .. }) | None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(names: &[&str], most: usize, per_hour: usize) -> Demand {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let demand = Demand::default();
        demand.set(&OnDemand { names, most, per_hour });
        demand
    }

    #[test]
    fn the_list_decides_and_a_star_is_one_label() {
        let demand = demand(&["a.test", "*.b.test"], 100, 100);
        for name in ["a.test", "x.b.test", "y.b.test"] {
            assert_eq!(demand.ask(name, 0), Answer::Wait, "{name}");
            assert_eq!(demand.ask(name, 0), Answer::Wait, "{name}: it is on its way");
        }
        for name in ["b.test", ".b.test", "x.y.b.test", "x.a.test", "test", "", "a.test."] {
            assert_eq!(demand.ask(name, 0), Answer::GoOn, "{name}");
        }
        assert_eq!(demand.wanted(), ["a.test", "x.b.test", "y.b.test"]);
    }

    #[test]
    fn there_are_so_many_and_no_more() {
        let demand = demand(&["*.a.test"], 2, 100);
        assert_eq!(demand.ask("x.a.test", 0), Answer::Wait);
        demand.is_here("x.a.test");
        assert_eq!(demand.ask("y.a.test", 0), Answer::Wait);
        assert_eq!(demand.ask("z.a.test", 0), Answer::GoOn);
        demand.forget("x.a.test");
        assert_eq!(demand.ask("z.a.test", 0), Answer::Wait);
    }

    #[test]
    fn so_many_are_ordered_within_an_hour_whether_they_come_or_not() {
        let demand = demand(&["*.a.test"], 100, 2);
        assert_eq!(demand.ask("x.a.test", 0), Answer::Wait);
        demand.has_failed("x.a.test", 0);
        assert_eq!(demand.ask("x.a.test", 59), Answer::GoOn, "it has failed just now");
        assert_eq!(demand.ask("x.a.test", 60), Answer::Wait);
        demand.has_failed("x.a.test", 60);
        assert_eq!(demand.ask("x.a.test", 179), Answer::GoOn, "the pause grows");
        assert_eq!(demand.ask("y.a.test", HOUR - 1), Answer::GoOn);
        assert_eq!(demand.ask("y.a.test", HOUR), Answer::Wait);
    }

    #[test]
    fn who_is_here_is_in_use_when_somebody_asks() {
        let demand = demand(&["a.test"], 1, 1);
        demand.is_here("a.test");
        assert!(!demand.is_in_use("a.test"));
        assert_eq!(demand.ask("a.test", 0), Answer::Wait, "it is not loaded yet");
        demand.note("a.test");
        demand.note("b.test");
        assert!(demand.is_in_use("a.test"));
        demand.is_here("a.test");
        assert!(!demand.is_in_use("a.test"), "it has another certificate");
    }

    #[test]
    fn what_is_not_allowed_any_more_is_forgotten() {
        let demand = demand(&["a.test", "b.test"], 10, 10);
        demand.is_here("a.test");
        demand.is_here("b.test");
        demand.set(&OnDemand { names: vec!["a.test".to_owned()], most: 10, per_hour: 10 });
        assert_eq!(demand.names(), ["a.test"]);
    }

    #[test]
    fn failures_are_forgotten_in_time() {
        let demand = demand(&["*.a.test"], 10, 1000);
        for n in 0..50 {
            let name = format!("x{n}.a.test");
            assert_eq!(demand.ask(&name, 0), Answer::Wait);
            demand.has_failed(&name, 0);
        }
        assert_eq!(demand.state().names.len(), 50);
        assert_eq!(demand.ask("y.a.test", 60 + MEMORY), Answer::Wait);
        assert_eq!(demand.state().names.len(), 1);
    }
}
