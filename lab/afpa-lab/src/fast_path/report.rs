//! The results for people: tables, the ratios beside their goals, and the figure.

use super::Results;
use super::cases::{H2O, KERNEL, NGINX, REFLECTOR};
use super::figures::{CaseFigures, Figure, ServerFigures};
use crate::bench::{Align, Report, Table, count, percent, times};
use crate::figures::{Panel, PanelBar, Panels};
use crate::stats::Spread;

const LARGER_GOALS: [(u64, &str); 3] =
    [(4 << 10, "at least 5x"), (8 << 10, "at least 5x"), (14 << 10, "at least 4x")];
const GOALS: [(&str, &str); 3] =
    [(NGINX, "at least 10x"), (H2O, "at least 8x"), (REFLECTOR, "aim 0.60x")];
const BROWSER_GOAL: &str = "at least 0.5x";

pub(super) fn report(results: &Results) -> Report {
    let mut report = Report::new("The fast path", &results.environment, &results.versions);
    report.text(&method(results));
    for case in &results.speed {
        speed(&mut report, case);
    }
    larger(&mut report, &results.larger);
    for case in &results.once {
        speed(&mut report, case);
    }
    report.heading("All ratios");
    report.table(&ratios(results));
    let first = results.commands.keys().next().and_then(|name| name.split(',').next());
    let of_first = results.commands.iter().filter(|(name, _)| {
        let case = name.split(',').next();
        case == first || case == Some("coherence")
    });
    report.commands("Those of one case; all of them are in results.json.", of_first);
    report
}

fn method(results: &Results) -> String {
    let settings = &results.settings.bench;
    format!(
        "Medians of {} interleaved rounds, measurements of {} s, with their smallest and largest. Each server \
         has one worker on core 0; the generator (TC, closed loop, every answer's status and length checked) has \
         core 1. Cubic, checksum and segmentation left to the device, access logs off. *Per core*: requests per \
         second in which the core was busy, by /proc/stat; on beds where the two sides mix, both sides' work.",
        settings.rounds, settings.seconds
    )
}

fn speed(report: &mut Report, case: &CaseFigures) {
    use Align::{Left, Right};
    report.heading(&case.title);
    report.text(&format!("Bed: {}.", case.bed_words));
    let mut table = Table::new([
        ("server", Left),
        ("requests/s", Right),
        ("per core", Right),
        ("core time a request", Right),
        ("p99", Right),
        ("kernel is", Right),
    ]);
    for server in &case.servers {
        let Spread { median, min, max } = server.cost;
        table.row([
            server.name.clone(),
            count(server.rate),
            count(server.per_core),
            format!("{median:.2} us ({min:.2} to {max:.2})"),
            format!("{:.0} us", server.p99.median),
            server.kernel_is.map_or(String::new(), times),
        ]);
    }
    report.table(&table);
    report.notes(&notes(&case.servers));
}

fn notes(servers: &[ServerFigures]) -> Vec<String> {
    let idle = servers.iter().filter(|server| server.saturated < server.rounds).map(|server| {
        let turns = server.rounds - server.saturated;
        format!("{} left its core idle for more than 5 % in {turns} turns", server.name)
    });
    let disturbed = servers
        .iter()
        .filter(|server| server.disturbed > 0)
        .map(|server| format!("others disturbed {} turns of {}", server.disturbed, server.name));
    idle.chain(disturbed).collect()
}

/// Core time by size, and the rate per core to nginx's.
fn larger(report: &mut Report, cases: &[CaseFigures]) {
    let Some(first) = cases.first() else { return };
    report.heading("Objects of several segments");
    report.text(
        "Core time a request in us, median (min to max); 64 connections, a core for each side. The reflector \
         sends all segments of a constant at once, without state, and does not process acknowledgements: no \
         program of its kind can take less.",
    );
    let names: Vec<&str> = first.servers.iter().map(|server| server.name.as_str()).collect();
    let mut columns = vec![("size", Align::Right)];
    columns.extend(names.iter().map(|name| (*name, Align::Right)));
    columns.push(("kernel is, to nginx", Align::Right));
    columns.push(("goal", Align::Left));
    columns.push(("kernel is, to the reflector", Align::Right));
    let mut table = Table::new(columns);
    for case in cases {
        let cost =
            |name: &&str| case.server(name).map_or(String::new(), |server| cost(server.cost));
        let ratio = |name| case.server(name)?.kernel_is.map(times);
        let goal = LARGER_GOALS.iter().find(|(size, _)| *size == case.size);
        let mut row = vec![format!("{} KB", case.size >> 10)];
        row.extend(names.iter().map(cost));
        row.push(ratio(NGINX).unwrap_or_default());
        row.push(goal.map_or(String::new(), |(_, goal)| (*goal).to_owned()));
        row.push(ratio(REFLECTOR).unwrap_or_default());
        table.row(row);
    }
    report.table(&table);
}

