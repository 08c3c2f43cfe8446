//! Machines that change a record which all of them have, in a network that loses, delays and reorders writes and answers, and
//! machines that die at any step: no change is lost or done twice, no two hold the record, and in the end each can.

mod servers;

use std::sync::Arc;
use std::time::Duration;

use afpa_fleet::{Shelf, ShelfWrite};
use proptest::prelude::*;

use servers::{MACHINES, Servers, secret};

const KEY: &str = "certificate a.test";

struct Machine {
    shelf: Shelf,
    on_its_way: Option<ShelfWrite>,
    /// The value that it has taken, and has not given back.
    taken: Option<u64>,
}

#[derive(Clone, Debug)]
enum Step {
    /// Time goes by: tenths of a second.
    Pass(u64),
    Read(usize),
    /// A server that is behind answers.
    ReadOld(usize, usize),
    Take(usize),
    /// Writes a value that is one more than the one before, and whether it goes on to hold it.
    Put(usize, bool),
    Renew(usize),
    Leave(usize),
    /// The write comes to the servers, and whether the answer comes back.
    Arrive(usize, bool),
    /// The machine hears nothing of its write in time, and goes on.
    Lose(usize),
    /// One of those writes comes to the servers after all.
    Late(usize),
    Die(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let machine = 0..MACHINES;
    prop_oneof![
        6 => (1_u64..60).prop_map(Step::Pass),
        1 => (60_u64..400).prop_map(Step::Pass),
        8 => machine.clone().prop_map(Step::Read),
        1 => (machine.clone(), 0_usize..4).prop_map(|(machine, back)| Step::ReadOld(machine, back)),
        8 => machine.clone().prop_map(Step::Take),
        8 => (machine.clone(), any::<bool>()).prop_map(|(machine, held)| Step::Put(machine, held)),
        4 => machine.clone().prop_map(Step::Renew),
        2 => machine.clone().prop_map(Step::Leave),
        12 => (machine.clone(), prop::bool::weighted(0.9)).prop_map(|(machine, back)| Step::Arrive(machine, back)),
        1 => machine.clone().prop_map(Step::Lose),
        1 => (0_usize..4).prop_map(Step::Late),
        1 => machine.prop_map(Step::Die),
    ]
}

struct World {
    now: Duration,
    servers: Servers,
    machines: Vec<Machine>,
    late: Vec<ShelfWrite>,
    lives: usize,
    /// The value after the step before.
    last: u64,
}

fn number(value: Option<Arc<str>>) -> u64 {
    value.map_or(0, |value| value.parse().expect("a number"))
}

impl Machine {
    fn new(number: usize, life: usize, now: Duration) -> Self {
        let mut shelf = Shelf::new(format!("{number}-{life}"), secret());
        shelf.begin(1);
        shelf.complete(now);
        Self { shelf, on_its_way: None, taken: None }
    }

    fn read(&mut self, found: Option<&(u64, Vec<u8>)>, now: Duration) {
        let subject = self.shelf.subject(KEY);
        match found {
            Some((revision, bytes)) => {
                let read = self.shelf.read(&subject, (*revision, bytes), now);
                let _ = read.expect("it is one of ours");
            }
            None => self.shelf.absent(&subject, now),
        }
    }
}

impl World {
    fn new() -> Self {
        let machines = (0..MACHINES).map(|number| Machine::new(number, 0, Duration::ZERO));
        let machines = machines.collect();
        let (now, servers, late) = (Duration::ZERO, Servers::default(), Vec::new());
        Self { now, servers, machines, late, lives: 0, last: 0 }
    }

