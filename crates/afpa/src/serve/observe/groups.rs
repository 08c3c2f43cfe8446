//! Statistics of server groups, as JSON and for Prometheus.

use std::fmt;
use std::sync::Arc;

use afpa_framework::steady_ms;
use afpa_proxy::observe::{ERRORS, GroupReport, Histogram, ServerReport};
use afpa_proxy::select::{Group, Lack};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use serde_json::{Value, json};

use super::families::{counters, gauges};

/// Groups and their servers at one moment.
pub(super) struct Groups(Vec<GroupReport>);

impl Groups {
    /// The present values.
    pub(super) fn look(groups: &[Arc<Group>]) -> Self {
        Self(groups.iter().map(|group| group.report(steady_ms())).collect())
    }

    /// A table of groups.
    pub(super) fn groups_json(&self) -> Value {
        let rows = self.0.iter().map(|group| {
            json!({
                "group": group.name,
                "available": group.servers.iter().filter(|server| server.available).count(),
                "servers": group.servers.len(),
                "waiting": group.waiting,
                "waited": group.waited,
                "gave_up": group.left_queue,
                "queue_full": group.queue_full,
                "client_waits": group.client_waits,
                "shed": group.shed,
                "all_down": group.all_down,
            })
        });
        rows.collect()
    }

    /// A table of servers.
    pub(super) fn servers_json(&self) -> Value {
        let rows = self.servers().map(|(group, server)| {
            let counts = &server.counts;
            let [_, ok, moved, client, failed] = counts.responses;
            json!({
                "group": group.name,
                "server": server.name,
                "state": server.state,
                "weight": server.weight,
                "in_flight": server.in_flight,
                "requests": counts.requests,
                "2xx_3xx": ok + moved,
                "4xx": client,
                "5xx": failed,
                "errors": counts.failed(),
                "first_byte_50_us": counts.first_byte.percentile_us(50),
                "first_byte_99_us": counts.first_byte.percentile_us(99),
                "downs": counts.downs,
                "connections": server.connections.open(),
                "connections_made": server.connections.opened,
                "closed_by_us": server.connections.closed_by_us,
                "closed_by_server": server.connections.closed_by_server,
                "not_made": server.connections.lacked.iter().sum::<u64>(),
                "http2_connections": server.http2.open,
                "http2_streams": server.http2.streams,
            })
        });
        rows.collect()
    }

    /// These numbers and more for Prometheus.
    pub(super) fn encode(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.group_metrics(out)?;
        self.server_counters(out)?;
        self.server_gauges(out)?;
        self.histogram(out, "first_byte", "From request to first byte", |s| &s.counts.first_byte)?;
        self.histogram(out, "duration", "From request to last byte", |s| &s.counts.total)
    }

    fn servers(&self) -> impl Iterator<Item = (&GroupReport, &ServerReport)> {
        self.0.iter().flat_map(|group| group.servers.iter().map(move |server| (group, server)))
    }

    fn group_metrics(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let groups = || self.0.iter().map(|group| (group, [("group", group.name.as_str())]));
        let count = |group: &GroupReport| i64::try_from(group.waiting).unwrap_or(i64::MAX);
        let waiting = groups().map(|(group, labels)| (labels, count(group)));
        gauges(out, ("group_waiting", "Requests that wait for a server"), waiting)?;
        let waited = groups().map(|(group, labels)| (labels, group.waited));
        counters(out, ("group_waited", "Requests that have waited for a server"), waited)?;
        let unserved = groups().flat_map(|(group, [name])| {
            let counts = [
                ("gave_up", group.left_queue),
                ("queue_full", group.queue_full),
                ("client_waits", group.client_waits),
                ("shed", group.shed),
                ("all_down", group.all_down),
            ];
            counts.map(|(why, count)| ([name, ("reason", why)], count))
        });
        let help = "Requests that no server was found for, by reason";
        counters(out, ("group_unserved", help), unserved)
    }

