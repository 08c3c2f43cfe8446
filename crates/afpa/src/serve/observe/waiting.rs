//! How the workers wait for their connections, and why.

use std::fmt;
use std::sync::Arc;

use afpa_framework::Counter;
use afpa_server::counters::WorkerCounters;
use afpa_server::io::{Leaving, Reason, Strategy};
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Value, json};

use super::families::{by, counter, counters, gauge, gauges};

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
        let completes = self.0.iter().enumerate().map(|(worker, counters)| {
            let completes = counters.strategy.get().0 == Strategy::Completion;
            ([("worker", worker.to_string())], i64::from(completes))
        });
        gauges(out, ("worker_completion", help), completes)?;
        let in_ring = usize::try_from(self.sum(|c| &c.in_ring)).unwrap_or(usize::MAX);
        gauge(out, "connections_in_ring", "Connections that wait by completion", in_ring, None)?;
        let entered = self.sum(|c| &c.entered_ring);
        let help = "Connections that changed to completion";
        counter(out, "connections_entered_ring", help, entered)?;
        let help = "Connections that changed from completion to readiness, by reason";
        counters(out, ("connections_left_ring", help), by("reason", self.left()))?;
        let help = "Workers that changed between readiness and completion, by reason";
        counters(out, ("strategy_changes", help), by("reason", self.changes()))
    }
}
