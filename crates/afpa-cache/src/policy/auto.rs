//! The policy that changes: it is always the one that the [`Judge`] finds best.

use super::identity::ByPlace;
use super::judge::Judge;
use super::replay::{Replay, ReplayResult, Request};
use super::s3_fifo::counted;
use super::trace::{Recorder, Trace};
use super::{Family, Hint, Keep, Newcomer, ObjectId, Policy, PolicyKind};

pub use super::judge::{Change, Standing};

/// A policy that can be changed for another one, and records the requests by which policies are judged.
///
/// After a change the objects move to the new policy few at a time, beginning with those that the former one would
/// eject first. So no operation takes long, and objects ejected meanwhile are those that both would have ejected soon.
pub struct Auto {
    kind: PolicyKind,
    kept_room: u64,
    policy: Box<dyn Policy>,
    former: Option<Box<dyn Policy>>,
    members: ByPlace<Member>,
    recorder: Recorder,
}

/// An object as it came, as far as it matters to policies. There are as many as objects, so it is small.
struct Member {
    size: u32,
    fingerprint: u32,
    family: Family,
    keep: Keep,
    weight: u8,
    /// Recent uses, for a policy that does not know them.
    uses: u8,
}

impl Member {
    fn new(newcomer: Newcomer) -> Member {
        let Newcomer { size, fingerprint, family, hint, .. } = newcomer;
        let Hint { keep, weight, .. } = hint;
        Member { size: counted(size), fingerprint, family, keep, weight, uses: 0 }
    }

    fn newcomer(&self, id: ObjectId) -> Newcomer {
        let Member { size, fingerprint, family, keep, weight, .. } = *self;
        let hint = Hint { keep, weight, expiry: None };
        Newcomer { id, size: size.into(), fingerprint, family, hint }
    }
}

/// Objects that one operation moves from the former policy to the new one.
const MOVED_AT_ONCE: usize = 32;
/// Most earlier uses of an object that a new policy gets as touches.
const USES_TOLD: u8 = 8;

impl Auto {
    /// An empty policy that begins as `kind`, and the judge for it. Both have a room of `capacity`, `kept_room` of it
    /// for objects that are kept always.
    pub fn with_judge(kind: PolicyKind, capacity: u64, kept_room: u64) -> (Auto, Judge) {
        let auto = Auto {
            kind,
            kept_room,
            policy: kind.build_hinted(kept_room),
            former: None,
            members: ByPlace::default(),
            recorder: Recorder::default(),
        };
        (auto, Judge::new(kind, capacity, kept_room))
    }

    /// The policy in use.
    pub fn kind(&self) -> PolicyKind {
        self.kind
    }

    /// Uses another policy from now on.
    pub fn switch(&mut self, kind: PolicyKind) {
        while self.former.is_some() {
            self.move_some();
        }
        self.kind = kind;
        let former = std::mem::replace(&mut self.policy, kind.build_hinted(self.kept_room));
        self.former = Some(former);
    }

    /// The trace since the last call, for [`Judge::observe`]. `empty`: memory of an earlier trace, or none.
    pub fn take_trace(&mut self, empty: Vec<Request>) -> Trace {
        self.recorder.take(empty)
    }

    fn record(&mut self, newcomer: &Newcomer, count: u32) {
        let Newcomer { size, fingerprint, family, hint, .. } = *newcomer;
        let key = fingerprint.into();
        self.recorder.note(Request { key, size, count, family, hint }, self.members.len());
    }

    fn move_some(&mut self) {
        for _ in 0..MOVED_AT_ONCE {
            let Some(former) = &mut self.former else { return };
            let Some(id) = former.last_resort() else {
                self.former = None;
                return;
            };
            let Some(member) = self.members.get_mut(id) else { continue };
            self.policy.insert(member.newcomer(id));
            let uses = member.uses.min(USES_TOLD);
            member.uses /= 2;
            if uses > 0 {
                self.policy.touch(id, uses.into());
            }
        }
    }
}

impl Policy for Auto {
    fn insert(&mut self, newcomer: Newcomer) {
        self.move_some();
        self.record(&newcomer, 1);
        self.members.insert(newcomer.id, Member::new(newcomer));
        self.policy.insert(newcomer);
    }

    fn touch(&mut self, id: ObjectId, count: u32) {
        self.move_some();
        let Some(member) = self.members.get_mut(id) else { return };
        member.uses = member.uses.saturating_add(u8::try_from(count).unwrap_or(u8::MAX));
        let newcomer = member.newcomer(id);
        self.record(&newcomer, count);
        // Only one policy has the object, and the other one ignores it.
        self.policy.touch(id, count);
        if let Some(former) = &mut self.former {
            former.touch(id, count);
        }
    }

