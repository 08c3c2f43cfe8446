//! Faults of servers and machines, at random and under load, for as many seconds as AFPA_FLEET_SECONDS says: `make test-fleet`
//! has ten minutes of them. All that was acknowledged is counted, and so is each answer that is older.

mod evidence;
mod faults;
mod ledger;
mod load;
mod place;
mod pushes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_netlab::missing_privilege;
use afpa_testkit::random::Random;
use afpa_testkit::{figure, skip};

use self::faults::Faults;
use self::ledger::{Application, KEYS, Ledger, Older};
use self::load::{Load, Talk};
use self::place::{COUNT, Place, STALE_AFTER};
use crate::bed::{Nats, SOON, live, look};

/// Without AFPA_FLEET_SECONDS.
const SECONDS: u64 = 20;

/// An answer may be older than an order that was acknowledged without its machine for `stale_after`. The machine looks at its
/// clock once a second, on processors that others have as well.
const BOUND: Duration = Duration::from_secs(STALE_AFTER + 3);

/// People who purge, for each machine.
const PURGERS: usize = 8;

#[test]
fn no_purge_is_lost_and_no_answer_is_too_old_in_a_storm_of_faults() {
    if let Some(why) = missing_privilege() {
        skip!("{why}");
    }
    if !Nats::is_there() {
        skip!("no nats-server");
    }
    let seconds = std::env::var("AFPA_FLEET_SECONDS").ok();
    let seconds =
        seconds.map_or(SECONDS, |text| text.parse().expect("AFPA_FLEET_SECONDS is a number"));
    let seed = Random::seed_or(rand_of_clock());
    let (application, ledger, ends) = (Application::start(), Ledger::new(), AtomicBool::new(false));
    let place = Place::new(&application);
    come_together(&place);
    let load =
        Load { application: &application, ledger: &ledger, machines: &place.machines, ends: &ends };
    let faults = Faults::new(&place, &ledger, &ends);
    let seeds = |number: usize| seed.wrapping_mul(31).wrapping_add(number as u64);
    eprintln!("{seconds} s, AFPA_SEED={seed}");
    std::thread::scope(|scope| {
        for number in 0..COUNT {
            let load = &load;
            scope.spawn(move || load.ask(number, seeds(number)));
            for purger in 1..=PURGERS {
                scope.spawn(move || load.purge(number, seeds(number + 10 * purger)));
            }
        }
        for number in 0..COUNT {
            let load = &load;
            scope.spawn(move || load.compare(number));
        }
        scope.spawn(|| load.push(seeds(200)));
        let of_servers = scope.spawn(|| faults.of_servers(seeds(100)));
        let of_machines = scope.spawn(|| faults.of_machines(seeds(101)));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(seconds)
            && !of_servers.is_finished()
            && !of_machines.is_finished()
        {
            std::thread::sleep(Duration::from_millis(100));
        }
        ends.store(true, Ordering::SeqCst);
    });
    place.story.add(format_args!("no faults any more"));
    let is_calm = Instant::now();
    come_together(&place);
    let pushed_again = pushes::settle(&place);
    ledger.close();
    let lost = lost(&place, &ledger);
    tell(&place, &ledger, &faults, is_calm.elapsed());
    if pushed_again > 0 {
        figure!("{pushed_again} pushes after servers had lost the record of the last one");
    }
    let older = ledger.older.lock().expect("no panic");
    let told = |older: &Older| {
        format!("{} for {:?}", place.machines[older.machine].name, older.for_so_long)
    };
    let is_too_old = |older: &&Older| older.for_so_long > BOUND;
    let too_old: Vec<String> = older.iter().filter(is_too_old).map(told).collect();
    let refused = ledger.refused.lock().expect("no panic");
    let misreported = ledger.misreported.lock().expect("no panic");
    assert!(misreported.is_empty(), "{misreported:?}");
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert!(too_old.is_empty(), "{} too old: {too_old:?}", too_old.len());
    assert!(refused.is_empty(), "{} without an answer: {refused:?}", refused.len());
}

fn rand_of_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.subsec_nanos().into())
}

/// Waits until every machine sees all, and none has an order that others do not have.
#[track_caller]
fn come_together(place: &Place) {
    let mut said = String::new();
    let begun = Instant::now();
    let is_well = |machine: &place::Machine, said: &mut String| {
        let server = machine.server.lock().expect("no panic");
        let look = look(&server);
        *said = look.to_string();
        look["waiting"] == 0 && live(&server).len() == COUNT
    };
    for machine in &place.machines {
        while !is_well(machine, &mut said) {
            assert!(begun.elapsed() < 2 * SOON, "{}: {said}", machine.name);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Keys for which a machine does not know the last order.
fn lost(place: &Place, ledger: &Ledger) -> Vec<String> {
    let mut lost = Vec::new();
    for machine in &place.machines {
        let mut talk = Talk::new(&machine.site);
        for key in 0..KEYS {
            let answer = talk.get(&format!("/k/{key}")).expect("an answer");
            let version: usize = answer.text().parse().expect("a version");
            let owed = ledger.owed(key);
            if version < owed {
                lost.push(format!("{}: key {key} has {version} and not {owed}", machine.name));
            }
        }
    }
    lost
}

fn tell(place: &Place, ledger: &Ledger, faults: &Faults<'_>, calm: Duration) {
    let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::Relaxed);
    let counts = &ledger.counts;
    let (older, all) =
        (ledger.older.lock().expect("no panic"), faults.counts.lock().expect("no panic"));
    let longest = older.iter().map(|older| older.for_so_long).max().unwrap_or_default();
    let kinds: Vec<_> = all.iter().map(|(what, times)| format!("{times} {what}")).collect();
    figure!("{} faults: {}", all.values().sum::<usize>(), kinds.join(", "));
    figure!(
        "{} orders, {} acknowledged by all that were known ({} of these by fewer than {COUNT}), {} not taken by a machine that \
         was away, {} died with a machine that had them for less than five seconds",
        count(&counts.orders),
        count(&counts.acknowledged),
        count(&counts.by_fewer),
        count(&counts.not_taken),
        count(&counts.died)
    );
    figure!("{} configurations pushed", ledger.pushed.lock().expect("no panic").len());
    figure!(
        "{} answers, {} older than an acknowledged order ({} of these than one that all {COUNT} machines had acknowledged), for {:.1} s at most; all together {:.1} s after the last fault",
        count(&counts.answers),
        older.len(),
        older.iter().filter(|older| older.by == COUNT).count(),
        longest.as_secs_f64(),
        calm.as_secs_f64()
    );
    for machine in &place.machines {
        let look = look(&machine.server.lock().expect("no panic"));
        figure!("{}: {} since its last start, {}", machine.name, look["counts"], look["peers"]);
    }
}