fn cost(Spread { median, min, max }: Spread) -> String {
    format!("{median:.2} ({min:.2} to {max:.2})")
}

fn ratios(results: &Results) -> Table {
    let mut table =
        Table::new([("what", Align::Left), ("figure", Align::Right), ("goal", Align::Left)]);
    let mut row =
        |what: String, figure: String, goal: &str| table.row([what, figure, goal.to_owned()]);
    for least in &results.least {
        let goal = GOALS.iter().find(|(name, _)| *name == least.server);
        let what = format!("least ratio to {}, {} ({})", least.server, least.bed, least.case);
        row(what, times(least.ratio), goal.map_or("", |(_, goal)| goal));
    }
    for share in &results.browser {
        row(
            format!("left of the rate per core: {}", share.title),
            times(share.spread),
            BROWSER_GOAL,
        );
    }
    for extra in &results.passes {
        let what = format!("what the programs add to {}", extra.title);
        row(what, percent(extra.spread), goal_of(&extra.name));
    }
    for extra in &results.alternating {
        let what = format!("what is added, there and away by turns of 20 ms: {}", extra.title);
        let goal = if extra.name.ends_with("nothing") { "" } else { goal_of(&extra.name) };
        row(what, extra.added.words(), goal);
    }
    for program in &results.programs {
        let what =
            format!("time of the programs alone, their own clock included: {}", program.title);
        row(what, nanoseconds(program), "");
    }
    for (what, figure, goal) in flows(results).into_iter().chain(changes(results)) {
        row(what, figure, goal);
    }
    for failure in &results.failed {
        let last = failure.lines().last().unwrap_or_default();
        row("NOT MEASURED".into(), last.to_owned(), "");
    }
    if !results.repeated.is_empty() {
        row(
            "turns that failed and were taken again".into(),
            results.repeated.len().to_string(),
            "0",
        );
    }
    table
}

fn nanoseconds(figure: &Figure) -> String {
    let Spread { median, min, max } = figure.spread;
    format!("{median:.0} ns ({min:.0} to {max:.0})")
}

fn goal_of(name: &str) -> &'static str {
    if name.contains("download") { "at most 2 %" } else { "at most 5 %" }
}

