//! Machines that share keys, in a network that loses, delays and reorders writes and answers, with clocks that are apart, and
//! machines that die at any step: at no moment two of them make keys, and any two accept what the other one makes, if it
//! has missed one turn at most.

mod servers;

use std::time::Duration;

use afpa_fleet::{Keyring, Seed, Seeds, Write};
use proptest::prelude::*;

use servers::{MACHINES, Servers, secret};

const PERIOD: Duration = Duration::from_secs(60);

struct Machine {
    ring: Keyring,
    /// Seconds that its clock is ahead.
    ahead: u64,
    /// A write that the servers have not had yet.
    on_its_way: Option<Write>,
    disk: Option<Seeds>,
}

impl Machine {
    fn new(number: usize, life: usize, disk: Option<Seeds>, ahead: u64, now: Duration) -> Self {
        let ring = Keyring::new(format!("{number}-{life}"), secret(), disk.clone(), now);
        Self { ring, ahead, on_its_way: None, disk }
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Time goes by: tenths of a second.
    Pass(u64),
    Read(usize),
    /// A server that is behind answers.
    ReadOld(usize, usize),
    Ask(usize),
    /// The write comes to the servers, and whether the answer comes back.
    Arrive(usize, bool),
    /// The machine hears nothing of its write in time, and goes on.
    Lose(usize),
    /// One of those writes comes to the servers after all.
    Late(usize),
    Die(usize, bool),
    /// Somebody deletes the bucket.
    Anew,
}

fn step() -> impl Strategy<Value = Step> {
    let machine = 0..MACHINES;
    prop_oneof![
        6 => (1_u64..60).prop_map(Step::Pass),
        1 => (60_u64..900).prop_map(Step::Pass),
        8 => machine.clone().prop_map(Step::Read),
        1 => (machine.clone(), 0_usize..4).prop_map(|(machine, back)| Step::ReadOld(machine, back)),
        8 => machine.clone().prop_map(Step::Ask),
        8 => (machine.clone(), prop::bool::weighted(0.9)).prop_map(|(machine, back)| Step::Arrive(machine, back)),
        1 => machine.clone().prop_map(Step::Lose),
        1 => (0_usize..4).prop_map(Step::Late),
        1 => (machine, any::<bool>()).prop_map(|(machine, disk)| Step::Die(machine, disk)),
    ]
}

/// All seeds of a run differ.
fn random(count: &mut u64) -> Option<Seed> {
    *count += 1;
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&count.to_be_bytes());
    Some(seed)
}

struct World {
    now: Duration,
    servers: Servers,
    /// The turns of the keys that the record had, one after the other.
    turns: Vec<u64>,
    machines: Vec<Machine>,
    /// Writes that are still on their way, of machines that have gone on or died.
    late: Vec<Write>,
    lives: usize,
    seeds: u64,
}

impl World {
    fn new() -> Self {
        let machine = |number| Machine::new(number, 0, None, number as u64 * 40, Duration::ZERO);
        let machines = (0..MACHINES).map(machine).collect();
        let (now, servers, late) = (Duration::ZERO, Servers::default(), Vec::new());
        Self { now, servers, turns: Vec::new(), machines, late, lives: 0, seeds: 0 }
    }

