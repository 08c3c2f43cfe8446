//! Three machines that keep answers for one another, beside three that hash URLs and three that know nothing of each other:
//! the same memory, the same requests, and the policies of the cache. Run with `--nocapture` to see the table.

#[path = "../../afpa-cache/tests/traces/mod.rs"]
mod traces;

use std::collections::HashSet;
use std::time::Duration;

use afpa_cache::PolicyKind;
use afpa_cache::policy::Policy;
use afpa_cache::policy::replay::{Replay, Request};
use afpa_fleet::{Decision, Heat, Hot, Owner, Roster, Shed};
use traces::{Random, Zipf, specweb96, unit};

const MACHINES: usize = 3;

/// Requests of all clients in a second.
const A_SECOND: usize = 3_000;

/// How the machines help one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Not at all.
    Alone,
    /// Each URL has one owner.
    Hashing,
    /// Hot ones have several, and nobody has too much to do.
    Cooperating,
}

/// The result of one way.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    hit_bytes: u64,
    bytes: u64,
    /// Questions to the origin.
    upstream: u64,
    /// Questions of one machine to another.
    asked: u64,
    /// The busiest machine's part of the requests that machines answer for the fleet, times the number of machines.
    busiest: f64,
    requests: u64,
}

struct Machine {
    cache: Replay<Box<dyn Policy>>,
    heat: Heat,
    shed: Shed,
    told: Owner,
    /// Requests that it has answered for others and for itself in this second, and in all.
    load: u64,
    all: u64,
}

impl Machine {
    fn new(number: usize, memory: u64) -> Self {
        let told = Owner { name: name(number), ..Owner::default() };
        let cache = Replay::new(PolicyKind::S3Fifo.build(), memory);
        let (heat, shed) = (Heat::new(Duration::ZERO), Shed::default());
        Self { cache, heat, shed, told, load: 0, all: 0 }
    }

    /// Whether it has the answer. It keeps it from now on.
    fn serve(&mut self, request: &Request) -> bool {
        let before = self.cache.result().hits;
        self.cache.serve(request);
        self.cache.result().hits > before
    }
}

fn name(number: usize) -> String {
    format!("west-{number}")
}

/// All requests, each at a machine that is drawn, each machine with so much memory. The first third fills the caches.
fn run(way: Way, memory: u64, trace: &[Request]) -> Outcome {
    let mut machines: Vec<_> = (0..MACHINES).map(|number| Machine::new(number, memory)).collect();
    let mut random = Random(99);
    let mut rosters = rosters(&machines);
    let (mut hit_bytes, mut bytes, mut upstream, mut asked, mut requests) = (0, 0, 0, 0, 0);
    for (number, request) in trace.iter().enumerate() {
        if number == trace.len() / 3 {
            (hit_bytes, bytes, upstream, asked, requests) = (0, 0, 0, 0, 0);
            machines.iter_mut().for_each(|machine| machine.all = 0);
        }
        if way == Way::Cooperating && number % A_SECOND == 0 && number > 0 {
            let now = Duration::from_secs((number / A_SECOND) as u64);
            tell(&mut machines, now);
            rosters = self::rosters(&machines);
        }
        let at = random.below(MACHINES as u64) as usize;
        let key = request.key.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let decision = match way {
            Way::Alone => Decision::Server,
            Way::Hashing | Way::Cooperating => rosters[at].decide(key),
        };
        let (is_hit, to) = match decision {
            Decision::Server => (machines[at].serve(request), at),
            Decision::Ask { name, keeps } => {
                let owner = rosters[at].owners(key);
                assert_eq!(owner[0], name);
                let to = (0..MACHINES).find(|&number| self::name(number) == name).unwrap();
                if keeps && machines[at].serve(request) {
                    (true, at)
                } else {
                    asked += 1;
                    (machines[to].serve(request), to)
                }
            }
        };
        machines[to].heat.used(key);
        machines[to].load += 1;
        machines[to].all += 1;
        bytes += request.size;
        requests += 1;
        match is_hit {
            true => hit_bytes += request.size,
            false => upstream += 1,
        }
    }
    let busiest = machines.iter().map(|machine| machine.all).max().unwrap_or_default();
    let busiest = busiest as f64 * MACHINES as f64 / requests as f64;
    Outcome { hit_bytes, bytes, upstream, asked, busiest, requests }
}

/// A heartbeat of each.
fn tell(machines: &mut [Machine], now: Duration) {
    let loads: Vec<f64> = machines.iter().map(|machine| machine.load as f64).collect();
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    for (machine, load) in machines.iter_mut().zip(loads) {
        let hot: Vec<Hot> = machine.heat.read(mean, MACHINES, now);
        machine.told.hot = hot;
        machine.told.shed = machine.shed.read(load, mean);
        machine.load = 0;
    }
}

