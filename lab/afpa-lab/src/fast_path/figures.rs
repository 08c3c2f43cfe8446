//! From measurements to the figures of the report. No clock, no process, no file.

use serde::Serialize;

use super::cases::{KERNEL, REFLECTOR};
use crate::bench::{Case, CaseBed, Metric, Samples};
use crate::results::Doubt;
use crate::stats::{Spread, pairs};

/// A case that was measured, server by server.
#[derive(Debug, Clone, Serialize)]
pub struct CaseFigures {
    /// The case's.
    pub name: String,
    /// The case's.
    pub title: String,
    /// Name of the bed.
    pub bed: &'static str,
    /// The bed in words.
    #[serde(skip)]
    pub bed_words: &'static str,
    /// Bytes of the object.
    pub size: u64,
    /// Connections at a time.
    pub connections: u32,
    /// With a browser's header fields.
    pub browser: bool,
    /// How many different cookies there are.
    pub visitors: u32,
    /// In the order of the case.
    pub servers: Vec<ServerFigures>,
}

/// One server in a case.
#[derive(Debug, Clone, Serialize)]
pub struct ServerFigures {
    /// The server's.
    pub name: String,
    /// Requests per second.
    pub rate: Spread,
    /// Requests per second of busy core.
    pub per_core: Spread,
    /// Core time of a request, in microseconds.
    pub cost: Spread,
    /// In microseconds.
    pub p99: Spread,
    /// The kernel's requests per core over this server's. The kernel is the case's first server.
    pub kernel_is: Option<Spread>,
    /// The same without the client's part, on beds where the work of both sides mixes.
    pub kernel_is_without_client: Option<Spread>,
    /// Measurements.
    pub rounds: usize,
    /// Measurements in which the server's core was busy all the time.
    pub saturated: usize,
    /// Measurements that others disturbed.
    pub disturbed: usize,
}

/// The least favourable ratio over several cases, and the case that it is from.
#[derive(Debug, Clone, Serialize)]
pub struct Least {
    /// The beds of the cases, in words.
    pub bed: &'static str,
    /// The server that the kernel is compared with.
    pub server: String,
    /// The ratio.
    pub ratio: Spread,
    /// Title of the case.
    pub case: String,
}

/// A figure of a case.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The case's.
    pub name: String,
    /// The case's.
    pub title: String,
    /// The figure.
    pub spread: Spread,
}

/// All figures of a complete case; `None` when a server lacks a round.
pub(super) fn case_figures(samples: &Samples, case: &Case) -> Option<CaseFigures> {
    let load = case.tc()?;
    if !samples.is_complete(case) {
        return None;
    }
    let mixed = load.bed != CaseBed::Steered;
    let figures = |name: &String| server_figures(samples, case, name, mixed);
    Some(CaseFigures {
        name: case.name.clone(),
        title: case.title.clone(),
        bed: load.bed.name(),
        bed_words: load.bed.words(),
        size: case.size(),
        connections: case.connections,
        browser: load.browser,
        visitors: load.visitors,
        servers: case.servers.iter().map(figures).collect::<Option<_>>()?,
    })
}

fn server_figures(
    samples: &Samples,
    case: &Case,
    server: &str,
    mixed: bool,
) -> Option<ServerFigures> {
    let spread = |metric| samples.spread(&case.name, server, metric);
    let all = || samples.all(&case.name, server);
    let first = case.servers.first().map_or(KERNEL, String::as_str);
    let other = server != first;
    Some(ServerFigures {
        name: server.to_owned(),
        rate: spread(Metric::Requests)?,
        per_core: spread(Metric::RequestsPerCore)?,
        cost: scaled(spread(Metric::CoreTime)?, 1e6),
        p99: scaled(spread(Metric::P99)?, 1e6),
        kernel_is: samples
            .ratio(&case.name, first, server, Metric::RequestsPerCore)
            .filter(|_| other),
        kernel_is_without_client: Spread::of(without_client(samples, case, server))
            .filter(|_| other && mixed && server != REFLECTOR),
        rounds: all().count(),
        saturated: all().filter(|sample| sample.is_saturated()).count(),
        disturbed: all().filter(|sample| sample.is(Doubt::Disturbed)).count(),
    })
}

