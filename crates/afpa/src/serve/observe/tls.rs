//! Outcomes of TLS handshakes, over all workers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use afpa_server::counters::{TlsCounters, WorkerCounters};
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Value, json};

use super::families::{by, counters, gauge};

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
        let complete =
            [("false", false), ("true", true)].into_iter().flat_map(|(word, resumed)| {
                let versions = self.by_version(resumed).into_iter();
                versions
                    .map(move |(version, count)| ([("version", version), ("resumed", word)], count))
            });
        counters(out, ("tls_handshakes", help), complete)?;
        let help = "Handshakes of TLS that failed, by reason";
        let reasons = self.sums(TlsCounters::by_reason);
        counters(out, ("tls_handshake_failures", help), by("reason", reasons))?;
        let help = "Complete handshakes of TLS, by cipher suite";
        let ciphers = self.sums(TlsCounters::by_cipher);
        counters(out, ("tls_ciphers", help), by("cipher", ciphers))?;
        let help = "Complete handshakes of TLS, by protocol (ALPN)";
        let protocols = self.sums(TlsCounters::by_protocol);
        counters(out, ("tls_protocols", help), by("protocol", protocols))?;
        let help = "Connections of TLS with early data (0-RTT), by what became of it";
        let early = self.sums(TlsCounters::by_early_data);
        counters(out, ("tls_early_data", help), by("outcome", early))?;
        let help = "Handshakes of TLS in progress";
        let name = "tls_handshakes_in_progress";
        let in_progress = usize::try_from(self.in_progress()).unwrap_or(usize::MAX);
        gauge(out, name, help, in_progress, None)
    }
}
