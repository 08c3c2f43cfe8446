//! Kim and Rixner's axes: on each one thing moves, and the rate is held.

use std::time::Duration;

use afpa_generator::{Load, SEGMENT, Workload, family};
use anyhow::{Context, Result};

use crate::bed::{BedPlan, Wire};
use crate::choice::{Preset, Wish};
use crate::plan::{Generators, Group, Plan, Task};
use crate::presets::MOST_CONNECTIONS;
use crate::whitebox;

/// Servers of Kim and Rixner's axes. Howl closes each connection: its place is `sped`'s.
const STACK: &[&str] = &["afpa-kernel", "afpa", "nginx", "h2o", "sped"];
/// Names of the two workloads: an answer of one full segment, and one of eleven.
pub(crate) const ONE_SEGMENT: &str = "segments-1";
pub(crate) const MANY_SEGMENTS: &str = "segments-11";
/// Bits a second over one connection.
const PACKET_RATES: [u64; 5] = [100, 300, 500, 700, 900];
/// The rate that is held on the other two axes.
const HELD: u64 = 100;
const DOUBLED: [u32; 10] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, MOST_CONNECTIONS];
/// One-way delay in milliseconds.
const DELAYS: [u64; 6] = [0, 5, 10, 20, 30, 40];
pub(crate) const LONGEST_DELAY: Duration = Duration::from_millis(40);
/// The forwarder without a delay to speak of: the others have its cost as well.
const NO_DELAY: Duration = Duration::from_micros(1);
/// Load before a point of an axis.
const AXIS_WARM_UP: Duration = Duration::from_millis(500);

/// A point of an axis, on which one thing moves and the others are held.
struct AxisPoint {
    title: &'static str,
    workload: Workload,
    connections: u32,
    /// Requests a second.
    rate: u32,
    /// Each way, when a forwarder is in the middle.
    delay: Option<Duration>,
}

/// Kim and Rixner's axes, and the servers that are looked into; the ends alone when `quick`.
fn axes(quick: bool) -> Result<(&'static [&'static str], Vec<AxisPoint>)> {
    let workloads = family("segments", &[], false)?;
    let named = |name: &str| workloads.iter().find(|one| one.name == name).cloned();
    let (one, many) = named(ONE_SEGMENT).zip(named(MANY_SEGMENTS)).context("both workloads")?;
    let rate = |workload: &Workload, megabits: u64| {
        (megabits as f64 * 1e6 / 8.0 / segmented(workload)).round() as u32
    };
    let mut points = Vec::new();
    for megabits in PACKET_RATES {
        points.push(AxisPoint {
            title: "packet rate",
            rate: rate(&many, megabits),
            workload: many.clone(),
            connections: 1,
            delay: None,
        });
    }
    for connections in DOUBLED {
        let (rate, workload) = (rate(&one, HELD), one.clone());
        points.push(AxisPoint { title: "connections", workload, connections, rate, delay: None });
    }
    for milliseconds in DELAYS {
        let delay = Some(Duration::from_millis(milliseconds).max(NO_DELAY));
        let (rate, workload) = (rate(&one, HELD), one.clone());
        let connections = MOST_CONNECTIONS;
        points.push(AxisPoint { title: "latency", workload, connections, rate, delay });
    }
    if quick {
        let of = |title: &str| {
            let own: Vec<usize> =
                (0..points.len()).filter(|at| points[*at].title == title).collect();
            [own[0], own[own.len() - 1]]
        };
        let kept = ["packet rate", "connections", "latency"].map(of).concat();
        let mut place = 0..;
        points.retain(|_| place.next().is_some_and(|at| kept.contains(&at)));
    }
    Ok((STACK, points))
}

/// Bytes of an answer of full segments.
fn segmented(workload: &Workload) -> f64 {
    let segments = workload.point.unwrap_or(1.0);
    segments * SEGMENT as f64
}

impl Wish {
    /// Adds Kim and Rixner's axes: points one after the other, of which those on one bed are a group.
    pub(crate) fn add_axes(
        &self,
        chosen: &[&str],
        generators: &Generators,
        plan: &mut Plan,
    ) -> Result<()> {
        if self.preset == Preset::Named || !self.look_inside {
            return Ok(());
        }
        let (servers, points) = axes(self.preset == Preset::Quick)?;
        let taking = chosen.iter().filter(|name| servers.contains(name));
        let servers: Vec<String> = taking.map(|name| (*name).to_owned()).collect();
        for point in points {
            let wire = point.delay.and_then(|delay| Wire::new(delay, 0.0, None));
            let bed = BedPlan::named("steered", self.cores, wire)?.acknowledging_each();
            let Some(task) = self.axis_task(&point, generators, &mut plan.left_out) else {
                continue;
            };
            match plan.axes.last_mut() {
                Some(group) if group.title == point.title && group.bed.name == bed.name => {
                    group.tasks.push(task);
                }
                _ => plan.axes.push(Group {
                    title: point.title.to_owned(),
                    bed,
                    tasks: vec![task],
                    servers: servers.clone(),
                    closing: Vec::new(),
                }),
            }
        }
        Ok(())
    }

    fn axis_task(
        &self,
        point: &AxisPoint,
        generators: &Generators,
        left_out: &mut Vec<String>,
    ) -> Option<Task> {
        let load = Load {
            connections: point.connections,
            // With many connections each has to have had its turn.
            warm_up: AXIS_WARM_UP,
            duration: whitebox::PROFILE,
            persistent: true,
            rate: Some(f64::from(point.rate)),
        };
        let (able, reasons) = generators.able(&point.workload, &load);
        let Some(generator) = able.into_iter().next() else {
            left_out.push(format!("{}: no generator: {}", point.title, reasons.join("; ")));
            return None;
        };
        Some(Task { workload: point.workload.clone(), load, generator })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On each axis one thing moves; a rate of 100 Mb/s is 8,633 segments of 1,448 bytes.
    #[test]
    fn axes_hold_what_they_do_not_move() {
        let (servers, points) = axes(false).unwrap();
        assert!(servers.contains(&"nginx") && !servers.contains(&"howl"));
        let of = |title: &'static str| points.iter().filter(move |one| one.title == title);
        assert_eq!(
            [of("packet rate").count(), of("connections").count(), of("latency").count()],
            [5, 10, 6]
        );
        assert!(of("packet rate").all(|one| one.connections == 1 && one.delay.is_none()));
        assert!(of("connections").all(|one| one.rate == 8633 && one.delay.is_none()));
        assert!(of("latency").all(|one| one.rate == 8633 && one.connections == MOST_CONNECTIONS));
        let rates: Vec<u32> = of("packet rate").map(|one| one.rate).collect();
        assert_eq!((rates[0], rates[4]), (785, 7063));
        assert_eq!(of("latency").next_back().unwrap().delay, Some(LONGEST_DELAY));
        let few = axes(true).unwrap().1;
        assert_eq!(
            few.iter().map(|one| one.connections).collect::<Vec<_>>(),
            [1, 1, 4, 2048, 2048, 2048]
        );
    }
}
