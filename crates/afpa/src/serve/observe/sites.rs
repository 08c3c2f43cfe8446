//! Statistics of sites and request sets, as JSON and for Prometheus. Workers count the requests that they
//! answer. The kernel counts its answers for each site, but not for request sets.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use afpa_fast_path::SiteInKernel;
use afpa_module_http::{HttpCounters, ScopeReport, Site};
use afpa_proxy::limit::LIMITS;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use serde_json::{Value, json};

use super::families::{counters, gauges};

/// Sites and request sets at one moment.
pub(super) struct Sites {
    sites: Vec<Row>,
    /// Request sets that were used.
    sets: Vec<Row>,
}

struct Row {
    site: String,
    set: Option<String>,
    counts: ScopeReport,
    /// By limit, in the order of [`LIMITS`]; only for sites.
    refused: [u64; LIMITS.len()],
    /// The kernel's answers, which are included in the counts; only for sites.
    kernel: Option<SiteInKernel>,
}

/// The name and value of a further label, if the name is not empty, and a count.
type Counted = (&'static str, &'static str, u64);

impl Sites {
    /// The sum of the counts of all cores, and the kernel's counts for each site.
    pub(super) fn look(
        cores: &[Arc<HttpCounters>],
        configured: &[Site],
        kernel: Vec<SiteInKernel>,
    ) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        let mut places = HashMap::new();
        for scopes in cores.iter().map(|counters| counters.scopes()) {
            for scope in scopes.iter() {
                // During a reload, cores may count different sites and request sets.
                let place =
                    *places.entry((scope.site.clone(), scope.set.clone())).or_insert_with(|| {
                        let (site, set) = (scope.site.clone(), scope.set.clone());
                        rows.push(Row {
                            site,
                            set,
                            counts: ScopeReport::default(),
                            refused: [0; LIMITS.len()],
                            kernel: None,
                        });
                        rows.len() - 1
                    });
                if let Some(row) = rows.get_mut(place) {
                    row.counts.add(&scope.report());
                }
            }
        }
        let (mut sites, mut sets): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| row.set.is_none());
        let placed = sites.iter_mut().zip(configured);
        // For the same reason, the names are compared.
        for (row, site) in placed.filter(|(row, site)| row.site.starts_with(&site.name)) {
            row.refused = site.gate.refused();
        }
        for ((row, site), kernel) in sites.iter_mut().zip(configured).zip(kernel) {
            if row.site.starts_with(&site.name) {
                let [_, ok, moved, _, _] = &mut row.counts.responses;
                *ok += kernel.count.whole;
                *moved += kernel.count.not_modified;
                row.kernel = Some(kernel);
            }
        }
        sets.retain(|row| row.counts.requests() + row.counts.in_flight > 0);
        Self { sites, sets }
    }

    /// A table of sites.
    pub(super) fn sites_json(&self) -> Value {
        let rows = self.sites.iter().map(|row| {
            let mut json = row.to_json("site", &row.site);
            if let Value::Object(json) = &mut json {
                json.insert("refused".to_owned(), row.refused.iter().sum::<u64>().into());
                if let Some(kernel) = &row.kernel {
                    json.insert("from_kernel".to_owned(), kernel.count.all().into());
                    json.insert("kernel".to_owned(), kernel.state.as_str().into());
                }
            }
            json
        });
        rows.collect()
    }

    /// A table of the request sets that were used.
    pub(super) fn sets_json(&self) -> Value {
        let name = |row: &Row| row.set.clone().unwrap_or_default();
        self.sets.iter().map(|row| row.to_json("request_set", &name(row))).collect()
    }

    /// These numbers and more for Prometheus.
    pub(super) fn encode(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        encode_rows(out, "site", "of a site", &self.sites)?;
        let help = "Responses of a site that the kernel gave, by class";
        counter(out, "site_kernel_responses", help, &self.sites, |row| {
            let count = row.kernel.as_ref().map(|kernel| kernel.count).unwrap_or_default();
            vec![("class", "2xx", count.whole), ("class", "3xx", count.not_modified)]
        })?;
        let help = "Distributed requests beyond the limits of a site, by limit";
        counter(out, "site_refused", help, &self.sites, |row| {
            LIMITS.into_iter().zip(row.refused).map(|(name, n)| ("limit", name, n)).collect()
        })?;
        let whose = "of a request set, without those that the kernel answered";
        encode_rows(out, "request_set", whose, &self.sets)
    }
}

impl Row {
    fn to_json(&self, kind: &str, name: &str) -> Value {
        let [_, ok, moved, client, failed] = self.counts.responses;
        let percentile = |percent| self.counts.duration.as_ref()?.percentile_us(percent);
        json!({
            kind: name,
            "requests": self.counts.requests(),
            "2xx": ok,
            "3xx": moved,
            "4xx": client,
            "5xx": failed,
            "in_flight": self.counts.in_flight,
            "duration_50_us": percentile(50),
            "duration_99_us": percentile(99),
        })
    }

    fn labels(&self) -> Vec<(&'static str, &str)> {
        let set = self.set.iter().map(|set| ("request_set", set.as_str()));
        std::iter::once(("site", self.site.as_str())).chain(set).collect()
    }
}

fn encode_rows(
    out: &mut DescriptorEncoder<'_>,
    kind: &str,
    whose: &str,
    rows: &[Row],
) -> fmt::Result {
    const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    let help = format!("Requests {whose}");
    counter(out, &format!("{kind}_requests"), &help, rows, |row| {
        vec![("", "", row.counts.requests())]
    })?;
    let help = format!("Responses {whose}, by class");
    counter(out, &format!("{kind}_responses"), &help, rows, |row| {
        let counts = CLASSES.into_iter().zip(row.counts.responses);
        counts.map(|(class, count)| ("class", class, count)).collect()
    })?;
    let help = format!("Requests {whose} that a thread or a server works on");
    let in_flight = |row: &Row| i64::try_from(row.counts.in_flight).unwrap_or(i64::MAX);
    let members = rows.iter().map(|row| (row.labels(), in_flight(row)));
    gauges(out, (&format!("{kind}_in_flight"), &help), members)?;
    let name = format!("afpa_{kind}_duration");
    let help = format!("From a distributed request {whose} to the end of its answer");
    let unit = Unit::Seconds;
    let mut family = out.encode_descriptor(&name, &help, Some(&unit), MetricType::Histogram)?;
    for (row, times) in rows.iter().filter_map(|row| Some((row, row.counts.duration.as_ref()?))) {
        super::families::times(&mut family, &row.labels(), times)?;
    }
    Ok(())
}

fn counter(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: &[Row],
    values: impl Fn(&Row) -> Vec<Counted>,
) -> fmt::Result {
    let members = rows.iter().flat_map(|row| {
        values(row).into_iter().map(|(key, value, count)| {
            let mut labels = row.labels();
            if !key.is_empty() {
                labels.push((key, value));
            }
            (labels, count)
        })
    });
    counters(out, (name, help), members)
}
