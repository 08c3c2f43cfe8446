//! The proxy before ordinary servers, of which one is killed, frozen, slowed, restarted or answers
//! garbage while traffic runs: no request that could be answered is lost, and servers are marked
//! unavailable and available when the configuration says so.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use afpa_testkit::{eventually, eventually_within, skip};
use afpa_tests::proxy::{Backend, Kind, Raw, Sample, Traffic, proxy, read_head, server_row, state};

/// Quick, so that a test takes seconds. Requests may be repeated on both other servers.
const QUICK: &str = "
[server_group.health]
probe_every = \"400ms\"
probe_timeout = \"200ms\"
[server_group.timeouts]
connect = \"300ms\"
first_byte = \"300ms\"
[server_group.connections]
repeats = 2
";

/// Three servers of these kinds, or why not.
fn servers(kinds: [Kind; 3]) -> Result<[Backend; 3], String> {
    let [first, second, third] = kinds;
    Ok([
        Backend::start(first, "first")?,
        Backend::start(second, "second")?,
        Backend::start(third, "third")?,
    ])
}

fn addresses(servers: &[Backend]) -> Vec<String> {
    servers.iter().map(Backend::to).collect()
}

/// Every request had the answer of one of the servers; how many had which.
#[track_caller]
fn all_answered(samples: &[Sample]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let start = samples.first().map(|sample| sample.at);
    for sample in samples {
        match &sample.answer {
            Ok((200, body)) => *counts.entry(body.clone()).or_insert(0) += 1,
            other => {
                let at = start.map(|start| sample.at - start).unwrap_or_default();
                panic!("lost after {at:?} (it took {:?}): {other:?}", sample.took);
            }
        }
    }
    counts
}

/// How many answers of `name` belong to requests that were asked between two times.
fn answers_of(samples: &[Sample], name: &str, from: Instant, to: Instant) -> usize {
    let of = |sample: &&Sample| sample.at >= from && sample.at + sample.took <= to;
    let named = |sample: &&Sample| sample.answer.as_ref().is_ok_and(|(_, body)| body == name);
    samples.iter().filter(of).filter(named).count()
}

#[test]
fn requests_go_around_as_the_weights_say() {
    let [a, b, c] = match servers([Kind::Nginx, Kind::Apache, Kind::Python]) {
        Ok(servers) => servers,
        Err(why) => skip!("{why}"),
    };
    let weighted = format!("{{ to = \"{}\", weight = 3 }}", b.to());
    let proxy = proxy(&[a.to(), weighted, c.to()], "");
    let mut client = proxy.connect();
    let order: Vec<_> = (0..15).map(|_| client.get("/").text().trim().to_owned()).collect();
    // One worker's requests are in order; other workers have none.
    let round = ["first", "second", "second", "second", "third"];
    assert_eq!(order, round.repeat(3));
}

#[test]
fn a_killed_server_costs_no_request_and_comes_back() {
    let mut servers = match servers([Kind::Nginx, Kind::Apache, Kind::Node]) {
        Ok(servers) => servers,
        Err(why) => skip!("{why}"),
    };
    let proxy = proxy(&addresses(&servers), QUICK);
    let traffic = Traffic::start(&proxy, 4, Duration::from_millis(2));
    traffic.pass(100);
    servers[1].kill();
    let down = eventually_within(Duration::from_secs(5), "it is unavailable", || {
        state(&proxy, &servers[1].to()) == "refused"
    });
    let gone = Instant::now();
    traffic.pass(200);
    std::thread::sleep(Duration::from_millis(500));
    let restarting = Instant::now();
    servers[1].restart();
    let restarted = Instant::now();
    eventually_within(Duration::from_secs(5), "it is available", || {
        state(&proxy, &servers[1].to()) == "up"
    });
    let back = Instant::now();
    traffic.pass(200);
    let samples = traffic.end();
    let counts = all_answered(&samples);
    assert_eq!(counts.len(), 3, "{counts:?}");
    assert!(down < Duration::from_secs(1), "marked at once, seen after {down:?}");
    assert_eq!(answers_of(&samples, "second", gone, restarting), 0);
    let waited = back - restarted;
    assert!(waited < Duration::from_millis(400 + 200 + 500), "at the next probe: {waited:?}");
    assert!(answers_of(&samples, "second", back, Instant::now()) > 0);
    let row = server_row(&proxy, &servers[1].to());
    assert_eq!(row["downs"], 1, "{row}");
}

