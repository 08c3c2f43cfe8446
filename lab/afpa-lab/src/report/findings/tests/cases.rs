//! For each rule figures by which its finding holds, and figures by which it does not.

use super::*;
use crate::bed::JUMBO;
use crate::presets::UNCACHED;
use crate::results::Point;
use crate::whitebox::{Category, Layer, Profile, Task, Time, WhiteBox};

/// Findings that nothing here measures, so far.
const OPEN: [usize; 3] = [12, 13, 21];

#[test]
fn every_rule_says_yes_and_no() {
    let cases = cases();
    for (number, [holds, not]) in &cases {
        let verdict = |results: &Results| {
            let rows = rows(results, &Summary::of(results));
            let row = rows.into_iter().find(|row| row[0] == number.to_string()).expect("a row");
            (row[5].clone(), row[4].clone())
        };
        let (yes, no) = (verdict(holds), verdict(not));
        assert_eq!(yes.0, "holds", "{number}: {}", yes.1);
        assert_eq!(no.0, "does not hold", "{number}: {}", no.1);
    }
    for (number, finding) in (1..).zip(FINDINGS) {
        let judged = cases.iter().any(|(one, _)| *one == number);
        let figures = matches!(finding.rule, Rule::Figures(_));
        assert_eq!(judged, figures && !OPEN.contains(&number), "{number}: {}", finding.paper);
    }
}

/// Loads of WebStone's sizes or of other workloads over 64 connections.
fn loads(persistent: bool, rates: &[(&str, &str, f64)]) -> Results {
    let turns: Vec<_> = rates
        .iter()
        .map(|(workload, server, rate)| (*workload, persistent, 64, *server, *rate))
        .collect();
    measured(&turns)
}

fn pair(persistent: bool, workload: &str, one: (&str, f64), other: (&str, f64)) -> Results {
    loads(persistent, &[(workload, one.0, one.1), (workload, other.0, other.1)])
}

fn time(micros: f64) -> Time {
    Time { samples: 10_000, micros }
}

/// nginx along an axis: (bed, workload, connections, rate, TCP, system calls).
fn axis(points: &[(&str, &str, u32, u32, f64, f64)]) -> Results {
    let mut results = results(&[("nginx", &[100.0; 3])]);
    for (bed, workload, connections, rate, tcp, calls) in points {
        let point = Point {
            bed: (*bed).into(),
            workload: (*workload).into(),
            generator: "socket".into(),
            persistent: true,
            connections: *connections,
            rate: Some(*rate),
        };
        let layers = vec![(Layer::SystemCall, time(*calls)), (Layer::Tcp, time(*tcp))];
        let profile = Profile { rate: f64::from(*rate), layers, tasks: Vec::new() };
        results.white_box.push(WhiteBox::profiled(&point, "nginx", profile));
    }
    results
}

/// nginx with JAWS's mix: microseconds of its own, and of writing.
fn tasks(own: f64, writing: f64) -> Results {
    let mut results = results(&[("nginx", &[100.0; 3])]);
    let mut point = results.turns[0].point.clone();
    point.workload = "jaws".into();
    let tasks = vec![(Task::Processing, time(own)), (Task::Call(Category::Write), time(writing))];
    let profile = Profile { rate: 100.0, layers: Vec::new(), tasks };
    results.white_box.push(WhiteBox::profiled(&point, "nginx", profile));
    results
}

/// A server that works off a backlog is not at the rate, and one that falls behind is not either.
#[test]
fn a_rate_that_is_not_held_decides_nothing() {
    for reached in [0.8, 1.0, 1.3] {
        let mut results = axis(&[
            ("steered", "segments-11", 1, 785, 10.0, 1.0),
            ("steered", "segments-11", 1, 7063, 11.0, 1.0),
        ]);
        results.white_box[1].profile.as_mut().unwrap().rate *= reached;
        let said = super::super::connections::packet_rate(&results);
        assert_eq!(said.is_ok(), reached == 1.0, "{reached}: {said:?}");
    }
}

