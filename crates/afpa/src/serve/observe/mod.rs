//! The statistics of a running server, as JSON for `afpa stats` and dashboards.

mod certificates;
mod dns;
mod exposition;
mod families;
mod fleet;
mod groups;
mod metrics;
mod mirrors;
mod police;
mod policy;
mod shared;
mod sites;
mod tls;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use afpa_acme::Statuses;
use afpa_cache::CacheStats;
use afpa_fast_path::{FastPathView, ShieldView};
use afpa_fleet::{FleetView, Seeds};
use afpa_framework::Counter;
use afpa_module_dns::DnsCounters;
use afpa_module_http::{CompressorStats, HttpCounters};
use afpa_police::Police;
use afpa_server::counters::WorkerCounters;
use afpa_workers::access_log::AccessLog;
use arc_swap::{ArcSwap, ArcSwapOption};
use serde_json::{Value, json};

use super::fleet_purges::Outgoing;
use super::serving::Serving;
use super::zone_operations::ZoneOperations;
use crate::span_export::SpanExport;
use certificates::OrderedCertificates;
use dns::AnsweredNames;
pub(super) use exposition::Exposition;
pub(super) use fleet::p99_us;
use groups::Groups;
use police::Refused;
use sites::Sites;
use tls::Handshakes;
use waiting::Waiting;

/// The parts of the running server from which statistics are read.
pub(crate) struct Observed {
    pub(super) started: Instant,
    pub(super) serving: ArcSwap<Serving>,
    pub(super) http: Vec<Arc<HttpCounters>>,
    pub(super) workers: Vec<Arc<WorkerCounters>>,
    pub(super) access_log: ArcSwap<AccessLog>,
    /// The export of spans.
    pub(super) spans: ArcSwap<SpanExport>,
    pub(super) fast_path: FastPathView,
    pub(super) shield: Option<ShieldView>,
    pub(super) police: Police,
    pub(super) certificates: Statuses,
    /// Of each thread that answers DNS.
    pub(super) dns: ArcSwap<Vec<Arc<DnsCounters>>>,
    pub(super) zones: Arc<ZoneOperations>,
    /// The fleet, while there is one.
    pub(super) fleet: ArcSwapOption<FleetView>,
    /// Purges of clients on their way to it.
    pub(super) purges: Outgoing,
    /// The seeds of its shared keys.
    pub(super) seeds: Arc<ArcSwapOption<Seeds>>,
}

impl Observed {
    /// The sum of one of the HTTP counters over all workers.
    fn http(&self, counter: impl Fn(&HttpCounters) -> &Counter) -> u64 {
        self.http.iter().map(|counters| counter(counters).get()).sum()
    }

    /// The sum of one of the engine's counters over all workers.
    fn engine(&self, counter: impl Fn(&WorkerCounters) -> &Counter) -> u64 {
        self.workers.iter().map(|counters| counter(counters).get()).sum()
    }

    /// Answers of the kernel, all of them hits.
    fn answers_in_kernel(&self) -> u64 {
        self.fast_path.numbers().map_or(0, |numbers| numbers.answers)
    }

    /// Answers by status code, of all workers and of the kernel.
    fn by_status(&self) -> Vec<(u16, u64)> {
        let mut sums = BTreeMap::new();
        if let Some(kernel) = self.fast_path.numbers() {
            let whole = kernel.answers.saturating_sub(kernel.not_modified);
            sums.extend([(200, whole), (304, kernel.not_modified)]);
        }
        sums.retain(|_, count| *count > 0);
        for (code, count) in self.http.iter().flat_map(|counters| counters.by_status()) {
            *sums.entry(code).or_insert(0) += count;
        }
        sums.into_iter().collect()
    }

    /// Requests beyond the rates of their place, by the setting.
    fn beyond_rates(&self) -> [(&'static str, u64); 2] {
        let [clients, all] = self.serving.load().global.rates.stock.refused();
        [("client_rate", clients), ("rate", all)]
    }

    fn handshakes(&self) -> Handshakes<'_> {
        Handshakes(&self.workers)
    }

    fn certificates(&self) -> OrderedCertificates {
        OrderedCertificates(self.certificates.get())
    }

    /// Answers of DNS.
    fn answered(&self) -> AnsweredNames {
        AnsweredNames::look(&self.dns.load(), &self.zones)
    }

