//! The result in words and tables: for a terminal, and for a page.

use super::summary::{CaseSummary, Figures, MetricSummary, Summary};
use crate::bench::{Align, Report, Table};
use crate::units::number;

/// The hypervisor took more of a core: worth telling.
const MUCH_STOLEN: f64 = 0.02;

/// For a terminal.
pub(crate) fn text(summary: &Summary) -> String {
    let mut lines = Vec::new();
    for case in &summary.cases {
        for metric in &case.metrics {
            lines.extend([String::new(), heading(case, metric)]);
            lines.extend(aligned(&rows(metric, summary)));
        }
        lines.extend(notes(case));
    }
    lines.join("\n").trim_start().to_owned()
}

/// For a page.
pub(crate) fn markdown(summary: &Summary, report: &mut Report) {
    for case in &summary.cases {
        for metric in &case.metrics {
            report.heading(&heading(case, metric));
            let rows = rows(metric, summary);
            let align = |column| if column == 0 { Align::Left } else { Align::Right };
            let columns = rows[0].iter().enumerate().map(|(at, name)| (name.as_str(), align(at)));
            let mut table = Table::new(columns);
            rows[1..].iter().for_each(|row| table.row(row.clone()));
            report.table(&table);
        }
        notes(case).for_each(|note| report.notes(&[note]));
    }
}

fn heading(case: &CaseSummary, metric: &MetricSummary) -> String {
    let (title, metric) = (metric.metric.title(), metric.metric);
    let lower = title[..1].to_lowercase() + &title[1..];
    let better = if metric.more_is_better() { "more" } else { "less" };
    format!("{}: {lower} ({better} is better)", case.title)
}

type Row = [String; 6];

fn rows(metric: &MetricSummary, summary: &Summary) -> Vec<Row> {
    let to = format!("to {}", summary.baseline);
    let header = ["server", "median", "min", "max", &to, "pair by pair"].map(str::to_owned);
    let figures = metric.servers.iter().map(|own| figures(own, metric.metric.unit()));
    std::iter::once(header).chain(figures).collect()
}

fn figures(own: &Figures, unit: &str) -> Row {
    let (spread, ratio) = (own.spread, own.ratio);
    [
        own.name.clone(),
        number(spread.median, unit),
        number(spread.min, unit),
        number(spread.max, unit),
        format!("{:.2}x", ratio.median),
        format!("{:.2} .. {:.2}", ratio.min, ratio.max),
    ]
}

/// Reasons to doubt the figures of a case.
fn notes(case: &CaseSummary) -> impl Iterator<Item = String> {
    let title = &case.title;
    let bound = case.client_bound.iter().map(move |name| {
        let busy = case.busy[name];
        format!(
            "{title}: with {name} the client's core was the bottleneck (client {:.0}%, server {:.0}% busy): its \
             rates are the client's; what holds is the cost, bytes per second of busy server core",
            busy.client_core * 100.0,
            busy.server_core * 100.0
        )
    });
    let stolen = case.busy.iter().filter(|(_, busy)| busy.stolen > MUCH_STOLEN);
    let stolen = stolen.map(move |(name, busy)| {
        let share = busy.stolen * 100.0;
        format!("{title}: the hypervisor took {share:.0}% of a core while {name} was measured")
    });
    bound.chain(stolen)
}

fn aligned(rows: &[Row]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &Row| {
        let [name, figures @ ..] = row;
        let cells = figures.iter().zip(&widths[1..]).map(|(cell, width)| format!("{cell:>width$}"));
        let cells: Vec<String> = cells.collect();
        format!("  {name:<width$}  {}", cells.join("  "), width = widths[0])
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use afpa_generator::{Latency, Object};

    use super::super::figure;
    use super::*;
    use crate::bench::{Case, Metric, Sample, Samples, sample};
    use crate::environment::Environment;
    use crate::results::Busy;

    fn small() -> Summary {
        let objects = vec![(1, Object::new("/small.html", 512))];
        let case = Case::new("small", "512 B, 64 connections", &["nginx"], objects);
        let case = Case { metrics: &[Metric::Requests, Metric::P99], ..case };
        let sample = Sample {
            seconds: 2.0,
            latency: Latency { p99: 1012.0, ..Latency::default() },
            busy: Busy { server_core: 0.5, client_core: 1.0, ..Busy::default() },
            ..sample("small", "nginx", 1, 93_400)
        };
        Summary::of(&Samples(vec![sample]), &["nginx".into()], &[case], "nginx").unwrap()
    }

    fn environment() -> Environment {
        Environment { processor: "P <&> Q".into(), kernel: "6".into(), ..Environment::default() }
    }

    fn page() -> String {
        let mut report = Report::new("AFPA beside its peers", &environment(), &[]);
        markdown(&small(), &mut report);
        report.markdown().to_owned()
    }

    fn drawn() -> String {
        figure::draw("AFPA beside its peers", &small(), 1, &environment(), 2).unwrap()
    }

    #[test]
    fn all_three_forms_of_a_result_tell_the_median() {
        for text in [text(&small()), page(), drawn()] {
            assert!(text.contains("46.7 k/s") && text.contains("1.00x"), "{text}");
        }
    }

    #[test]
    fn table_and_page_tell_the_bottleneck() {
        for text in [text(&small()), page()] {
            let words = "the client's core was the bottleneck (client 100%, server 50% busy)";
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn the_figure_is_well_formed_whatever_the_processor_is_called() {
        let text = drawn();
        assert!(text.contains("P &lt;&amp;&gt; Q") && !text.contains("P <&"), "{text}");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    }
}
