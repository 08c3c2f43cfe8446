//! Each fault of the table is planted into a copy of the C, and has to be found. Without a fault the same cases
//! hold, which tests/directed.rs and tests/networks.rs show.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afpa_tcp_sim::faults::{self, Fault};
use afpa_tcp_sim::run::run_seeds;
use afpa_tcp_sim::worker::Worker;
use afpa_tcp_sim::{compile, directed, script};

/// After the directed cases, a fault has so many networks and scripts to show itself.
const NETWORKS: u64 = 3_000;
const SCRIPTS: u64 = 300;
/// Steps of the sender in all cases, and in all networks.
const BUDGET: u64 = 100_000;
const BUDGET_NETWORKS: u64 = 5_000_000;

/// The name of the case or network that finds the fault first.
fn find(fault: &Fault, folder: &Path) -> Result<String, String> {
    fault.plant(folder)?;
    let program = folder.join("worker");
    // Compiling takes most of the time: without optimization, and with the cheaper one of the two sanitizers.
    compile::worker(folder, &program, &["-O0", "-w"], "address")?;
    let mut worker = Worker::start(&program).with_budget(BUDGET);
    for (name, case) in directed::ALL.iter().copied().flatten() {
        if catch_unwind(AssertUnwindSafe(|| case(&mut worker))).is_err() {
            return Ok((*name).to_owned());
        }
    }
    let mut worker = Worker::start(&program).with_budget(BUDGET_NETWORKS);
    let networks = catch_unwind(AssertUnwindSafe(|| run_seeds(&mut worker, 0..NETWORKS, 256)));
    match networks {
        Err(_) => return Ok("networks: the worker ended".to_owned()),
        Ok(Err(failure)) => return Ok(format!("network {}", failure.seed)),
        Ok(Ok(_)) => {}
    }
    for seed in 0..SCRIPTS {
        let take = |now, step: &_| worker.step(0, now, step);
        if catch_unwind(AssertUnwindSafe(|| script::play(seed, take))).is_err() {
            return Ok(format!("script {seed}"));
        }
    }
    Err("nothing finds it".to_owned())
}

#[test]
fn every_planted_fault_is_found() {
    let chosen = std::env::var("AFPA_FAULT").unwrap_or_default();
    let all: Vec<&Fault> =
        faults::ALL.iter().filter(|fault| fault.name.contains(&chosen)).collect();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {})); // panics are what is wanted here
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(fault) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let folder = tempfile::tempdir().expect("a folder");
                    match find(fault, folder.path()) {
                        Ok(by) => println!("found  {}: {by}", fault.name),
                        Err(why) => {
                            println!("MISSED {}: {why}", fault.name);
                            missed.lock().expect("no panic").push((fault.name, why));
                        }
                    }
                }
            });
        }
    });
    std::panic::set_hook(hook);
    let missed = missed.into_inner().expect("no panic");
    assert!(missed.is_empty(), "{} of {} faults: {missed:#?}", missed.len(), all.len());
}