    fn go(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Pass(tenths) => self.now += Duration::from_millis(tenths * 100),
            Step::Read(which) => {
                let machine = &mut self.machines[which];
                // One question at a time.
                if machine.on_its_way.is_none() {
                    machine.read(self.servers.record.as_ref(), now);
                }
            }
            Step::ReadOld(which, back) => {
                let earlier = self.servers.earlier.iter().rev().nth(back);
                if earlier.is_some() {
                    self.machines[which].read(earlier, now);
                }
            }
            Step::Take(which) => self.ask(which, |machine| machine.shelf.take(KEY, now)),
            Step::Put(which, is_held) => self.ask(which, |machine| {
                // It changes the value that it has taken, whatever it may have heard since then.
                let next = machine.taken? + 1;
                let value: Arc<str> = next.to_string().into();
                machine.shelf.put(KEY, value, is_held, now)
            }),
            Step::Renew(which) => self.ask(which, |machine| machine.shelf.renew(now).pop()),
            Step::Leave(which) => self.ask(which, |machine| {
                machine.taken = None;
                machine.shelf.leave(KEY, now)
            }),
            Step::Arrive(which, comes_back) => {
                let machine = &mut self.machines[which];
                let Some(write) = machine.on_its_way.take() else { return };
                match self.servers.take(write.revision, &write.bytes) {
                    Some(revision) if comes_back => {
                        machine.shelf.wrote(write, revision, now);
                        let value = number(machine.shelf.value(KEY));
                        machine.taken = machine.shelf.holds(KEY, now).then_some(value);
                    }
                    _ => {
                        machine.taken = None;
                        machine.shelf.lost(&write.subject);
                        machine.read(self.servers.record.as_ref(), now);
                    }
                }
            }
            Step::Lose(which) => {
                let machine = &mut self.machines[which];
                machine.taken = None;
                let Some(write) = machine.on_its_way.take() else { return };
                machine.shelf.lost(&write.subject);
                machine.read(self.servers.record.as_ref(), now);
                self.late.push(write);
            }
            Step::Late(which) => {
                if which < self.late.len() {
                    let write = self.late.remove(which);
                    self.servers.take(write.revision, &write.bytes);
                }
            }
            Step::Die(which) => {
                self.lives += 1;
                self.late.extend(self.machines[which].on_its_way.take());
                self.machines[which] = Machine::new(which, self.lives, now);
                self.machines[which].read(self.servers.record.as_ref(), now);
            }
        }
    }

    fn ask(&mut self, which: usize, write: impl FnOnce(&mut Machine) -> Option<ShelfWrite>) {
        let machine = &mut self.machines[which];
        if machine.on_its_way.is_none() {
            machine.on_its_way = write(machine);
        }
    }

    fn check(&mut self) {
        let holders = self.machines.iter().filter(|m| m.shelf.holds(KEY, self.now)).count();
        assert!(holders <= 1, "{holders} machines hold it");
        let Some((revision, bytes)) = &self.servers.record else { return };
        let mut reader = Shelf::new("reader".to_owned(), secret());
        reader.begin(1);
        let read = reader.read(&reader.subject(KEY), (*revision, bytes), self.now);
        let _ = read.expect("it is one of ours");
        let value = number(reader.value(KEY));
        assert!(value == self.last || value == self.last + 1, "{value} after {}", self.last);
        self.last = value;
    }

    /// Every second each machine reads, and those that may take it change it and give it back. How often each has.
    fn calm(&mut self, seconds: u64) -> [usize; MACHINES] {
        let mut changes = [0; MACHINES];
        for _ in 0..seconds {
            for (which, changes) in changes.iter_mut().enumerate() {
                let arrive = Step::Arrive(which, true);
                for step in [Step::Read(which), Step::Take(which)] {
                    self.go(&arrive);
                    self.go(&step);
                }
                self.go(&arrive);
                let before = self.servers.revision;
                self.go(&Step::Put(which, false));
                self.go(&arrive);
                *changes += usize::from(self.servers.revision > before);
                // A machine that works with it no more says so.
                if self.machines[which].taken.is_none() {
                    self.go(&Step::Leave(which));
                    self.go(&arrive);
                }
            }
            self.go(&Step::Pass(10));
        }
        changes
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_change_of_a_record_is_lost_or_done_twice_and_each_machine_can_go_on(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.go(step);
            world.check();
        }
        // Holders that have gone leave it within two terms.
        let changes = world.calm(60);
        prop_assert!(changes.iter().all(|count| *count > 0), "{changes:?}");
    }
}
