//! The cores in a network that loses, doubles and reorders, with machines that end and come back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use afpa_fleet::{Begun, Fate, Follower, Found, Log, Order, Orders, Position, Queued};
use proptest::prelude::*;

/// An order to purge in the model's log, with the moment at which it was given.
#[derive(Clone, Copy, Debug)]
struct Purge {
    sequence: u64,
    given: usize,
}

/// The log of the model.
#[derive(Debug)]
struct ModelLog {
    made: u64,
    purges: Vec<Purge>,
    /// Those before have expired.
    first: u64,
    last: u64,
}

impl ModelLog {
    fn new(made: u64) -> Self {
        Self { made, purges: Vec::new(), first: 1, last: 0 }
    }

    fn found(&self) -> Found {
        Found { log: self.made, first: self.first, last: self.last }
    }

    fn add(&mut self, given: usize) {
        self.last += 1;
        self.purges.push(Purge { sequence: self.last, given });
    }
}

/// A machine that keeps one answer.
#[derive(Debug)]
struct Machine {
    follower: Option<Follower>,
    /// The moment at which the kept answer was asked for.
    kept: Option<usize>,
    /// The answer and the place that it has left to its next process.
    left: Option<(Option<usize>, Option<Position>)>,
}

impl Machine {
    fn begin(&mut self, place: Option<Position>, log: &ModelLog) {
        let follower = match Follower::begin(Log::Purges, place, log.found()) {
            Begun::Follows(follower) => follower,
            Begun::Missed(unflushed) => {
                self.kept = None;
                unflushed.flushed()
            }
        };
        self.follower = Some(follower);
    }

