//! Statistics of the shared cache, as JSON and as metrics.

use std::fmt;

use afpa_shared_cache::SharedStats;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use serde_json::{Map, Value, json};

use super::Observed;
use super::families::{by, bytes, counter, counters, gauge};

impl Observed {
    fn shared_stats(&self) -> SharedStats {
        let serving = self.serving.load();
        serving.global.responses.as_ref().map(|responses| responses.stats()).unwrap_or_default()
    }

    /// In user mode and in the kernel.
    fn shared_hits(&self) -> u64 {
        self.http(|c| &c.shared_hits) + self.fast_path.answers_of_servers()
    }

    /// A section of the statistics.
    pub(super) fn shared_json(&self) -> Value {
        let stats = self.shared_stats();
        let passed = stats.passed.iter().filter(|(_, count)| *count > 0);
        let passed: Map<String, Value> =
            passed.map(|(reason, count)| ((*reason).to_owned(), Value::from(*count))).collect();
        json!({
            "hits": self.shared_hits(),
            "hits_in_kernel": self.fast_path.answers_of_servers(),
            "misses": stats.misses,
            "stale": stats.stale,
            "collapsed": stats.collapsed,
            "validated": stats.validated,
            "bypassed": stats.bypassed,
            "stored": stats.stored,
            "purges": stats.purges,
            "purged": stats.purged,
            "ejections": stats.ejections,
            "objects": stats.objects,
            "hit_bytes": self.http(|c| &c.shared_bytes),
            "pinned_bytes": stats.bytes,
            "pinned_limit_bytes": stats.limit,
            "not_kept": passed,
        })
    }

    /// These numbers for Prometheus.
    pub(super) fn encode_shared(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.shared_stats();
        let (hits, in_kernel) = (self.shared_hits(), self.fast_path.answers_of_servers());
        counter(out, "shared_hits", "Requests answered with a kept answer at once", hits)?;
        counter(out, "shared_hits_in_kernel", "Those of them that the kernel answered", in_kernel)?;
        counter(
            out,
            "shared_misses",
            "Requests without an answer that could be used",
            stats.misses,
        )?;
        counter(out, "shared_stale", "Stale answers that were used", stats.stale)?;
        counter(out, "shared_collapsed", "Requests with the answer to another", stats.collapsed)?;
        counter(out, "shared_validated", "Answers that a server confirmed", stats.validated)?;
        counter(out, "shared_bypassed", "Requests that do not use the cache", stats.bypassed)?;
        counter(out, "shared_stored", "Answers that were kept", stats.stored)?;
        counter(out, "shared_purges", "Purges", stats.purges)?;
        counter(out, "shared_purged", "Answers that purges were about", stats.purged)?;
        counter(out, "shared_ejections", "Answers dropped to make room", stats.ejections)?;
        gauge(out, "shared_objects", "Answers that are kept", stats.objects, None)?;
        bytes(out, "shared_hit", "Content of kept answers sent", self.http(|c| &c.shared_bytes))?;
        let unit = Some(Unit::Bytes);
        gauge(out, "shared_pinned", "Arena in use for answers", stats.bytes, unit.as_ref())?;
        let passed = stats.passed.iter().filter(|(_, count)| *count > 0);
        let passed = by("reason", passed.copied());
        counters(out, ("shared_not_kept", "Answers that were not kept, by reason"), passed)
    }
}