fn cases() -> Vec<(usize, [Results; 2])> {
    const WITHOUT: &str =
        "thread-pool:without=cached-headers:without=lazy-date:without=gather-write";
    let small = |persistent, one, yes, other, no| {
        [yes, no].map(|rate| pair(persistent, "webstone-64", (one, rate), (other, 100.0)))
    };
    let at = |persistent, server, other, ratios: [[(&str, f64); 2]; 2]| {
        ratios.map(|points| {
            let each = points.iter().flat_map(|(workload, ratio)| {
                [(*workload, server, 100.0 * ratio), (*workload, other, 100.0)]
            });
            loads(persistent, &each.collect::<Vec<_>>())
        })
    };
    let pools = |six: f64, many: f64, each: f64| {
        let rates =
            [("thread-pool:pool=6", six), ("thread-pool:pool=42", many), ("thread-pool", each)];
        loads(false, &rates.map(|(server, rate)| ("jaws", server, rate)))
    };
    let clients = |most: f64| {
        let turns = [(1, 0.9), (42, most)].map(|(clients, ratio)| {
            [
                ("jaws", false, clients, "thread-pool", 100.0),
                ("jaws", false, clients, "thread-per-request", 100.0 * ratio),
            ]
        });
        measured(&turns.concat())
    };
    let over = |rates: [f64; 3]| {
        let turns: Vec<_> = [4, 64, 2048]
            .into_iter()
            .zip(rates)
            .map(|(connections, rate)| ("webstone-1024", true, connections, "nginx", rate))
            .collect();
        measured(&turns)
    };
    let alike = [("webstone-131072", 1.0), ("webstone-1048576", 1.0)];
    let ahead = [("webstone-131072", 1.2), ("webstone-1048576", 1.2)];
    let copied = |gain| [("webstone-4096", gain), ("webstone-32768", gain)];
    let rate = |high| {
        axis(&[
            ("steered", "segments-11", 1, 785, 10.0, 1.0),
            ("steered", "segments-11", 1, 7063, high, 1.0),
        ])
    };
    let many = |tcp, calls| {
        axis(&[
            ("steered", "segments-1", 4, 8633, 1.0, 1.0),
            ("steered", "segments-1", 2048, 8633, tcp, calls),
        ])
    };
    let far = |tcp| {
        let beds = ["steered-1us-impaired", "steered-40ms-impaired"];
        axis(&[
            (beds[0], "segments-1", 2048, 8633, 1.0, 1.0),
            (beds[1], "segments-1", 2048, 8633, tcp, 1.0),
        ])
    };
    let proxied =
        |cache| loads(false, &[("proxy-102", "afpa-proxy", 100.0), ("webstone-64", "afpa", cache)]);
    let mix = |ratio| {
        let rates = [("specweb96-20", "afpa-socketless", ratio), ("specweb96-20", "nginx", 100.0)];
        let size = [("webstone-64", "afpa-socketless", 200.0), ("webstone-64", "nginx", 100.0)];
        loads(false, &[rates, size].concat())
    };
    let frames = |with_long: f64| {
        let at = |rate: f64| {
            let each = ["webstone-64", "webstone-4096"]
                .map(|size| [(size, "afpa-kernel", rate), (size, "nginx", 100.0)]);
            loads(true, each.as_flattened())
        };
        let (mut results, mut long) = (at(500.0), at(with_long));
        long.turns.iter_mut().for_each(|turn| turn.point.bed = JUMBO.into());
        results.turns.append(&mut long.turns);
        results
    };
    let strategies = |at_64k: f64| {
        let ready = [("webstone-64", 100.0), ("webstone-65536", at_64k), ("jaws", 100.0)];
        let each = ready.into_iter().flat_map(|(workload, rate)| {
            [(workload, "afpa-readiness", rate), (workload, "afpa-completion", 200.0)]
        });
        loads(true, &each.collect::<Vec<_>>())
    };
    vec![
        (
            1,
            [500.0, 50.0].map(|rate| {
                pair(false, "specweb96-20", ("afpa-socketless", rate), ("nginx", 100.0))
            }),
        ),
        (2, small(false, "afpa-socketless", 500.0, "nginx", 50.0)),
        (3, at(true, "afpa-kernel", "nginx", [alike, ahead])),
        (4, small(true, "afpa-interrupt", 112.0, "afpa-threads", 100.0)),
        (6, small(false, "howl", 132.0, "nginx", 100.0)),
        (7, {
            let flat = |large| [("webstone-64", 1.0), ("webstone-4096", large)];
            at(false, "afpa-socketless", "sped", [flat(0.95), flat(0.5)])
        }),
        (8, at(true, "afpa-sendfile", "afpa-copy", [copied(9.0), copied(0.5)])),
        (9, {
            let prefork = |small, large| [("webstone-64", small), ("webstone-1048576", large)];
            at(true, "apache-prefork", "nginx", [prefork(0.5, 1.0), prefork(1.0, 0.5)])
        }),
        (10, [mix(500.0), mix(150.0)]),
        (11, small(false, "apache-prefork", 10.0, "nginx", 900.0)),
        (14, [proxied(400.0), proxied(50.0)]),
        (15, [frames(500.0), frames(200.0)]),
        (16, small(true, "afpa-kernel", 300.0, "nginx", 100.0)),
        (17, {
            let gained =
                |with| loads(false, &[("jaws", "thread-pool", with), ("jaws", WITHOUT, 100.0)]);
            [gained(165.0), gained(109.0)]
        }),
        (18, [pools(100.0, 102.0, 98.0), pools(50.0, 100.0, 150.0)]),
        (19, [clients(1.5), clients(0.5)]),
        (
            20,
            [50.0, 100.0].map(|one| {
                pair(false, "jaws", ("thread-pool:pool=1", one), ("thread-pool:pool=6", 100.0))
            }),
        ),
        (
            22,
            [200.0, 100.0]
                .map(|with| pair(true, "webstone-1024", ("sped", with), (UNCACHED, 100.0))),
        ),
        (23, [tasks(1.0, 3.0), tasks(3.0, 1.0)]),
        (24, [strategies(900.0), strategies(100.0)]),
        (25, [100.0, 1e7].map(|rate| pair(true, "specweb96-20", ("nginx", rate), ("h2o", rate)))),
        (26, [rate(11.0), rate(20.0)]),
        (27, [many(2.6, 3.5), many(1.0, 1.0)]),
        (28, [far(2.0), far(1.0)]),
        (29, [over([50.0, 100.0, 70.0]), over([100.0, 90.0, 95.0])]),
    ]
}
