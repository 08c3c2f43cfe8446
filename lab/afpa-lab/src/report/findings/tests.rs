use super::*;
use crate::results::WorkloadRecord;
use crate::summary::tests::{results, turn};

/// Results by hand: (workload, persistent, connections, server, requests/s); bytes follow the requests, cost their inverse.
fn measured(turns: &[(&str, bool, u32, &str, f64)]) -> Results {
    let mut names: Vec<&str> = Vec::new();
    for (.., server, _) in turns {
        if !names.contains(server) {
            names.push(server);
        }
    }
    let servers: Vec<(&str, &[f64])> = names.iter().map(|name| (*name, &[][..])).collect();
    let mut all = results(&servers);
    for (workload, persistent, connections, server, rate) in turns {
        for round in 1..=3 {
            let mut one = turn(server, round, *rate);
            one.point.workload = (*workload).into();
            (one.point.persistent, one.point.connections) = (*persistent, *connections);
            all.turns.push(one);
        }
        let point = workload.strip_prefix("webstone-").and_then(|size| size.parse().ok());
        let record = WorkloadRecord {
            family: workload.split('-').next().unwrap_or_default().into(),
            title: (*workload).into(),
            point,
            about: String::new(),
        };
        all.workloads.insert((*workload).into(), record);
    }
    all
}

fn said(results: &Results, paper: &str) -> (String, String) {
    let rows = rows(results, &Summary::of(results));
    let row = rows.into_iter().find(|row| row[0].starts_with(paper)).expect("a finding");
    (row[2].clone(), row[3].clone())
}

#[test]
fn what_was_not_measured_says_so() {
    let nothing = measured(&[("cold", true, 64, "afpa-kernel", 900.0)]);
    assert!(rows(&nothing, &Summary::of(&nothing)).is_empty(), "nothing is about the papers");
    let some = measured(&[
        ("webstone-64", true, 64, "afpa-kernel", 900.0),
        ("webstone-64", true, 64, "nginx", 90.0),
    ]);
    let all = rows(&some, &Summary::of(&some));
    assert_eq!(all.len(), FINDINGS.len());
    let open: Vec<&Vec<String>> = all.iter().filter(|row| row[3] == "not measured").collect();
    assert_eq!(open.len(), FINDINGS.len() - 1);
    assert!(open.iter().all(|row| row[2].starts_with("it takes ")), "{open:?}");
}

/// The papers had one request a connection. For that, AFPA without sockets is the one to compare.
#[test]
fn persistent_connections_alone_are_not_what_the_papers_measured() {
    const PAPER: &str = "For 64-byte files it is more than three times";
    let persistent =
        [("webstone-64", true, 64, "afpa-kernel", 900.0), ("webstone-64", true, 64, "nginx", 90.0)];
    let (words, holds) = said(&measured(&persistent), PAPER);
    assert_eq!(holds, "in part");
    assert!(words.contains("afpa-kernel over nginx, the fastest of those that people run: 10.0x"));
    assert!(words.ends_with("as the papers had it: not measured"), "{words}");
    let mut both = persistent.to_vec();
    both.extend([
        ("webstone-64", false, 64, "afpa-kernel", 50.0),
        ("webstone-64", false, 64, "nginx", 50.0),
    ]);
    assert_eq!(said(&measured(&both), PAPER).1, "no", "it is not faster there");
    both.push(("webstone-64", false, 64, "afpa-socketless", 500.0));
    let (words, holds) = said(&measured(&both), PAPER);
    assert_eq!(holds, "yes");
    assert!(words.contains("afpa-socketless over nginx"), "{words}");
}

/// The file of 128 KB has to be among them. Where the kernel is faster at one of the sizes, the finding holds in part.
#[test]
fn large_files_begin_at_the_papers_size() {
    const PAPER: &str = "For 128 KB and more";
    let at = |size: &'static str, kernel: f64| {
        [(size, true, 64, "afpa-kernel", kernel), (size, true, 64, "nginx", 100.0)]
    };
    let large = at("webstone-262144", 100.0);
    assert_eq!(said(&with_something(&large), PAPER).1, "not measured");
    let both = [large, at("webstone-131072", 100.0)].concat();
    assert_eq!(said(&measured(&both), PAPER).1, "yes");
    let both = [large, at("webstone-131072", 120.0)].concat();
    assert_eq!(said(&measured(&both), PAPER).1, "in part");
}

/// Besides what some finding is about.
fn with_something(turns: &[(&str, bool, u32, &str, f64)]) -> Results {
    let something = [("webstone-1024", true, 64, "apache-prefork", 1.0)];
    measured(&[turns, &something].concat())
}

