//! The looks along Kim and Rixner's axes, in the order of tables and figures.

use crate::axes::{MANY_SEGMENTS, ONE_SEGMENT};
use crate::results::{Point, Results};
use crate::whitebox::WhiteBox;

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
