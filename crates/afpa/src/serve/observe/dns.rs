//! Answers of DNS: by code, by type, and those that were not given.

use std::fmt;
use std::sync::Arc;

use afpa_framework::Counter;
use afpa_module_dns::DnsCounters;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use serde_json::{Map, Value, json};

use super::super::zone_operations::ZoneOperations;
use super::families::{by, counter, counters, gauge, gauges};

/// The sums over all threads.
pub(super) struct AnsweredNames {
    is_served: bool,
    rcodes: Vec<(&'static str, u64)>,
    types: Vec<(&'static str, u64)>,
    facts: [(&'static str, u64); 10],
    /// Older versions of zones that transfers hold, and their memory.
    held: (usize, usize),
    zones: Value,
}

impl AnsweredNames {
    pub(super) fn look(threads: &[Arc<DnsCounters>], zones: &ZoneOperations) -> Self {
        let (versions, bytes, ended) = zones.held();
        let (samples, samples_lost) = zones.samples();
        let sum = |count: fn(&DnsCounters) -> &Counter| {
            threads.iter().map(|counters| count(counters).get()).sum()
        };
        Self {
            is_served: !threads.is_empty(),
            rcodes: add(threads.iter().map(|counters| counters.by_rcode())),
            types: add(threads.iter().map(|counters| counters.by_type())),
            facts: [
                ("udp", sum(|c| &c.udp)),
                ("tcp", sum(|c| &c.tcp)),
                ("truncated", sum(|c| &c.truncated)),
                ("slipped", sum(|c| &c.slipped)),
                ("dropped", sum(|c| &c.dropped)),
                ("ignored", sum(|c| &c.ignored)),
                ("transfers", sum(|c| &c.transfers)),
                ("transfers_ended", ended),
                ("samples", samples),
                ("samples_lost", samples_lost),
            ],
            held: (versions, bytes),
            zones: zones.zones(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let map = |counts: &[(&'static str, u64)]| {
            let counts = counts.iter().filter(|(_, count)| *count > 0);
            counts.map(|(name, count)| ((*name).to_owned(), (*count).into())).collect::<Map<_, _>>()
        };
        let mut all = json!({ "rcodes": map(&self.rcodes), "types": map(&self.types) });
        for (name, count) in self.facts {
            all[name] = count.into();
        }
        all["older_versions_held"] = self.held.0.into();
        all["older_versions_held_bytes"] = self.held.1.into();
        all["zones"] = self.zones.clone();
        all
    }

    /// A server without zones has none of these metrics.
    pub(super) fn encode(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if !self.is_served {
            return Ok(());
        }
        let [udp, tcp, rest @ ..] = self.facts;
        let [truncated, slipped, dropped, ignored, transfers, ended, samples, samples_lost] =
            rest.map(|(_, count)| count);
        let help = "Answers of DNS by their code";
        counters(out, ("dns_answers", help), by("rcode", self.rcodes.iter().copied()))?;
        let help = "Answers of DNS by the type that was asked for";
        counters(out, ("dns_types", help), by("type", self.types.iter().copied()))?;
        counters(out, ("dns_questions", "Questions by transport"), by("transport", [udp, tcp]))?;
        counter(out, "dns_truncated", "Answers too long for a datagram", truncated)?;
        let help = "Answers beyond the rate of a prefix that asked it to come by TCP";
        counter(out, "dns_slipped", help, slipped)?;
        counter(out, "dns_dropped", "Answers beyond that rate that were not given", dropped)?;
        counter(out, "dns_ignored", "Datagrams that are no questions", ignored)?;
        counter(out, "dns_transfers", "Zones that secondaries got", transfers)?;
        let help = "Transfers that were ended, because they held too many older versions of a zone";
        counter(out, "dns_transfers_ended", help, ended)?;
        counter(out, "dns_samples", "Answers that a reader of dnstap has got", samples)?;
        let help = "Answers that were to be samples, and found no room or no reader";
        counter(out, "dns_samples_lost", help, samples_lost)?;
        let help = "Older versions of zones that transfers hold";
        gauge(out, "dns_older_versions_held", help, self.held.0, None)?;
        let help = "Memory of these versions";
        gauge(out, "dns_older_versions_held", help, self.held.1, Some(&Unit::Bytes))?;
        let of_zones = |key: &'static str| {
            let zones = self.zones.as_array().into_iter().flatten();
            let all = zones.filter_map(move |zone| {
                Some((zone["zone"].as_str()?.to_owned(), zone[key].as_i64()?))
            });
            by("zone", all)
        };
        let help = "Serial number of a zone";
        gauges(out, ("dns_zone_serial", help), of_zones("serial"))?;
        let help = "Unix time at which the first signature of a zone ends";
        gauges(out, ("dns_zone_signed_until", help), of_zones("signed_until"))?;
        let transfers = of_zones("transfers").map(|(labels, count)| (labels, count.unsigned_abs()));
        counters(out, ("dns_zone_transfers", "Transfers of a zone that began"), transfers)
    }
}

/// The counts of all threads; each has the same names in the same order.
fn add(
    threads: impl Iterator<Item = impl Iterator<Item = (&'static str, u64)>>,
) -> Vec<(&'static str, u64)> {
    let mut sums: Vec<(&'static str, u64)> = Vec::new();
    for (name, count) in threads.flatten() {
        match sums.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += count,
            None => sums.push((name, count)),
        }
    }
    sums
}