    fn remove(&mut self, id: ObjectId) {
        self.members.remove(id);
        self.policy.remove(id);
        if let Some(former) = &mut self.former {
            former.remove(id);
        }
    }

    fn victim(&mut self, needed: u64) -> Option<ObjectId> {
        self.move_some();
        let former = |auto: &mut Auto| auto.former.as_mut()?.victim(needed);
        let id = self.policy.victim(needed).or_else(|| former(self))?;
        self.members.remove(id);
        Some(id)
    }

    fn last_resort(&mut self) -> Option<ObjectId> {
        while self.former.is_some() {
            self.move_some();
        }
        let id = self.policy.last_resort()?;
        self.members.remove(id);
        Some(id)
    }

    fn len(&self) -> usize {
        self.members.len()
    }

    fn check_invariants(&self) {
        let former = self.former.as_ref().map_or(0, |former| former.len());
        assert_eq!(self.members.len(), self.policy.len() + former);
        self.policy.check_invariants();
        if let Some(former) = &self.former {
            former.check_invariants();
        }
    }
}

/// As [`replay`](super::replay::replay), with `first` until [`Judge`], asked after each `period` requests, finds a better
/// policy. Gives the changes, too, each with the number of requests before it.
pub fn replay_auto(
    first: PolicyKind,
    capacity: u64,
    trace: &[Request],
    period: usize,
) -> (ReplayResult, Vec<(usize, Change)>) {
    let mut changes = Vec::new();
    let (auto, mut judge) = Auto::with_judge(first, capacity, 0);
    let mut replay = Replay::new(auto, capacity);
    for (number, request) in (1..).zip(trace) {
        replay.serve(request);
        if number % period.max(1) == 0 {
            judge.observe(&replay.policy.take_trace(Vec::new()));
            if let Some(change) = judge.decide() {
                replay.policy.switch(change.to);
                changes.push((number, change));
            }
        }
    }
    (replay.result(), changes)
}

#[cfg(test)]
mod tests {
    use super::super::Keep;
    use super::*;

    fn auto(kind: PolicyKind) -> Auto {
        Auto::with_judge(kind, 1_000, 20).0
    }

    fn fill(auto: &mut Auto, objects: u64) {
        for id in 0..objects {
            let keep = if id == 7 { Keep::Always } else { Keep::Auto };
            let hint = Hint { keep, ..Hint::default() };
            let id = ObjectId(id);
            auto.insert(Newcomer {
                id,
                size: 10,
                fingerprint: id.0 as u32,
                hint,
                ..Newcomer::default()
            });
        }
    }

    #[test]
    fn a_change_loses_no_object_and_keeps_what_is_to_be_kept() {
        for from in PolicyKind::ALL {
            for to in PolicyKind::ALL {
                let mut auto = auto(from);
                fill(&mut auto, 500);
                auto.switch(to);
                assert_eq!((auto.kind(), auto.len()), (to, 500));
                auto.check_invariants();
                let mut victims = Vec::new();
                while let Some(id) = auto.victim(10) {
                    victims.push(id);
                    auto.check_invariants();
                }
                victims.sort_unstable();
                victims.dedup();
                assert_eq!(victims.len(), 499, "{from} to {to}");
                assert!(!victims.contains(&ObjectId(7)));
                assert_eq!(auto.last_resort(), Some(ObjectId(7)));
            }
        }
    }

    #[test]
    fn the_order_of_use_survives_a_change() {
        let mut auto = auto(PolicyKind::Lru);
        fill(&mut auto, 100);
        (0..50).for_each(|id| auto.touch(ObjectId(id), 1));
        auto.switch(PolicyKind::ModifiedLru);
        for _ in 0..50 {
            let ObjectId(victim) = auto.victim(10).expect("there are 100");
            assert!((50..100).contains(&victim), "{victim} was in use");
        }
    }

    #[test]
    fn objects_may_come_and_go_while_others_move() {
        let mut auto = auto(PolicyKind::S3Fifo);
        fill(&mut auto, 500);
        auto.switch(PolicyKind::Lfu);
        auto.remove(ObjectId(400));
        auto.touch(ObjectId(400), 1);
        auto.touch(ObjectId(499), 1);
        auto.switch(PolicyKind::Structured);
        auto.check_invariants();
        assert_eq!(auto.len(), 499);
    }
}