    fn server_counters(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        self.counter(out, "requests", "Requests given to a server", |server| {
            vec![("", "", server.counts.requests)]
        })?;
        self.counter(out, "cancelled", "Requests whose client went away", |server| {
            vec![("", "", server.counts.cancelled)]
        })?;
        self.counter(out, "responses", "Responses of a server, by class", |server| {
            let counts = CLASSES.into_iter().zip(server.counts.responses);
            counts.map(|(class, count)| ("class", class, count)).collect()
        })?;
        self.counter(out, "errors", "Requests that a server failed, by kind", |server| {
            let counts = ERRORS.into_iter().zip(server.counts.errors);
            counts.map(|(kind, count)| ("kind", kind, count)).collect()
        })?;
        self.counter(out, "health_changes", "Times a server's health changed", |server| {
            vec![("to", "down", server.counts.downs), ("to", "up", server.counts.ups)]
        })?;
        self.counter(out, "connections_made", "Connections made to a server", |server| {
            vec![("", "", server.connections.opened)]
        })?;
        self.counter(out, "connections_closed", "Connections to a server, by who closed", |s| {
            let counts = &s.connections;
            vec![("by", "us", counts.closed_by_us), ("by", "server", counts.closed_by_server)]
        })?;
        self.counter(out, "connections_not_made", "Connections for which something lacked", |s| {
            let counts = Lack::ALL.into_iter().zip(s.connections.lacked);
            counts.map(|(lack, count)| ("lack", lack.word(), count)).collect()
        })?;
        self.counter(out, "http2_connections_opened", "Connections of HTTP/2 to a server", |s| {
            vec![("", "", s.http2.opened)]
        })?;
        self.counter(out, "http2_streams", "Streams of HTTP/2 to a server", |server| {
            vec![("", "", server.http2.streams)]
        })?;
        self.counter(out, "probes", "Probes and checks of a server", |server| {
            let [failed, good] = server.counts.probes;
            vec![("result", "failed", failed), ("result", "good", good)]
        })
    }

    /// `afpa_server_NAME_total`, with one more label unless that is empty.
    fn counter(
        &self,
        out: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        values: impl Fn(&ServerReport) -> Vec<(&'static str, &'static str, u64)>,
    ) -> fmt::Result {
        let members = self.servers().flat_map(|(group, server)| {
            values(server).into_iter().map(move |(key, value, count)| {
                let mut labels = own_labels(group, server);
                if !key.is_empty() {
                    labels.push((key, value));
                }
                (labels, count)
            })
        });
        counters(out, (&format!("server_{name}"), help), members)
    }

    fn server_gauges(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Gauge = (&'static str, &'static str, fn(&ServerReport) -> i64);
        const GAUGES: [Gauge; 5] = [
            ("available", "Whether requests go to a server", |s| i64::from(s.available)),
            ("in_flight", "Requests that a server has", |s| i64::from(s.in_flight)),
            ("weight", "Its weight", |s| i64::from(s.weight)),
            ("connections", "Open connections", |s| {
                i64::try_from(s.connections.open()).unwrap_or(i64::MAX)
            }),
            ("http2_connections", "Open connections of HTTP/2", |s| {
                i64::try_from(s.http2.open).unwrap_or(i64::MAX)
            }),
        ];
        for (name, help, value) in GAUGES {
            let servers = self.servers();
            let members = servers.map(|(group, server)| (own_labels(group, server), value(server)));
            gauges(out, (&format!("server_{name}"), help), members)?;
        }
        Ok(())
    }

    /// `afpa_server_NAME_seconds`.
    fn histogram(
        &self,
        out: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        of: impl Fn(&ServerReport) -> &Histogram,
    ) -> fmt::Result {
        let name = format!("afpa_server_{name}");
        let unit = Unit::Seconds;
        let mut family = out.encode_descriptor(&name, help, Some(&unit), MetricType::Histogram)?;
        for (group, server) in self.servers() {
            super::families::times(&mut family, &own_labels(group, server), of(server))?;
        }
        Ok(())
    }
}