    /// No kept answer is older than an order that the machine claims to have carried out.
    fn check(&self, log: &ModelLog) {
        let (Some(follower), Some(asked)) = (&self.follower, self.kept) else { return };
        for purge in &log.purges {
            let order = Position { log: log.made, sequence: purge.sequence };
            assert!(
                !follower.position().is_at(&order) || asked > purge.given,
                "the answer of moment {asked} is kept after {purge:?}, at {:?}",
                follower.position()
            );
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Purge,
    Ask(usize),
    /// A message of the log comes: any, whether it has come before or its predecessors have not.
    Deliver(usize, u64),
    /// The connection breaks and comes back.
    Again(usize),
    /// A clean end, with a snapshot.
    Stop(usize),
    Kill(usize),
    Start(usize),
    /// So many messages expire.
    Expire(u64),
    /// Somebody deletes the log.
    Anew,
}

/// The log of bans: the last order for each prefix, with its number and id.
type Bans = BTreeMap<String, (u64, String, Order)>;

/// Has the servers store an order in the place of the last one that its sender knows. `None`: they have another one.
fn store(
    bans: &mut Bans,
    sequence: &mut u64,
    last: u64,
    (id, order): (&str, &Order),
) -> Option<u64> {
    let Order::Deny { prefix, .. } = order else { panic!("no ban") };
    if bans.get(prefix).map_or(0, |there| there.0) != last {
        return None;
    }
    *sequence += 1;
    bans.insert(prefix.clone(), (*sequence, id.to_owned(), order.clone()));
    Some(*sequence)
}

const MACHINES: usize = 3;

/// Shows a machine the orders of the log behind the place that it has read.
fn show(orders: &mut Orders, log: &Bans, read: u64) {
    let mut rest: Vec<_> = log.values().filter(|one| one.0 > read).collect();
    rest.sort_by_key(|one| one.0);
    for (at, id, order) in rest {
        orders.shown(Some(id.clone()), order, Position { log: 1, sequence: *at });
    }
}

fn step() -> impl Strategy<Value = Step> {
    let machine = 0..MACHINES;
    prop_oneof![
        4 => Just(Step::Purge),
        4 => machine.clone().prop_map(Step::Ask),
        8 => (machine.clone(), 1_u64..5).prop_map(|(machine, ahead)| Step::Deliver(machine, ahead)),
        2 => machine.clone().prop_map(Step::Again),
        2 => machine.clone().prop_map(Step::Stop),
        1 => machine.clone().prop_map(Step::Kill),
        3 => machine.prop_map(Step::Start),
        1 => (1_u64..4).prop_map(Step::Expire),
        1 => Just(Step::Anew),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_kept_answer_is_older_than_an_order_that_a_machine_has_carried_out(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut log = ModelLog::new(1);
        let mut machines: Vec<_> = (0..MACHINES)
            .map(|_| Machine { follower: None, kept: None, left: None })
            .collect();
        for (moment, step) in steps.iter().enumerate() {
            match *step {
                Step::Purge => log.add(moment),
                Step::Ask(which) => {
                    machines[which].kept.get_or_insert(moment);
                }
                Step::Deliver(which, ahead) => {
                    let machine = &mut machines[which];
                    let Some(follower) = &mut machine.follower else { continue };
                    // One before the place, too.
                    let sequence = follower.next() + ahead - 2;
                    let is_there = (log.first..=log.last).contains(&sequence);
                    // A place in a log that is not there any more gets nothing.
                    if !is_there || follower.position().log != log.made {
                        continue;
                    }
                    if let Some(due) = follower.deliver(sequence) {
                        machine.kept = None;
                        follower.done(due);
                    }
                }
                Step::Again(which) => {
                    let place = machines[which].follower.take().map(|one| one.position());
                    machines[which].begin(place, &log);
                }
                Step::Stop(which) => {
                    let machine = &mut machines[which];
                    let place = machine.follower.take().map(|one| one.position());
                    machine.left = Some((machine.kept.take(), place));
                }
                Step::Kill(which) => {
                    machines[which] = Machine { follower: None, kept: None, left: None };
                }
                Step::Start(which) => {
                    let (kept, place) = machines[which].left.take().unwrap_or_default();
                    if machines[which].follower.is_none() {
                        machines[which].kept = kept;
                        machines[which].begin(place, &log);
                    }
                }
                Step::Expire(count) => {
                    log.first = (log.first + count).min(log.last + 1);
                }
                Step::Anew => log = ModelLog::new(log.made + 1),
            }
            machines.iter().for_each(|machine| machine.check(&log));
        }
        // The network is well again: every machine gets what it lacks, and is then beyond the last order.
        for machine in &mut machines {
            let place = machine.follower.take().map(|one| one.position());
            machine.begin(place, &log);
            for sequence in log.first..=log.last {
                let follower = machine.follower.as_mut().unwrap();
                if let Some(due) = follower.deliver(sequence) {
                    assert!(!due.is_after_gap, "nothing is missing now");
                    machine.kept = None;
                    follower.done(due);
                }
            }
            machine.check(&log);
            let last = Position { log: log.made, sequence: log.last };
            assert!(machine.follower.as_ref().unwrap().position().is_at(&last));
        }
    }

    #[test]
    fn an_order_is_lost_by_nobody(
        fates in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..60),
    ) {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        let mut log: Vec<String> = Vec::new();
        let mut given = 0;
        for (gives, is_lost, ack_is_lost) in fates {
            if gives {
                given += 1;
                orders.take(Order::Purge { arguments: format!("path=/{given}") }).unwrap();
            }
            for queued in orders.first(Log::Purges, 3) {
                if is_lost {
                    continue;
                }
                // The servers know a message that comes twice.
                if !log.contains(&queued.id) {
                    log.push(queued.id.clone());
                }
                if !ack_is_lost {
                    let sequence = log.iter().position(|id| *id == queued.id).unwrap() as u64 + 1;
                    orders.settle(&queued.id, Fate::Logged(Position { log: 1, sequence }));
                }
            }
            let waiting: Vec<_> = orders.waiting().map(|queued| &queued.id).collect();
            for number in 1..=given {
                let id = format!("a-{number}");
                assert!(log.contains(&id) || waiting.contains(&&id), "{id} is lost");
                if let Some((_, Fate::Logged(position))) = orders.fate(number) {
                    assert_eq!(log[position.sequence as usize - 1], id);
                }
            }
        }
    }

    /// Orders to deny, in a network that loses messages and acknowledgements, and servers that may have forgotten the ids.
    #[test]
    fn the_last_order_for_each_prefix_is_the_one_in_the_log(
        steps in prop::collection::vec((0..4_u8, any::<bool>()), 1..60),
        losses in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 1..200),
    ) {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        let (mut log, mut ids) = (BTreeMap::new(), BTreeSet::new());
        let (mut sequence, mut given) = (0, BTreeMap::new());
        let mut send = |orders: &mut Orders, lost: &mut dyn FnMut() -> (bool, bool, bool)| {
            for Queued { id, order, .. } in orders.first(Log::Bans, 64) {
                let (is_lost, is_ack_lost, is_forgotten) = lost();
                if is_lost {
                    continue;
                }
                let Order::Deny { prefix, denied } = order else { panic!("no ban") };
                if ids.insert(id.clone()) || is_forgotten {
                    sequence += 1;
                    log.insert(prefix, denied);
                }
                if !is_ack_lost {
                    orders.settle(&id, Fate::Logged(Position { log: 1, sequence }));
                }
            }
            log.clone()
        };
        let mut losses = losses.into_iter().cycle();
        for (prefix, denied) in steps {
            let prefix = prefix.to_string();
            orders.take(Order::Deny { prefix: prefix.clone(), denied }).unwrap();
            given.insert(prefix, denied);
            if denied {
                send(&mut orders, &mut || losses.next().unwrap());
            }
        }
        // The network is well again.
        loop {
            let log = send(&mut orders, &mut || (false, false, false));
            if orders.count() == 0 {
                assert_eq!(log, given);
                break;
            }
        }
    }

    /// Another machine orders the opposite meanwhile, and the log keeps the last order for each prefix alone.
    #[test]
    fn an_order_to_deny_is_in_the_log_once_whatever_is_lost(
        steps in prop::collection::vec((0..4_u8, 0..3_u8, any::<bool>(), any::<bool>()), 1..80),
    ) {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        let mut log = Bans::new();
        let (mut sequence, mut others, mut read, mut sent) = (0, 0, 0, BTreeSet::new());
        let steps = steps.into_iter().chain(std::iter::repeat_n((2, 0, false, false), 80));
        for (what, prefix, is_lost, is_ack_lost) in steps {
            let order = Order::Deny { prefix: prefix.to_string(), denied: what == 0 };
            if what == 0 {
                orders.take(order).unwrap();
                continue;
            }
            if what == 1 {
                (sequence, others) = (sequence + 1, others + 1);
                log.insert(prefix.to_string(), (sequence, format!("b-{others}"), order));
                continue;
            }
            if orders.first(Log::Bans, 64).iter().any(|queued| queued.since.is_some()) {
                show(&mut orders, &log, read);
                read = sequence;
                orders.settle_overtaken();
            }
            for Queued { id, order, .. } in orders.first(Log::Bans, 64) {
                orders.attempt(&id, Position { log: 1, sequence: read });
                if is_lost {
                    continue;
                }
                sequence += 1;
                let Order::Deny { prefix, .. } = order.clone() else { panic!("no ban") };
                assert!(sent.insert(id.clone()), "{id} undoes what came after it");
                log.insert(prefix, (sequence, id.clone(), order));
                if !is_ack_lost {
                    orders.settle(&id, Fate::Logged(Position { log: 1, sequence }));
                }
            }
        }
        assert_eq!(orders.count(), 0);
    }

    /// The servers may store an order when its sender has given it up, and has read the log.
    #[test]
    fn an_order_to_deny_that_is_stored_late_undoes_nothing(
        steps in prop::collection::vec((0..5_u8, 0..3_u8, any::<bool>(), any::<bool>()), 1..80),
    ) {
        let mut orders = Orders::new("a".to_owned(), Vec::new());
        let mut late: VecDeque<(u64, String, Order)> = VecDeque::new();
        let (mut log, mut sent) = (Bans::new(), BTreeSet::new());
        let (mut sequence, mut others, mut read) = (0, 0, 0);
        let steps = steps.into_iter().chain(std::iter::repeat_n((2, 0, false, false), 90));
        for (what, prefix, is_late, is_ack_lost) in steps {
            let order = Order::Deny { prefix: prefix.to_string(), denied: what == 0 };
            match what {
                0 => {
                    orders.take(order).unwrap();
                    continue;
                }
                1 => {
                    (sequence, others) = (sequence + 1, others + 1);
                    log.insert(prefix.to_string(), (sequence, format!("b-{others}"), order));
                    continue;
                }
                2 => {}
                _ => {
                    let Some((last, id, order)) = late.pop_front() else { continue };
                    if store(&mut log, &mut sequence, last, (&id, &order)).is_some() {
                        assert!(sent.insert(id.clone()), "{id} undoes what came after it");
                    }
                    continue;
                }
            }
            if orders.first(Log::Bans, 64).iter().any(Queued::waits_for_log) {
                show(&mut orders, &log, read);
                read = sequence;
                orders.settle_overtaken();
            }
            for queued in orders.first(Log::Bans, 64) {
                let Queued { id, order, .. } = &queued;
                let is_first = orders.attempt(id, Position { log: 1, sequence: read });
                let last = orders.replaces(&queued, 1).expect("it is known");
                if is_late {
                    late.push_back((last, id.clone(), order.clone()));
                    continue;
                }
                let Some(at) = store(&mut log, &mut sequence, last, (id, order)) else {
                    orders.was_behind(id, Some(last), is_first);
                    continue;
                };
                assert!(sent.insert(id.clone()), "{id} undoes what came after it");
                if !is_ack_lost {
                    orders.settle(id, Fate::Logged(Position { log: 1, sequence: at }));
                }
            }
        }
        assert_eq!(orders.count(), 0);
        for (last, id, order) in late {
            let stored = store(&mut log, &mut sequence, last, (&id, &order));
            assert_eq!(stored, None, "{id} undoes what came after it");
        }
    }
}