#[test]
fn not_copying_is_asked_for_at_the_papers_sizes() {
    const PAPER: &str = "Not copying is worth";
    let at = |size: &'static str, gain: f64| {
        [(size, true, 64, "afpa-copy", 100.0), (size, true, 64, "afpa-sendfile", 100.0 * gain)]
    };
    let few = [at("webstone-4096", 2.0), at("webstone-65536", 9.0)].concat();
    assert_eq!(said(&with_something(&few), PAPER).1, "not measured");
    let both = [at("webstone-4096", 2.0), at("webstone-32768", 9.0)].concat();
    assert_eq!(said(&measured(&both), PAPER).1, "yes");
    let both = [at("webstone-4096", 0.5), at("webstone-32768", 9.0)].concat();
    assert_eq!(said(&measured(&both), PAPER).1, "in part");
}

#[test]
fn connections_are_the_papers_fewest_and_most() {
    const PAPER: &str = "A packet costs TCP 157 %";
    let few =
        [("webstone-1024", true, 64, "nginx", 100.0), ("webstone-1024", true, 1024, "nginx", 50.0)];
    assert_eq!(said(&with_something(&few), PAPER).1, "not measured");
    let over = |most: f64| {
        let mut all = few.to_vec();
        all.extend([
            ("webstone-1024", true, 4, "nginx", 100.0),
            ("webstone-1024", true, 2048, "nginx", most),
        ]);
        said(&measured(&all), PAPER)
    };
    let (words, holds) = over(0.001);
    assert_eq!(holds, "yes", "{words}");
    assert!(words.contains("(over 64: "), "{words}");
    assert_eq!(over(100.0).1, "no");
}

#[test]
fn the_crossover_is_where_the_pool_stays_behind() {
    const PAPER: &str = "Of 1 to 42 clients";
    let sweep = |ratios: &[(u32, f64)]| {
        let each = ratios.iter().flat_map(|(clients, ratio)| {
            [
                ("jaws", false, *clients, "thread-pool", 100.0),
                ("jaws", false, *clients, "thread-per-request", 100.0 * ratio),
            ]
        });
        said(&with_something(&each.collect::<Vec<_>>()), PAPER)
    };
    assert_eq!(sweep(&[(1, 0.9), (20, 1.5)]).1, "not measured");
    let (words, holds) = sweep(&[(1, 0.9), (6, 1.2), (12, 1.0), (20, 1.1), (42, 1.5)]);
    assert_eq!(holds, "yes");
    assert!(words.ends_with("faster from 20 clients on"), "{words}");
    assert_eq!(sweep(&[(1, 1.5), (42, 0.5)]).1, "no");
    assert_eq!(sweep(&[(1, 1.1), (42, 1.5)]).1, "in part");
}

#[test]
fn pools_of_every_size_but_one_are_alike() {
    const PAPER: &str = "The size of a thread pool";
    let pools = |one: f64, six: f64, many: f64| {
        let turns = [
            ("jaws", false, 64, "thread-pool:pool=1", one),
            ("jaws", false, 64, "thread-pool:pool=6", six),
            ("jaws", false, 64, "thread-pool:pool=42", many),
            ("jaws", false, 64, "thread-pool", 100.0),
        ];
        said(&measured(&turns), PAPER).1
    };
    assert_eq!(pools(50.0, 98.0, 103.0), "yes");
    assert_eq!(pools(100.0, 98.0, 103.0), "in part", "one thread is as good");
    assert_eq!(pools(50.0, 70.0, 103.0), "no");
}

#[test]
fn a_finding_that_does_not_hold_is_not_said_to() {
    let rates = [("apache-prefork", 90.0), ("nginx", 80.0), ("h2o", 890.0)];
    let turns = rates.map(|(server, rate)| ("webstone-64", false, 64, server, rate));
    let (words, holds) = said(&measured(&turns), "Pre-forked");
    assert_eq!(holds, "no");
    assert!(words.contains("1 of 2"), "{words}");
}

/// The preset has what the findings take.
#[test]
fn the_full_preset_measures_every_finding() {
    let experiments = crate::presets::full().unwrap();
    let parts = || experiments.iter().flat_map(|one| &one.parts);
    let has = |name: &str, persistent: bool, connections: u32| {
        parts().any(|part| {
            part.persistent == persistent
                && part.connections.contains(&connections)
                && part.workloads.iter().any(|workload| workload.name == name)
        })
    };
    for size in ["webstone-64", "webstone-4096", "webstone-32768", "webstone-131072"] {
        assert!(has(size, true, 64), "{size}");
    }
    assert!(has("webstone-64", false, 64));
    assert!(has("webstone-1024", true, 4) && has("webstone-1024", true, 2048));
    assert!([1, 42, 64].iter().all(|clients| has("jaws", false, *clients)));
}