fn own_labels<'r>(group: &'r GroupReport, server: &'r ServerReport) -> Vec<(&'r str, &'r str)> {
    vec![("group", group.name.as_str()), ("server", server.name.as_str())]
}

#[cfg(test)]
mod tests {
    use afpa_proxy::select::{AttemptOutcome, Chosen, GroupSettings, Pick, ServerSettings};
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    fn group() -> Arc<Group> {
        let places = ["127.0.0.1:1", "unix:/run/app.sock"];
        let servers = places.map(|place| ServerSettings::at(place.parse().unwrap())).to_vec();
        let settings = GroupSettings { name: "app".to_owned(), servers, ..Default::default() };
        let group = Group::new(settings, None, 0);
        for outcome in [
            AttemptOutcome::Ok { status: 200, first_byte_us: 900, total_us: 1900 },
            AttemptOutcome::ConnectRefused,
        ] {
            let Pick::Server(lease) = group.pick(1, &Chosen::default(), &[]) else { panic!() };
            lease.finish(2, outcome);
        }
        group
    }

    #[derive(Debug)]
    struct Shown(Arc<Group>);

    impl Collector for Shown {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            Groups::look(&[Arc::clone(&self.0)]).encode(&mut encoder)
        }
    }

    #[test]
    fn people_see_a_row_for_each_server() {
        let groups = Groups::look(&[group()]);
        let servers = groups.servers_json();
        assert_eq!(servers[0]["state"], "up");
        assert_eq!((&servers[0]["2xx_3xx"], &servers[0]["errors"]), (&1.into(), &0.into()));
        assert_eq!((&servers[1]["state"], &servers[1]["errors"]), (&"refused".into(), &1.into()));
        assert_eq!(servers[1]["first_byte_50_us"], Value::Null);
        assert_eq!(groups.groups_json()[0]["available"], 1);
    }

    #[test]
    fn prometheus_sees_everything() {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Shown(group())));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let own = "group=\"app\",server=\"127.0.0.1:1\"";
        let other = "group=\"app\",server=\"unix:/run/app.sock\"";
        for line in [
            format!("afpa_server_requests_total{{{own}}} 1\n"),
            format!("afpa_server_responses_total{{{own},class=\"2xx\"}} 1\n"),
            format!("afpa_server_errors_total{{{other},kind=\"refused\"}} 1\n"),
            format!("afpa_server_health_changes_total{{{other},to=\"down\"}} 1\n"),
            format!("afpa_server_available{{{other}}} 0\n"),
            format!("afpa_server_first_byte_seconds_bucket{{le=\"0.001\",{own}}} 1\n"),
            format!("afpa_server_first_byte_seconds_bucket{{le=\"0.0005\",{own}}} 0\n"),
            format!("afpa_server_first_byte_seconds_bucket{{le=\"+Inf\",{own}}} 1\n"),
            format!("afpa_server_duration_seconds_count{{{own}}} 1\n"),
            format!("afpa_server_connections{{{own}}} 0\n"),
            format!("afpa_server_connections_made_total{{{own}}} 0\n"),
            format!("afpa_server_connections_closed_total{{{own},by=\"us\"}} 0\n"),
            format!("afpa_server_connections_closed_total{{{own},by=\"server\"}} 0\n"),
            format!("afpa_server_connections_not_made_total{{{own},lack=\"ports\"}} 0\n"),
            format!("afpa_server_http2_connections{{{own}}} 0\n"),
            format!("afpa_server_http2_connections_opened_total{{{own}}} 0\n"),
            format!("afpa_server_http2_streams_total{{{own}}} 0\n"),
            "afpa_group_unserved_total{group=\"app\",reason=\"shed\"} 0\n".to_owned(),
        ] {
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}
