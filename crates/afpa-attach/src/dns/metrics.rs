//! The numbers of an attachment to a name server for Prometheus, in OpenMetrics 1.0.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_dns::rtype;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::engine::Engine;

/// The media type of a page.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics.
pub(super) fn page(engine: &Arc<Engine>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Metrics(Arc::clone(engine))));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

struct Metrics(Arc<Engine>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// `afpa_dns_kernel_NAME`, with a member for each set of labels.
fn counters<L: EncodeLabelSet>(
    out: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    members: impl IntoIterator<Item = (L, u64)>,
) -> fmt::Result {
    let name = format!("afpa_dns_kernel_{name}");
    let mut family = out.encode_descriptor(&name, help, None, MetricType::Counter)?;
    members.into_iter().try_for_each(|(labels, count)| {
        ConstCounter::new(count).encode(family.encode_family(&labels)?)
    })
}

fn counter(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let metric = ConstCounter::new(value);
    let name = format!("afpa_dns_kernel_{name}");
    metric.encode(out.encode_descriptor(&name, help, None, metric.metric_type())?)
}

fn gauge(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: usize) -> fmt::Result {
    let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let name = format!("afpa_dns_kernel_{name}");
    metric.encode(out.encode_descriptor(&name, help, None, metric.metric_type())?)
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (out, engine) = (&mut encoder, &self.0);
        let counts = engine.path.counts().map_err(|_| fmt::Error)?;
        let (nxdomain, all) = (counts.nxdomain(), counts.answered());
        let rcodes = [("NOERROR", all - nxdomain), ("NXDOMAIN", nxdomain)];
        let by_rcode = rcodes.map(|(rcode, count)| ([("rcode", rcode)], count));
        counters(out, ("answers", "Answers of the kernel by their code"), by_rcode)?;
        let by_type = by_type(counts.types());
        let by_type = by_type.into_iter().map(|(name, count)| ([("type", name)], count));
        let help = "Answers of the kernel by the type that was asked for";
        counters(out, ("types", help), by_type)?;
        let packets = counts.reasons().skip(1).map(|(reason, count)| {
            let (outcome, why) = reason.text().split_once(": ").unwrap_or((reason.text(), ""));
            ([("outcome", outcome), ("reason", why)], count)
        });
        let help =
            "Packets that the kernel did not answer, and what it saw of the server's answers";
        counters(out, ("packets", help), packets)?;
        let standing = engine.standing();
        let paused = engine.paused.load(Ordering::Relaxed);
        gauge(out, "paused", "1 while the kernel answers nothing", paused.into())?;
        gauge(out, "questions", "Questions whose answer is pinned", standing.keys)?;
        gauge(out, "tails", "Different ends of these answers", standing.tails)?;
        let help = "Pinned questions of names that anybody may have thought of";
        gauge(out, "guessed_questions", help, standing.guesses)?;
        gauge(out, "wanted_questions", "Questions that wait to be asked for", standing.wanted)?;
        gauge(out, "zones", "Zones that are watched", standing.zones)?;
        let help = "Zones of which an edition is current";
        gauge(out, "current_zones", help, standing.current)?;
        counter(out, "ended_editions", "Editions of zones that have ended", standing.changes)?;
        let asked = engine.asked.load(Ordering::Relaxed);
        counter(out, "questions_asked", "Questions to the server, besides polls", asked)?;
        counter(out, "confirmed", "Pinned answers that were confirmed", standing.confirmed)?;
        counter(out, "changed", "Pinned answers that had changed", standing.changed)?;
        let help = "Differences that the server itself did not confirm";
        counter(out, "false_alarms", help, standing.false_alarms)
    }
}

/// Types without a name of their own together.
pub(super) fn by_type(
    types: impl Iterator<Item = (Option<u16>, u64)>,
) -> std::collections::BTreeMap<&'static str, u64> {
    types.fold(Default::default(), |mut sums, (number, count)| {
        // No type has the number 0.
        *sums.entry(rtype::name_of_place(rtype::place(number.unwrap_or(0)))).or_default() += count;
        sums
    })
}
