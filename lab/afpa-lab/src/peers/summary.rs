//! The arithmetic: from samples to what each server's figures are beside a baseline's.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::bench::{Case, Metric, Sample, Samples};
use crate::results::Busy;
use crate::stats::Spread;

/// If the client has no time left while the server has some, the client was measured.
const CLIENT_FULL: f64 = 0.95;
const SERVER_FREE: f64 = 0.90;

/// For every case and metric the figures of each server.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// In the order of tables.
    pub(crate) servers: Vec<String>,
    /// The server that the ratios are to.
    pub(crate) baseline: String,
    /// In the order in which they were measured.
    pub(crate) cases: Vec<CaseSummary>,
}

/// The figures of one case.
#[derive(Debug, Serialize)]
pub(crate) struct CaseSummary {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Bytes of its first file.
    pub(crate) size: u64,
    pub(crate) connections: u32,
    /// The most important first.
    pub(crate) metrics: Vec<MetricSummary>,
    /// By server: the median round's.
    pub(crate) busy: BTreeMap<String, Busy>,
    /// With these servers the client was the bottleneck.
    pub(crate) client_bound: Vec<String>,
}

/// One metric of one case.
#[derive(Debug, Serialize)]
pub(crate) struct MetricSummary {
    pub(crate) metric: Metric,
    /// In the order of [`Summary::servers`].
    pub(crate) servers: Vec<Figures>,
}

/// One server's figures.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) name: String,
    pub(crate) spread: Spread,
    /// Round by round.
    pub(crate) values: Vec<f64>,
    /// To the baseline, over the rounds' own ratios.
    pub(crate) ratio: Spread,
}

impl Summary {
    /// Of samples; the ratios are to `baseline` if it took part, else to the first server.
    ///
    /// # Errors
    ///
    /// When a server lacks a round of a case.
    pub(crate) fn of(
        samples: &Samples,
        servers: &[String],
        cases: &[Case],
        baseline: &str,
    ) -> Result<Self> {
        let first = servers.first().context("nothing was measured")?;
        let baseline = servers.iter().find(|name| *name == baseline).unwrap_or(first);
        let cases = cases.iter().map(|case| CaseSummary::of(case, samples, servers, baseline));
        let cases = cases.collect::<Result<_>>()?;
        Ok(Self { servers: servers.to_vec(), baseline: baseline.clone(), cases })
    }
}

impl CaseSummary {
    fn of(case: &Case, samples: &Samples, servers: &[String], baseline: &str) -> Result<Self> {
        ensure!(samples.is_complete(case), "{}: a round is missing", case.title);
        let busy = |name: &String| Some((name.clone(), busy(samples.all(&case.name, name))?));
        let busy: BTreeMap<String, Busy> = servers.iter().filter_map(busy).collect();
        let bound = |name: &&String| busy.get(*name).is_some_and(is_client_bound);
        let metric = |metric: &Metric| {
            let figures = servers.iter().filter_map(|name| {
                let values: Vec<f64> =
                    samples.all(&case.name, name).map(|one| metric.of(one)).collect();
                let spread = Spread::of(values.iter().copied())?;
                let ratio = samples.ratio(&case.name, name, baseline, *metric).unwrap_or_default();
                Some(Figures { name: name.clone(), spread, values, ratio })
            });
            MetricSummary { metric: *metric, servers: figures.collect() }
        };
        Ok(Self {
            name: case.name.clone(),
            title: case.title.clone(),
            size: case.size(),
            connections: case.connections,
            metrics: case.metrics.iter().map(metric).collect(),
            client_bound: servers.iter().filter(bound).cloned().collect(),
            busy,
        })
    }
}

impl MetricSummary {
    /// One server's figures.
    pub(crate) fn server(&self, name: &str) -> Option<&Figures> {
        self.servers.iter().find(|one| one.name == name)
    }
}

/// Shares of the time in the median round; `None` when there is none.
fn busy<'s>(samples: impl Iterator<Item = &'s Sample>) -> Option<Busy> {
    let shares: Vec<Busy> = samples.map(|sample| sample.busy).collect();
    let median = |of: fn(&Busy) -> f64| Some(Spread::of(shares.iter().map(of))?.median);
    Some(Busy {
        server_core: median(|busy| busy.server_core)?,
        client_core: median(|busy| busy.client_core)?,
        foreign: median(|busy| busy.foreign)?,
        stolen: median(|busy| busy.stolen)?,
    })
}

/// Was the client and not the server the bottleneck, in the median round?
fn is_client_bound(busy: &Busy) -> bool {
    busy.client_core > CLIENT_FULL && busy.server_core < SERVER_FREE
}

#[cfg(test)]
mod tests {
    use afpa_generator::Object;

    use super::*;
    use crate::bench::sample;

    fn summary(samples: Vec<Sample>, servers: &[&str]) -> Result<Summary> {
        let objects = vec![(1, Object::new("/small.html", 512))];
        let case = Case::new("small", "small", servers, objects);
        let case = Case { metrics: &[Metric::Requests], ..case };
        let names = case.servers.clone();
        Summary::of(&Samples(samples), &names, &[case], "nginx")
    }

    #[test]
    fn a_ratio_is_taken_pair_by_pair() {
        // A machine that halves its speed between rounds leaves the ratio alone.
        let samples = [("nginx", 1, 200), ("afpa", 1, 300), ("afpa", 2, 150), ("nginx", 2, 100)];
        let samples =
            samples.map(|(server, round, requests)| sample("small", server, round, requests));
        let result = summary(samples.to_vec(), &["afpa", "nginx"]).unwrap();
        let metric = &result.cases[0].metrics[0];
        let afpa = metric.server("afpa").unwrap();
        assert_eq!(afpa.values, [300.0, 150.0]);
        assert_eq!(afpa.ratio, Spread { min: 1.5, median: 1.5, max: 1.5 });
        assert_eq!(metric.server("nginx").unwrap().ratio.median, 1.0);
    }

    #[test]
    fn a_missing_round_is_an_error() {
        let samples = [("afpa", 1), ("afpa", 2), ("nginx", 1)];
        let samples = samples.map(|(server, round)| sample("small", server, round, 1));
        assert!(summary(samples.to_vec(), &["afpa", "nginx"]).is_err());
        assert!(summary(vec![sample("small", "afpa", 1, 1)], &["afpa", "nginx"]).is_err());
    }

    #[test]
    fn without_nginx_the_first_server_is_the_baseline() {
        assert_eq!(summary(vec![sample("small", "h2o", 1, 1)], &["h2o"]).unwrap().baseline, "h2o");
    }

    /// The cores' busy seconds of rounds of two.
    fn client_bound(cores: &[(f64, f64)]) -> bool {
        let samples: Vec<Sample> = cores
            .iter()
            .map(|(server_core, client_core)| {
                let [server_core, client_core] = [server_core / 2.0, client_core / 2.0];
                let busy = Busy { server_core, client_core, ..Busy::default() };
                Sample { busy, ..sample("small", "a", 1, 1) }
            })
            .collect();
        is_client_bound(&busy(samples.iter()).unwrap())
    }

    #[test]
    fn a_full_client_beside_a_free_server_is_told() {
        assert!(client_bound(&[(1.6, 2.0)]));
    }

    #[test]
    fn a_full_server_is_the_bottleneck_itself() {
        assert!(!client_bound(&[(1.9, 2.0)]));
        assert!(!client_bound(&[(1.0, 1.0)]));
    }

    #[test]
    fn one_odd_round_does_not_decide() {
        assert!(!client_bound(&[(2.0, 2.0), (0.2, 2.0), (2.0, 2.0)]));
    }
}
