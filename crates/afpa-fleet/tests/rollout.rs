//! Roll-outs among machines that die, are cut off, hear late and cannot take what they should.

use std::time::Duration;

use afpa_fleet::{Bounds, Driver, Listed, Load, Phase, Refused, Rollout, Stage, Taker};
use proptest::prelude::*;

const BOUNDS: Bounds = Bounds { wait_ms: 5000, errors: 1, p99_us: 10_000 };

/// A second of the model.
const TICK: Duration = Duration::from_secs(1);

fn listed(revision: u64) -> Listed {
    Listed { revision, by: "m0".to_owned(), at: 0, files: Vec::new(), bytes: 0 }
}

/// How a revision goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// No machine can take it.
    Refused,
    /// Its answers are errors.
    Errors,
    /// Its answers are slow.
    Slow,
    /// A machine that takes it ends.
    Deadly,
}

/// The bucket: a number that grows, and a value that is replaced by whoever names the number.
struct Store {
    number: u64,
    rollout: Rollout,
}

impl Store {
    fn write(&mut self, number: u64, next: Rollout) -> bool {
        let is_last = number == self.number;
        if is_last {
            self.number += 1;
            self.rollout = next;
        }
        is_last
    }
}

struct Machine {
    name: String,
    driver: Driver,
    is_up: bool,
    /// Neither reads nor writes nor heartbeats pass.
    is_cut: bool,
    runs: Option<u64>,
    refused: Option<Refused>,
    /// The words of the others that it has heard, with the second in which each was said.
    heard: Vec<Option<(u64, Taker)>>,
    up_since: u64,
}

impl Machine {
    fn new(number: usize, count: usize) -> Self {
        Self {
            name: format!("m{number}"),
            driver: Driver::new(format!("i{number}-0")),
            is_up: true,
            is_cut: false,
            runs: Some(1),
            refused: None,
            heard: vec![None; count],
            up_since: 0,
        }
    }

    fn word(&self, fault: Fault) -> Taker {
        let ill = self.runs == Some(2);
        let load = Load {
            answers: 1000,
            failed: if ill && fault == Fault::Errors { 100 } else { 1 },
            timed: 1000,
            p99_us: if ill && fault == Fault::Slow { 90_000 } else { 1000 },
        };
        let (name, refused) = (self.name.clone(), self.refused.clone());
        Taker { name, is_live: true, runs: self.runs, refused, load }
    }
}

struct World {
    now: u64,
    fault: Fault,
    store: Store,
    machines: Vec<Machine>,
    /// Machines that have ever run the new revision.
    touched: Vec<bool>,
    starts: usize,
}

impl World {
    fn new(count: usize, fault: Fault) -> Self {
        let machines: Vec<_> = (0..count).map(|number| Machine::new(number, count)).collect();
        let takers: Vec<_> = machines.iter().map(|machine| machine.word(fault)).collect();
        let first = Rollout::begin(None, listed(1), ("i0-0", BOUNDS), &takers).unwrap();
        let first = Rollout { stage: Stage::All, phase: Phase::Done, ..first };
        let rollout = Rollout::begin(Some(&first), listed(2), ("i0-0", BOUNDS), &takers).unwrap();
        let touched = vec![false; count];
        let store = Store { number: 1, rollout };
        let mut world = Self { now: 10, fault, store, machines, touched, starts: 0 };
        for number in 0..count {
            world.gossip(number);
        }
        world
    }

    fn gossip(&mut self, from: usize) {
        let machine = &self.machines[from];
        if !machine.is_up {
            return;
        }
        let word = (self.now, machine.word(self.fault));
        let is_cut = machine.is_cut;
        for (to, other) in self.machines.iter_mut().enumerate() {
            if other.is_up && (to == from || !is_cut && !other.is_cut) {
                other.heard[from] = Some(word.clone());
            }
        }
    }

