//! The report that the repository keeps: its verdicts are those that the rules find in its tables, and pages that count them
//! count the same.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::axes::{MANY_SEGMENTS, ONE_SEGMENT};
use crate::results::{AGAIN, Cost, Point, ServerRecord, Turn};
use crate::stats::{Ratio, Spread, Verdict};
use crate::summary::tests::turn;
use crate::whitebox::{Layer, Profile, Task, Time, WhiteBox};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The newest report.
fn report() -> String {
    let folder = repository().join("lab/reports");
    let reports =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("README.md"));
    let newest = reports.filter(|path| path.exists()).max().expect("a report");
    fs::read_to_string(newest).unwrap()
}

#[test]
fn the_verdicts_are_those_of_the_tables() {
    let text = report();
    let (results, summary) = read(&text);
    let computed = rows(&results, &summary);
    if std::env::var_os("AFPA_LAB_PRINT").is_some() {
        computed.iter().for_each(|row| println!("| {} |", row.join(" | ")));
    }
    let written = text.split(HEADING).nth(1).and_then(|rest| rest.split("\n## ").next());
    let written: Vec<Vec<&str>> = written
        .expect("the section of the findings")
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("|  |"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert_eq!(written.len(), FINDINGS.len());
    for (written, computed) in written.iter().zip(&computed) {
        for column in [0, 1, 2, 3, 5] {
            assert_eq!(written[column], computed[column], "row {}: {}", computed[0], computed[4]);
        }
    }
    let counted = count(&computed);
    assert!(text.contains(&counted), "the report counts otherwise: {counted}");
}

/// Pages say how many findings hold in the words of the report.
#[test]
fn pages_count_as_the_report_does() {
    let text = report();
    let (results, summary) = read(&text);
    let computed = rows(&results, &summary);
    let of = |verdict: &str| computed.iter().filter(|row| row[5] == verdict).count();
    let [holds, partly, no, not_today, open] = VERDICTS.map(of);
    let words = format!(
        "of {} findings {holds} hold, {partly} hold in part, {no} do not, {not_today} cannot be tried today, {open} are not \
         measured yet",
        computed.len()
    );
    for page in ["README.md", "lab/README.md"] {
        let page_text = fs::read_to_string(repository().join(page)).unwrap();
        let flat = page_text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&words), "{page} does not say: {words}");
    }
}

/// Results and summary as the report's tables give them. A table has medians, lowest and highest: they stand for three
/// rounds; the subject's ratios are the table's own.
fn read(text: &str) -> (Results, Summary) {
    let mut results = results(&[]);
    let mut ratios: Vec<(Point, String, Ratio)> = Vec::new();
    for section in text.split("\n### ").skip(1) {
        let Some((heading, body)) = section.split_once('\n') else { continue };
        results.white_box.extend(looks(heading, body));
        let Some((point, record)) = point(heading) else { continue };
        results.workloads.insert(point.workload.clone(), record);
        let noise = body.split("was up to ").nth(1).and_then(|rest| rest.split(' ').next());
        let noise: f64 = noise.and_then(|number| number.parse().ok()).unwrap_or(0.0) / 100.0;
        let mut again = None;
        for line in
            body.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| server"))
        {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let turns = turns(&point, &cells);
            add_server(&mut results, cells[0]);
            if again.is_none() && !cells[0].starts_with("afpa") {
                again = Some(turns.clone());
            }
            results.turns.extend(turns);
            if let Some(ratio) = cells.get(13).and_then(|cell| ratio(cell)) {
                ratios.push((point.clone(), cells[0].to_owned(), ratio));
            }
        }
        for turn in again.into_iter().flatten() {
            let mut other = turn;
            other.server += AGAIN;
            other.measured.requests = (other.measured.requests as f64 * (1.0 + noise)) as u64;
            results.turns.push(other);
        }
    }
    let mut summary = Summary::of(&results);
    for (point, server, ratio) in ratios {
        let one = summary.points.iter_mut().find(|one| one.point == point);
        let row = one.and_then(|one| one.rows.iter_mut().find(|row| row.server == server));
        row.expect("the row of the table").ratio = Some(ratio);
    }
    (results, summary)
}

/// A table of times, along an axis or by category of call.
fn looks(heading: &str, body: &str) -> Vec<WhiteBox> {
    let rows = body.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| server"));
    let rows =
        rows.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    let look = |cells: Vec<&str>| {
        let (first, point) = match heading.strip_prefix("Time by category of call. ") {
            Some(load) => (1, point(load)?.0),
            None => (2, along(heading.strip_prefix("Time by layer, ")?, cells[1])?),
        };
        let (all, samples) = cells[cells.len() - 2].split_once(" (")?;
        let samples: f64 = samples.trim_end_matches(')').parse().ok()?;
        let time = |cell: &str| {
            let micros = value(cell);
            Time { samples: (samples * micros / value(all)) as u32, micros }
        };
        let times: Vec<Time> =
            cells[first..cells.len() - 2].iter().map(|cell| time(cell)).collect();
        let rate = value(cells.last()?.split(' ').next()?);
        let (mut layers, mut tasks) = (Vec::new(), Vec::new());
        match first {
            1 => tasks = Task::ALL.into_iter().zip(times).collect(),
            _ => layers = Layer::ALL.into_iter().zip(times).collect(),
        }
        Some(WhiteBox::profiled(&point, cells[0], Profile { rate, layers, tasks }))
    };
    rows.filter_map(look).collect()
}