fn rosters(machines: &[Machine]) -> Vec<Roster> {
    let told: Vec<Owner> = machines.iter().map(|machine| machine.told.clone()).collect();
    machines.iter().map(|machine| Roster::new(&machine.told.name, told.clone())).collect()
}

/// Runs all three ways; the memory of three machines holds `part` percent of what the trace asks for.
fn compare(title: &str, part: u64, trace: &[Request]) -> [Outcome; 3] {
    let mut seen = HashSet::new();
    let all: u64 = trace.iter().filter(|one| seen.insert(one.key)).map(|one| one.size).sum();
    let memory = all * part / 100 / MACHINES as u64;
    let outcomes =
        [Way::Alone, Way::Hashing, Way::Cooperating].map(|way| (way, run(way, memory, trace)));
    println!("{title}; three memories of {memory}");
    for (way, one) in outcomes {
        let per = |count: u64| 100.0 * count as f64 / one.requests as f64;
        println!(
            "  {:12} hit bytes {:5.1} %, upstream {:5.1} %, asked {:5.1} %, busiest {:.2}",
            format!("{way:?}"),
            100.0 * one.hit_bytes as f64 / one.bytes as f64,
            per(one.upstream),
            per(one.asked),
            one.busiest,
        );
    }
    outcomes.map(|(_, outcome)| outcome)
}

fn ratio(one: &Outcome, other: &Outcome) -> f64 {
    one.hit_bytes as f64 / other.hit_bytes.max(1) as f64
}

/// A working set of three machines' memory: all of it is asked for alike.
#[test]
fn a_working_set_of_three_memories_has_more_than_two_and_a_half_times_the_hit_bytes() {
    let mut random = Random(1);
    let trace: Vec<_> = (0..300_000).map(|_| unit(random.below(30_000))).collect();
    let [alone, hashing, cooperating] = compare("30,000 of one size, alike", 105, &trace);
    assert!(ratio(&cooperating, &alone) >= 2.5, "{}", ratio(&cooperating, &alone));
    assert!(ratio(&cooperating, &hashing) >= 0.98);
    assert!(cooperating.upstream * 10 < alone.upstream);
}

/// Few URLs have most of the requests: each machine alone holds these, so there is less to win; but an owner alone would have
/// them all.
#[test]
fn hot_urls_are_kept_where_they_are_asked_for() {
    let mut random = Random(2);
    let zipf = Zipf::new(30_000, 1.1);
    let trace: Vec<_> = (0..300_000).map(|_| unit(zipf.draw(&mut random))).collect();
    let [alone, hashing, cooperating] = compare("Zipf 1.1 over 30,000 of one size", 30, &trace);
    assert!(cooperating.hit_bytes > alone.hit_bytes && cooperating.upstream < alone.upstream);
    assert!(ratio(&cooperating, &hashing) >= 0.98);
    assert!(cooperating.asked * 10 < hashing.asked * 8, "hot answers are where clients are");
    assert!(cooperating.busiest < 1.3 && cooperating.busiest <= hashing.busiest);
}

/// The sizes of SPECweb96.
#[test]
fn files_of_specweb96() {
    let mut random = Random(4);
    let zipf = Zipf::new(400, 0.8);
    let trace: Vec<_> = (0..300_000).map(|_| specweb96(&zipf, &mut random)).collect();
    let [alone, hashing, cooperating] = compare("SPECweb96, 400 directories", 100, &trace);
    assert!(cooperating.hit_bytes > alone.hit_bytes && cooperating.upstream < alone.upstream);
    assert!(ratio(&cooperating, &hashing) >= 0.97);
}

/// The favourites change: owners of yesterday's go away, and today's come within seconds.
#[test]
fn sets_of_owners_follow_the_favourites() {
    let zipf = Zipf::new(5_000, 1.1);
    let mut random = Random(3);
    let phase = |phase: u64, random: &mut Random| -> Vec<Request> {
        (0..75_000).map(|_| unit(phase * 5_000 + zipf.draw(random))).collect()
    };
    let trace: Vec<_> = (0..4).flat_map(|number| phase(number, &mut random)).collect();
    let [_, hashing, cooperating] = compare("Zipf 1.1, others every 25 seconds", 25, &trace);
    assert!(ratio(&cooperating, &hashing) >= 0.97);
    assert!(cooperating.asked * 10 < hashing.asked * 8);
}
