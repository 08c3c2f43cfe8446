//! The figures, in the form of the papers': SVG always, PNG where rsvg-convert is there.

mod bars;
mod chart;
mod panels;
mod stacks;
mod svg;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::bed::tells_cost;
use crate::results::{Point, Results};
use crate::stats::Spread;
use crate::summary::{PointSummary, Row, Summary};
use crate::units::size;

use bars::{Bar, Bars};
use chart::{Chart, Series};
pub use panels::{Panel, PanelBar, Panels};
pub(crate) use svg::escape;

/// A drawn figure.
pub struct Figure {
    /// File name without ending.
    pub name: String,
    /// One sentence below it.
    pub caption: String,
    /// The picture.
    pub svg: String,
}

/// Every figure that the results have the points for.
pub fn draw(results: &Results, summary: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(over_size(results, summary));
    figures.extend(mixes(results, summary));
    figures.extend(zero_copy(results, summary));
    figures.extend(over_connections(summary));
    figures.extend(stacks::draw(results));
    figures
}

/// Writes them to `folder`/figures. Gives back why there is no PNG, if there is none.
///
/// # Errors
///
/// When the folder cannot be written to.
pub fn write(figures: &[Figure], folder: &Path) -> Result<Option<String>> {
    let folder = folder.join("figures");
    fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    let mut missing = None;
    for figure in figures {
        let path = folder.join(format!("{}.svg", figure.name));
        fs::write(&path, &figure.svg).with_context(|| format!("{}", path.display()))?;
        let converted = Command::new("rsvg-convert")
            .args(["--zoom", "2", "--output"])
            .arg(path.with_extension("png"))
            .arg(&path)
            .stdin(Stdio::null())
            .output();
        match converted {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                missing = Some(format!("no PNG: {}", String::from_utf8_lossy(&output.stderr)));
            }
            Err(_) => missing = Some("no PNG: rsvg-convert is missing (librsvg2-bin)".into()),
        }
    }
    Ok(missing)
}

/// The papers' figures 3 and 6: requests/s and bytes/s over the size of the file.
fn over_size(results: &Results, summary: &Summary) -> Vec<Figure> {
    let webstone = |one: &PointSummary| {
        let workload = results.workloads.get(&one.point.workload)?;
        let kind = (one.point.bed.clone(), one.point.persistent, one.point.connections);
        (workload.family == "webstone").then_some(kind)
    };
    let mut figures = Vec::new();
    for ((bed, persistent, connections), points) in summary.grouped(webstone) {
        let kind = kind(persistent);
        let subtitle = format!("{connections} connections, {kind}; bed: {bed}. {MEDIANS}");
        let mut add = |name: &str, what: &str, unit, value: fn(&Row) -> Spread| {
            let chart = Chart {
                title: format!("{what} over the size of the file"),
                subtitle: subtitle.clone(),
                axes: ["size of the file".into(), format!("{what} (logarithmic)")],
                unit,
                label: |bytes| size(bytes as u64),
                series: series(&points, |one| point_of(results, &one.point), value),
            };
            figures.extend(chart.draw().map(|svg| Figure {
                name: format!(
                    "{name}-{bed}-{}",
                    if persistent { "persistent" } else { "one-each" }
                ),
                caption: format!("{what} per server over file size, {kind}, bed {bed}."),
                svg,
            }));
        };
        add("requests", "requests/s", "/s", |row| row.rate);
        add("bytes", "body bytes/s", "B/s", |row| row.bytes);
        if tells_cost(&bed) {
            add("cost", "server-core time a request", "s", |row| seconds(row.cost));
        }
    }
    figures
}

/// The papers' figures 2 and 5, and JAWS's mix: a bar for each server.
fn mixes(results: &Results, summary: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    for one in summary.main_points() {
        let Some(workload) = results.workloads.get(&one.point.workload) else { continue };
        if workload.family == "webstone" {
            continue;
        }
        let Point { bed, persistent, connections, .. } = &one.point;
        let bar = |row: &Row| Bar {
            name: row.server.clone(),
            value: row.rate,
            note: if row.is_client_bound() { "at least".into() } else { String::new() },
        };
        let bars = Bars {
            title: workload.title.clone(),
            subtitle: format!(
                "requests/s; {connections} connections, {}; bed: {bed}. {MEDIANS}",
                kind(*persistent)
            ),
            unit: "/s",
            bars: one.rows.iter().map(bar).collect(),
        };
        let short = if *persistent { "persistent" } else { "one-each" };
        figures.extend(bars.draw().map(|svg| Figure {
            name: format!("{}-{bed}-{short}-{connections}", one.point.workload),
            caption: format!("{}: requests/s per server, {}.", workload.title, kind(*persistent)),
            svg,
        }));
    }
    figures
}