/// A point of an axis: where it is, as the table has it.
fn along(axis: &str, place: &str) -> Option<Point> {
    let number: f64 = place.split(' ').next()?.parse().ok()?;
    let segments = |bits: f64, number: f64| (bits / 8.0 / (number * 1448.0)).round() as u32;
    let held = segments(1e8, 1.0);
    let (workload, connections, rate, bed) = match axis {
        _ if axis.contains("packet rate") => {
            (MANY_SEGMENTS, 1, segments(number * 1e6, 11.0), "steered".into())
        }
        _ if axis.contains("over connections") => {
            (ONE_SEGMENT, number as u32, held, "steered".into())
        }
        _ if number == 0.0 => (ONE_SEGMENT, 2048, held, "steered-1us-impaired".into()),
        _ => (ONE_SEGMENT, 2048, held, format!("steered-{number}ms-impaired")),
    };
    let (workload, generator) = (workload.into(), "socket".into());
    Some(Point { bed, workload, generator, persistent: true, connections, rate: Some(rate) })
}

#[test]
fn tables_of_times_are_read_back() {
    let body = "\n| server | connections | user |\n|---|---:|\n\
                | nginx | 4 | 1.0 | 2.0 | 0 | 3.0 | 0 | 4.0 | 0 | 0 | 10.0 (1000) | 8630 |\n\
                | nginx | 2048 | 1.0 | 2.0 | 0 | 9.0 | 0 | 4.0 | 0 | 0 | 16.0 (1600) | 7000 of 8633 |\n";
    let found = looks("Time by layer, over connections at 100 Mb/s", body);
    let [few, many] = &found[..] else { panic!("{found:?}") };
    let tcp = |look: &WhiteBox| look.profile.as_ref().unwrap().layer(Layer::Tcp);
    assert_eq!((few.point.connections, few.point.rate, tcp(few).samples), (4, Some(8633), 300));
    assert_eq!((many.point.connections, tcp(many).micros), (2048, 9.0));
    assert_eq!(many.profile.as_ref().unwrap().rate, 7000.0);
    let bed = |place: &str| along("over latency, 2,048 connections", place).unwrap().bed;
    assert_eq!(["0 ms", "40 ms"].map(bed), ["steered-1us-impaired", "steered-40ms-impaired"]);
    assert_eq!(along("over the packet rate", "900 Mb/s").unwrap().rate, Some(7063));
}

fn add_server(results: &mut Results, name: &str) {
    if results.servers.iter().any(|one| one.name == name) {
        return;
    }
    results.servers.push(ServerRecord {
        name: name.into(),
        about: String::new(),
        version: String::new(),
        command: String::new(),
        configuration: None,
    });
}

fn turns(point: &Point, cells: &[&str]) -> Vec<Turn> {
    let (low, high) = cells[2].split_once(" to ").expect("lowest and highest");
    let (median, bytes) = (value(cells[1]), value(cells[3]));
    let [user, system, interrupts] = [9, 10, 11].map(|column| value(cells[column]));
    let rates = [value(low), median, value(high)];
    (1..)
        .zip(rates)
        .map(|(round, rate)| {
            let mut one = turn(cells[0], round, rate);
            one.point = point.clone();
            one.measured.body_bytes = (bytes * rate / median) as u64;
            one.cost = Cost { user, system, interrupts };
            one
        })
        .collect()
}

/// `WebStone, 64 B; persistent; 64 connections; bed steered; generator tc`.
fn point(heading: &str) -> Option<(Point, WorkloadRecord)> {
    let parts: Vec<&str> = heading.split("; ").collect();
    let [title, kind, connections, bed, generator] = parts[..] else { return None };
    if title.contains(". ") {
        return None;
    }
    let length =
        title.strip_prefix("WebStone, ").map(|size| crate::units::parse_size(size).unwrap());
    let workload = match (title, length) {
        (_, Some(length)) => format!("webstone-{length}"),
        (title, _) if title.starts_with("SPECweb96 mix") => {
            let rate = title.split("(target ").nth(1).and_then(|rest| rest.split('/').next());
            format!("specweb96-{}", rate.expect("a target"))
        }
        ("JAWS's mix", _) => "jaws".into(),
        (title, _) if title.starts_with("The papers' proxy run") => "proxy-102".into(),
        (title, _) => title.to_owned(),
    };
    let record = WorkloadRecord {
        family: workload.split('-').next().unwrap_or_default().into(),
        title: title.into(),
        point: length.map(|length| length as f64),
        about: String::new(),
    };
    let point = Point {
        bed: bed.strip_prefix("bed ")?.into(),
        workload,
        generator: generator.strip_prefix("generator ")?.into(),
        persistent: kind == "persistent",
        connections: connections.split(' ').next()?.parse().ok()?,
        rate: None,
    };
    Some((point, record))
}

/// `352 k/s`, `22.5 MB/s`, `2.74`.
fn value(cell: &str) -> f64 {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let factor = match unit.chars().next() {
        Some('k') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        _ => 1.0,
    };
    number.parse::<f64>().unwrap_or_else(|_| panic!("a figure: {cell}")) * factor
}

/// `1.72x (1.56 to 1.90): no difference`.
fn ratio(cell: &str) -> Option<Ratio> {
    let (median, rest) = cell.split_once("x (")?;
    let (range, remark) = rest.split_once(')')?;
    let (min, max) = range.split_once(" to ")?;
    let [min, median, max] = [min, median, max].map(|number| number.parse().ok());
    let spread = Spread { min: min?, median: median?, max: max? };
    let verdict = match remark {
        "" if spread.median > 1.0 => Verdict::More,
        "" => Verdict::Less,
        ": no difference" => Verdict::None,
        _ => Verdict::Unknown,
    };
    Some(Ratio { spread, rounds: 3, verdict })
}
