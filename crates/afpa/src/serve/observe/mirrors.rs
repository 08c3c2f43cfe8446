//! Requests that are mirrored, as JSON and as metrics.

use std::fmt;

use afpa_module_http::{MIRROR_DROPS, MirrorReport};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use serde_json::{Map, Value, json};

use super::Observed;
use super::families::{by, counters, gauge};

impl Observed {
    fn mirrors(&self) -> MirrorReport {
        self.serving.load().global.mirrors.stock.report()
    }

    /// A section of the statistics.
    pub(super) fn mirror_json(&self) -> Value {
        let report = self.mirrors();
        let drops = MIRROR_DROPS.iter().zip(report.dropped).filter(|(_, count)| *count > 0);
        let drops: Map<String, Value> =
            drops.map(|(reason, count)| ((*reason).to_owned(), Value::from(count))).collect();
        json!({
            "answered": report.answered,
            "failed": report.failed,
            "dropped": report.dropped.iter().sum::<u64>(),
            "in_flight": report.in_flight,
            "held_bytes": report.bytes,
            "drops": drops,
        })
    }

    /// These numbers for Prometheus.
    pub(super) fn encode_mirrors(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let report = self.mirrors();
        let ends = by("end", [("answered", report.answered), ("failed", report.failed)]);
        counters(out, ("mirrors", "Requests that were mirrored, by their end"), ends)?;
        let drops = by("reason", MIRROR_DROPS.into_iter().zip(report.dropped));
        counters(out, ("mirrors_dropped", "Requests that were not mirrored, by reason"), drops)?;
        gauge(out, "mirrors_in_flight", "Mirrors under way", report.in_flight, None)?;
        let unit = Some(Unit::Bytes);
        gauge(out, "mirrors_held", "Heads and contents of mirrors", report.bytes, unit.as_ref())
    }
}
