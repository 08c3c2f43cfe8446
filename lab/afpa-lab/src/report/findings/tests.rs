mod cases;
mod committed;

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
    let row = rows.into_iter().find(|row| row[1].starts_with(paper)).expect("a finding");
    (row[4].clone(), row[5].clone())
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
    let open: Vec<&Vec<String>> = all.iter().filter(|row| row[5] == "not measured yet").collect();
    let decided = ["2", "5", "16", "30"];
    assert!(open.iter().all(|row| !decided.contains(&row[0].as_str())), "{open:?}");
    assert_eq!(open.len(), FINDINGS.len() - decided.len());
    assert!(open.iter().all(|row| row[4].starts_with("it takes ")), "{open:?}");
    assert_eq!(all.iter().filter(|row| row[5] == "not possible today").count(), 2);
    let (text, _) = judged(&some, &Summary::of(&some)).expect("one is measured");
    let counts = "Of 30 findings: 0 holds, 2 holds in part, 0 does not hold, 2 not possible today, 26 not measured yet.";
    assert!(text.contains(counts), "{text}");
}

/// The papers had one request a connection. For that, AFPA without sockets is the one to compare.
#[test]
fn persistent_connections_alone_are_not_what_the_papers_measured() {
    const PAPER: &str = "For 64-byte files it is more than three times";
    let persistent =
        [("webstone-64", true, 64, "afpa-kernel", 900.0), ("webstone-64", true, 64, "nginx", 90.0)];
    let (words, holds) = said(&measured(&persistent), PAPER);
    assert_eq!(holds, "holds in part");
    assert!(words.contains("afpa-kernel over nginx, the fastest of those that people run: 10.0x"));
    assert!(words.ends_with("as the papers had it: not measured"), "{words}");
    let mut both = persistent.to_vec();
    both.extend([
        ("webstone-64", false, 64, "afpa-kernel", 50.0),
        ("webstone-64", false, 64, "nginx", 50.0),
    ]);
    assert_eq!(said(&measured(&both), PAPER).1, "does not hold", "it is not faster there");
    both.push(("webstone-64", false, 64, "afpa-socketless", 500.0));
    let (words, holds) = said(&measured(&both), PAPER);
    assert_eq!(holds, "holds");
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
    assert_eq!(said(&with_something(&large), PAPER).1, "not measured yet");
    let both = [large, at("webstone-131072", 100.0)].concat();
    assert_eq!(said(&measured(&both), PAPER).1, "holds");
    let both = [large, at("webstone-131072", 120.0)].concat();
    assert_eq!(
        said(&measured(&both), PAPER).1,
        "holds in part",
        "the kernel is ahead at one of them"
    );
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
    assert_eq!(said(&with_something(&few), PAPER).1, "not measured yet");
    let both = [at("webstone-4096", 2.0), at("webstone-32768", 9.0)].concat();
    assert_eq!(said(&measured(&both), PAPER).1, "holds");
    let both = [at("webstone-4096", 0.5), at("webstone-32768", 9.0)].concat();
    assert_eq!(said(&measured(&both), PAPER).1, "holds in part");
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
    assert_eq!(sweep(&[(1, 0.9), (20, 1.5)]).1, "not measured yet");
    let (words, holds) = sweep(&[(1, 0.9), (6, 1.2), (12, 1.0), (20, 1.1), (42, 1.5)]);
    assert_eq!(holds, "holds");
    assert!(words.ends_with("faster from 20 clients on"), "{words}");
    assert_eq!(sweep(&[(1, 1.5), (42, 0.5)]).1, "does not hold");
    assert_eq!(sweep(&[(1, 1.1), (42, 1.5)]).1, "holds in part");
}

#[test]
fn pools_are_compared_with_each_other_and_a_single_thread_with_six() {
    let pools = |one: f64, six: f64, many: f64| {
        let turns = [
            ("jaws", false, 64, "thread-pool:pool=1", one),
            ("jaws", false, 64, "thread-pool:pool=6", six),
            ("jaws", false, 64, "thread-pool:pool=42", many),
            ("jaws", false, 64, "thread-pool", 100.0),
        ];
        ["The size of a thread pool", "A pool of a single"]
            .map(|paper| said(&measured(&turns), paper).1)
    };
    assert_eq!(pools(50.0, 98.0, 103.0), ["holds", "holds"]);
    assert_eq!(pools(95.0, 98.0, 103.0), ["holds", "holds in part"], "it is slower by little");
    assert_eq!(pools(100.0, 70.0, 103.0), ["holds in part", "does not hold"]);
}

/// The report that had "yes" for these says so no more.
#[test]
fn verdicts_are_not_kind() {
    let pair = |workload, persistent, one, rate, other| {
        measured(&[(workload, persistent, 64, one, rate), (workload, persistent, 64, other, 100.0)])
    };
    let large = [("webstone-131072", 78.0), ("webstone-1048576", 100.0)].map(|(size, kernel)| {
        [(size, true, 64, "afpa-kernel", kernel), (size, true, 64, "nginx", 100.0)]
    });
    let (words, verdict) = said(&measured(&large.concat()), "For 128 KB and more");
    assert_eq!(verdict, "holds in part", "user mode is faster, and not alike: {words}");
    let howl = pair("webstone-64", false, "howl", 152.0, "nginx");
    assert_eq!(said(&howl, "Howl").1, "holds in part", "52 % is not 32 %");
    let without = "thread-pool:without=cached-headers:without=lazy-date:without=gather-write";
    let some = pair("jaws", false, "thread-pool", 109.0, without);
    assert_eq!(said(&some, "Cached heads").1, "does not hold", "9 % is not 65 %");
    let kernel = [("afpa-kernel", 172.0), ("afpa", 100.0), ("apache-prefork", 10.0)];
    let kernel = kernel.map(|(server, rate)| ("webstone-64", true, 64, server, rate));
    let (words, verdict) = said(&measured(&kernel), "The software interrupt is 12 %");
    assert_eq!(verdict, "not measured yet", "user mode is no thread of the same program: {words}");
    let proxies = [
        ("proxy-102", false, 64, "afpa-proxy", 310.0),
        ("proxy-102", false, 64, "nginx-proxy", 376.0),
        ("webstone-64", false, 64, "afpa", 779.0),
    ];
    let (words, verdict) = said(&measured(&proxies), "The proxy passes on");
    assert_eq!(verdict, "holds in part");
    assert!(words.contains("nginx-proxy 376 /s, which is faster"), "{words}");
}

#[test]
fn a_finding_that_does_not_hold_is_not_said_to() {
    let rates = [("apache-prefork", 90.0), ("nginx", 80.0), ("h2o", 890.0)];
    let turns = rates.map(|(server, rate)| ("webstone-64", false, 64, server, rate));
    let (words, holds) = said(&measured(&turns), "Pre-forked");
    assert_eq!(holds, "does not hold");
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
