//! Where the time of a request goes: tables by JAWS's tasks, by layer, and along Kim and Rixner's axes.

use super::tables::Table;
use super::words::heading;
use crate::along::axes;
use crate::results::{Point, Results};
use crate::units::digits;
use crate::whitebox::{Layer, Profile, Task, Time, WhiteBox};

const NOTES: &str = "Microseconds of the server's core a request, by samples of the clock in a turn of its own; in brackets \
                     the samples behind a whole row. A part of n samples is off by 1/sqrt(n) of it.";

/// The rate that was reached, as a share of the one asked for, where it counts as held.
const HELD: std::ops::Range<f64> = 0.9..1.12;

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
            Some(asked) if !HELD.contains(&(profile.rate / f64::from(asked))) => {
                format!("{rate} of {asked}")
            }
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
