//! How it stands with certificates that come by themselves.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_acme::Status;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Value, json};

use super::families::{counters, gauges};

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
        let named = |status| [("name", name(status))];
        let at = |status: &Status| status.not_after.map_or(0, u64::cast_signed);
        let at = self.0.iter().map(|status| (named(status), at(status)));
        gauges(out, ("certificate_expiry_timestamp_seconds", help), at)?;
        let help = "Failures in a row to get the next certificate";
        let failures = self.0.iter().map(|status| (named(status), status.failures.into()));
        gauges(out, ("certificate_failures", help), failures)?;
        let help = "Certificates that were ordered and came";
        let issued = self.0.iter().map(|status| (named(status), status.issued));
        counters(out, ("certificate_orders", help), issued)
    }
}

fn name(status: &Status) -> &str {
    status.names.first().map_or("", |name| name)
}