type Row = (String, String, &'static str);

fn flows(results: &Results) -> Vec<Row> {
    let Some(flows) = &results.flows else { return Vec::new() };
    let costs = [flows.cost_many.median, flows.cost_few.median];
    let mut rows = vec![
        (
            format!(
                "a request with {} connections to one with {} ({:.2} and {:.2} us)",
                flows.many, flows.few, costs[0], costs[1]
            ),
            times(flows.ratio),
            "at most 1.3x",
        ),
        ("most connections seen in the kernel's table".into(), flows.in_table.to_string(), ""),
    ];
    if let Some((bytes, room)) = flows.memory {
        let each = bytes as f64 / f64::from(room);
        let what = "memory of the table of flows, for each it has room for";
        rows.push((what.into(), format!("{each:.0} B"), ""));
    }
    rows
}

fn changes(results: &Results) -> Vec<Row> {
    let Some(changes) = &results.changes else { return Vec::new() };
    let what = format!(
        "close-after-write to the last stale answer, p99 of {} changes (p50 {:.2} ms, most {:.2} ms)",
        changes.changes,
        changes.p50 * 1e3,
        changes.most * 1e3
    );
    let backwards = format!("answers older than one seen before, of {}", changes.answers);
    vec![
        (what, format!("{:.2} ms", changes.p99 * 1e3), "at most 5 ms"),
        (backwards, changes.backwards.to_string(), "0"),
    ]
}

/// Two panels: 512 B as a small client asks for it, and as a browser does.
pub(super) fn figure(results: &Results) -> Option<String> {
    let shown = |case: &&CaseFigures| case.is_steered() && case.size == 512 && case.visitors == 1;
    let cases = || results.speed.iter().filter(shown);
    let most = cases().map(|case| case.connections).max()?;
    let mut cases: Vec<&CaseFigures> = cases().filter(|case| case.connections == most).collect();
    cases.sort_by_key(|case| case.browser);
    let bar = |server: &ServerFigures| {
        let value = server.per_core.median;
        let value = match value {
            large if large >= 999_500.0 => format!("{:.2} M", large / 1e6),
            small => format!("{:.0} k", small / 1e3),
        };
        let ratio = server
            .kernel_is
            .map_or(String::new(), |ratio| format!("  ({KERNEL}: {:.1}x)", ratio.median));
        PanelBar { name: server.name.clone(), value: server.per_core, label: value + &ratio }
    };
    let panel = |case: &&CaseFigures| Panel {
        title: case.title.clone(),
        bars: case.servers.iter().map(bar).collect(),
    };
    let environment = &results.environment;
    Panels {
        title: "Requests per second of one server core".into(),
        caption: vec![
            "A bar: how many requests a second one fully busy core answers. Longer is better.".into(),
            format!(
                "It ends at the median of {} interleaved rounds; the whisker spans the lowest and the highest.",
                results.settings.bench.rounds
            ),
            format!("In parentheses: how many times as many {KERNEL} answers. The reflector gives a constant: the bound."),
            format!("{}, Linux {}.", environment.processor, environment.kernel),
        ],
        columns: 1,
        one_scale: true,
        panels: cases.iter().map(panel).collect(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast_path::alternating::added;
    use crate::fast_path::cases::larger;
    use crate::fast_path::figures::tests::{named, samples};
    use crate::fast_path::figures::{case_figures, least};
    use crate::fast_path::{AlternatingFigure, tests::empty};

    fn results() -> Results {
        let case = named("512-256");
        let costs: Vec<(&str, &[f64])> =
            case.servers.iter().map(|server| (server.as_str(), [2.0, 4.0].as_slice())).collect();
        let speed = vec![case_figures(&samples(&case, &costs), &case).unwrap()];
        let figures: [&[f64]; 5] = [&[4.0], &[9.0], &[4.5], &[22.0], &[2.0]];
        let larger = larger();
        let larger = [&larger[0], &larger[4]].map(|case| {
            let costs: Vec<(&str, &[f64])> =
                case.servers.iter().map(String::as_str).zip(figures).collect();
            case_figures(&samples(case, &costs), case).unwrap()
        });
        let groups = [[3.0, 1.0, 1.0, 1.0], [1.1, 1.0, 1.0, 1.1], [1.0; 4]];
        let alternating = AlternatingFigure {
            name: "alternating-download".into(),
            title: "a download".into(),
            added: added(&groups).unwrap(),
        };
        Results {
            least: least("bed", &speed, NGINX, |server| server.kernel_is).into_iter().collect(),
            speed,
            larger: larger.to_vec(),
            alternating: vec![alternating],
            programs: vec![Figure {
                name: "program-hit".into(),
                title: "a hit".into(),
                spread: Spread::of([400.0, 500.0]).unwrap(),
            }],
            repeated: vec!["why".into()],
            commands: [("512-256, nginx".to_owned(), "run".to_owned())].into(),
            ..empty()
        }
    }

    #[test]
    fn every_server_has_its_line_and_the_ratio_its_goal() {
        let report = report(&results());
        let text = report.markdown();
        for line in [
            "| afpa kernel | 100.0 k",
            "| turns that failed and were taken again | 1 |",
            "| 1.00x (1.00 to 1.00) | at least 10x |",
            "| 4 KB | 4.00 (4.00 to 4.00) | 9.00 (9.00 to 9.00) |",
            "a download | +10.0 % (half of 3 groups +0.0 to +100.0, standard error 31.8) | at most 2 %",
            "| 5.50x (5.50 to 5.50) | at least 5x | 0.50x (0.50 to 0.50) |",
            "a hit | 450 ns (400 to 500) |",
            "# 512-256, nginx\nrun\n",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn what_the_reflector_does_not_give_is_left_open() {
        let report = report(&results());
        let line = "| 22.00 (22.00 to 22.00) |  | 5.50x (5.50 to 5.50) |  |  |";
        assert!(report.markdown().contains(line), "{}", report.markdown());
    }

    #[test]
    fn the_figure_has_a_bar_for_every_server() {
        let picture = figure(&results()).unwrap();
        assert_eq!(picture.matches("class=\"bar ").count(), named("512-256").servers.len());
        assert!(picture.contains("A bar: how many requests"));
        assert!(figure(&empty()).is_none());
    }
}
