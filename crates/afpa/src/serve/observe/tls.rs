//! Outcomes of TLS handshakes, over all workers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use afpa_server::counters::{TlsCounters, WorkerCounters};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde_json::{Value, json};

/// Of every worker.
pub(super) struct Handshakes<'a>(pub(super) &'a [Arc<WorkerCounters>]);

impl Handshakes<'_> {
    /// The sums of counters that have the same name in every worker.
    fn sums<'c, I>(&'c self, of: impl Fn(&'c TlsCounters) -> I) -> BTreeMap<&'static str, u64>
    where
        I: Iterator<Item = (&'static str, u64)>,
    {
        let mut sums = BTreeMap::new();
        for (name, count) in self.0.iter().flat_map(|worker| of(&worker.tls)) {
            *sums.entry(name).or_insert(0) += count;
        }
        sums
    }

    /// Complete handshakes by version, of full ones or those that resumed a session.
    fn by_version(&self, resumed: bool) -> BTreeMap<&'static str, u64> {
        self.sums(|counters| {
            let kind = counters.by_version().filter(move |(_, kind, _)| *kind == resumed);
            kind.map(|(version, _, count)| (version, count))
        })
    }

    fn in_progress(&self) -> u64 {
        self.0.iter().map(|worker| worker.tls.in_progress.get()).sum()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "full": self.by_version(false).values().sum::<u64>(),
            "resumed": self.by_version(true).values().sum::<u64>(),
            "in_progress": self.in_progress(),
            "failed": self.sums(TlsCounters::by_reason),
            "ciphers": self.sums(TlsCounters::by_cipher),
            "protocols": self.sums(TlsCounters::by_protocol),
            "early_data": self.sums(TlsCounters::by_early_data),
        })
    }

    pub(super) fn encode(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Complete handshakes of TLS, by version and whether a session was resumed";
        let mut family =
            out.encode_descriptor("afpa_tls_handshakes", help, None, MetricType::Counter)?;
        for resumed in [false, true] {
            for (version, count) in self.by_version(resumed) {
                let labels =
                    [("version", version), ("resumed", if resumed { "true" } else { "false" })];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Handshakes of TLS that failed, by reason";
        let reasons = self.sums(TlsCounters::by_reason);
        counters(out, ("afpa_tls_handshake_failures", help, "reason"), &reasons)?;
        let help = "Complete handshakes of TLS, by cipher suite";
        let ciphers = self.sums(TlsCounters::by_cipher);
        counters(out, ("afpa_tls_ciphers", help, "cipher"), &ciphers)?;
        let help = "Complete handshakes of TLS, by protocol (ALPN)";
        let protocols = self.sums(TlsCounters::by_protocol);
        counters(out, ("afpa_tls_protocols", help, "protocol"), &protocols)?;
        let help = "Connections of TLS with early data (0-RTT), by what became of it";
        let early = self.sums(TlsCounters::by_early_data);
        counters(out, ("afpa_tls_early_data", help, "outcome"), &early)?;
        let help = "Handshakes of TLS in progress";
        let name = "afpa_tls_handshakes_in_progress";
        let in_progress = ConstGauge::new(i64::try_from(self.in_progress()).unwrap_or(i64::MAX));
        in_progress.encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }
}

fn counters(
    out: &mut DescriptorEncoder<'_>,
    (name, help, label): (&str, &str, &str),
    counts: &BTreeMap<&'static str, u64>,
) -> fmt::Result {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in counts {
        ConstCounter::new(*count).encode(family.encode_family(&[(label, *value)])?)?;
    }
    Ok(())
}
