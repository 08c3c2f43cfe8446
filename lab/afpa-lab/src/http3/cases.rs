//! The loads, and who takes part in them.

use afpa_generator::{Load, Object, family};

use crate::bench::{Case, Method, Metric};

/// Names of contestants: a server, and the protocol that it is asked by.
pub(super) const AFPA_H3: &str = "afpa-h3";
pub(super) const AFPA_H2: &str = "afpa-h2";
pub(super) const NGINX_H3: &str = "nginx-h3";

/// Names of cases.
pub(super) const MANY: &str = "512-64x64";
pub(super) const FEW: &str = "512-50x10";
pub(super) const LONG: &str = "1m-16x1";
pub(super) const HANDSHAKES: &str = "handshakes";
pub(super) const HANDSHAKES_MLKEM: &str = "handshakes-mlkem";
const ARENA_BASELINE: &str = "arena-baseline";
const ARENA_STATIC: &str = "arena-static";

/// A case, and how its connections live.
#[derive(Debug, Clone)]
pub(super) struct Http3Case {
    pub(super) case: Case,
    /// Requests that a connection has open at once.
    pub(super) streams: u32,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Connections are kept.
    Kept,
    /// Each request has a connection of its own.
    Handshakes {
        /// By X25519MLKEM768, and else by X25519.
        post_quantum: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http3,
    Http2,
}

/// The server and the protocol of a contestant.
pub(super) fn parts(name: &str) -> Option<(&str, Protocol)> {
    match name.rsplit_once('-')? {
        (server, "h3") => Some((server, Protocol::Http3)),
        (server, "h2") => Some((server, Protocol::Http2)),
        _ => None,
    }
}

/// The small file, which is the only one that HAProxy has.
pub(super) fn small() -> Object {
    Object::new("/small.html", 512)
}

/// All cases for these servers.
pub(super) fn all(servers: &[&str]) -> Vec<Http3Case> {
    use Metric::{BytesPerCore, CoreTime, P99, Requests};
    const REQUESTS: &[Metric] = &[CoreTime, Requests];
    let contestants = |but: &[&str], http2: bool| -> Vec<String> {
        let kept = servers.iter().filter(|name| !but.contains(name));
        let mut names: Vec<String> = kept.map(|name| format!("{name}-h3")).collect();
        if http2 && servers.contains(&"afpa") {
            names.insert(1.min(names.len()), AFPA_H2.into());
        }
        names
    };
    let case = |name: &str, title: &str, object, connections, streams, kind, names: Vec<String>| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let case = Case {
            connections,
            method: Method::Streams(streams),
            quick: true,
            metrics: REQUESTS,
            ..Case::new(name, title, &names, vec![(1, object)])
        };
        Http3Case { case, streams, kind }
    };
    let fresh = |post_quantum| Kind::Handshakes { post_quantum };
    let with_http2 = || contestants(&[], true);
    let mut cases = vec![
        case(
            MANY,
            "512 B, 64 connections of 64 streams",
            small(),
            64,
            64,
            Kind::Kept,
            with_http2(),
        ),
        case(FEW, "512 B, 50 connections of 10 streams", small(), 50, 10, Kind::Kept, with_http2()),
        case(
            LONG,
            "1 MB, 16 connections of one stream",
            Object::new("/large.html", 1 << 20),
            16,
            1,
            Kind::Kept,
            contestants(&["haproxy"], true),
        ),
        case(
            HANDSHAKES,
            "a full handshake for each 512 B, X25519",
            small(),
            CLIENTS,
            1,
            fresh(false),
            contestants(&[], false),
        ),
        case(
            HANDSHAKES_MLKEM,
            "a full handshake for each 512 B, X25519MLKEM768",
            small(),
            CLIENTS,
            1,
            fresh(true),
            contestants(&[], false),
        ),
    ];
    for case in &mut cases {
        match case.case.name.as_str() {
            FEW => case.case.metrics = &[CoreTime, Requests, P99],
            LONG => case.case.metrics = &[BytesPerCore, CoreTime, Requests],
            _ => {}
        }
    }
    cases.extend(arena(&contestants));
    cases
}

/// HttpArena's profiles, as far as servers of files have a part in them. h2load asks for one file, so the one of several has no
/// HTTP/2.
fn arena(contestants: &dyn Fn(&[&str], bool) -> Vec<String>) -> Vec<Http3Case> {
    let profiles = family("arena", &[], false).unwrap_or_default();
    let case = |name: &str, http2| {
        let profile = profiles.iter().find(|profile| profile.name == name)?;
        let names = contestants(&["haproxy"], http2);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let objects = profile.objects().iter().map(|object| (1, object.clone())).collect();
        let title = format!("{}, 64 connections of 64 streams", profile.title);
        let case = Case {
            connections: 64,
            method: Method::Streams(64),
            metrics: &[Metric::CoreTime, Metric::Requests],
            ..Case::new(name, title, &names, objects)
        };
        Some(Http3Case { case, streams: 64, kind: Kind::Kept })
    };
    [case(ARENA_BASELINE, true), case(ARENA_STATIC, false)].into_iter().flatten().collect()
}

/// Handshakes in progress at a time: AFPA asks a client with more than fifty to prove its address first.
const CLIENTS: u32 = 32;

impl Http3Case {
    /// The load in words.
    pub(super) fn words(&self, load: &Load) -> String {
        let (count, streams) = (self.case.connections, self.streams);
        let way = match self.kind {
            Kind::Kept => format!("{count} connections, {streams} streams each"),
            Kind::Handshakes { post_quantum } => {
                let group = if post_quantum { "X25519MLKEM768" } else { "X25519" };
                format!("{count} at a time, a connection with {group} for each request")
            }
        };
        let paths: Vec<&str> =
            self.case.objects.iter().map(|(_, object)| object.path.as_str()).collect();
        format!("{way}, {} s: {}", load.duration.as_secs_f64(), paths.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promised_cases_are_there() {
        let cases = all(&["afpa", "nginx", "haproxy", "caddy"]);
        let told = |case: &Http3Case| (case.case.size(), case.case.connections, case.streams);
        let found: Vec<_> = cases.iter().map(told).collect();
        assert_eq!(
            found,
            [(512, 64, 64), (512, 50, 10), (1 << 20, 16, 1), (512, 32, 1), (512, 32, 1)]
                .into_iter()
                .chain([(2, 64, 64), (cases[6].case.size(), 64, 64)])
                .collect::<Vec<_>>()
        );
        assert_eq!(cases[6].case.objects.len(), 20);
        assert_eq!(cases[0].case.servers[..3], [AFPA_H3, AFPA_H2, NGINX_H3]);
        assert_eq!(cases[2].case.servers, [AFPA_H3, AFPA_H2, NGINX_H3, "caddy-h3"]);
        assert!(!cases[3].case.servers.iter().any(|name| name == AFPA_H2));
    }

    #[test]
    fn a_contestant_is_a_server_and_a_protocol() {
        assert_eq!(parts(AFPA_H2), Some(("afpa", Protocol::Http2)));
        assert_eq!(parts(NGINX_H3), Some(("nginx", Protocol::Http3)));
        assert_eq!(parts("nginx"), None);
        assert_eq!(parts("nginx-h1"), None);
    }
}
