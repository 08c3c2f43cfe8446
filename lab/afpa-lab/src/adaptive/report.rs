//! The results for people.

use super::Results;
use super::contestants::{CHOOSES, FIXED};
use crate::bench::{Align, Report, Table, times};
use crate::stats::Spread;

pub(super) fn report(results: &Results) -> Report {
    let mut report = Report::new("A load that changes", &results.environment, &results.versions);
    report.text(&method(results));
    report.heading("Core time of a request");
    report.table(&phases(results));
    report.heading("Over the whole");
    report.table(&whole(results));
    report.notes(&results.failed);
    report.commands("Those of the last round.", results.commands.iter());
    report
}

fn method(results: &Results) -> String {
    let settings = &results.settings;
    format!(
        "Medians of {} interleaved rounds. In each round every server is started once, on core 0 of the steered bed, and \
         lives through all phases, {} s each, one behind the other; nothing is left out at their begin. The generator (TC, \
         closed loop) has core 1. *To the best*: what the server that chooses needs for a request, to what the better of the \
         fixed ones needs in that phase, with the smallest and the largest ratio of the rounds; the aim is 1.05.",
        settings.rounds, settings.seconds
    )
}

fn phases(results: &Results) -> Table {
    use Align::{Left, Right};
    let names = [CHOOSES].into_iter().chain(FIXED).map(|name| (name, Right));
    let mut table = Table::new(
        [("phase", Left)]
            .into_iter()
            .chain(names)
            .chain([("best fixed", Left), ("to the best", Right)]),
    );
    for phase in &results.phases {
        let costs = std::iter::once(&phase.chooses).chain(&phase.fixed).map(cost);
        let cells = std::iter::once(phase.title.clone()).chain(costs);
        table.row(cells.chain([phase.best.to_owned(), times(phase.to_best)]));
    }
    table
}

fn whole(results: &Results) -> Table {
    let mut table =
        Table::new([("fixed", Align::Left), ("needs, to the one that chooses", Align::Right)]);
    for whole in &results.whole {
        table.row([whole.fixed.to_owned(), times(whole.to_chooses)]);
    }
    table
}

/// In microseconds, with its spread.
fn cost(spread: &Spread) -> String {
    let Spread { min, median, max } = spread;
    format!("{:.2} us ({:.2} to {:.2})", median * 1e6, min * 1e6, max * 1e6)
}
