//! The fleet, as this machine sees it.

use std::fmt;

use afpa_fleet::FleetView;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Value, json};

use super::Observed;
use super::families::{by, counters, gauge, gauges};

impl Observed {
    /// Sums for heartbeats: answers, hits, and connections that are open.
    pub(in crate::serve) fn readings(&self) -> (u64, u64, u64) {
        let kernel = self.answers_in_kernel();
        let answers = self.http.iter().map(|counters| counters.responses()).sum::<u64>();
        let hits = self.http(|c| &c.hits) + self.http(|c| &c.shared_hits);
        (answers + kernel, hits + kernel, self.engine(|c| &c.open))
    }

    /// `null` without a fleet.
    pub(super) fn fleet_json(&self) -> Value {
        let Some(view) = self.fleet.load_full() else { return Value::Null };
        let look = view.look();
        let (live, silent) = view.count();
        json!({
            "connected": look.connected,
            "members": live,
            "silent": silent,
            "word_ms": look.word_ms,
            "lag": lag(&view),
            "waiting_orders": look.waiting,
            "purges": look.counts.purges,
            "bans": look.counts.bans,
            "flushes": look.counts.flushes,
            "softened": look.counts.softened,
            "failed": look.counts.failed,
        })
    }

    /// A server without a fleet has none of these metrics.
    pub(super) fn encode_fleet(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(view) = self.fleet.load_full() else { return Ok(()) };
        let look = view.look();
        let (live, silent) = view.count();
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let members = by("state", [("live", count(live)), ("silent", count(silent))]);
        gauges(out, ("fleet_members", "Members of the fleet that are known"), members)?;
        let connected = usize::from(look.connected);
        gauge(out, "fleet_connected", "Whether a server of the fleet is reached", connected, None)?;
        let help = "Orders to purge of the fleet that are not carried out yet";
        gauge(out, "fleet_lag", help, usize::try_from(lag(&view)).unwrap_or(usize::MAX), None)?;
        let help = "Orders of this machine that wait for the servers";
        gauge(out, "fleet_waiting_orders", help, look.waiting, None)?;
        let counts = look.counts;
        let done = [
            ("purge", counts.purges),
            ("deny", counts.bans),
            ("flush", counts.flushes),
            ("soften", counts.softened),
            ("failed", counts.failed),
        ];
        counters(out, ("fleet_orders", "Orders of the fleet by their effect"), by("effect", done))
    }
}

fn lag(view: &FleetView) -> u64 {
    let look = view.look();
    let own = look.members.iter().find(|member| member.is_own);
    let done = own.and_then(|member| member.beat.purges).map_or(0, |place| place.sequence);
    look.last_purge.saturating_sub(done)
}
