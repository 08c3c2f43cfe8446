//! The metrics for Prometheus. Each core counts for itself; the sums are made here, when they are
//! requested.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text::encode};
use prometheus_client::registry::{Registry, Unit};

use super::Observed;
use super::families::{by, bytes, counter, counters, gauge, gauges};

/// All metrics, as OpenMetrics.
pub(super) fn page(observed: &Arc<Observed>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Metrics(Arc::clone(observed))));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

struct Metrics(Arc<Observed>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        self.requests(out)?;
        self.cache(out)?;
        self.0.encode_shared(out)?;
        self.compression(out)?;
        self.0.encode_mirrors(out)?;
        self.fast_path(out)?;
        self.shield(out)?;
        self.connections(out)?;
        self.0.waiting().encode(out)?;
        self.0.handshakes().encode(out)?;
        self.0.certificates().encode(out)?;
        self.0.answered().encode(out)?;
        self.0.encode_fleet(out)?;
        self.0.refused().encode(out)?;
        self.0.sites().encode(out)?;
        self.0.groups().encode(out)?;
        let log = self.0.access_log.load();
        counter(out, "access_log_lines", "Lines written to the access log", log.written())?;
        counter(out, "access_log_dropped_lines", "Lines the access log lost", log.dropped())?;
        let spans = self.0.spans.load();
        counter(out, "spans_exported", "Spans that the collector has taken", spans.exported())?;
        counter(out, "spans_dropped", "Spans that it has not", spans.dropped())?;
        counter(out, "messages_lost", "Messages that standard error did not take", afpa_say::lost())
    }
}

impl Metrics {
    fn requests(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let seen = &self.0;
        let responses = seen.by_status().into_iter().map(|(code, count)| (code.to_string(), count));
        counters(out, ("http_responses", "Responses by status code"), by("code", responses))?;
        counter(out, "cache_hits", "Requests answered from a core's view", seen.http(|c| &c.hits))?;
        let help = "Requests beyond the rates of their place";
        counters(out, ("rate_refused", help), by("limit", seen.beyond_rates()))?;
        counter(out, "remote_requests", "Requests that went to servers", seen.http(|c| &c.remote))?;
        counter(out, "cache_misses", "Requests that went to a thread", seen.http(|c| &c.misses))?;
        bytes(out, "http_content", "Content sent, without heads", seen.http(|c| &c.content_bytes))
    }

    fn cache(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let cache = self.0.cache();
        gauge(out, "cache_objects", "Objects in the cache", cache.objects, None)?;
        gauge(out, "cache_file_objects", "Objects served from files", cache.file_objects, None)?;
        gauge(out, "cache_open_files", "Descriptors of cached files", cache.open_files, None)?;
        let unit = Some(Unit::Bytes);
        gauge(out, "cache_pinned", "Arena in use", cache.pinned_bytes, unit.as_ref())?;
        gauge(out, "cache_pinned_limit", "Size of the arena", cache.pinned_limit, unit.as_ref())?;
        let (tables, most) = (cache.bookkeeping, cache.bookkeeping_limit);
        gauge(out, "cache_tables", "Names, heads and tables of objects", tables, unit.as_ref())?;
        gauge(out, "cache_tables_limit", "What these may take", most, unit.as_ref())?;
        let pages = cache.page_bytes;
        gauge(out, "cache_pages", "Pages made in memory for responses", pages, unit.as_ref())?;
        counter(out, "cache_loads", "Loads begun", cache.fills)?;
        counter(out, "cache_waits", "Requests that waited for a load", cache.waits)?;
        counter(out, "cache_overtaken_loads", "Loads overtaken by a change", cache.overtaken)?;
        counter(out, "cache_invalidations", "Objects dropped by a change", cache.invalidations)?;
        counter(out, "cache_ejections", "Objects dropped to make room", cache.ejections)?;
        counter(out, "cache_expiries", "Objects dropped at the age of a hint", cache.expiries)?;
        counter(out, "cache_unkept", "Answers that a hint does not keep", cache.unkept)?;
        let changes = self.0.policy_changes();
        counter(out, "cache_policy_changes", "Changes of the replacement policy", changes)?;
        counter(out, "watch_overflows", "Times that changes were lost", cache.suspects)
    }

    fn compression(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let compressor = self.0.compressor();
        let waiting = usize::try_from(compressor.waiting).unwrap_or(usize::MAX);
        gauge(out, "compression_waiting", "Objects that wait to be compressed", waiting, None)?;
        counter(out, "compression_objects", "Objects compressed", compressor.done)?;
        counter(out, "compression_codings", "Codings made of them", compressor.codings)?;
        counter(out, "compression_refused", "Orders beyond the queue", compressor.refused)?;
        counter(out, "compression_overtaken", "Dropped before it was done", compressor.overtaken)?;
        counter(out, "compression_failed", "Objects that could not be", compressor.failed)?;
        let (coded, uncoded) = (self.0.http(|c| &c.coded), self.0.http(|c| &c.uncoded));
        counter(out, "compression_answers", "Answers of servers compressed", coded)?;
        let help = "Answers of servers that were not, because too many others were";
        counter(out, "compression_answers_refused", help, uncoded)
    }