/// The cost of another server's request over that of a kernel's request, round by round, both without the client's
/// part. That part is taken as half of the reflector's cost: the generator does at least as much as the reflector, so
/// the part is too small rather than too large, and the error is not in AFPA's favour.
fn without_client(samples: &Samples, case: &Case, server: &str) -> Vec<f64> {
    let of = |name| samples.of(&case.name, name, Metric::CoreTime);
    let shares = of(REFLECTOR);
    let less = |figures: Vec<(u32, f64)>| -> Vec<(u32, f64)> {
        let share = |round| shares.iter().find(|(other, _)| *other == round);
        let less = |(round, cost): (u32, f64)| Some((round, cost - share(round)?.1 / 2.0));
        figures.into_iter().filter_map(less).collect()
    };
    pairs(&less(of(server)), &less(of(KERNEL)))
}

/// The least favourable median over some cases; `None` when none has that server.
pub(super) fn least<'c>(
    bed: &'static str,
    cases: impl IntoIterator<Item = &'c CaseFigures>,
    server: &str,
    ratio: fn(&ServerFigures) -> Option<Spread>,
) -> Option<Least> {
    let of = |case: &'c CaseFigures| {
        let found = case.servers.iter().find(|one| one.name == server)?;
        Some((ratio(found)?, case))
    };
    let found = cases.into_iter().filter_map(of);
    let (ratio, case) = found.min_by(|(one, _), (other, _)| one.median.total_cmp(&other.median))?;
    Some(Least { bed, server: server.to_owned(), ratio, case: case.title.clone() })
}

/// The share of the kernel's requests per core that a browser's header fields leave, for each case that has some.
pub(super) fn browser_shares(samples: &Samples, cases: &[Case]) -> Vec<Figure> {
    let share = |case: &Case| {
        let (plain, _) = case.name.split_once("-browser")?;
        let of = |name| samples.of(name, KERNEL, Metric::RequestsPerCore);
        let spread = Spread::of(pairs(&of(&case.name), &of(plain)))?;
        Some(Figure { name: case.name.clone(), title: case.title.clone(), spread })
    };
    cases.iter().filter_map(share).collect()
}

/// The extra cost of a case's first server over its second: 0.05 is five per cent.
pub(super) fn overhead(samples: &Samples, case: &Case) -> Option<Figure> {
    let [with_programs, without] = case.servers.as_slice() else { return None };
    let ratios = samples.ratios(&case.name, with_programs, without, Metric::CoreTime);
    let spread = Spread::of(ratios.into_iter().map(|ratio| ratio - 1.0))?;
    let complete = samples.is_complete(case);
    complete.then(|| Figure { name: case.name.clone(), title: case.title.clone(), spread })
}

/// A spread in another unit.
pub(super) fn scaled(spread: Spread, factor: f64) -> Spread {
    let Spread { min, median, max } = spread;
    Spread { min: min * factor, median: median * factor, max: max * factor }
}

