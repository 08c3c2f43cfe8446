//! The tables that every form of the report is made from.

use super::words::{heading, told};
use crate::results::{Point, Results};
use crate::stats::Spread;
use crate::summary::{PointSummary, Row, Summary};
use crate::units::{digits, number};
use crate::whitebox::{Category, WhiteBox};

/// A table with its heading and what must be known to read it.
pub(super) struct Table {
    pub(super) heading: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) notes: Vec<String>,
}

/// Black box and white box, point by point.
pub(super) fn all(results: &Results, summary: &Summary) -> Vec<Table> {
    let points = summary.points.iter().map(|one| black_box(results, summary, one));
    let white = white_box(results).into_iter().chain(super::times::all(results));
    points.chain(agreement(summary)).chain(white).collect()
}

/// The same load by several generators: how far they agree.
fn agreement(summary: &Summary) -> Option<Table> {
    let mut rows = Vec::new();
    for one in summary.main_points() {
        let alike = summary.points.iter().filter(|other| other.point.is_like(&one.point));
        let alike: Vec<&PointSummary> = alike.collect();
        for row in one.rows.iter().filter(|_| alike.len() > 1) {
            let rates = alike.iter().filter_map(|other| {
                let theirs = other.row(&row.server)?;
                Some((other.point.generator.as_str(), theirs))
            });
            rows.push(agreement_row(&row.server, &rates.collect::<Vec<_>>()));
        }
    }
    let head = ["server", "fastest generator", "its requests/s", "the others, as a share of it"];
    (!rows.is_empty()).then(|| Table {
        heading: "How far the generators agree".into(),
        head: head.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "A generator marked g was its own bottleneck: where it is not, the figures should agree."
                .into(),
        ],
    })
}

fn agreement_row(server: &str, rates: &[(&str, &Row)]) -> Vec<String> {
    let fastest = rates.iter().max_by(|(_, a), (_, b)| a.rate.median.total_cmp(&b.rate.median));
    let Some((name, best)) = fastest else { return vec![server.to_owned()] };
    let share = |row: &Row| format!("{:.0} %", row.rate.median / best.rate.median * 100.0);
    let others = rates.iter().filter(|(other, _)| other != name).map(|(other, row)| {
        format!("{other} {}{}", share(row), if row.is_client_bound() { " g" } else { "" })
    });
    let others: Vec<String> = others.collect();
    vec![server.into(), (*name).into(), number(best.rate.median, "/s"), others.join(", ")]
}

fn black_box(results: &Results, summary: &Summary, one: &PointSummary) -> Table {
    let head = [
        "server",
        "requests/s",
        "lowest to highest",
        "bytes/s",
        "of a client",
        "p50",
        "p99",
        "p99.9",
        "us a request",
        "user",
        "system",
        "interrupts",
        "",
    ];
    let mut head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    head.push(format!("{}'s requests/s over it", summary.subject));
    head.push("its cost over that".into());
    head.extend(["memory", "start"].map(str::to_owned));
    let rows = one.rows.iter().map(|row| black_box_row(row, one.point.connections)).collect();
    Table { heading: heading(results, &one.point), head, rows, notes: notes(one) }
}

fn black_box_row(row: &Row, clients: u32) -> Vec<String> {
    let marks: String = row.doubts.iter().map(|doubt| doubt.mark()).collect();
    let Spread { min, median, max } = row.rate;
    let micro = |value: f64| number(value / 1e6, "s");
    vec![
        row.server.clone(),
        number(median, "/s"),
        format!("{} to {}", number(min, "/s"), number(max, "/s")),
        number(row.bytes.median, "B/s"),
        number(row.bytes.median / f64::from(clients.max(1)), "B/s"),
        micro(row.latency[0]),
        micro(row.latency[1]),
        micro(row.latency[2]),
        digits(row.cost.median),
        digits(row.parts.user),
        digits(row.parts.system),
        digits(row.parts.interrupts),
        marks,
        row.ratio.as_ref().map_or(String::new(), told),
        row.cost_ratio.as_ref().map_or(String::new(), told),
        row.memory.map_or(String::new(), |bytes| number(bytes, "B")),
        row.start.map_or(String::new(), |seconds| number(seconds, "s")),
    ]
}

