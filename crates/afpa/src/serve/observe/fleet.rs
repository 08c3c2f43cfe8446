//! The fleet, as this machine sees it.

use std::fmt;

use afpa_fleet::{FleetLook, FleetView, Phase, Readings};
use afpa_proxy::observe::{BUCKETS, Histogram};
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Value, json};

use super::Observed;
use super::families::{by, counter, counters, gauge, gauges};

impl Observed {
    /// Sums for heartbeats.
    pub(in crate::serve) fn readings(&self) -> Readings {
        let kernel = self.answers_in_kernel();
        let answers = self.http.iter().map(|counters| counters.responses()).sum::<u64>();
        let hits = self.http(|c| &c.hits) + self.http(|c| &c.shared_hits);
        let statuses = self.by_status().into_iter();
        Readings {
            answers: answers + kernel,
            hits: hits + kernel,
            connections: self.engine(|c| &c.open),
            failed: statuses.filter(|(code, _)| *code >= 500).map(|(_, count)| count).sum(),
            times: self.times().buckets().map(|(_, count)| count).collect(),
            configuration: String::new(),
        }
    }

    /// The times of all distributed requests.
    fn times(&self) -> Histogram {
        let mut times = Histogram::default();
        for table in self.http.iter().map(|counters| counters.scopes()) {
            let sites = table.iter().filter(|scope| scope.set.is_none());
            for report in sites.filter_map(|scope| scope.report().duration) {
                times.add_all(&report);
            }
        }
        times
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
            "keys": look.keys,
            "certificates": look.certificates,
            "purges": look.counts.purges,
            "bans": look.counts.bans,
            "flushes": look.counts.flushes,
            "softened": look.counts.softened,
            "failed": look.counts.failed,
            "revision": look.configuration.as_ref().and_then(|configuration| configuration.runs),
            "wanted_revision": look.configuration.as_ref().and_then(|one| one.wanted),
            "taken_revisions": view.takes(),
            "peers": look.peers,
            "rollout": unfinished(&look),
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
        if let Some(configuration) = &look.configuration {
            let number =
                |revision: Option<u64>| usize::try_from(revision.unwrap_or(0)).unwrap_or(0);
            let help = "The revision of the fleet's configuration that runs here, or 0";
            gauge(out, "fleet_revision", help, number(configuration.runs), None)?;
            let help = "The revision that is to run here, or 0";
            gauge(out, "fleet_wanted_revision", help, number(configuration.wanted), None)?;
            let phase = configuration.rollout.as_ref().map(|rollout| &rollout.phase);
            let is_back = matches!(phase, Some(Phase::Back { .. }));
            let is_under_way = matches!(phase, Some(Phase::Taking | Phase::Watching));
            let help = "Whether a revision is on its way to all machines";
            gauge(out, "fleet_rolling_out", help, usize::from(is_under_way), None)?;
            let help = "Whether the last revision was rolled back";
            gauge(out, "fleet_rolled_back", help, usize::from(is_back), None)?;
            let help = "Configurations of the fleet that were taken";
            counter(out, "fleet_taken_revisions", help, view.takes())?;
        }
        if let Some(turn) = look.keys {
            let turn = usize::try_from(turn).unwrap_or(usize::MAX);
            gauge(out, "fleet_keys_turn", "The turn of the shared keys in use", turn, None)?;
        }
        if let Some(count) = look.certificates {
            let help = "Records of certificates that all machines have";
            gauge(out, "fleet_certificate_records", help, count, None)?;
        }
        if let Some(peers) = look.peers {
            let help = "Machines that ask one another for answers, this one included";
            let machines = usize::try_from(peers.machines).unwrap_or(usize::MAX);
            gauge(out, "fleet_peers", help, machines, None)?;
            let asked = [
                ("answered", peers.answered),
                ("refused", peers.refused),
                ("failed", peers.failed),
            ];
            let help = "Questions to other machines of the fleet by their end";
            counters(out, ("fleet_peer_questions", help), by("end", asked))?;
            let served = [
                ("answered", peers.served),
                ("refused", peers.turned_away),
                ("strange", peers.strange),
            ];
            let help = "Questions of other machines of the fleet by their end";
            counters(out, ("fleet_peer_answers", help), by("end", served))?;
        }
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

/// The last roll-out in words; `None`: all machines are to run what was pushed. A reason may quote the configuration, which is not
/// for all who may read statistics.
fn unfinished(look: &FleetLook) -> Option<String> {
    let rollout = look.configuration.as_ref()?.rollout.as_ref()?;
    match rollout.phase {
        Phase::Done => None,
        Phase::Back { .. } => Some(format!(
            "revision {} of the fleet was rolled back: `afpa fleet` says why",
            rollout.target
        )),
        Phase::Taking | Phase::Watching => Some(rollout.to_string()),
    }
}

/// Microseconds that 99 of 100 times did not exceed, by their counts in the buckets of [`Histogram`].
pub(in crate::serve) fn p99_us(times: &[u64]) -> u64 {
    let mut buckets = [0; BUCKETS];
    buckets.iter_mut().zip(times).for_each(|(bucket, count)| *bucket = *count);
    Histogram::counted(buckets, 0).percentile_us(99).unwrap_or(0)
}

fn lag(view: &FleetView) -> u64 {
    let look = view.look();
    let own = look.members.iter().find(|member| member.is_own);
    let done = own.and_then(|member| member.beat.purges).map_or(0, |place| place.sequence);
    look.last_purge.saturating_sub(done)
}
