//! How it stands with certificates that come by themselves.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_acme::Status;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde_json::{Value, json};

/// Of every certificate in `[acme]`.
pub(super) struct OrderedCertificates(pub(super) Vec<Status>);

impl OrderedCertificates {
    /// Times are seconds from now; below zero, since then.
    pub(super) fn to_json(&self) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let from_now = |at: u64| at.cast_signed().saturating_sub(now.cast_signed());
        let rows = self.0.iter().map(|status| {
            json!({
                "name": name(status),
                "expires_in_seconds": status.not_after.map(from_now),
                "ordered_in_seconds": from_now(status.next).max(0),
                "failures": status.failures,
                "error": status.error,
            })
        });
        rows.collect()
    }

    pub(super) fn encode(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let help = "When a certificate ends, in seconds since the Unix epoch; 0: there is none yet";
        let name_of = "afpa_certificate_expiry_timestamp_seconds";
        let mut family = out.encode_descriptor(name_of, help, None, MetricType::Gauge)?;
        for status in &self.0 {
            let at = status.not_after.map_or(0, u64::cast_signed);
            ConstGauge::new(at).encode(family.encode_family(&[("name", name(status))])?)?;
        }
        let help = "Failures in a row to get the next certificate";
        let mut family =
            out.encode_descriptor("afpa_certificate_failures", help, None, MetricType::Gauge)?;
        for status in &self.0 {
            let failures = ConstGauge::new(i64::from(status.failures));
            failures.encode(family.encode_family(&[("name", name(status))])?)?;
        }
        let help = "Certificates that were ordered and came";
        let mut family =
            out.encode_descriptor("afpa_certificate_orders", help, None, MetricType::Counter)?;
        for status in &self.0 {
            let issued = ConstCounter::new(status.issued);
            issued.encode(family.encode_family(&[("name", name(status))])?)?;
        }
        Ok(())
    }
}

fn name(status: &Status) -> &str {
    status.names.first().map_or("", |name| name)
}