impl CaseFigures {
    /// One server's figures.
    pub fn server(&self, name: &str) -> Option<&ServerFigures> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Each side has a core of its own, and its packets there.
    pub fn is_steered(&self) -> bool {
        self.bed == CaseBed::Steered.name()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::{Case, Sample};
    use crate::fast_path::cases::{H2O, NGINX, passes, speed};

    /// A measurement in which a request cost so many microseconds.
    pub(crate) fn costing(case: &Case, server: &str, round: u32, cost: f64) -> Sample {
        Sample {
            case: case.name.clone(),
            server: server.into(),
            round,
            requests: 100_000,
            seconds: 1.0,
            body_bytes: 0.0,
            core_seconds: cost / 10.0,
            latency: afpa_generator::Latency { p50: 1.0, p99: 2.0, ..Default::default() },
            busy: Default::default(),
            doubts: Vec::new(),
            errors: None,
        }
    }

    pub(crate) fn samples(case: &Case, costs: &[(&str, &[f64])]) -> Samples {
        let of = |(server, costs): &(&str, &[f64])| {
            (1..)
                .zip(costs.iter())
                .map(|(round, cost)| costing(case, server, round, *cost))
                .collect::<Vec<_>>()
        };
        Samples(costs.iter().flat_map(of).collect())
    }

    pub(crate) fn named(name: &str) -> Case {
        speed().into_iter().chain(passes()).find(|case| case.name == name).unwrap()
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let case = named("512-64");
        let costs: Vec<(&str, &[f64])> = case
            .servers
            .iter()
            .map(|server| -> (&str, &[f64]) {
                match server.as_str() {
                    KERNEL => (KERNEL, &[1.0, 2.0, 1.0]),
                    NGINX => (NGINX, &[10.0, 24.0, 11.0]),
                    other => (other, &[2.0, 4.0, 2.0]),
                }
            })
            .collect();
        let samples = samples(&case, &costs);
        let ratios = samples.ratios(&case.name, KERNEL, NGINX, Metric::RequestsPerCore);
        assert!(ratios.iter().zip([10.0, 12.0, 11.0]).all(|(a, b)| (a - b).abs() < 1e-9));
        let figures = case_figures(&samples, &case).unwrap();
        let nginx = figures.server(NGINX).unwrap();
        assert!((nginx.kernel_is.unwrap().median - 11.0).abs() < 1e-9);
        assert!(nginx.kernel_is_without_client.is_none());
        assert!(figures.server(KERNEL).unwrap().kernel_is.is_none());
    }

    #[test]
    fn the_clients_part_is_half_of_the_reflectors() {
        let case = named("512-64-together");
        let costs: [(&str, &[f64]); 4] =
            [(KERNEL, &[1.0]), (NGINX, &[7.0]), (H2O, &[5.0]), (REFLECTOR, &[0.8])];
        let figures = case_figures(&samples(&case, &costs), &case).unwrap();
        let nginx = figures.server(NGINX).unwrap();
        assert!((nginx.kernel_is.unwrap().median - 7.0).abs() < 1e-9);
        assert!((nginx.kernel_is_without_client.unwrap().median - 11.0).abs() < 1e-9);
        assert!(figures.server(REFLECTOR).unwrap().kernel_is_without_client.is_none());
    }

    #[test]
    fn the_least_favourable_case_is_found() {
        let case = named("512-64-together");
        let figures = |title: &str, nginx: f64| {
            let costs: [(&str, &[f64]); 4] =
                [(KERNEL, &[1.0]), (NGINX, &[nginx]), (H2O, &[5.0]), (REFLECTOR, &[0.8])];
            let figures = case_figures(&samples(&case, &costs), &case).unwrap();
            CaseFigures { title: title.into(), ..figures }
        };
        let cases = [figures("one", 12.0), figures("other", 9.0)];
        let found = least("bed", &cases, NGINX, |server| server.kernel_is).unwrap();
        assert_eq!(found.case, "other");
        assert!((found.ratio.median - 9.0).abs() < 1e-9);
        assert!(least("bed", &cases, "nobody", |server| server.kernel_is).is_none());
    }

    #[test]
    fn an_overhead_is_what_is_more_than_without() {
        let case = named("pass-afpa");
        let (with, without) = (case.servers[0].as_str(), case.servers[1].as_str());
        let costs: [(&str, &[f64]); 2] = [(with, &[5.2, 5.0, 5.5]), (without, &[5.0, 5.0, 5.0])];
        let more = overhead(&samples(&case, &costs), &case).unwrap().spread;
        assert!((more.median - 0.04).abs() < 1e-9 && (more.max - 0.1).abs() < 1e-9);
    }
}
