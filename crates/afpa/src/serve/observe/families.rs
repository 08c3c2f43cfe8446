//! Families of metrics, as the exposition has them: one value, or one for each set of labels.

use std::fmt;

use afpa_proxy::observe::Histogram;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Adds one member to a family of histograms, in seconds.
pub(super) fn times(
    family: &mut MetricEncoder<'_>,
    labels: &[(&str, &str)],
    times: &Histogram,
) -> fmt::Result {
    // The encoder writes this as `+Inf`, and no other value so.
    let bound = |us: Option<u32>| us.map_or(f64::INFINITY, |us| f64::from(us) / 1e6);
    let buckets: Vec<_> = times.buckets().map(|(us, count)| (bound(us), count)).collect();
    let sum = times.sum_us() as f64 / 1e6;
    let mut metric = family.encode_family(&labels)?;
    metric.encode_histogram::<[(&str, &str); 0]>(sum, times.count(), &buckets, None)
}

/// `afpa_NAME_total`, with a member for each set of labels.
pub(super) fn counters<L: EncodeLabelSet>(
    out: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    members: impl IntoIterator<Item = (L, u64)>,
) -> fmt::Result {
    let name = format!("afpa_{name}");
    let mut family = out.encode_descriptor(&name, help, None, MetricType::Counter)?;
    members.into_iter().try_for_each(|(labels, count)| {
        ConstCounter::new(count).encode(family.encode_family(&labels)?)
    })
}

/// Members that differ in one label.
pub(super) fn by<V, C>(
    label: &'static str,
    counts: impl IntoIterator<Item = (V, C)>,
) -> impl Iterator<Item = ([(&'static str, V); 1], C)> {
    counts.into_iter().map(move |(value, count)| ([(label, value)], count))
}

/// `afpa_NAME`, likewise.
pub(super) fn gauges<L: EncodeLabelSet>(
    out: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    members: impl IntoIterator<Item = (L, i64)>,
) -> fmt::Result {
    let name = format!("afpa_{name}");
    let mut family = out.encode_descriptor(&name, help, None, MetricType::Gauge)?;
    members.into_iter().try_for_each(|(labels, value)| {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)
    })
}

/// `afpa_NAME_total`; the exposition adds the suffix.
pub(super) fn counter(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> fmt::Result {
    let metric = ConstCounter::new(value);
    let name = format!("afpa_{name}");
    metric.encode(out.encode_descriptor(&name, help, None, metric.metric_type())?)
}

/// `afpa_NAME_bytes_total`.
pub(super) fn bytes(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> fmt::Result {
    let metric = ConstCounter::new(value);
    let name = format!("afpa_{name}");
    let unit = Unit::Bytes;
    metric.encode(out.encode_descriptor(&name, help, Some(&unit), metric.metric_type())?)
}

pub(super) fn gauge(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: usize,
    unit: Option<&Unit>,
) -> fmt::Result {
    let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let name = format!("afpa_{name}");
    metric.encode(out.encode_descriptor(&name, help, unit, metric.metric_type())?)
}
