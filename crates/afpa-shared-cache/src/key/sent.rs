//! Two requests with one key are one request even to a server whose answer repeats all that it got.
//!
//! [`RequestHead::write`] writes the bytes that a server gets. Its answer may depend on the request line, on Host, on
//! the fields of routers in front, and on the fields that its Vary names. An answer for all clients must not depend on
//! other fields, nor on those that name the client.

use afpa_http::caching::vary;
use afpa_http::{FieldSlots, Request, RequestLimits, request, target};
use afpa_proxy::request::{HostPolicy, Mark, RequestHead, RequestPolicy};
use proptest::prelude::*;

use super::*;
use crate::request::{METHOD_FIELDS, Survey};

/// A request as a client sends it, over a connection of some kind.
#[derive(Clone, Debug)]
struct Sent {
    head: String,
    trusted: bool,
    secure: bool,
}

impl Sent {
    fn with<T>(
        &self,
        then: impl FnOnce(&Request<'_, '_>, Origin<'static>) -> Option<T>,
    ) -> Option<T> {
        let mut slots = FieldSlots::new();
        let request = request::parse(self.head.as_bytes(), &mut slots, &RequestLimits::default());
        let client = Some(std::net::IpAddr::from([192, 0, 2, 7]));
        let Self { trusted, secure, .. } = *self;
        then(&request.ok()??, Origin { client, trusted, secure, ..Origin::default() })
    }

    /// The whole key. `None`: the request does not use the cache.
    fn key(&self, policy: &RequestPolicy, names: &[Box<str>]) -> Option<Vec<u8>> {
        let cache = CachePolicy::default();
        let exchange =
            exchange::Settings { request: policy.clone(), ..exchange::Settings::default() };
        self.with(|request, origin| {
            Survey::of_any(&cache, request)?;
            let mut room = Vec::new();
            let path = target::spell(request.target.path()?, &mut room).ok()?;
            let (mut key, place) =
                (Vec::new(), Place { scope: 1, url: path, path, origin, sent: None });
            put_primary(&cache, &exchange, request, place, &mut key);
            vary::put_key(names, request, &mut key);
            Some(key)
        })
    }

    /// The lines that may decide about the answer of a server whose Vary names these fields.
    fn told(&self, policy: &RequestPolicy, names: &[Box<str>]) -> Option<Vec<String>> {
        let bytes = self.with(|request, origin| {
            let mut room = Vec::new();
            let path = target::spell(request.target.path()?, &mut room).ok()?;
            let mut head = RequestHead::default();
            head.write(request, path, policy, origin).ok()?;
            Some(head.bytes_for("server").to_vec())
        })?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let decides = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            let plain = name.replace(['_', '.'], "-");
            let about_client = ["x-forwarded-for", "x-real-ip"].contains(&&*plain);
            let by_front = !about_client
                && (plain.starts_with("x-forwarded")
                    || plain.starts_with("x-rewrite")
                    || plain == "forwarded");
            let is_named = names.iter().any(|own| **own == *plain);
            !line.contains(": ")
                || plain == "host"
                || by_front
                || is_named
                || METHOD_FIELDS.contains(&&*plain)
        };
        Some(text.split("\r\n").filter(decides).map(|line| reduced(line, names)).collect())
    }
}

/// A line without what RFC 9110 says means nothing in a known list.
fn reduced(line: &str, names: &[Box<str>]) -> String {
    let (name, value) = line.split_once(": ").unwrap_or((line, ""));
    let name = name.to_ascii_lowercase();
    let is_list = name == "accept" || name == "accept-language";
    if !is_list || value.contains('"') || !names.iter().any(|own| **own == *name) {
        return line.replacen(
            line.split(':').next().unwrap_or_default(),
            &name,
            usize::from(line.contains(": ")),
        );
    }
    let members = value
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']))
        .filter(|member| !member.is_empty());
    let value = members.collect::<Vec<_>>().join(",");
    format!("{name}: {}", if name == "accept" { value } else { value.to_ascii_lowercase() })
}

fn target() -> impl Strategy<Value = String> {
    let path = "(/|/a|/%61|/a%3Bb|/a;b|/a%3bb|/A|/a//b|/a/./b|/a%25b|/a%2Cb)";
    let query = "(|\\?|\\?x|\\?x=1;y|\\?%78|\\?a&b|\\?b&a)";
    let absolute = "(|http://h|https://h|http://H|http://h:80|https://other)";
    (absolute, path, query).prop_map(|(absolute, path, query)| format!("{absolute}{path}{query}"))
}

fn line() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "Accept",
        "Accept-Language",
        "Accept_Language",
        "Accept.Language",
        "Cookie",
        "X-A",
        "X_A",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Port",
        "X-Forwarded-For",
        "X_Forwarded_Host",
        "X-Rewrite-URL",
        "X-Real-IP",
        "Forwarded",
        "X-HTTP-Method-Override",
        "TE",
        "Connection",
        "Via",
    ]);
    let value =
        "(|,|a|A|b|a, b|a,b|a ,b|b, a|\"a, b\"|\"a,b\"|a  b|a=1; b=2|trailers|close|https|\t)";
    let gap = "(|  |\t)";
    (name, gap, value).prop_map(|(name, gap, value)| format!("{name}:{gap}{value}\r\n"))
}

fn sent() -> impl Strategy<Value = Sent> {
    let host = "(h|H|h:80|h:81|other)";
    let lines = prop::collection::vec(line(), 0..3);
    (target(), host, lines, any::<bool>(), any::<bool>()).prop_map(
        |(target, host, lines, trusted, secure)| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{}\r\n", lines.concat());
            Sent { head, trusted, secure }
        },
    )
}

/// Two requests that have much in common.
fn pair() -> impl Strategy<Value = (Sent, Sent)> {
    let like = (sent(), sent(), line(), 0u8..8).prop_map(|(one, other, line, change)| {
        let mut twin = one.clone();
        let end = twin.head.len() - 2;
        match change {
            0 => twin.trusted = !twin.trusted,
            1 => twin.secure = !twin.secure,
            2 => twin.head.insert_str(end, &line),
            3 => twin.head = twin.head.replace(": ", ":   "),
            4 => twin.head = twin.head.replace(',', " ,"),
            5 => twin.head = twin.head.replace("%3B", ";"),
            6 => twin.head = twin.head.replacen("Host: ", "host:", 1),
            _ => twin = other,
        }
        (one, twin)
    });
    like.boxed()
}

fn policy() -> impl Strategy<Value = RequestPolicy> {
    let mark = || prop::sample::select(vec![Mark::Replace, Mark::Remove, Mark::Keep, Mark::Append]);
    let host = prop::sample::select(vec![HostPolicy::Keep, HostPolicy::Server]);
    (mark(), mark(), host).prop_map(|(forwarded, x_forwarded, host)| RequestPolicy {
        forwarded,
        x_forwarded,
        host,
        ..RequestPolicy::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn two_requests_with_one_key_are_one_to_a_server(
        (one, other) in pair(),
        policy in policy(),
        vary in prop::collection::vec(prop::sample::select(vec!["Accept", "Accept-Language", "Cookie", "X-A"]), 0..3),
    ) {
        let names = vary::names([vary.join(",").as_bytes()].into_iter()).expect("no star");
        let keys = [&one, &other].map(|sent| sent.key(&policy, &names));
        if let [Some(key), Some(same)] = keys && key == same {
            let told = [&one, &other].map(|sent| sent.told(&policy, &names));
            prop_assert_eq!(&told[0], &told[1]);
        }
    }
}
