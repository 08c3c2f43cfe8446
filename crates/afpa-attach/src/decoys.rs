//! Decoys: request fields in questions to the server, which show which fields matter to an answer.
//!
//! Each class of fields has a few sets of values, such as rules tell apart: a crawler and a browser, a page of this
//! site and of another one, HTTPS and not. If the answers with all sets are the same as without them, the class does
//! not matter.

use afpa_http::request::FieldClass;

/// Fields that are sent together.
pub type Decoy = Vec<(&'static str, String)>;

/// The sets of a class. `host` is the name by which the server is asked.
pub fn decoys(class: FieldClass, host: &str) -> Vec<Decoy> {
    let sets: &[&[(&str, &str)]] = match class {
        FieldClass::UserAgent => &[
            &[("User-Agent", CHROMIUM)],
            &[("User-Agent", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)")],
            &[
                (
                    "User-Agent",
                    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
                ),
                ("From", "googlebot(at)googlebot.com"),
            ],
            &[("User-Agent", "curl/7.88.1")],
            &[("User-Agent", PHONE)],
        ],
        FieldClass::Accept => &[
            &[(
                "Accept",
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
            )],
            &[("Accept", "application/json"), ("Accept-Charset", "iso-8859-1")],
            &[("Accept", "text/plain;q=0.5")],
        ],
        FieldClass::Language => &[
            &[("Accept-Language", "de-DE,de;q=0.9")],
            &[("Accept-Language", "fr, ja;q=0.5")],
            &[("Accept-Language", "en-US,en;q=0.5")],
        ],
        FieldClass::Referer => &[
            &[("Referer", "https://decoy.example/page")],
            &[("Referer", "http://HOST/")],
            &[("Referer", "https://www.google.com/"), ("Alt-Used", "HOST")],
        ],
        FieldClass::Origin => &[
            &[("Origin", "https://decoy.example")],
            &[("Origin", "http://HOST"), ("X-Requested-With", "XMLHttpRequest")],
            &[("Origin", "null")],
        ],
        FieldClass::Cookie => {
            &[&[("Cookie", "session=0123456789abcdef; lang=de; consent=1")], &[("Cookie", "id=1")]]
        }
        FieldClass::ForwardedFor => &[
            &[
                ("X-Forwarded-For", "203.0.113.7"),
                ("X-Real-IP", "203.0.113.7"),
                ("Forwarded", "for=203.0.113.7;proto=https"),
                ("X-Client-IP", "203.0.113.7"),
                ("X-Cluster-Client-IP", "203.0.113.7"),
                ("True-Client-IP", "203.0.113.7"),
                ("Client-IP", "203.0.113.7"),
                ("Fastly-Client-IP", "203.0.113.7"),
                ("CF-Connecting-IP", "203.0.113.7"),
                ("CF-IPCountry", "DE"),
            ],
            &[("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1")],
            &[("X-Forwarded-For", "10.0.0.1, 192.168.0.1"), ("Forwarded", "for=10.0.0.1")],
        ],
        FieldClass::ForwardedAs => &[
            &[
                ("X-Forwarded-Proto", "https"),
                ("X-Forwarded-Host", "HOST"),
                ("X-Forwarded-Port", "443"),
                ("X-Forwarded-Server", "decoy.example"),
                ("X-Forwarded-Scheme", "https"),
                ("X-Forwarded-Protocol", "https"),
                ("X-Forwarded-Ssl", "on"),
                ("X-Scheme", "https"),
                ("X-Url-Scheme", "https"),
                ("Front-End-Https", "on"),
                ("CF-Visitor", "{\"scheme\":\"https\"}"),
            ],
            &[
                ("X-Forwarded-Proto", "http"),
                ("X-Forwarded-Host", "decoy.example"),
                ("X-Forwarded-Port", "80"),
                ("X-Forwarded-Scheme", "http"),
                ("X-Forwarded-Protocol", "http"),
                ("X-Forwarded-Ssl", "off"),
                ("X-Scheme", "http"),
                ("X-Url-Scheme", "http"),
                ("Front-End-Https", "off"),
                ("CF-Visitor", "{\"scheme\":\"http\"}"),
            ],
        ],
        FieldClass::Fetch => &[
            &[
                ("Sec-Fetch-Site", "cross-site"),
                ("Sec-Fetch-Mode", "no-cors"),
                ("Sec-Fetch-Dest", "image"),
                ("Sec-Fetch-Storage-Access", "active"),
            ],
            &[
                ("Sec-Fetch-Site", "none"),
                ("Sec-Fetch-Mode", "navigate"),
                ("Sec-Fetch-User", "?1"),
                ("Sec-Fetch-Dest", "document"),
            ],
            &[
                ("Sec-Fetch-Site", "same-origin"),
                ("Sec-Fetch-Mode", "cors"),
                ("Sec-Fetch-Dest", "serviceworker"),
                ("Service-Worker", "script"),
                ("Service-Worker-Navigation-Preload", "true"),
            ],
        ],
        FieldClass::Hints => &[
            &[
                ("Sec-CH-UA", "\"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\""),
                ("Sec-CH-UA-Mobile", "?1"),
                ("Sec-CH-UA-Platform", "\"Android\""),
                ("Sec-CH-UA-Platform-Version", "\"14\""),
                ("Sec-CH-UA-Arch", "\"arm\""),
                ("Sec-CH-UA-Bitness", "\"64\""),
                ("Sec-CH-UA-Model", "\"Decoy\""),
                ("Sec-CH-UA-Full-Version", "\"130.0.0.0\""),
                ("Sec-CH-UA-Full-Version-List", "\"Chromium\";v=\"130.0.0.0\""),
                ("Sec-CH-UA-WoW64", "?0"),
                ("Sec-CH-UA-Form-Factors", "\"Mobile\""),
                ("Sec-CH-Prefers-Color-Scheme", "dark"),
                ("Sec-CH-Prefers-Reduced-Motion", "reduce"),
                ("Sec-CH-Prefers-Reduced-Transparency", "reduce"),
            ],
            &[
                ("Sec-CH-Viewport-Width", "320"),
                ("Sec-CH-Viewport-Height", "640"),
                ("Sec-CH-Width", "320"),
                ("Sec-CH-DPR", "2"),
                ("Sec-CH-Device-Memory", "0.5"),
                ("Save-Data", "on"),
                ("DPR", "2"),
                ("Viewport-Width", "320"),
                ("Width", "320"),
                ("Device-Memory", "0.5"),
                ("Downlink", "0.1"),
                ("ECT", "slow-2g"),
                ("RTT", "1000"),
            ],
        ],
        FieldClass::Privacy => &[&[("DNT", "1"), ("Sec-GPC", "1")], &[("DNT", "0")]],
        FieldClass::Secure => &[&[("Upgrade-Insecure-Requests", "1")]],
        FieldClass::Priority => &[&[
            ("Priority", "u=0, i"),
            ("Purpose", "prefetch"),
            ("Sec-Purpose", "prefetch;prerender"),
            ("X-Moz", "prefetch"),
            ("X-Purpose", "preview"),
        ]],
        FieldClass::Via => &[&[("Via", "1.1 decoy.example"), ("CDN-Loop", "decoy; loops=1")]],
        FieldClass::Trace => &[
            &[
                ("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                ("Tracestate", "decoy=1"),
                ("Baggage", "decoy=1"),
                ("X-Request-ID", "decoy-1"),
                ("X-Correlation-ID", "decoy-1"),
                ("X-Amzn-Trace-Id", "Root=1-67891233-abcdef012345678912345678"),
                ("X-Trace-Id", "decoy-1"),
            ],
            &[
                ("X-Cloud-Trace-Context", "105445aa7843bc8bf206b12000100000/1;o=1"),
                ("X-B3-TraceId", "463ac35c9f6413ad48485a3953bb6124"),
                ("X-B3-SpanId", "a2fb4a1d1a96d312"),
                ("X-B3-ParentSpanId", "0020000000000001"),
                ("X-B3-Sampled", "1"),
                ("B3", "463ac35c9f6413ad48485a3953bb6124-a2fb4a1d1a96d312-1"),
                ("CF-Ray", "8d1c0f2e3a4b5c6d-FRA"),
                ("X-Request-Start", "t=1700000000"),
                ("X-Prometheus-Scrape-Timeout-Seconds", "10"),
            ],
        ],
        FieldClass::Cache => &[
            &[("Cache-Control", "no-cache"), ("Pragma", "no-cache")],
            &[("Cache-Control", "max-age=0")],
        ],
        FieldClass::Connection => {
            &[&[("Keep-Alive", "300"), ("TE", "trailers"), ("Max-Forwards", "10")]]
        }
        FieldClass::Content => {
            &[&[("Content-Type", "text/html")], &[("Content-Type", "application/json")]]
        }
    };
    let set = |fields: &&[(&'static str, &str)]| -> Decoy {
        fields.iter().map(|(name, value)| (*name, value.replace("HOST", host))).collect()
    };
    sets.iter().map(set).collect()
}

const CHROMIUM: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";
const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1";

/// Sets in which every one of the classes has a part: the first, second, ... of each.
pub fn together(classes: impl Iterator<Item = FieldClass> + Clone, host: &str) -> Vec<Decoy> {
    let all: Vec<Vec<Decoy>> = classes.map(|class| decoys(class, host)).collect();
    let most = all.iter().map(Vec::len).max().unwrap_or_default();
    let round = |round: usize| -> Decoy {
        all.iter()
            .filter_map(|sets| sets.get(round % sets.len().max(1)))
            .flatten()
            .cloned()
            .collect()
    };
    (0..most).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_http::request::{CLASSED, FieldClasses};

    #[test]
    fn every_classed_field_has_a_decoy_and_every_decoy_its_class() {
        for class in FieldClass::ALL {
            let sets = decoys(*class, "www.example.org");
            for (name, value) in sets.iter().flatten() {
                assert!(FieldClasses::of(name).contains(*class), "{name}");
                assert!(!value.contains("HOST") && !value.is_empty(), "{name}");
            }
            for (name, _) in CLASSED.iter().filter(|(_, of)| of == class) {
                let decoy = |(have, _): &(&str, String)| have.eq_ignore_ascii_case(name);
                assert!(sets.iter().flatten().any(decoy), "{name}");
            }
        }
    }

    #[test]
    fn together_every_value_is_sent_and_no_field_twice() {
        let all = together(FieldClass::ALL.iter().copied(), "a");
        assert_eq!(all.len(), 5, "as many as the class with the most");
        for decoy in &all {
            let mut names: Vec<_> = decoy.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), decoy.len());
            assert!(decoy.len() < 90, "Apache takes 100 fields");
        }
        let hosts = all.iter().flatten().filter(|(_, value)| value == "0.5").count();
        assert!(hosts > 0, "the second part of the hints");
        let sent = |value: &str| all.iter().flatten().any(|(_, have)| have == value);
        assert!(sent("null") && sent("fr, ja;q=0.5") && sent("max-age=0") && sent("curl/7.88.1"));
    }
}
