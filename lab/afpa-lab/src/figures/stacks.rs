//! Stacked bars: the time of a request in its layers, as in Kim and Rixner's figures, and in JAWS's tasks.

use super::Figure;
use super::svg::Svg;
use crate::along::axes;
use crate::results::Results;
use crate::units::digits;
use crate::whitebox::{Layer, Task, WhiteBox};

const LEFT: f64 = 190.0;
const LONGEST: f64 = 560.0;
const BEHIND: f64 = 110.0;
const TOP: f64 = 92.0;
const ROW: f64 = 19.0;
const SPACE: f64 = 8.0;
const SWATCH: f64 = 11.0;
/// One for each part, in the order of the parts.
const COLOURS: [&str; 9] = [
    "#f08a4b", "#c9a227", "#5aa9e6", "#2f6db5", "#17a3a3", "#6b8e23", "#d9431e", "#8a8d93",
    "#a32a6d",
];

/// A bar, and whether it begins another server.
struct Bar {
    name: String,
    begins: bool,
    /// Microseconds.
    parts: Vec<f64>,
}

/// A figure for each axis, and one of JAWS's tasks for each load that was looked into.
pub(super) fn draw(results: &Results) -> Vec<Figure> {
    let mut figures = Vec::new();
    for axis in axes(results) {
        let mut before = String::new();
        let mut bars = Vec::new();
        for found in &axis.looks {
            let begins = before != found.server;
            before.clone_from(&found.server);
            let name = format!("{}, {}", found.server, (axis.place)(&found.point).1);
            bars.push(Bar { name, begins, parts: layers(found) });
        }
        let title = format!("Time of a request by layer, {}", axis.title);
        let name = format!("layers-{}", axis.moves.replace(' ', "-"));
        figures.extend(stack(&title, &Layer::ALL.map(Layer::title), &bars, name));
    }
    let mut points: Vec<&WhiteBox> = Vec::new();
    for found in results
        .white_box
        .iter()
        .filter(|found| found.profile.is_some() && found.point.rate.is_none())
    {
        if !points.iter().any(|one| one.point == found.point) {
            points.push(found);
        }
    }
    for first in points {
        let point = &first.point;
        let own = results.white_box.iter().filter(|found| found.point == *point);
        let bars =
            own.map(|found| Bar { name: found.server.clone(), begins: false, parts: tasks(found) });
        let kind = if point.persistent { "persistent" } else { "one-each" };
        let title = format!(
            "Time of a request by category of call, {}, {}",
            point.workload,
            super::kind(point.persistent)
        );
        let name = format!("tasks-{}-{kind}", point.workload);
        figures.extend(stack(&title, &Task::ALL.map(Task::title), &bars.collect::<Vec<_>>(), name));
    }
    figures
}

fn layers(found: &WhiteBox) -> Vec<f64> {
    let profile = found.profile.iter();
    profile.flat_map(|profile| Layer::ALL.map(|layer| profile.layer(layer).micros)).collect()
}

fn tasks(found: &WhiteBox) -> Vec<f64> {
    let profile = found.profile.iter();
    profile
        .flat_map(|profile| Task::ALL.map(|task| profile.tasks_that(|one| one == task).micros))
        .collect()
}

/// `None` when nothing took any time.
fn stack(title: &str, parts: &[&str], bars: &[Bar], name: String) -> Option<Figure> {
    let sum = |bar: &Bar| bar.parts.iter().sum::<f64>();
    let longest = bars.iter().map(sum).max_by(f64::total_cmp).filter(|longest| *longest > 0.0)?;
    let spaces = bars.iter().filter(|bar| bar.begins).count() as f64 * SPACE;
    let height = TOP + ROW * bars.len() as f64 + spaces + 20.0;
    let mut svg = Svg::new(LEFT + LONGEST + BEHIND, height, title);
    svg.words((28.0, 30.0), "title", "start", title);
    svg.words(
        (28.0, 50.0),
        "soft small",
        "start",
        "Microseconds of the server's core, by samples of the clock.",
    );
    let mut x = 28.0;
    for (part, colour) in parts.iter().zip(COLOURS) {
        svg.bar((x, 62.0), (SWATCH, SWATCH), colour);
        svg.words((x + SWATCH + 4.0, 72.0), "small", "start", part);
        x += SWATCH + 16.0 + 6.6 * part.chars().count() as f64;
    }
    let mut y = TOP;
    for bar in bars {
        y += if bar.begins { SPACE } else { 0.0 };
        svg.words((LEFT - 10.0, y + ROW / 2.0 + 4.0), "small", "end", &bar.name);
        let mut x = LEFT;
        for (micros, colour) in bar.parts.iter().zip(COLOURS) {
            let width = micros * LONGEST / longest;
            svg.bar((x, y + 3.0), (width, ROW - 6.0), colour);
            x += width;
        }
        svg.words(
            (x + 8.0, y + ROW / 2.0 + 4.0),
            "small",
            "start",
            &format!("{} us", digits(sum(bar))),
        );
        y += ROW;
    }
    Some(Figure { name, caption: format!("{title}."), svg: svg.finish() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_share_of_the_bar() {
        let bar = |name: &str, parts: &[f64]| Bar {
            name: name.into(),
            begins: true,
            parts: parts.to_vec(),
        };
        let bars = [bar("nginx, 4", &[1.0, 3.0]), bar("h2o <4>", &[0.5, 0.5])];
        let figure = stack("Layers", &["user", "TCP"], &bars, "layers".into()).unwrap();
        assert!(figure.svg.contains("width=\"140.0\"") && figure.svg.contains("width=\"420.0\""));
        assert!(
            figure.svg.contains("h2o &lt;4&gt;") && figure.svg.contains("4.00 us"),
            "{}",
            figure.svg
        );
        assert!(stack("Layers", &["user"], &[bar("idle", &[0.0])], String::new()).is_none());
    }

    #[test]
    fn there_is_a_colour_for_each_part() {
        assert!(COLOURS.len() >= Layer::ALL.len() && COLOURS.len() >= Task::ALL.len());
    }
}