fn notes(one: &PointSummary) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(noise) = one.noise {
        notes.push(format!("One server, measured twice a round, was up to {} % from itself: a smaller difference is none.", digits(noise * 100.0)));
    }
    if one.rows.iter().any(|row| row.memory.is_some()) {
        notes.push(
            "Memory is that of the server's processes after the measurement, what they share once; start is the time until \
             it accepts connections, to within 10 ms. Both hold servers behind it; neither the kernel's tables of programs."
                .into(),
        );
    }
    if !crate::bed::tells_cost(&one.point.bed) {
        notes.push(
            "On this bed packet work is done on either core: cost is not the server's, and is \
             compared with none."
                .into(),
        );
    }
    let mut doubts: Vec<_> = one.rows.iter().flat_map(|row| &row.doubts).copied().collect();
    doubts.sort_unstable();
    doubts.dedup();
    for doubt in doubts {
        notes.push(format!("{}: {}.", doubt.mark(), doubt.words()));
    }
    for row in one.rows.iter().filter(|row| row.turns[1] > 0) {
        notes.push(format!("{}: {} turns failed and do not count.", row.server, row.turns[1]));
    }
    notes
}

/// One table for each point that was looked into.
fn white_box(results: &Results) -> Vec<Table> {
    let mut points: Vec<&Point> = Vec::new();
    for found in results.white_box.iter().filter(|found| !found.calls.is_empty()) {
        if !points.contains(&&found.point) {
            points.push(&found.point);
        }
    }
    let table = |point: &Point| {
        let found = results.white_box.iter().filter(|found| found.point == *point);
        let mut head = vec!["server".to_owned()];
        head.extend(Category::ALL.iter().map(|category| category.title().to_owned()));
        head.extend(["all calls", "context switches", "instructions"].map(str::to_owned));
        Table {
            heading: format!("System calls a request. {}", heading(results, point)),
            head,
            rows: found.map(white_box_row).collect(),
            notes: vec![
                "Counted on the server's core in turns of their own; less than 0.005 is 0.".into(),
            ],
        }
    };
    points.into_iter().map(table).collect()
}

fn white_box_row(found: &WhiteBox) -> Vec<String> {
    let count = |value: f64| if value < 0.005 { "0".to_owned() } else { digits(value) };
    let mut row = vec![found.server.clone()];
    let of = |category| found.calls.iter().find(|(other, _)| *other == category);
    row.extend(Category::ALL.iter().map(|c| of(*c).map_or(String::new(), |(_, n)| count(*n))));
    row.push(count(found.calls.iter().map(|(_, calls)| calls).sum()));
    row.push(count(found.switches));
    row.push(found.instructions.map_or("not countable here".into(), |n| number(n, "")));
    row
}

impl Table {
    /// For a terminal: columns side by side.
    pub(super) fn plain(&self) -> String {
        let lines: Vec<&Vec<String>> = std::iter::once(&self.head).chain(&self.rows).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut text = format!("{}\n", self.heading);
        for line in &lines {
            let cells = line.iter().enumerate().map(|(column, cell)| match column {
                0 => format!("  {cell:<0$}", width(0)),
                _ => format!("  {cell:>0$}", width(column)),
            });
            text += cells.collect::<String>().trim_end();
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("  {note}\n");
        }
        text
    }

    /// As Markdown, without the heading.
    pub(super) fn markdown(&self) -> String {
        let row = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = row(&self.head);
        text += &format!("|---|{}\n", "---:|".repeat(self.head.len() - 1));
        text.extend(self.rows.iter().map(row));
        text.extend(self.notes.iter().map(|note| format!("\n{note}\n")));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let cells = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let table = Table {
            heading: "Sizes".into(),
            head: cells(&["server", "rate"]),
            rows: vec![cells(&["a", "1000 /s"]), cells(&["nginx|x", "9 /s"])],
            notes: vec!["A note.".into()],
        };
        let plain = table.plain();
        let widths: Vec<usize> = plain.lines().skip(1).take(3).map(str::len).collect();
        assert_eq!(widths, [18, 18, 18], "{plain}");
        assert!(table.markdown().contains("| nginx\\|x | 9 /s |"));
    }
}