    /// A machine looks at the bucket, does what that says, and drives if it may.
    fn look(&mut self, at: usize) {
        let (now, fault) = (self.now, self.fault);
        let Self { store, machines, touched, .. } = self;
        let machine = &mut machines[at];
        if !machine.is_up || machine.is_cut {
            return;
        }
        let wanted = store.rollout.wanted(&machine.name);
        let refused = machine.refused.as_ref().map(|refused| refused.revision);
        if wanted != machine.runs && wanted != refused {
            if wanted == Some(2) && fault == Fault::Refused {
                machine.refused = Some(Refused::new(2, "afpa.toml:1: no"));
            } else {
                (machine.runs, machine.refused) = (wanted, None);
                touched[at] |= wanted == Some(2);
                if wanted == Some(2) && fault == Fault::Deadly {
                    machine.is_up = false;
                    return;
                }
            }
        }
        let is_settled = now >= machine.up_since + 3;
        let takers: Vec<Taker> = machine
            .heard
            .iter()
            .flatten()
            .map(|(said, word)| Taker { is_live: now - said < 5, ..word.clone() })
            .collect();
        let takers = is_settled.then_some(&takers[..]);
        let (number, rollout) = (store.number, store.rollout.clone());
        let at = Duration::from_secs(now);
        if let Some(next) = machine.driver.step((number, &rollout), takers, at) {
            check_step(&rollout, &next);
            match store.write(number, next) {
                true => machine.driver.wrote(number + 1, at, at),
                false => machine.driver.lost(),
            }
        }
        let at = Duration::from_secs(self.now);
        let drivers =
            self.machines.iter().filter(|machine| machine.is_up && machine.driver.holds(at));
        assert!(drivers.count() <= 1, "two machines drive");
    }

    fn start(&mut self, at: usize) {
        self.starts += 1;
        let (now, count, starts) = (self.now, self.machines.len(), self.starts);
        let machine = &mut self.machines[at];
        if machine.is_up {
            return;
        }
        // Its disk has the revision that it ran.
        machine.is_up = true;
        machine.up_since = now;
        machine.driver = Driver::new(format!("i{at}-{starts}"));
        machine.heard = vec![None; count];
    }

    fn second(&mut self) {
        self.now += TICK.as_secs();
        for at in 0..self.machines.len() {
            self.gossip(at);
            self.look(at);
        }
    }
}

/// No step leaves out a stage's watch.
fn check_step(before: &Rollout, after: &Rollout) {
    assert!(!before.is_over(), "it is over: {before:?}");
    assert_eq!((before.target, before.base), (after.target, after.base));
    if after.stage > before.stage || after.phase == Phase::Done {
        assert_eq!(before.phase, Phase::Watching, "{before:?} -> {after:?}");
    }
    assert!(before.chosen.iter().all(|name| after.chosen.contains(name)));
}

#[derive(Clone, Debug)]
enum Step {
    Second,
    Kill(usize),
    Start(usize),
    Cut(usize),
    Mend(usize),
    Look(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Second),
        1 => (0..9_usize).prop_map(Step::Kill),
        2 => (0..9_usize).prop_map(Step::Start),
        1 => (0..9_usize).prop_map(Step::Cut),
        2 => (0..9_usize).prop_map(Step::Mend),
        2 => (0..9_usize).prop_map(Step::Look),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::None),
        Just(Fault::Refused),
        Just(Fault::Errors),
        Just(Fault::Slow),
        Just(Fault::Deadly)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// It ends, whoever dies; then all run what it says; and a bad one reaches no second stage.
    #[test]
    fn a_rollout_ends_and_a_bad_one_reaches_few(
        count in 1..9_usize,
        fault in fault(),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut world = World::new(count, fault);
        for step in steps {
            match step {
                Step::Second => world.second(),
                Step::Kill(at) => world.machines[at % count].is_up = false,
                Step::Start(at) => world.start(at % count),
                Step::Cut(at) => world.machines[at % count].is_cut = true,
                Step::Mend(at) => world.machines[at % count].is_cut = false,
                Step::Look(at) => world.look(at % count),
            }
        }
        for at in 0..count {
            world.machines[at].is_cut = false;
            world.start(at);
        }
        for _ in 0..400 {
            world.second();
            if fault == Fault::Deadly {
                (0..count).for_each(|at| world.start(at));
            }
        }
        let Store { rollout, .. } = &world.store;
        prop_assert!(rollout.is_over(), "{rollout:?}");
        for machine in &world.machines {
            prop_assert_eq!(machine.runs, rollout.running(), "{} in {:?}", machine.name, rollout);
        }
        if fault != Fault::None && fault != Fault::Deadly {
            prop_assert!(matches!(rollout.phase, Phase::Back { .. }), "{rollout:?}");
            prop_assert_eq!(rollout.stage, Stage::One);
            prop_assert!(world.touched.iter().filter(|touched| **touched).count() <= 1);
        }
    }
}