    fn go(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Pass(tenths) => self.now += Duration::from_millis(tenths * 100),
            Step::Read(which) => {
                let found = self.servers.record.as_ref();
                let found = found.map(|(revision, bytes)| (*revision, &**bytes));
                let _ = self.machines[which].ring.read(found, now).expect("it is one of ours");
            }
            Step::ReadOld(which, back) => {
                let earlier = self.servers.earlier.iter().rev().nth(back);
                let found = earlier.map(|(revision, bytes)| (*revision, &**bytes));
                let _ = self.machines[which].ring.read(found, now).expect("it is one of ours");
            }
            Step::Ask(which) => {
                let machine = &mut self.machines[which];
                if machine.on_its_way.is_none() {
                    let times = (now, 1_000_000 + now.as_secs() + machine.ahead);
                    let count = &mut self.seeds;
                    machine.on_its_way = machine.ring.attempt(times, PERIOD, || random(count));
                }
            }
            Step::Arrive(which, comes_back) => {
                let machine = &mut self.machines[which];
                let Some(write) = machine.on_its_way.take() else { return };
                match self.servers.take(write.revision, &write.bytes) {
                    Some(revision) if comes_back => {
                        machine.ring.wrote(write, revision, now);
                    }
                    _ => machine.ring.lost(),
                }
            }
            Step::Lose(which) => {
                self.late.extend(self.machines[which].on_its_way.take());
                self.machines[which].ring.lost();
            }
            Step::Late(which) => {
                if which < self.late.len() {
                    let write = self.late.remove(which);
                    self.servers.take(write.revision, &write.bytes);
                }
            }
            Step::Die(which, has_disk) => {
                self.lives += 1;
                self.late.extend(self.machines[which].on_its_way.take());
                let machine = &self.machines[which];
                let disk = machine.disk.clone().filter(|_| has_disk);
                self.machines[which] = Machine::new(which, self.lives, disk, machine.ahead, now);
            }
            Step::Anew => {
                self.servers = Servers::default();
                self.turns.clear();
            }
        }
        for machine in &mut self.machines {
            machine.disk = machine.ring.seeds().cloned().or(machine.disk.take());
        }
    }

    fn check(&mut self) {
        let holders = self.machines.iter().filter(|machine| machine.ring.holds(self.now)).count();
        assert!(holders <= 1, "{holders} machines make keys");
        if let Some((_, bytes)) = &self.servers.record {
            let mut reader = Keyring::new("reader".to_owned(), secret(), None, self.now);
            reader.read(Some((1, bytes)), self.now).expect("it is one of ours");
            self.turns.extend(reader.seeds().map(|seeds| seeds.turn));
        }
        assert!(self.turns.is_sorted(), "{:?}", self.turns);
        let all: Vec<&Seeds> = self.machines.iter().filter_map(|m| m.ring.seeds()).collect();
        for one in &all {
            for other in &all {
                if one.turn.abs_diff(other.turn) <= 1 {
                    let made = one.keys("tickets")[0];
                    assert!(other.keys("tickets").contains(&made), "{one:?} {other:?}");
                }
            }
        }
    }

    /// Every machine reads and asks once a second, and nothing is lost.
    fn calm(&mut self, seconds: u64) {
        for _ in 0..seconds {
            for which in 0..MACHINES {
                for step in [Step::Read(which), Step::Ask(which), Step::Arrive(which, true)] {
                    self.go(&step);
                }
            }
            self.go(&Step::Pass(10));
        }
        // The keys may just have turned.
        (0..MACHINES).for_each(|which| self.go(&Step::Read(which)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_machine_makes_keys_and_all_accept_them_whatever_is_lost_or_dies(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.go(step);
            world.check();
        }
        // When the network is well again, somebody holds the lease within two terms, and all have the same keys.
        world.calm(40);
        world.check();
        let turns: Vec<_> = world.machines.iter().map(|m| m.ring.seeds().map(|s| s.turn)).collect();
        prop_assert!(turns[0].is_some() && turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
        prop_assert_eq!(world.machines.iter().filter(|m| m.ring.holds(world.now)).count(), 1);
    }

    #[test]
    fn keys_come_back_when_the_bucket_is_deleted(
        before in prop::collection::vec(step(), 1..60),
        after in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new();
        before.iter().for_each(|step| world.go(step));
        world.go(&Step::Anew);
        after.iter().for_each(|step| world.go(step));
        world.calm(60);
        world.check();
        let turns: Vec<_> = world.machines.iter().map(|m| m.ring.seeds().map(|s| s.turn)).collect();
        prop_assert!(turns[0].is_some() && turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
    }
}