    fn waiting(&self) -> Waiting<'_> {
        Waiting(&self.workers)
    }

    fn cache(&self) -> CacheStats {
        self.serving.load().cache.stats()
    }

    fn policy_changes(&self) -> u64 {
        self.serving.load().cache.policy_report().changes
    }

    fn compressor(&self) -> CompressorStats {
        self.serving.load().compressor.stats()
    }

    /// Server groups and their servers.
    fn groups(&self) -> Groups {
        Groups::look(&self.serving.load().groups())
    }

    /// Sites and their request sets.
    fn sites(&self) -> Sites {
        Sites::look(&self.http, &self.serving.load().global.sites, self.fast_path.sites())
    }

    /// Clients that were refused.
    fn refused(&self) -> Refused {
        let packets = self.fast_path.numbers().map(|numbers| numbers.packets);
        Refused::look(&self.police, &packets.unwrap_or_default())
    }

    /// The same numbers for Prometheus.
    pub(super) fn metrics(self: &Arc<Self>, format: Exposition) -> Result<String, std::fmt::Error> {
        Ok(format.of(metrics::page(self)?))
    }

    /// Everything, in the order in which people read it.
    pub(super) fn to_json(&self) -> Value {
        let cache = self.cache();
        let compressor = self.compressor();
        let serving = self.serving.load();
        let policies = serving.cache.policy_report();
        let watched = serving.global.watched();
        let access_log = self.access_log.load();
        let spans = self.spans.load();
        let groups = self.groups();
        let sites = self.sites();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "uptime_seconds": self.started.elapsed().as_secs(),
            "requests": {
                "responses": self.http.iter().map(|counters| counters.responses()).sum::<u64>()
                    + self.answers_in_kernel(),
                "hits": self.http(|c| &c.hits) + self.answers_in_kernel(),
                "hits_in_kernel": self.answers_in_kernel(),
                "misses": self.http(|c| &c.misses),
                "remote": self.http(|c| &c.remote),
                "content_bytes": self.http(|c| &c.content_bytes),
                "status": self.by_status().into_iter()
                    .map(|(code, count)| (code.to_string(), Value::from(count)))
                    .collect::<serde_json::Map<_, _>>(),
            },
            "fast_path": self.fast_path.to_json(),
            "http3_in_kernel": self.shield.as_ref().map(ShieldView::to_json),
            "cache": {
                "policy": policies.policies[0].kind.name(),
                "policy_changes": policies.changes,
                "objects": cache.objects,
                "file_objects": cache.file_objects,
                "pinned_bytes": cache.pinned_bytes,
                "pinned_limit_bytes": cache.pinned_limit,
                "tables_bytes": cache.bookkeeping,
                "tables_limit_bytes": cache.bookkeeping_limit,
                "pages_bytes": cache.page_bytes,
                "open_files": cache.open_files,
                "loads": cache.fills,
                "waited_for_load": cache.waits,
                "overtaken_loads": cache.overtaken,
                "invalidations": cache.invalidations,
                "ejections": cache.ejections,
                "overflows": cache.suspects,
                "confirmations": cache.confirmations,
                "expiries": cache.expiries,
                "unkept": cache.unkept,
                "policies": policy::policies_json(&policies),
                "hits_by_policy": policy::standing_json(&policies),
            },
            "shared_cache": self.shared_json(),
            "compression": {
                "waiting": compressor.waiting,
                "objects": compressor.done,
                "codings": compressor.codings,
                "refused": compressor.refused,
                "overtaken": compressor.overtaken,
                "failed": compressor.failed,
                "answers": self.http(|c| &c.coded),
                "answers_refused": self.http(|c| &c.uncoded),
            },
            "mirror": self.mirror_json(),
            "rate_refused": self.beyond_rates().into_iter()
                .map(|(limit, count)| (limit.to_owned(), Value::from(count)))
                .collect::<serde_json::Map<_, _>>(),
            "police": self.refused().to_json(),
            "watch": {
                "directories": watched.watched,
                "unwatched": watched.unwatched.values().sum::<usize>(),
                "complete": watched.complete,
            },
            "sites": sites.sites_json(),
            "request_sets": sites.sets_json(),
            "groups": groups.groups_json(),
            "servers": groups.servers_json(),
            "connections": {
                "open": self.engine(|c| &c.open),
                "without_socket": self.fast_path.without_socket(),
                "accepted": self.engine(|c| &c.accepted),
                "refused": self.engine(|c| &c.refused),
                "timed_out": self.engine(|c| &c.timed_out),
                "http2": self.engine(|c| &c.h2_connections),
                "http2_faults": self.engine(|c| &c.h2_faults),
                "http3": self.engine(|c| &c.h3_connections),
                "http3_faults": self.engine(|c| &c.h3_faults),
                "aborted": self.engine(|c| &c.aborted),
                "accept_errors": self.engine(|c| &c.accept_errors),
                "received_bytes": self.engine(|c| &c.received_bytes),
                "sent_bytes": self.engine(|c| &c.sent_bytes),
                "turns_waited_for": self.engine(|c| &c.waits),
            },
            "tls": self.handshakes().to_json(),
            "certificates": self.certificates().to_json(),
            "dns": self.answered().to_json(),
            "fleet": self.fleet_json(),
            "waiting": self.waiting().to_json(),
            "access_log": {
                "written": access_log.written(),
                "dropped": access_log.dropped(),
            },
            "spans": {
                "exported": spans.exported(),
                "dropped": spans.dropped(),
            },
            "messages_lost": afpa_say::lost(),
            "workers": self.workers.iter().zip(&self.http).enumerate().map(|(index, (worker, http))| {
                json!({
                    "worker": index,
                    "open": worker.open.get(),
                    "accepted": worker.accepted.get(),
                    "passed": worker.passed.get(),
                    "responses": http.responses(),
                    "hits": http.hits.get(),
                    "misses": http.misses.get(),
                })
            }).collect::<Vec<_>>(),
        })
    }
}