fn rollout(count: usize) -> (Rollout, Vec<Taker>) {
    let world = World::new(count, Fault::None);
    let takers = world.machines.iter().map(|machine| machine.word(Fault::None)).collect();
    (world.store.rollout, takers)
}

#[test]
fn without_faults_it_takes_one_machine_then_a_quarter_then_all() {
    let mut world = World::new(8, Fault::None);
    let mut stages = Vec::new();
    for _ in 0..60 {
        world.second();
        let Rollout { stage, phase, chosen, .. } = &world.store.rollout;
        let now = (*stage, phase.clone(), chosen.len());
        if stages.last() != Some(&now) {
            stages.push(now);
        }
    }
    let stage =
        |stage, count| [Phase::Taking, Phase::Watching].map(|phase| (stage, phase, count)).to_vec();
    let all = [stage(Stage::One, 1), stage(Stage::Quarter, 2), stage(Stage::All, 8)].concat();
    assert_eq!(stages[..6], all);
    assert_eq!(stages[6..], [(Stage::All, Phase::Done, 8)]);
    assert!(world.machines.iter().all(|machine| machine.runs == Some(2)));
    assert_ne!(world.store.rollout.chosen[0], "m0", "the one at which it was pushed drives");
}

#[test]
fn orders_to_go_back_know_what_runs() {
    let (under_way, takers) = rollout(3);
    assert_eq!(under_way.wanted("m1"), Some(2));
    assert_eq!(under_way.wanted("m2"), Some(1));
    let back = under_way.roll_back(None, "m0").unwrap();
    assert_eq!((back.wanted("m1"), back.is_over()), (Some(1), true));
    assert!(back.roll_back(None, "m0").is_err(), "nothing is known before 1");
    assert!(back.roll_back(Some(1), "m0").is_err(), "it runs");
    assert!(back.roll_back(Some(9), "m0").is_err(), "there is none");
    let forced = back.roll_back(Some(2), "m0").unwrap();
    assert_eq!((forced.wanted("m2"), forced.base), (Some(2), Some(1)));
    let done = Rollout { stage: Stage::All, phase: Phase::Done, ..under_way.clone() };
    let back = done.roll_back(None, "m0").unwrap();
    assert_eq!((back.wanted("m2"), back.base), (Some(1), Some(2)));
    let driver = ("i0-0", BOUNDS);
    assert!(Rollout::begin(Some(&under_way), listed(3), driver, &takers).is_err());
    let next = Rollout::begin(Some(&back), listed(3), driver, &takers).unwrap();
    assert_eq!((next.base, next.revisions.len()), (Some(1), 3));
}

#[test]
fn few_answers_say_nothing_and_errors_of_before_count() {
    let (rollout, mut takers) = rollout(1);
    let watching = Rollout { phase: Phase::Watching, ..rollout };
    takers[0].runs = Some(2);
    let next = |rollout: &Rollout, takers: &[Taker], load: Load| {
        let taker = Taker { load, ..takers[0].clone() };
        rollout.next(&[taker], Duration::from_secs(1)).map(|next| next.phase)
    };
    let load = |answers, failed| Load { answers, failed, ..Load::default() };
    assert_eq!(next(&watching, &takers, load(19, 19)), None);
    assert_eq!(next(&watching, &takers, load(1000, 11)), None);
    let Some(Phase::Back { why }) = next(&watching, &takers, load(1000, 12)) else {
        panic!("it goes on");
    };
    assert_eq!(why, "1.2 % of 1000 answers are errors, before 0.1 %");
    let before = Rollout { before: load(100, 50), ..watching.clone() };
    assert_eq!(next(&before, &takers, load(1000, 500)), None);
    let seldom = Rollout { before: load(2, 1), ..watching.clone() };
    let next_of = next(&seldom, &takers, load(1000, 500));
    assert!(matches!(next_of, Some(Phase::Back { .. })), "one of two excuses no half: {next_of:?}");
    let slow = |p99_us| Load { timed: 20, p99_us, ..Load::default() };
    assert_eq!(next(&watching, &takers, slow(11_000)), None);
    let Some(Phase::Back { why }) = next(&watching, &takers, slow(11_001)) else {
        panic!("it goes on");
    };
    assert_eq!(why, "99 of 100 answers of servers took up to 11 ms, before 1 ms");
}