#[test]
fn a_frozen_server_costs_no_request_and_comes_back_when_it_answers() {
    let servers = match servers([Kind::Python, Kind::Nginx, Kind::Node]) {
        Ok(servers) => servers,
        Err(why) => skip!("{why}"),
    };
    let proxy = proxy(&addresses(&servers), QUICK);
    let traffic = Traffic::start(&proxy, 6, Duration::from_millis(2));
    traffic.pass(100);
    servers[0].freeze();
    let down = eventually_within(Duration::from_secs(5), "it is unavailable", || {
        state(&proxy, &servers[0].to()) == "no answer"
    });
    let gone = Instant::now();
    traffic.pass(200);
    // Its kernel still takes connections: probes must not be content with that.
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(state(&proxy, &servers[0].to()), "no answer");
    let thawing = Instant::now();
    servers[0].thaw();
    eventually_within(Duration::from_secs(5), "it is available", || {
        state(&proxy, &servers[0].to()) == "up"
    });
    traffic.pass(100);
    let samples = traffic.end();
    let counts = all_answered(&samples);
    assert_eq!(counts.len(), 3, "{counts:?}");
    assert!(
        down >= Duration::from_millis(250),
        "three time-outs of 300 ms at least one of which ran"
    );
    assert_eq!(answers_of(&samples, "first", gone, thawing), 0);
    let longest = samples.iter().map(|sample| sample.took).max().expect("samples");
    assert!(longest < Duration::from_secs(3), "{longest:?}");
}

#[test]
fn servers_restarted_one_after_the_other_are_not_missed() {
    let mut servers = match servers([Kind::Nginx, Kind::Python, Kind::Apache]) {
        Ok(servers) => servers,
        Err(why) => skip!("{why}"),
    };
    let proxy = proxy(&addresses(&servers), QUICK);
    let traffic = Traffic::start(&proxy, 4, Duration::from_millis(2));
    for server in &mut servers {
        traffic.pass(50);
        server.kill();
        traffic.pass(50);
        server.restart();
        let to = server.to();
        eventually_within(Duration::from_secs(5), "available", || state(&proxy, &to) == "up");
    }
    traffic.pass(50);
    assert_eq!(all_answered(&traffic.end()).len(), 3);
}

#[test]
fn garbage_is_not_passed_on_and_its_server_is_ejected() {
    let good = match Backend::start(Kind::Nginx, "good") {
        Ok(server) => server,
        Err(why) => skip!("{why}"),
    };
    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc",
        "\0\0\0\0\r\n\r\n",
    ] {
        let bad = Raw::answering(garbage, Duration::ZERO);
        let proxy = proxy(&[bad.to(), good.to()], QUICK);
        let traffic = Traffic::start(&proxy, 2, Duration::ZERO);
        eventually_within(Duration::from_secs(5), "it is ejected", || {
            state(&proxy, &bad.to()) == "errors"
        });
        traffic.pass(50);
        let counts = all_answered(&traffic.end());
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["good"]);
        assert!(bad.connections() > 0);
    }
}

#[test]
fn a_slow_server_gets_less_by_least_connections() {
    let answer =
        |name: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
    let slow = Raw::answering(answer("slow"), Duration::from_millis(300));
    let fast = Raw::answering(answer("fast"), Duration::from_millis(2));
    let proxy = proxy(&[slow.to(), fast.to()], "select = \"least-connections\"\n");
    let traffic = Traffic::start(&proxy, 8, Duration::ZERO);
    traffic.pass(600);
    let counts = all_answered(&traffic.end());
    assert!(counts["fast"] > 4 * counts["slow"], "{counts:?}");
}

#[test]
fn the_last_resort_says_by_status_what_is_wrong() {
    let mut only = match Backend::start(Kind::Python, "only") {
        Ok(server) => server,
        Err(why) => skip!("{why}"),
    };
    let proxy = proxy(&[only.to()], QUICK);
    assert_eq!(proxy.get("/").text(), "only");
    only.kill();
    for _ in 0..3 {
        let response = proxy.get("/");
        assert_eq!(response.status, 502, "{}", response.text());
        let retry = response.field("Retry-After").and_then(|value| value.parse::<u32>().ok());
        assert!(retry.is_some_and(|seconds| (1..=60).contains(&seconds)));
    }
    eventually_within(Duration::from_secs(5), "the log says why", || {
        proxy.log().contains("a request got no answer from its server")
    });
    only.restart();
    eventually_within(Duration::from_secs(5), "it is back", || proxy.get("/").status == 200);
    only.freeze();
    // The status from before the restart may come once more.
    eventually_within(Duration::from_secs(5), "it is too slow", || proxy.get("/").status == 504);
    let statuses: Vec<_> = (0..4).map(|_| proxy.get("/").status).collect();
    assert_eq!(statuses, [504; 4]);
    only.thaw();
    eventually_within(Duration::from_secs(5), "it is back", || proxy.get("/").status == 200);
}