/// The papers' figures 4 and 7: the gain of not copying, over the size of the file. The pairs
/// are the same server with and without a copy.
fn zero_copy(results: &Results, summary: &Summary) -> Option<Figure> {
    const PAIR: [&str; 2] = ["afpa-sendfile", "afpa-copy"];
    let webstone = |one: &&PointSummary| {
        let known = results.workloads.get(&one.point.workload);
        known.is_some_and(|workload| workload.family == "webstone")
            && one.point.persistent
            && one.point.bed == "steered"
    };
    let points: Vec<&PointSummary> = summary.main_points().filter(webstone).collect();
    let mut lines = series(&points, |one| point_of(results, &one.point), |row| seconds(row.cost));
    lines.retain(|line| PAIR.contains(&line.name.as_str()));
    if lines.len() < PAIR.len() {
        return None;
    }
    let chart = Chart {
        title: "Zero-copy against copy".into(),
        subtitle: format!("server-core time a request, persistent connections. {MEDIANS}"),
        axes: ["size of the file".into(), "server-core time a request (logarithmic)".into()],
        unit: "s",
        label: |bytes| size(bytes as u64),
        series: lines,
    };
    chart.draw().map(|svg| Figure {
        name: "zero-copy".into(),
        caption: "What sending without a copy is worth: afpa-sendfile sends from the page cache, \
                  afpa-copy copies from its own."
            .into(),
        svg,
    })
}

/// The cost of a connection: server-core time a request over the number of connections.
fn over_connections(summary: &Summary) -> Vec<Figure> {
    let alike = |one: &PointSummary| {
        let point = &one.point;
        Some((point.workload.clone(), point.bed.clone(), point.persistent))
    };
    let mut figures = Vec::new();
    for ((workload, bed, persistent), points) in summary.grouped(alike) {
        let connections = |one: &PointSummary| Some(f64::from(one.point.connections));
        let mut different: Vec<u32> = points.iter().map(|one| one.point.connections).collect();
        different.sort_unstable();
        different.dedup();
        if different.len() < 3 {
            continue;
        }
        let chart = Chart {
            title: "Cost against connections".into(),
            subtitle: format!("{workload}, {}; bed: {bed}. {MEDIANS}", kind(persistent)),
            axes: ["connections".into(), "server-core time a request (logarithmic)".into()],
            unit: "s",
            label: |count| format!("{count:.0}"),
            series: series(&points, connections, |row| seconds(row.cost)),
        };
        figures.extend(chart.draw().map(|svg| Figure {
            name: format!("connections-{workload}-{bed}"),
            caption: format!("Server-core time a request over connections, {workload}."),
            svg,
        }));
    }
    figures
}

const MEDIANS: &str = "Medians of interleaved rounds, whiskers from lowest to highest.";

/// One line for each server, in the order of the axis.
fn series(
    points: &[&PointSummary],
    place: impl Fn(&PointSummary) -> Option<f64>,
    value: fn(&Row) -> Spread,
) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for one in points {
        let Some(x) = place(one) else { continue };
        for row in &one.rows {
            let found = lines.iter_mut().find(|line| line.name == row.server);
            match found {
                Some(line) if line.points.iter().any(|(other, _)| *other == x) => {}
                Some(line) => line.points.push((x, value(row))),
                None => {
                    lines.push(Series { name: row.server.clone(), points: vec![(x, value(row))] })
                }
            }
        }
    }
    for line in &mut lines {
        line.points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    lines
}

fn point_of(results: &Results, point: &Point) -> Option<f64> {
    results.workloads.get(&point.workload)?.point
}

/// From microseconds.
fn seconds(spread: Spread) -> Spread {
    Spread { min: spread.min / 1e6, median: spread.median / 1e6, max: spread.max / 1e6 }
}

fn kind(persistent: bool) -> &'static str {
    if persistent { "many requests a connection" } else { "one request a connection" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::WorkloadRecord;
    use crate::summary::tests::{results, turn};

    fn sized() -> Results {
        let mut results = results(&[("afpa-kernel", &[900.0; 3]), ("nginx", &[90.0; 3])]);
        for (server, rate) in [("afpa-kernel", 500.0), ("nginx", 80.0)] {
            let mut other = turn(server, 1, rate);
            other.point.workload = "webstone-4096".into();
            results.turns.push(other);
            let mut mix = turn(server, 1, rate);
            mix.point.workload = "jaws".into();
            results.turns.push(mix);
        }
        for (name, family, point) in [
            ("webstone-512", "webstone", Some(512.0)),
            ("webstone-4096", "webstone", Some(4096.0)),
            ("jaws", "jaws", None),
        ] {
            let record = WorkloadRecord {
                family: family.into(),
                title: name.into(),
                point,
                about: String::new(),
            };
            results.workloads.insert(name.into(), record);
        }
        results
    }

    #[test]
    fn sizes_become_lines_and_mixes_bars() {
        let results = sized();
        let figures = draw(&results, &Summary::of(&results));
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        let expected = [
            "requests-steered-persistent",
            "bytes-steered-persistent",
            "cost-steered-persistent",
            "jaws-steered-persistent-64",
        ];
        assert_eq!(names, expected);
        assert!(figures[0].svg.contains("4 KB") && figures[0].svg.contains("512 B"));
        assert!(figures[3].svg.contains("afpa-kernel"));
    }

    #[test]
    fn figures_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let results = sized();
        let figures = draw(&results, &Summary::of(&results));
        write(&figures, folder.path()).unwrap();
        for figure in &figures {
            assert!(folder.path().join(format!("figures/{}.svg", figure.name)).is_file());
        }
    }
}
