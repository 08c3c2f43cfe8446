//! Time in the programs per request, printed. The assertions look at counters, not times: which way each request took.

use crate::support;
use std::time::Duration;

use crate::servers_answers::{HOST, NUMBER, Pinned};
use crate::support::{LISTENER, SERVER_V4, SITE, Sample, World};
use afpa_bpf::{AcceptedCodings, FastPath, ProgramStatistics, Reason, Settings, Ttl};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 300;
/// Rounds that are not measured; connections that are to be bypassed are, within them.
const WARM_UP: usize = 10;
const BYPASS_AFTER: u32 = 5;

/// Lines as a browser sends them: 1,024 bytes in all.
fn browser_request(path: &str) -> String {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: server:8080\r\nConnection: keep-alive\r\n\
         sec-ch-ua: \"Chromium\";v=\"130\", \"Google Chrome\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n\
         sec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8\r\n\
         Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\n\
         Referer: http://server:8080/index.html\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
         Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\nCookie: session="
    );
    let cookie = "0123456789abcdef".repeat(64);
    format!("{head}{}\r\n\r\n", &cookie[..1024 - head.len() - 4])
}

struct Cost {
    ingress: f64,
    egress: f64,
    runs: f64,
}

/// Nanoseconds and runs per request over `CONNECTIONS` x `ROUNDS` requests made by `request`.
fn measure(world: &World, fast_path: &FastPath, mut request: impl FnMut(usize) -> String) -> Cost {
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| world.connect(SERVER_V4)).collect();
    let mut serial = 0;
    let mut round = |fast_path: &FastPath| {
        fast_path.clock.beat();
        for client in &mut clients {
            client.send(request(serial).as_bytes());
            serial += 1;
        }
        clients.iter_mut().for_each(|client| drop(client.receive()));
    };
    (0..WARM_UP).for_each(|_| round(fast_path));
    let before = fast_path.program_statistics().expect("statistics");
    (0..ROUNDS).for_each(|_| round(fast_path));
    let after = fast_path.program_statistics().expect("statistics");
    let requests = (CONNECTIONS * ROUNDS) as f64;
    let of = |statistics: &[ProgramStatistics], name: &str| {
        statistics.iter().find(|program| program.name == name).cloned().expect("the program")
    };
    let spent = |name: &str| {
        let (before, after) = (of(&before, name), of(&after, name));
        (
            (after.time - before.time).as_nanos() as f64 / requests,
            (after.runs - before.runs) as f64 / requests,
        )
    };
    // The answering program is reached by a tail call: its time is the entry program's.
    let ((ingress, runs), (egress, _)) = (spent("afpa_ingress"), spent("afpa_egress"));
    Cost { ingress, egress, runs }
}

#[test]
fn time_per_request() {
    let Some(mut world) = World::new() else { return };
    world.file("user.html", &[b'n'; 512]);
    world.nginx("");
    world.await_server();
    let settings = Settings {
        log_every: 0,
        bypass_after: 0,
        bypass_time: Duration::ZERO,
        firewall_interval: Duration::from_secs(3600), // it is looked at, and never lapses
        answer_max: 65_536,
        pages: 64,
        transfers: 64,
        // For all that is pinned first: the last two have no ready places.
        ready_objects: 7,
        ready_pages: 9,
        ..Settings::default()
    };
    let Some(fast_path) = world.fast_path(settings) else { return };
    Sample::new([b'k'; 512]).pin(&fast_path, "/kernel.html");
    for kilobytes in [4, 8, 13] {
        Sample::new(vec![b'k'; kilobytes << 10]).pin(&fast_path, &format!("/{kilobytes}.html"));
    }
    assert!(fast_path.listeners.map_host_as(LISTENER, HOST, SITE, NUMBER).expect("mapped"));
    let answer = Pinned {
        path: "/answer",
        body: &[b'k'; 512],
        age: 1_000_000_000,
        fresh_for: 9_999_999,
        digits: 7,
        ..Pinned::default()
    };
    answer.pin(&fast_path);
    let ttl = Some(Ttl { lifetime: 31_536_000, digits: 8 });
    Pinned { path: "/tells", ttl, ..answer }.pin(&fast_path);
    Pinned { path: "/varies", codings: Some(AcceptedCodings::NONE), ..answer }.pin(&fast_path);
    Sample::new([b'k'; 512]).pin(&fast_path, "/more.html");
    Sample::new(vec![b'k'; 8 << 10]).pin(&fast_path, "/8-more.html");
    assert_eq!((fast_path.objects.usage().slots, fast_path.objects.more_pages()), (9, 3));
    let _timing = support::enable_statistics();

    let small = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n");
    let unique = |path: &str, serial: usize| {
        browser_request(path).replace("session=01234567", &format!("session={serial:08}"))
    };
    type Requests = Box<dyn FnMut(usize) -> String>;
    let of_server = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    let cases: [(&str, Requests); 16] = [
        ("hit, small head", Box::new(move |_| small("/kernel.html"))),
        ("hit, a server's answer", Box::new(move |_| of_server("/answer"))),
        ("hit, a server's answer that tells its ttl", Box::new(move |_| of_server("/tells"))),
        ("hit, a server's answer that varies", Box::new(move |_| of_server("/varies"))),
        ("hit, 1 KB head", Box::new(|_| browser_request("/kernel.html"))),
        (
            "hit, 1 KB head, never seen before",
            Box::new(move |serial| unique("/kernel.html", serial)),
        ),
        // Clones are sent within the programs: this time holds their way to the peer's queue.
        ("hit, 3 segments", Box::new(move |_| small("/4.html"))),
        ("hit, 6 segments", Box::new(move |_| small("/8.html"))),
        ("hit, small head, place not ready", Box::new(move |_| small("/more.html"))),
        ("hit, 6 segments, places not ready", Box::new(move |_| small("/8-more.html"))),
        ("hit, 10 segments", Box::new(move |_| small("/13.html"))),
        ("pass, small head", Box::new(move |_| small("/user.html"))),
        ("pass, 1 KB head", Box::new(|_| browser_request("/user.html"))),
        (
            "pass, 1 KB head, never seen before",
            Box::new(move |serial| unique("/user.html", serial)),
        ),
        ("bypassed, small head", Box::new(move |_| small("/user.html"))),
        ("bypassed, 1 KB head", Box::new(|_| browser_request("/user.html"))),
    ];
    println!(
        "{:36} {:>8} {:>8} {:>6}   (ns of program time, ingress runs, per request)",
        "", "ingress", "egress", "runs"
    );
    for (name, request) in cases {
        fast_path.flows.set_bypass_after(if name.starts_with("bypassed") {
            BYPASS_AFTER
        } else {
            0
        });
        let before = fast_path.stats.counters().expect("counters");
        let cost = measure(&world, &fast_path, request);
        println!("{name:36} {:>8.0} {:>8.0} {:>6.2}", cost.ingress, cost.egress, cost.runs);
        let counters = fast_path.stats.counters().expect("counters").since(&before);
        let expected = (CONNECTIONS * (WARM_UP + ROUNDS)) as u64;
        let decided = if name.starts_with("hit") {
            counters[Reason::Answered]
        } else {
            counters[Reason::PassNotPinned] + counters[Reason::PassBypassed]
        };
        assert_eq!(decided, expected, "{name}");
        assert_eq!(counters[Reason::PassBypassed] != 0, name.starts_with("bypassed"), "{name}");
    }
}