    fn fast_path(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(seen) = self.0.fast_path.numbers() else { return Ok(()) };
        let help = "Packets of served ports, by what became of them";
        counters(out, ("fast_path_packets", help), by("reason", seen.packets.iter().copied()))?;
        let packets = seen.by_interface.iter().flat_map(|(interface, counts)| {
            let some = counts.iter().filter(|(_, count)| *count > 0);
            some.map(move |(reason, count)| {
                ([("interface", interface.as_str()), ("reason", *reason)], *count)
            })
        });
        let help = "The same by interface, as far as they belong to one";
        counters(out, ("fast_path_interface_packets", help), packets)?;
        let attached = by("interface", seen.interfaces.iter().map(|name| (name.as_str(), 1)));
        gauges(out, ("fast_path_attached", "Interfaces with programs"), attached)?;
        let help = "Objects left to user mode, by reason";
        counters(out, ("fast_path_objects_left", help), by("reason", seen.left))?;
        let checks = by("found", seen.self_checks);
        let help = "Answers of the kernel compared with user mode's, by what was found";
        counters(out, ("fast_path_self_checks", help), checks)?;
        counter(out, "fast_path_answers", "Requests answered in the kernel", seen.answers)?;
        counter(out, "fast_path_lost_log_lines", "Answers the ring lost", seen.lost_log_lines)?;
        let answering = usize::from(seen.answering);
        gauge(out, "fast_path_answering", "Whether the kernel answers", answering, None)?;
        gauge(out, "fast_path_flows", "Connections shared with it", seen.flows, None)?;
        gauge(
            out,
            "fast_path_translated_flows",
            "Connections that need translation",
            seen.translated,
            None,
        )?;
        gauge(
            out,
            "fast_path_socketless_flows",
            "Connections without a socket of the kernel's",
            seen.socketless,
            None,
        )?;
        gauge(out, "fast_path_objects", "Objects pinned there", seen.objects, None)?;
        let unit = Some(Unit::Bytes);
        gauge(
            out,
            "fast_path_transfers",
            "Answers of several segments under way",
            seen.transfers,
            None,
        )?;
        gauge(out, "fast_path_retired", "Answers replaced", seen.retired_bytes, unit.as_ref())?;
        gauge(out, "fast_path_pinned", "Answers, retired ones too", seen.bytes, unit.as_ref())
    }

    fn shield(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(shield) = &self.0.shield else { return Ok(()) };
        let help = "Datagrams of HTTP/3 that the kernel looked at, by what became of them";
        counters(out, ("http3_kernel_packets", help), by("reason", shield.packets()))
    }

    fn connections(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let seen = &self.0;
        let open = usize::try_from(seen.engine(|c| &c.open)).unwrap_or(usize::MAX);
        gauge(out, "connections_open", "Connections open now", open, None)?;
        counter(out, "connections_accepted", "Connections accepted", seen.engine(|c| &c.accepted))?;
        counter(out, "connections_refused", "Beyond the limits", seen.engine(|c| &c.refused))?;
        counter(
            out,
            "connections_timed_out",
            "Ended by a time-out",
            seen.engine(|c| &c.timed_out),
        )?;
        counter(out, "connections_aborted", "File changed meanwhile", seen.engine(|c| &c.aborted))?;
        let h2 = seen.engine(|c| &c.h2_connections);
        counter(out, "connections_http2", "Connections of HTTP/2", h2)?;
        let faults = seen.engine(|c| &c.h2_faults);
        counter(
            out,
            "connections_http2_faults",
            "Connections of HTTP/2 that broke a rule",
            faults,
        )?;
        let h3 = seen.engine(|c| &c.h3_connections);
        counter(out, "connections_http3", "Connections of HTTP/3", h3)?;
        let faults = seen.engine(|c| &c.h3_faults);
        let help = "Requests and connections of HTTP/3 that broke a rule";
        counter(out, "connections_http3_faults", help, faults)?;
        let waits = seen.engine(|c| &c.waits);
        counter(out, "turns_waited_for", "Turns that long responses waited for", waits)?;
        counter(out, "accept_errors", "Failed accepts", seen.engine(|c| &c.accept_errors))?;
        bytes(out, "received", "Bytes received", seen.engine(|c| &c.received_bytes))?;
        bytes(out, "sent", "Bytes sent", seen.engine(|c| &c.sent_bytes))
    }
}
