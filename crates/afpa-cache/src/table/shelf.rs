//! One of the two policies of the table: over pinned objects, or over file-system objects.

use crate::policy::auto::Auto;
use crate::policy::replay::Request;
use crate::policy::{Judge, Newcomer, ObjectId, Policy, PolicyKind, PolicySetting, Trace};

/// A policy, as it is chosen.
pub(super) enum Shelf {
    Fixed(PolicyKind, Box<dyn Policy>),
    Auto(Box<Auto>, Option<Judge>),
}

impl Shelf {
    /// For a room of `capacity`, of which `kept_percent` is for objects that are kept always.
    pub(super) fn new(setting: PolicySetting, capacity: u64, kept_percent: usize) -> Shelf {
        let percent = kept_percent.min(90) as u64;
        let kept_room = capacity / 100 * percent + capacity % 100 * percent / 100;
        match setting {
            PolicySetting::Fixed(kind) => Shelf::Fixed(kind, kind.build_hinted(kept_room)),
            PolicySetting::Auto => {
                let (auto, judge) = Auto::with_judge(PolicyKind::default(), capacity, kept_room);
                Shelf::Auto(Box::new(auto), Some(judge))
            }
        }
    }

    /// The policy in use.
    pub(super) fn kind(&self) -> PolicyKind {
        match self {
            Shelf::Fixed(kind, _) => *kind,
            Shelf::Auto(auto, _) => auto.kind(),
        }
    }

    /// The judge, for the thread that asks it; once.
    pub(super) fn take_judge(&mut self) -> Option<Judge> {
        match self {
            Shelf::Fixed(..) => None,
            Shelf::Auto(_, judge) => judge.take(),
        }
    }

    /// The requests since the last time, for the judge.
    pub(super) fn take_trace(&mut self, empty: Vec<Request>) -> Option<Trace> {
        match self {
            Shelf::Fixed(..) => None,
            Shelf::Auto(auto, _) => Some(auto.take_trace(empty)),
        }
    }

    /// Carries out a decision of the judge.
    pub(super) fn switch(&mut self, kind: PolicyKind) {
        if let Shelf::Auto(auto, _) = self {
            auto.switch(kind);
        }
    }

    fn policy(&mut self) -> &mut dyn Policy {
        match self {
            Shelf::Fixed(_, policy) => policy,
            Shelf::Auto(auto, _) => &mut **auto,
        }
    }

    fn policy_ref(&self) -> &dyn Policy {
        match self {
            Shelf::Fixed(_, policy) => policy,
            Shelf::Auto(auto, _) => &**auto,
        }
    }
}

impl Policy for Shelf {
    fn insert(&mut self, newcomer: Newcomer) {
        self.policy().insert(newcomer);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        self.policy().touch(id, count);
    }

    fn remove(&mut self, id: ObjectId) {
        self.policy().remove(id);
    }

    fn victim(&mut self, needed: u64) -> Option<ObjectId> {
        self.policy().victim(needed)
    }

    fn last_resort(&mut self) -> Option<ObjectId> {
        self.policy().last_resort()
    }

    fn len(&self) -> usize {
        self.policy_ref().len()
    }

    fn check_invariants(&self) {
        self.policy_ref().check_invariants();
    }
}
