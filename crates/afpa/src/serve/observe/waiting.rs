//! How the workers wait for their connections, and why.

use std::fmt;
use std::sync::Arc;

use afpa_framework::Counter;
use afpa_server::counters::WorkerCounters;
use afpa_server::io::{Leaving, Reason, Strategy};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde_json::{Value, json};

/// Of every worker.
pub(super) struct Waiting<'a>(pub(super) &'a [Arc<WorkerCounters>]);

impl Waiting<'_> {
    fn sum(&self, counter: impl Fn(&WorkerCounters) -> &Counter) -> u64 {
        self.0.iter().map(|counters| counter(counters).get()).sum()
    }

    fn left(&self) -> [(&'static str, u64); Leaving::ALL.len()] {
        Leaving::ALL.map(|why| (why.name(), self.sum(|c| c.left_ring(why))))
    }

    fn changes(&self) -> [(&'static str, u64); Reason::ALL.len()] {
        Reason::ALL.map(|why| (why.name(), self.sum(|c| c.strategy_changes(why))))
    }

    pub(super) fn to_json(&self) -> Value {
        let object = |counts: &[(&'static str, u64)]| {
            let pairs =
                counts.iter().map(|(name, count)| ((*name).to_owned(), Value::from(*count)));
            Value::Object(pairs.collect())
        };
        let workers = self.0.iter().enumerate().map(|(worker, counters)| {
            let (strategy, why) = counters.strategy.get();
            let in_ring = counters.in_ring.get();
            json!({
                "worker": worker,
                "strategy": strategy.name(),
                "because": why.name(),
                "by_completion": in_ring,
                "by_readiness": counters.open.get().saturating_sub(in_ring),
            })
        });
        json!({
            "entered_ring": self.sum(|c| &c.entered_ring),
            "left_ring": object(&self.left()),
            "strategy_changes": object(&self.changes()),
            "workers": workers.collect::<Vec<_>>(),
        })
    }

    pub(super) fn encode(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Whether the worker waits by completion";
        let mut completes =
            out.encode_descriptor("afpa_worker_completion", help, None, MetricType::Gauge)?;
        for (worker, counters) in self.0.iter().enumerate() {
            let labels = [("worker", worker.to_string())];
            let value = i64::from(counters.strategy.get().0 == Strategy::Completion);
            ConstGauge::new(value).encode(completes.encode_family(&labels)?)?;
        }
        let in_ring = i64::try_from(self.sum(|c| &c.in_ring)).unwrap_or(i64::MAX);
        let help = "Connections that wait by completion";
        let open =
            out.encode_descriptor("afpa_connections_in_ring", help, None, MetricType::Gauge)?;
        ConstGauge::new(in_ring).encode(open)?;
        let help = "Connections that changed to completion";
        let entered = out.encode_descriptor(
            "afpa_connections_entered_ring",
            help,
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(self.sum(|c| &c.entered_ring)).encode(entered)?;
        let help = "Connections that changed from completion to readiness, by reason";
        family(out, "afpa_connections_left_ring", help, &self.left())?;
        let help = "Workers that changed between readiness and completion, by reason";
        family(out, "afpa_strategy_changes", help, &self.changes())
    }
}

fn family(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    counts: &[(&'static str, u64)],
) -> fmt::Result {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (reason, count) in counts {
        ConstCounter::new(*count).encode(family.encode_family(&[("reason", *reason)])?)?;
    }
    Ok(())
}
