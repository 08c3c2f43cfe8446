//! The demands of RFC 9111, seen from outside.

use std::fs;
use std::time::Duration;

use afpa_testkit::{Server, eventually, eventually_within};
use rustix::process::Signal;

use crate::lab::stats;
use crate::origin::{Asked, Origin, Reply, message, ok};

const SOON: Duration = Duration::from_secs(10);

/// Answers with its number for the target, and these fields.
fn counting(fields: &'static str) -> Origin {
    Origin::start(move |asked| ok(fields, &format!("answer {}", asked.number)))
}

#[test]
fn only_answers_that_say_so_are_kept() {
    let origin = Origin::start(|asked: &Asked| {
        let fields = match asked.target.as_str() {
            "/fresh" => "Cache-Control: max-age=60\r\n",
            "/private" => "Cache-Control: private, max-age=60\r\n",
            "/no-store" => "Cache-Control: no-store, max-age=60\r\n",
            "/cookie" => "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
            "/modified" => "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "/cdn" => "Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60\r\n",
            _ => "",
        };
        ok(fields, &format!("answer {}", asked.number))
    });
    let proxy = origin.proxy("");
    for (target, kept) in [
        ("/fresh", true),
        ("/private", false),
        ("/no-store", false),
        ("/cookie", false),
        ("/modified", false),
        ("/cdn", true),
        ("/plain", false),
    ] {
        assert_eq!(proxy.get(target).text(), "answer 1", "{target}");
        let expected = if kept { "answer 1" } else { "answer 2" };
        let second = proxy.get(target);
        assert_eq!(second.text(), expected, "{target}");
        assert_eq!(second.field("Age").is_some(), kept, "{target}");
    }
    let off = origin.proxy("mode = \"off\"");
    let before = origin.count("/fresh");
    off.get("/fresh");
    off.get("/fresh");
    assert_eq!(origin.count("/fresh"), before + 2);
}

