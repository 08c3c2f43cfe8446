//! The result as a picture: a panel for each metric of each case, a bar for each server.

use super::short;
use super::summary::{CaseSummary, Figures, MetricSummary, Summary};
use crate::environment::Environment;
use crate::figures::{Panel, PanelBar, Panels};
use crate::units::number;

/// SVG; `None` when there is nothing to draw.
pub(crate) fn draw(
    title: &str,
    summary: &Summary,
    rounds: u32,
    environment: &Environment,
    columns: usize,
) -> Option<String> {
    let metrics =
        summary.cases.iter().flat_map(|case| case.metrics.iter().map(move |one| (case, one)));
    let caption = vec![
        format!(
            "A bar is the median of {rounds} interleaved rounds or more, its whisker goes from the lowest to the highest."
        ),
        format!(
            "Behind it the median and its ratio to {}. Less is better for latencies, more for all others.",
            summary.baseline
        ),
        format!(
            "{}, Linux {}; one core for each server.",
            environment.processor, environment.kernel
        ),
    ];
    let panels = metrics.map(|(case, metric)| panel(case, metric)).collect();
    Panels { title: title.to_owned(), caption, columns, one_scale: false, panels }.draw()
}

fn panel(case: &CaseSummary, metric: &MetricSummary) -> Panel {
    let bar = |own: &Figures| PanelBar {
        name: own.name.clone(),
        value: own.spread,
        label: format!(
            "{} ({:.2}x)",
            number(own.spread.median, metric.metric.unit()),
            own.ratio.median
        ),
    };
    let title = format!("{}: {}", case.title, short(metric.metric));
    Panel { title, bars: metric.servers.iter().map(bar).collect() }
}
