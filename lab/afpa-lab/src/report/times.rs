//! Where the time of a request goes: tables by JAWS's tasks, by layer, and along Kim and Rixner's axes.

use super::tables::{Table, heading};
use crate::axes::{MANY_SEGMENTS, ONE_SEGMENT};
use crate::results::{Point, Results};
use crate::units::digits;
use crate::whitebox::{Layer, Profile, Task, Time, WhiteBox};

const NOTES: &str = "Microseconds of the server's core a request, by samples of the clock in a turn of its own; in brackets \
                     the samples behind a whole row. A part of n samples is off by 1/sqrt(n) of it.";

/// All of them.
pub(super) fn all(results: &Results) -> Vec<Table> {
    let mut tables = Vec::new();
    let free: Vec<&WhiteBox> =
        results.white_box.iter().filter(|found| found.point.rate.is_none()).collect();
    let mut points: Vec<&Point> = Vec::new();
    for found in free.iter().filter(|found| found.profile.is_some()) {
        if !points.contains(&&found.point) {
            points.push(&found.point);
        }
    }
    for point in points {
        let own = || free.iter().copied().filter(|found| found.point == *point);
        let about = heading(results, point);
        let tasks = Task::ALL.map(Task::title);
        tables.extend(table(
            format!("Time by category of call. {about}"),
            &["server"],
            &tasks,
            own(),
            |found| {
                (vec![found.server.clone()], |profile| {
                    Task::ALL.map(|task| task_time(profile, task)).to_vec()
                })
            },
        ));
        let layers = Layer::ALL.map(Layer::title);
        tables.extend(table(
            format!("Time by layer. {about}"),
            &["server"],
            &layers,
            own(),
            |found| (vec![found.server.clone()], layer_times),
        ));
    }
    tables.extend(along(results));
    tables
}

/// One table for each axis.
fn along(results: &Results) -> Vec<Table> {
    let axes = axes(results);
    let layers = Layer::ALL.map(Layer::title);
    let tables = axes.iter().filter_map(|axis| {
        let title = format!("Time by layer, {}", axis.title);
        table(title, &["server", axis.moves], &layers, axis.looks.iter().copied(), |found| {
            (vec![found.server.clone(), (axis.place)(&found.point).1], layer_times)
        })
    });
    tables.collect()
}

/// An axis, and the looks along it.
pub(crate) struct Axis<'r> {
    pub(crate) title: &'static str,
    pub(crate) moves: &'static str,
    /// Where a point lies on it, and that in words.
    pub(crate) place: fn(&Point) -> (f64, String),
    pub(crate) looks: Vec<&'r WhiteBox>,
}

/// The axes that were looked along; each one's looks by server, then along the axis.
pub(crate) fn axes(results: &Results) -> Vec<Axis<'_>> {
    type Place = fn(&Point) -> (f64, String);
    let rate: Place = |point| {
        let rate = f64::from(point.rate.unwrap_or_default());
        let segments = if point.workload == MANY_SEGMENTS { 11.0 } else { 1.0 };
        let megabits = rate * segments * 8.0 * afpa_generator::SEGMENT as f64 / 1e6;
        (megabits, format!("{megabits:.0} Mb/s"))
    };
    let connections: Place = |point| (f64::from(point.connections), point.connections.to_string());
    let delay: Place = |point| {
        let delay = crate::bed::delay_of(&point.bed).unwrap_or_default().as_millis();
        (delay as f64, format!("{delay} ms"))
    };
    let looks = |of: &dyn Fn(&Point) -> bool, place: Place| {
        let mut looks: Vec<&WhiteBox> = results
            .white_box
            .iter()
            .filter(|found| {
                found.profile.is_some() && found.point.rate.is_some() && of(&found.point)
            })
            .collect();
        let order =
            |found: &WhiteBox| results.servers.iter().position(|one| one.name == found.server);
        looks.sort_by(|one, other| {
            order(one)
                .cmp(&order(other))
                .then(place(&one.point).0.total_cmp(&place(&other.point).0))
        });
        looks
    };
    let one = |point: &Point| point.workload == ONE_SEGMENT;
    let many = |point: &Point| point.workload == MANY_SEGMENTS;
    let axes = [
        Axis {
            title: "over the packet rate of one connection",
            moves: "rate",
            place: rate,
            looks: looks(&many, rate),
        },
        Axis {
            title: "over connections at 100 Mb/s",
            moves: "connections",
            place: connections,
            looks: looks(
                &|point| one(point) && crate::bed::delay_of(&point.bed).is_none(),
                connections,
            ),
        },
        Axis {
            title: "over latency, 2,048 connections at 100 Mb/s",
            moves: "one-way delay",
            place: delay,
            looks: looks(&|point| one(point) && crate::bed::delay_of(&point.bed).is_some(), delay),
        },
    ];
    axes.into_iter().filter(|axis| !axis.looks.is_empty()).collect()
}

fn layer_times(profile: &Profile) -> Vec<Time> {
    Layer::ALL.map(|layer| profile.layer(layer)).to_vec()
}

fn task_time(profile: &Profile, task: Task) -> Time {
    profile.tasks_that(|one| one == task)
}

/// `None` without rows. `row` gives the first cells, and the parts of a profile.
fn table<'f, T: Fn(&Profile) -> Vec<Time>>(
    heading: String,
    first: &[&str],
    parts: &[&str],
    looks: impl Iterator<Item = &'f WhiteBox>,
    row: impl Fn(&WhiteBox) -> (Vec<String>, T),
) -> Option<Table> {
    let mut rows = Vec::new();
    for found in looks {
        let Some(profile) = &found.profile else { continue };
        let (mut cells, times) = row(found);
        let times = times(profile);
        let micros = |time: Time| if time.samples == 0 { "0".into() } else { digits(time.micros) };
        cells.extend(times.iter().map(|time| micros(*time)));
        let samples: u32 = times.iter().map(|time| time.samples).sum();
        let all: f64 = times.iter().map(|time| time.micros).sum();
        cells.push(format!("{} ({samples})", digits(all)));
        let rate = digits(profile.rate);
        cells.push(match found.point.rate {
            Some(asked) if profile.rate < f64::from(asked) * 0.9 => format!("{rate} of {asked}"),
            _ => rate,
        });
        rows.push(cells);
    }
    let head = first.iter().chain(parts).chain(&["all", "requests/s"]);
    (!rows.is_empty()).then(|| Table {
        heading,
        head: head.map(|cell| (*cell).to_owned()).collect(),
        rows,
        notes: vec![NOTES.into()],
    })
}