#[test]
fn a_full_server_has_a_queue_and_beyond_it_503() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (has, had) = (Arc::clone(&now), Arc::clone(&most));
    let slow = Raw::start(move |mut stream| {
        while read_head(&mut stream).is_some() {
            had.fetch_max(has.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(600));
            has.fetch_sub(1, Ordering::SeqCst);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow");
        }
    });
    let server = format!("{{ to = \"{}\", max_connections = 2 }}", slow.to());
    // All of them are one client.
    let settings = "client_share = 100\n[server_group.queue]\nlength = 4\ntimeout = \"10s\"\n";
    let proxy = proxy(&[server], settings);
    let ask = || {
        let mut client = proxy.connect();
        std::thread::spawn(move || client.get("/").status)
    };
    let asked: Vec<_> = (0..12).map(|_| ask()).collect();
    let mut statuses: Vec<_> =
        asked.into_iter().map(|thread| thread.join().expect("joined")).collect();
    statuses.sort_unstable();
    let answered = statuses.iter().filter(|status| **status == 200).count();
    assert!((6..=8).contains(&answered), "two at once, four in the queue: {statuses:?}");
    assert!(statuses[answered..].iter().all(|status| *status == 503), "{statuses:?}");
    assert_eq!(server_row(&proxy, &slow.to())["downs"], 0, "it is not punished");
    assert_eq!(most.load(Ordering::SeqCst), 2, "never more than it may have");
}

#[test]
fn the_cookie_keeps_a_client_with_its_server() {
    let names = ["first", "second", "third"];
    let answer =
        |name: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
    let servers = names.map(|name| Raw::answering(answer(name), Duration::ZERO));
    let addresses: Vec<_> = servers.iter().map(Raw::to).collect();
    let proxy = proxy(&addresses, "affinity = \"cookie\"\ncookie = \"where\"\n");
    let first = proxy.get("/");
    let field = first.field("Set-Cookie").expect("a cookie").to_owned();
    let cookie = field.split(';').next().expect("a pair").to_owned();
    assert!(cookie.starts_with("where=") && !field.contains("127."), "{field}");
    for _ in 0..6 {
        let lines = format!("Cookie: a=b; {cookie}; c=d\r\n");
        let again = proxy.connect().get_with("/", &lines);
        assert_eq!((again.text(), again.field("Set-Cookie")), (first.text(), None));
    }
    let others: Vec<_> = (0..6).map(|_| proxy.get("/").text().to_owned()).collect();
    assert!(names.iter().all(|name| others.iter().any(|other| other == name)), "{others:?}");
}

#[test]
fn tables_and_metrics_show_groups_and_servers() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let server = Raw::answering(answer, Duration::from_millis(1));
    let proxy = proxy(&[server.to()], "");
    for _ in 0..5 {
        assert_eq!(proxy.get("/").text(), "ok");
    }
    eventually("all are counted", || server_row(&proxy, &server.to())["in_flight"] == 0);
    let row = server_row(&proxy, &server.to());
    assert_eq!((&row["requests"], &row["2xx_3xx"]), (&5.into(), &5.into()), "{row}");
    assert!(row["first_byte_50_us"].as_u64().is_some_and(|us| us >= 500), "{row}");
    let table = proxy.command(&["stats", "--all"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("Servers\n") && table.contains(&server.to()), "{table}");
    let metrics = afpa_testkit::Client::connect(&proxy.admin()).expect("connected").get("/metrics");
    let own = format!("group=\"app\",server=\"{}\"", server.to());
    for line in [
        format!("afpa_server_requests_total{{{own}}} 5\n"),
        format!("afpa_server_responses_total{{{own},class=\"2xx\"}} 5\n"),
        format!("afpa_server_first_byte_seconds_count{{{own}}} 5\n"),
    ] {
        assert!(metrics.text().contains(&line), "{line}\n{}", metrics.text());
    }
}
