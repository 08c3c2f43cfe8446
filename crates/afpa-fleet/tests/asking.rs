//! Machines that ask each other for answers, while orders to purge are given, sent, delivered and overtaken, machines end, and
//! the log is made anew. Orders to purge are about everything, and each moment is a version of the only answer.

use afpa_fleet::{Footing, Position};
use proptest::prelude::*;

const MACHINES: usize = 3;

/// An order to purge.
#[derive(Clone, Copy, Debug)]
struct Order {
    by: usize,
    given: usize,
    logged: Option<Position>,
    /// Since when its sender knows that all machines have carried it out.
    acknowledged: Option<usize>,
}

/// A question on its way.
#[derive(Clone, Copy, Debug)]
struct Question {
    to: usize,
    place: Position,
    begun: usize,
    /// The version in the answer, once that is on its way back.
    answer: Option<usize>,
    /// There was a purge here meanwhile.
    overtaken: bool,
}

#[derive(Debug, Default)]
struct Machine {
    kept: Option<usize>,
    footing: Footing,
    question: Option<Question>,
}

#[derive(Debug)]
struct Fleet {
    log: u64,
    /// The number of the last message.
    last: u64,
    orders: Vec<Order>,
    machines: [Machine; MACHINES],
}

#[derive(Clone, Debug)]
enum Step {
    /// Somebody orders a purge at this machine.
    Order(usize),
    /// The log takes the first order of this machine that waits.
    Send(usize),
    /// The next message comes to this machine.
    Deliver(usize),
    /// A client asks this machine, which may ask that one.
    Client(usize, usize),
    /// The question of this machine comes to where it goes.
    Arrive(usize),
    /// The answer comes back.
    Return(usize),
    /// The process is killed, and another one starts, which has the queue of the one before.
    Restart(usize),
    /// Somebody makes the log anew.
    Anew,
    /// This machine looks at the log.
    Look(usize),
}

impl Machine {
    /// All answers go.
    fn purge(&mut self) {
        self.kept = None;
        if let Some(question) = &mut self.question {
            question.overtaken = true;
        }
    }
}

impl Fleet {
    fn new() -> Self {
        let mut fleet = Self {
            log: 1,
            last: 0,
            orders: Vec::new(),
            machines: <[Machine; MACHINES]>::default(),
        };
        (0..MACHINES).for_each(|number| fleet.look(number));
        fleet
    }

    fn take(&mut self, step: &Step, moment: usize) {
        match *step {
            Step::Order(by) => {
                let (logged, acknowledged) = (None, None);
                self.orders.push(Order { by, given: moment, logged, acknowledged });
                self.machines[by].purge();
                self.machines[by].footing.waits = true;
            }
            Step::Send(by) => {
                let waits = |order: &&mut Order| order.by == by && order.logged.is_none();
                let Some(order) = self.orders.iter_mut().find(waits) else { return };
                self.last += 1;
                order.logged = Some(Position { log: self.log, sequence: self.last });
                let footing = &mut self.machines[by].footing;
                footing.logged = order.logged;
                footing.waits =
                    self.orders.iter().any(|order| order.by == by && order.logged.is_none());
            }
            Step::Deliver(to) => {
                let machine = &mut self.machines[to];
                if let Some(at) = machine.footing.at.as_mut()
                    && at.log == self.log
                    && at.sequence < self.last
                {
                    machine.purge();
                    machine.footing.at.as_mut().unwrap().sequence += 1;
                }
            }
            Step::Client(at, other) => self.client(at, other, moment),
            Step::Arrive(at) => {
                let Some(question) = self.machines[at].question else { return };
                if question.answer.is_some() {
                    return;
                }
                let peer = &mut self.machines[question.to];
                if peer.footing.answers(question.place) {
                    let version = *peer.kept.get_or_insert(moment);
                    self.machines[at].question.as_mut().unwrap().answer = Some(version);
                } else {
                    self.machines[at].question = None;
                    self.machines[at].kept = Some(moment);
                }
            }
            Step::Return(at) => {
                let Some(question) = self.machines[at].question else { return };
                let Some(version) = question.answer else { return };
                self.machines[at].question = None;
                self.check(at, question.begun, version);
                if !question.overtaken {
                    self.machines[at].kept.get_or_insert(version);
                }
            }
            Step::Restart(at) => {
                let waits = self.machines[at].footing.waits;
                let footing = Footing { waits, ..Footing::default() };
                self.machines[at] = Machine { footing, ..Machine::default() };
                self.look(at);
            }
            Step::Anew => (self.log, self.last) = (self.log + 1, 0),
            Step::Look(at) => self.look(at),
        }
    }

    /// A machine that is in no log, or in another one, drops everything and begins at the end.
    fn look(&mut self, at: usize) {
        let (log, last) = (self.log, self.last);
        let machine = &mut self.machines[at];
        if machine.footing.at.is_none_or(|at| at.log != log) {
            machine.purge();
            machine.footing.at = Some(Position { log, sequence: last });
        }
    }

    fn client(&mut self, at: usize, other: usize, moment: usize) {
        let machine = &mut self.machines[at];
        if let Some(version) = machine.kept {
            return self.check(at, moment, version);
        }
        match machine.footing.asks() {
            _ if machine.question.is_some() => {}
            Some(place) if other != at => {
                let (to, begun, answer, overtaken) = (other, moment, None, false);
                machine.question = Some(Question { to, place, begun, answer, overtaken });
            }
            _ => machine.kept = Some(moment),
        }
    }

    /// A client that has asked at this moment gets this version.
    fn check(&self, at: usize, asked: usize, version: usize) {
        for order in &self.orders {
            let is_known = order.acknowledged.is_some_and(|since| since < asked);
            let is_own = order.by == at && order.given < asked;
            assert!(
                version > order.given || !(is_known || is_own),
                "a request of moment {asked} at {at} gets version {version} after {order:?}"
            );
        }
    }

    fn acknowledge(&mut self, moment: usize) {
        let machines = &self.machines;
        for order in self.orders.iter_mut().filter(|order| order.acknowledged.is_none()) {
            let Some(logged) = order.logged else { continue };
            let is_done = |one: &Machine| one.footing.at.is_some_and(|at| at.is_at(&logged));
            if machines.iter().all(is_done) {
                order.acknowledged = Some(moment);
            }
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let machine = 0..MACHINES;
    prop_oneof![
        3 => machine.clone().prop_map(Step::Order),
        4 => machine.clone().prop_map(Step::Send),
        8 => machine.clone().prop_map(Step::Deliver),
        8 => (machine.clone(), machine.clone()).prop_map(|(at, other)| Step::Client(at, other)),
        8 => machine.clone().prop_map(Step::Arrive),
        8 => machine.clone().prop_map(Step::Return),
        1 => machine.clone().prop_map(Step::Restart),
        1 => Just(Step::Anew),
        2 => machine.prop_map(Step::Look),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_answer_of_another_machine_is_older_than_a_purge_that_was_acknowledged_or_done_here(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut fleet = Fleet::new();
        for (moment, step) in steps.iter().enumerate() {
            fleet.take(step, moment);
            fleet.acknowledge(moment);
        }
    }
}
