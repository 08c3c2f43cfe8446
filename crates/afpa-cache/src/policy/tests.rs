//! Every policy against the rules of the interface, and the recency policies against naive models.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The calls of a policy. Places are given again, and calls may name identities that had them before.
#[derive(Clone, Copy, Debug)]
enum Step {
    Insert { size: u64, fingerprint: u32 },
    Touch { index: usize, count: u32 },
    Remove { index: usize },
    Victim { needed: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u64..5000, 0u32..40).prop_map(|(size, fingerprint)| Step::Insert { size, fingerprint }),
        4 => (any::<usize>(), 0u32..6).prop_map(|(index, count)| Step::Touch { index, count }),
        1 => any::<usize>().prop_map(|index| Step::Remove { index }),
        2 => (0u64..6000).prop_map(|needed| Step::Victim { needed }),
    ];
    prop::collection::vec(step, 0..200)
}

/// Runs the steps, checking the interface's rules after each; gives the victims.
fn run(
    policy: &mut dyn Policy,
    steps: &[Step],
    mut model: impl FnMut(&Model, u64) -> Option<ObjectId>,
) {
    let (mut live, mut identities) = (Model::default(), Identities::default());
    for (turn, step) in steps.iter().enumerate() {
        let turn = turn as u64;
        match *step {
            Step::Insert { size, fingerprint } => {
                let id = identities.give();
                policy.insert(Newcomer { id, size, fingerprint, ..Newcomer::default() });
                live.insert(id, (turn, size));
            }
            Step::Touch { index, count } => {
                let id = live.pick(index);
                policy.touch(id, count);
                live.entry(id).and_modify(|seat| seat.0 = turn);
            }
            Step::Remove { index } => {
                let id = live.pick(index);
                policy.remove(id);
                if live.remove(&id).is_some() {
                    identities.take_back(id);
                    live.gone.push(id);
                }
            }
            Step::Victim { needed } => {
                let expected = model(&live, needed);
                let victim = policy.victim(needed);
                assert_eq!(victim.is_none(), live.is_empty());
                if let Some(id) = victim {
                    assert!(expected.is_none_or(|expected| expected == id), "{step:?} gave {id:?}");
                    assert!(live.remove(&id).is_some(), "a victim that was not there");
                    identities.take_back(id);
                    live.gone.push(id);
                }
            }
        }
        assert_eq!(policy.len(), live.len());
        policy.check_invariants();
    }
    while let Some(id) = policy.victim(1) {
        assert!(live.remove(&id).is_some());
    }
    assert!(live.is_empty(), "{live:?} were lost");
}

#[derive(Debug, Default)]
struct Model {
    /// Last use and size of each live object.
    live: BTreeMap<ObjectId, (u64, u64)>,
    gone: Vec<ObjectId>,
}

impl std::ops::Deref for Model {
    type Target = BTreeMap<ObjectId, (u64, u64)>;
    fn deref(&self) -> &Self::Target {
        &self.live
    }
}

impl std::ops::DerefMut for Model {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.live
    }
}

impl Model {
    /// A live object, one that was, or one that never was.
    fn pick(&self, index: usize) -> ObjectId {
        let all = self.live.keys().chain(self.gone.iter().rev().take(4));
        let all: Vec<ObjectId> = all.copied().chain([ObjectId(u64::MAX)]).collect();
        all[index % all.len()]
    }

    fn oldest(&self, eligible: impl Fn(u64) -> bool) -> Option<ObjectId> {
        let eligible = self.live.iter().filter(|(_, (_, size))| eligible(*size));
        eligible.min_by_key(|(_, (used, _))| *used).map(|(id, _)| *id)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_keeps_its_books(steps in steps()) {
        for kind in PolicyKind::ALL {
            run(&mut *kind.build(), &steps, |_, _| None);
        }
    }

    #[test]
    fn lru_is_lru(steps in steps()) {
        run(&mut Lru::default(), &steps, |live, _| live.oldest(|_| true));
    }

    #[test]
    fn modified_lru_is_what_the_paper_says(mut steps in steps()) {
        // Sizes as the arena rounds them, where the comparison is exact.
        let round = |size: u64| afpa_arena::Arena::footprint(size as usize) as u64;
        for step in &mut steps {
            match step {
                Step::Insert { size, .. } => *size = round(*size),
                Step::Victim { needed } => *needed = round(*needed),
                _ => {}
            }
        }
        run(&mut ModifiedLru::default(), &steps, |live, needed| {
            live.oldest(|size| size >= needed).or_else(|| live.oldest(|_| true))
        });
    }
}

#[test]
fn names_lead_back_to_their_policies() {
    for kind in PolicyKind::ALL {
        assert_eq!(kind.name().parse::<PolicyKind>().unwrap(), kind);
    }
    assert!("random".parse::<PolicyKind>().is_err());
}