#[test]
fn a_kept_answer_is_the_one_that_came() {
    let fields = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nX-A: 1\r\nCache-Control: max-age=999999999999\r\n\
                  X-A: 2\r\nETag: \"e\"\r\nConnection: x-hop\r\nX-Hop: 1\r\nAge: 5\r\n";
    let origin = counting(fields);
    let proxy = origin.proxy("");
    let (first, second) = (proxy.get("/"), proxy.get("/"));
    assert_eq!(origin.count("/"), 1);
    assert_eq!((first.status, first.text()), (second.status, second.text()));
    for name in ["Date", "X-A", "Cache-Control", "ETag", "Content-Length", "X-Hop"] {
        let [one, other] = [&first, &second].map(|answer| answer.values(name).collect::<Vec<_>>());
        assert_eq!(one, other, "{name}");
    }
    let age: u64 = second.field("Age").expect("an age").parse().expect("a number");
    assert!(age > 900_000_000, "the age counts from Date: {age}");
    assert_eq!(second.values("Age").count(), 1);

    let head = proxy.connect().head_with("/", "");
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("8")));
    let old =
        proxy.connect().exchange("GET / HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((old.text(), old.field("Connection")), ("answer 1", Some("keep-alive")));
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn conditions_and_ranges_are_answered_from_what_is_kept() {
    let origin = counting("Cache-Control: max-age=60\r\nETag: W/\"e\"\r\nContent-Type: text/x\r\n");
    let proxy = origin.proxy("");
    proxy.get("/");
    let mut client = proxy.connect();
    let known = client.get_with("/", "If-None-Match: \"x\", \"e\"\r\n");
    assert_eq!((known.status, known.field("ETag")), (304, Some("W/\"e\"")));
    assert_eq!(client.get_with("/", "If-None-Match: \"x\"\r\n").status, 200);
    let sent = || stats(&proxy)["shared_cache"]["hit_bytes"].as_u64().expect("a count");
    eventually("the whole is counted", || sent() == 8);
    let part = client.get_with("/", "Range: bytes=0-2\r\n");
    assert_eq!((part.status, part.text()), (206, "ans"));
    eventually("the part is counted", || sent() == 8 + 3);
    assert_eq!(part.field("Content-Range"), Some("bytes 0-2/8"));
    let weak = client.get_with("/", "Range: bytes=0-2\r\nIf-Range: W/\"e\"\r\n");
    assert_eq!((weak.status, weak.text()), (200, "answer 1"));
    assert_eq!(client.get_with("/", "Range: bytes=9-\r\n").status, 416);
    let many = client.get_with("/", "Range: bytes=0-0,4-5\r\n");
    assert!(many.field("Content-Type").is_some_and(|of| of.starts_with("multipart/byteranges")));
    assert_eq!(origin.count("/"), 1);
}

#[test]
fn a_stale_answer_is_validated_and_updated() {
    let origin = Origin::start(|asked: &Asked| match asked.field("If-None-Match").as_deref() {
        Some("\"e\"") => {
            let head =
                "HTTP/1.1 304 X\r\nETag: \"e\"\r\nX-New: 1\r\nCache-Control: max-age=60\r\n\r\n";
            Reply::Bytes(head.into())
        }
        _ => ok("Cache-Control: no-cache\r\nETag: \"e\"\r\nX-Old: 1\r\n", "content"),
    });
    let proxy = origin.proxy("status_field = true");
    let first = proxy.get("/");
    assert_eq!(first.field("Cache-Status"), Some("afpa; fwd=uri-miss; stored"));
    let second = proxy.get("/");
    assert_eq!((second.status, second.text()), (200, "content"));
    assert_eq!((second.field("X-Old"), second.field("X-New")), (Some("1"), Some("1")));
    assert_eq!(second.field("Cache-Status"), Some("afpa; fwd=stale; fwd-status=304; stored"));
    let third = proxy.get("/");
    assert!(third.field("Cache-Status").is_some_and(|told| told.starts_with("afpa; hit; ttl=")));
    assert_eq!((third.text(), origin.count("/")), ("content", 2));
}

/// RFC 9111 section 4.3.4: else bytes of one version would have the name of another.
#[test]
fn a_304_with_a_strong_tag_confirms_no_answer_without_one() {
    const DATE: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (tag, content, count) in [("\"b\"", "new", 3), ("W/\"b\"", "old", 2)] {
        let origin = Origin::start(move |asked: &Asked| match asked.field("If-Modified-Since") {
            Some(_) => Reply::Bytes(format!("HTTP/1.1 304 X\r\nETag: {tag}\r\n\r\n").into()),
            None => {
                let content = if asked.number == 1 { "old" } else { "new" };
                ok(&format!("Cache-Control: no-cache\r\n{DATE}"), content)
            }
        });
        let proxy = origin.proxy("");
        assert_eq!(proxy.get("/").text(), "old");
        assert_eq!((proxy.get("/").text(), origin.count("/")), (content, count), "{tag}");
    }
}

/// RFC 9110 section 6.6.1: a response without Date has the time at which it was received.
#[test]
fn an_answer_that_a_304_without_date_confirms_is_as_old_as_that() {
    let origin = Origin::start(|asked: &Asked| match asked.field("If-None-Match") {
        Some(_) => Reply::Bytes("HTTP/1.1 304 X\r\nETag: \"e\"\r\n\r\n".into()),
        None => {
            let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
            ok(&format!("{date}Cache-Control: max-age=600\r\nETag: \"e\"\r\n"), "content")
        }
    });
    let proxy = origin.proxy("");
    assert_eq!(proxy.get("/").text(), "content");
    for turn in 0..2 {
        let answer = proxy.get("/");
        assert_eq!((answer.text(), origin.count("/")), ("content", 2), "{turn}");
        let age = answer.field("Age").map(|age| age.parse::<u64>());
        assert!(age.is_none_or(|age| age.is_ok_and(|age| age < 600)), "{answer:?}");
        assert!(!answer.field("Date").expect("a Date").contains("1994"), "{answer:?}");
    }
}

#[test]
fn a_value_of_one_field_is_none_of_the_field_that_a_server_varies_by_later() {
    let origin = Origin::start(|asked: &Asked| {
        let name = if asked.number == 1 { "X-One" } else { "X-Two" };
        let fields = format!("Cache-Control: max-age=60\r\nVary: {name}\r\n");
        ok(&fields, &format!("answer {}", asked.number))
    });
    let proxy = origin.proxy("");
    let get = |fields: &str| proxy.connect().get_with("/", fields).text().to_owned();
    assert_eq!(get("X-One: a\r\n"), "answer 1");
    assert_eq!(get("X-One: b\r\n"), "answer 2");
    assert_eq!(get("X-Two: a\r\n"), "answer 3", "not what was kept for X-One: a");
    assert_eq!(get("X-Two: a\r\n"), "answer 3");
}

#[test]
fn answers_that_vary_are_kept_side_by_side_up_to_a_limit() {
    let origin = Origin::start(|asked: &Asked| {
        let who = asked.field("X-Who").unwrap_or_default();
        ok("Cache-Control: max-age=60\r\nVary: X-Who\r\n", &format!("{who} {}", asked.number))
    });
    let proxy = origin.proxy("");
    let get = |who: &str| {
        let answer = proxy.connect().get_with("/", &format!("X-Who: {who}\r\n"));
        answer.text().to_owned()
    };
    assert_eq!([get("a"), get("b"), get("a"), get("b")], ["a 1", "b 2", "a 1", "b 2"]);
    // There is room for 32.
    for number in 3..=33 {
        assert_eq!(get(&format!("c{number}")), format!("c{number} {number}"));
    }
    assert_eq!([get("b"), get("c33")], ["b 2", "c33 33"]);
    assert_eq!(get("a"), "a 34", "the oldest had to go");
}

#[test]
fn unsafe_methods_drop_what_they_may_change() {
    let origin = Origin::start(|asked: &Asked| match asked.method.as_str() {
        "GET" => ok("Cache-Control: max-age=60\r\n", &format!("answer {}", asked.number)),
        "PUT" => Reply::Bytes(message(500, "", "")),
        _ => Reply::Bytes(message(201, "Location: /other\r\n", "")),
    });
    let proxy = origin.proxy("");
    let mut client = proxy.connect();
    for target in ["/", "/other", "/third"] {
        client.get(target);
    }
    client.exchange("PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.get("/").text(), "answer 1", "an error changes nothing");
    client.exchange("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
    assert_ne!(client.get("/").text(), "answer 1");
    assert_eq!(client.get("/other").text(), "answer 2");
    assert_eq!(client.get("/third").text(), "answer 1");
}

#[test]
fn a_cache_group_is_that_of_its_host() {
    let origin = Origin::start(|asked: &Asked| match asked.method.as_str() {
        "GET" => {
            let fields = "Cache-Control: max-age=60\r\nCache-Groups: \"a\", \"b\"\r\n";
            ok(fields, &format!("answer {}", asked.number))
        }
        _ => Reply::Bytes(message(200, "Cache-Group-Invalidation: \"b\"\r\n", "")),
    });
    let proxy = origin.proxy("");
    let mut client = proxy.connect();
    let other = "GET /other HTTP/1.1\r\nHost: other\r\n\r\n";
    assert_eq!(client.get("/").text(), "answer 1");
    assert_eq!(client.exchange(other).text(), "answer 1");
    client.exchange("DELETE /x HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.get("/").text(), "answer 2");
    assert_eq!(client.exchange(other).text(), "answer 1");
}

#[test]
fn a_stale_answer_is_used_while_it_is_validated_and_when_the_server_fails() {
    let origin = Origin::start(|asked: &Asked| match (asked.target.as_str(), asked.number) {
        ("/while", number) => {
            let fields = "Cache-Control: max-age=0, stale-while-revalidate=60\r\n";
            ok(fields, &format!("answer {number}"))
        }
        (_, 1) => ok("Cache-Control: max-age=0, stale-if-error=60\r\nETag: \"a\"\r\n", "good"),
        (_, 2) => Reply::Bytes(message(503, "", "bad")),
        _ => Reply::With(Box::new(|_| {})),
    });
    let proxy = origin.proxy("");
    assert_eq!(proxy.get("/while").text(), "answer 1");
    assert_eq!(proxy.get("/while").text(), "answer 1");
    eventually_within(SOON, "the answer is another one", || {
        proxy.get("/while").text() != "answer 1"
    });

    assert_eq!(proxy.get("/error").text(), "good");
    let instead = proxy.get("/error");
    assert_eq!((instead.status, instead.text()), (200, "good"), "instead of 503");
    let instead = proxy.get("/error");
    assert_eq!((instead.status, instead.text()), (200, "good"), "instead of 502");
    assert!(origin.count("/error") >= 3);
}

/// RFC 9111 section 5.2.1.7. It leaves the validation to a request for which a server may be asked.
#[test]
fn a_request_for_a_stored_answer_alone_gets_one_that_may_be_used_while_it_is_validated() {
    let origin = counting("Cache-Control: max-age=0, stale-while-revalidate=60\r\n");
    let proxy = origin.proxy("obey_clients = true");
    let mut client = proxy.connect();
    assert_eq!(client.get("/").text(), "answer 1");
    for _ in 0..3 {
        let stored = client.get_with("/", "Cache-Control: only-if-cached\r\n");
        assert_eq!((stored.status, stored.text()), (200, "answer 1"));
    }
    assert_eq!(origin.count("/"), 1);
    assert_eq!(client.get("/").text(), "answer 1");
    eventually_within(SOON, "it is validated", || origin.count("/") == 2);
}

#[test]
fn the_operator_decides_about_keys_times_and_bypasses() {
    let origin = counting("Set-Cookie: a=b\r\n");
    let proxy = origin.proxy(
        "times = { any = \"1m\" }\nset_cookie = \"strip\"\nquery = \"without\"\n\
         query_names = [\"utm_*\"]\nquery_sort = true\nbypass_cookies = [\"session\"]\n\
         bypass_headers = [\"X-No-Cache\"]",
    );
    assert_eq!(proxy.get("/?b=1&a=2").field("Set-Cookie"), Some("a=b"));
    let second = proxy.get("/?a=2&utm_source=x&b=1");
    assert_eq!((second.text(), second.field("Set-Cookie")), ("answer 1", None));
    let mut client = proxy.connect();
    assert_eq!(client.get_with("/?b=1&a=2", "Cookie: x=1; session=2\r\n").text(), "answer 2");
    assert_eq!(client.get_with("/?b=1&a=2", "x-no-cache: 1\r\n").text(), "answer 3");
    assert_eq!(client.get_with("/?b=1&a=2", "Cookie: x=1\r\n").text(), "answer 1");
}

#[test]
fn a_path_may_keep_more_or_less_than_its_site() {
    let origin = counting("Cache-Control: max-age=60\r\n");
    let to = origin.to();
    let proxy = origin.proxy(&format!(
        "mode = \"off\"\n[[site.path]]\nprefix = \"/kept/\"\nto = \"{to}\"\ncache = \"auto\""
    ));
    for (target, count) in [("/kept/a", 1), ("/other", 2)] {
        proxy.get(target);
        proxy.get(target);
        assert_eq!(origin.count(target), count, "{target}");
    }
}

#[test]
fn what_is_kept_outlives_a_reload() {
    let origin = counting("Cache-Control: max-age=60\r\n");
    let proxy = origin.proxy("");
    assert_eq!(proxy.get("/").text(), "answer 1");
    proxy.signal(Signal::HUP);
    eventually_within(SOON, "it is reloaded", || proxy.log().contains("reloaded"));
    assert_eq!(proxy.get("/").text(), "answer 1");
    assert_eq!(origin.count("/"), 1);
}

/// Servers may answer otherwise, when they are asked otherwise.
#[test]
fn a_reload_by_which_servers_get_another_host_leaves_no_answer_to_the_one_before() {
    let echo = || {
        Origin::start(|asked: &Asked| {
            ok("Cache-Control: max-age=600\r\n", &asked.field("Host").unwrap_or_default())
        })
    };
    let (origin, other) = (echo(), echo());
    let group = |to: &str, host: &str| {
        format!("servers = [\"{to}\"]\n[server_group.request]\nhost = \"{host}\"\n")
    };
    let (one, two) = (origin.to(), other.to());
    let named = ["first.test", "second.test"];
    assert_eq!(around_a_reload(named.map(|name| group(&one, name))), named);
    // The Host is the server's address, and the servers are others.
    let addresses = [&*one, &*two];
    assert_eq!(around_a_reload(addresses.map(|to| group(to, "server"))), addresses);
}

/// The answers for a URL that is kept before and after a reload, by these settings of the servers.
fn around_a_reload([before, after]: [String; 2]) -> [String; 2] {
    let proxy = Server::start("/", |launch| {
        launch
            .written(|listen| {
                format!(
                    "[shared_cache]\nlimit = \"64MiB\"\n\n[[server_group]]\nname = \"app\"\n{before}\n\
                     [[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n"
                )
            })
            .admin();
    });
    let first = proxy.get("/").text().to_owned();
    let again = proxy.get("/");
    assert_eq!((again.text(), again.field("Age").is_some()), (&*first, true), "it is kept");
    let file = proxy.configuration();
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace(&before, &after)).expect("written");
    proxy.signal(Signal::HUP);
    eventually_within(SOON, "it is reloaded", || proxy.log().contains("reloaded"));
    let last = proxy.get("/").text().to_owned();
    [first, last]
}

#[test]
fn the_answers_that_save_most_are_listed_first() {
    let origin = Origin::start(|asked: &Asked| {
        if asked.target.starts_with("/slow") {
            std::thread::sleep(Duration::from_secs(1));
        }
        ok("Cache-Control: max-age=600\r\n", "answer")
    });
    let proxy = origin.proxy("");
    for (target, times) in [("/quick", 5), ("/slow%20one?a", 3), ("/never-again", 1)] {
        (0..times).for_each(|_| assert_eq!(proxy.get(target).text(), "answer"));
    }
    let top = || -> serde_json::Value {
        let output = proxy.command(&["stats", "--top", "2", "--json"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    eventually_within(SOON, "uses are reported", || {
        let top = top();
        let hits: Vec<_> =
            (0..3).map(|at| top["answers_of_servers"][at]["hits"].as_u64()).collect();
        hits == [Some(2), Some(4), None]
    });
    let first = &top()["answers_of_servers"][0];
    assert_eq!(first["url"], "http://test/slow%20one?a");
    assert!(first["saved_us"].as_u64().is_some_and(|saved| saved >= 400_000), "{first}");
    let table = proxy.command(&["stats", "--top"]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("/quick"), "{table:?}");
}
