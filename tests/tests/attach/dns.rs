//! `afpa attach --dns` before a name server: byte for byte its answers, and its end with them.

use std::fs;
use std::time::{Duration, Instant};

use afpa_testkit::proc::Process;
use afpa_testkit::{Random, eventually_within};
use afpa_tests::dns::{
    A, COOKIE_SECRET, DnsAttached, DnsClient, DnsLab, NameServer, Odd, Query, SOA, TapReader,
    option,
};
use rustix::process::Signal;

const NAMES: usize = 24;
const AAAA: u16 = 28;
const MX: u16 = 15;
const NS: u16 = 2;
const TXT: u16 = 16;
/// A code of answers.
const REFUSED: u8 = 5;

/// A zone with names of each kind. `last` is the last byte of some addresses.
fn zone(serial: u32, last: u8) -> String {
    let mut zone = format!(
        "$ORIGIN example.test.\n$TTL 3600\n@ IN SOA ns1 host {serial} 3600 600 86400 300\n@ IN NS ns1\n@ IN NS ns2\n\
         @ IN MX 10 mail\n@ IN MX 20 mail2\n@ IN TXT \"v=spf1 -all\"\n@ IN A 192.0.2.1\nns1 IN A 10.77.0.1\nns1 IN AAAA fd77::1\n\
         ns2 IN A 192.0.2.2\nmail IN A 192.0.2.3\nmail2 IN AAAA 2001:db8::3\n*.wild IN A 192.0.2.9\nsub IN NS ns.sub\n\
         sub IN NS ns.elsewhere.test.\nns.sub IN A 192.0.2.12\ncname IN CNAME host1\ncnout IN CNAME www.elsewhere.test.\n\
         dn IN DNAME other.example.\nMixEd IN A 192.0.2.77\nent.below IN A 192.0.2.11\n"
    );
    let big: Vec<String> =
        (0..6).map(|at| format!("\"{}\"", char::from(b'a' + at).to_string().repeat(250))).collect();
    zone.push_str(&format!("big IN TXT {}\nhuge IN TXT {}\n", big[..3].join(" "), big.join(" ")));
    for name in long_names() {
        zone.push_str(&format!("{name} IN A 198.51.100.{last}\n"));
    }
    for host in 0..NAMES {
        zone.push_str(&format!(
            "host{host} IN A 198.51.100.{last}\nhost{host} IN AAAA 2001:db8::{host:x}\n"
        ));
    }
    zone
}

/// Names below the zone that have 64, 65, 127, 128 and 255 bytes on the wire; the zone's own has 14.
fn long_names() -> [String; 5] {
    let label = |letter: char, length: usize| letter.to_string().repeat(length);
    let of = |lengths: &[usize]| {
        let labels: Vec<String> =
            ('k'..).zip(lengths).map(|(letter, length)| label(letter, *length)).collect();
        labels.join(".")
    };
    [of(&[49]), of(&[50]), of(&[62, 49]), of(&[63, 49]), of(&[63, 63, 63, 48])]
}

fn lab(kind: NameServer) -> Result<DnsLab, String> {
    DnsLab::new(kind, &zone(1, 7))
}

fn questions() -> Vec<Query> {
    let odd = [
        "",
        "ns1.",
        "mail2.",
        "a.wild.",
        "b.c.wild.",
        "sub.",
        "a.sub.",
        "cname.",
        "cnout.",
        "a.dn.",
        "dn.",
        "mixed.",
        "below.",
        "absent.",
        "a.absent.",
        "big.",
        "huge.",
    ];
    let long = long_names().map(|name| name + ".");
    let names = odd.map(str::to_owned).into_iter().chain(long);
    let names = names.chain((0..NAMES).map(|at| format!("host{at}.")));
    let each = names.flat_map(|name| {
        [A, AAAA, MX, NS, TXT, SOA].map(|kind| Query::new(&format!("{name}example.test"), kind))
    });
    each.collect()
}

/// The question in one class of clients.
fn classed(question: &Query, class: usize, random: &mut Random) -> Query {
    let edns = [None, Some(512), Some(1232), Some(4096)][class % 4];
    // A client's cookie is the one option that is not the server's alone.
    let cookie = edns.is_some() && random.one_in(3);
    let signatures = if class >= 4 && edns.is_some() { 0x80 } else { 0 };
    let flags = [0x0100, 0x0010, 0x0020].into_iter().filter(|_| random.one_in(3)).sum();
    Query {
        id: random.next() as u16,
        flags,
        edns,
        extended: [0, 0, signatures, 0],
        options: if cookie { option(10, &random.next().to_ne_bytes()) } else { Vec::new() },
        ..question.clone()
    }
}

/// The name in small letters, in capitals, and mixed.
fn spelled(query: &Query, spelling: usize, random: &mut Random) -> Query {
    let mut query = query.clone();
    for byte in &mut query.name {
        *byte = match spelling {
            0 => byte.to_ascii_lowercase(),
            1 => byte.to_ascii_uppercase(),
            _ if random.one_in(2) => byte.to_ascii_uppercase(),
            _ => *byte,
        };
    }
    query
}

/// Asks until the kernel answers this question.
#[track_caller]
fn pinned(attached: &DnsAttached, client: &mut DnsClient, query: &Query) {
    eventually_within(Duration::from_secs(60), "the kernel answers", || {
        let before = attached.answered();
        client.ask(&query.bytes()).expect("an answer");
        attached.answered() > before
    });
}

#[test]
fn the_kernel_answers_as_the_server_does() {
    for kind in NameServer::chosen() {
        match lab(kind) {
            Ok(lab) => answers_are_the_same(kind, &lab),
            Err(reason) => afpa_testkit::skip!("{reason}"),
        }
    }
}

fn answers_are_the_same(kind: NameServer, lab: &DnsLab) {
    let mut random = Random::new(Random::seed_or(53));
    let attached = lab.attach(&["--rate", "0"]);
    let mut clients = [lab.client(false), lab.client(true)];
    let mut servers = [lab.past_us(false), lab.past_us(true)];
    let all = questions();
    let asked: Vec<(usize, Query)> = (0..2)
        .flat_map(|family| {
            all.iter().flat_map(move |question| (0..8).map(move |class| (family, question, class)))
        })
        .map(|(family, question, class)| (family, classed(question, class, &mut random)))
        .collect();
    // The kernel tells of so many questions in a moment, so not each time of each one counts.
    let (mut pinned, mut passes) = (0, 0);
    while passes < 3 || (passes < 30 && attached.pinned() > pinned) {
        pinned = attached.pinned();
        passes += 1;
        for (family, query) in &asked {
            clients[*family].ask(&query.bytes()).expect("an answer");
        }
        attached.settle();
    }
    let before = attached.answered();
    let mut count = 0;
    for (family, query) in &asked {
        for spelling in 0..3 {
            let query = spelled(query, spelling, &mut random).bytes();
            let (ours, theirs) = (clients[*family].ask(&query), servers[*family].ask(&query));
            assert_eq!(ours, theirs, "{kind:?}, family {family}, {query:02x?}");
            count += 1;
        }
    }
    let answered = attached.answered() - before;
    println!("{kind:?}: {count} questions, {answered} answered by the kernel, none differs");
    let least = if kind == NameServer::Bind { count / 4 } else { count * 3 / 4 };
    assert!(answered > least, "{answered} of {count}: {:#?}", attached.statistics());
}

#[test]
fn long_names_are_answered_as_short_ones() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "0"]);
    let mut random = Random::new(Random::seed_or(53));
    for v6 in [false, true] {
        let (mut client, mut server) = (lab.client(v6), lab.past_us(v6));
        for name in long_names() {
            let query =
                Query { edns: Some(1232), ..Query::new(&format!("{name}.example.test"), A) };
            pinned(&attached, &mut client, &query);
            for spelling in 0..3 {
                let query = spelled(&query, spelling, &mut random).bytes();
                assert_eq!(client.ask(&query), server.ask(&query), "{name}, spelling {spelling}");
            }
            // A name that differs in its last letter is another one.
            let mut other = query.clone();
            let last = other.name.len() - 15;
            other.name[last] = b'z';
            let before = attached.answered();
            assert_eq!(client.ask(&other.bytes()), server.ask(&other.bytes()));
            assert_eq!(attached.answered(), before, "{name}");
        }
    }
}

#[test]
fn numbers_and_purges_are_the_operators() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let address = "127.0.0.1:9353";
    let attached = lab.attach(&["--rate", "0", "--metrics", address]);
    let mut client = lab.client(false);
    let absent = Query::new("absent.example.test", A);
    for (name, kind) in [("host1", A), ("host2", A), ("host2", AAAA), ("mail", MX)] {
        pinned(&attached, &mut client, &Query::new(&format!("{name}.example.test"), kind));
    }
    pinned(&attached, &mut client, &absent);
    let statistics = attached.statistics();
    let page = attached.call("GET /metrics").expect("a page");
    let number = |sample: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{sample}: {page}")).parse::<u64>().expect("a number")
    };
    let of = |label: &str| number(&format!("afpa_dns_kernel_{label}"));
    let rcodes =
        ["NOERROR", "NXDOMAIN"].map(|rcode| of(&format!("answers_total{{rcode=\"{rcode}\"}}")));
    assert!(rcodes[0] >= 4 && rcodes[1] >= 1, "{rcodes:?}");
    assert_eq!(rcodes[0] + rcodes[1], statistics["answered"].as_u64().expect("a number"));
    let types = ["A", "AAAA", "MX"].map(|kind| of(&format!("types_total{{type=\"{kind}\"}}")));
    assert_eq!(types.iter().sum::<u64>(), rcodes[0] + rcodes[1], "{page}");
    assert!(types[1] >= 1 && types[2] >= 1);
    assert_eq!((of("questions"), of("zones")), (5, 1));
    assert!(of("packets_total{outcome=\"passed\",reason=\"question is not pinned\"}") >= 10);
    assert!(page.ends_with("# EOF\n"));
    // A collector gets the same by TCP, and may ask for nothing else.
    let by_tcp = |line: &'static str| {
        lab.on_server(move || {
            let mut stream = std::net::TcpStream::connect(address).expect("connected");
            std::io::Write::write_all(
                &mut stream,
                format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
            )
            .expect("written");
            let mut text = String::new();
            std::io::Read::read_to_string(&mut stream, &mut text).expect("read");
            text
        })
    };
    let collected = by_tcp("GET /metrics");
    assert!(collected.contains("Content-Type: application/openmetrics-text"), "{collected}");
    assert!(collected.contains("\nafpa_dns_kernel_questions 5\n"), "{collected}");
    for line in ["GET /stats", "POST /stop", "POST /purge?name=host1.example.test"] {
        assert!(by_tcp(line).starts_with("HTTP/1.1 404 "), "{line}");
    }
    let purge = |arguments: &[&str]| {
        let mut command = std::process::Command::new(afpa_testkit::server::program());
        command.arg("purge").args(arguments).arg("--control");
        let output = command.arg(attached.socket().expect("a socket")).output().expect("afpa");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert_eq!(
        purge(&["--name", "host2.example.test"]),
        "2 answers were dropped from the kernel\n"
    );
    assert_eq!(purge(&["--zone", "example.test"]), "3 answers were dropped from the kernel\n");
}

#[test]
fn answers_of_the_kernel_are_samples_for_dnstap() {
    let (lab, reader) = match lab(NameServer::Nsd).and_then(|lab| Ok((lab, TapReader::start()?))) {
        Ok(both) => both,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let socket = reader.socket();
    let attached = lab.attach(&["--rate", "0", "--dnstap", &socket, "--dnstap-sample", "1"]);
    for v6 in [false, true] {
        let mut client = lab.client(v6);
        let query = Query { edns: Some(1232), ..Query::new("Host1.example.test", A) };
        pinned(&attached, &mut client, &query);
    }
    assert_eq!(Process(attached.id()).rights_left(true).expect("threads"), [""; 0], "by thread");
    eventually_within(Duration::from_secs(20), "each answer is a sample", || {
        let statistics = attached.statistics();
        assert_eq!(statistics["dnstap"]["lost"], 0, "{statistics:#}");
        statistics["dnstap"]["written"] == statistics["answered"]
    });
    let answered = attached.answered();
    drop(attached);
    let lines = reader.lines();
    assert_eq!(lines.len() as u64, answered, "{lines:#?}");
    for (client, server) in [("10.77.64.1:", "<- 10.77.0.1:53"), ("fd77:", "<- fd77::")] {
        let of = |line: &&String| line.contains(client) && line.contains(server);
        let line = lines.iter().find(of).unwrap_or_else(|| panic!("{client}: {lines:#?}"));
        assert!(line.contains(" AR ") && line.ends_with("Host1.example.test/IN/A"), "{line}");
    }
}

#[test]
fn odd_queries_are_the_servers() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&[]);
    let (mut client, mut server) = (lab.client(false), lab.past_us(false));
    let plain = Query::new("host1.example.test", A);
    let edns = Query { edns: Some(1232), ..plain.clone() };
    for query in [&plain, &edns] {
        pinned(&attached, &mut client, query);
    }
    for one in [&mut client, &mut server] {
        one.set_patience(Duration::from_millis(200)); // some are answered by silence
    }
    for Odd { what, query, .. } in Odd::all(&plain) {
        let before = attached.answered();
        let (ours, theirs) = (client.ask(&query), server.ask(&query));
        assert_eq!(attached.answered(), before, "{what} was answered by the kernel");
        assert_eq!(ours, theirs, "{what}");
    }
}

#[test]
fn a_changed_zone_ends_its_answers() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "0"]);
    let (mut client, mut server) = (lab.client(false), lab.past_us(false));
    let query = Query::new("host1.example.test", A);
    for turn in 1..4u8 {
        pinned(&attached, &mut client, &query);
        let new = |answer: &[u8]| answer.windows(4).any(|four| four == [198, 51, 100, 100 + turn]);
        lab.change_zone(&zone(1 + u32::from(turn), 100 + turn));
        eventually_within(Duration::from_secs(30), "the server has the new zone", || {
            server.ask(&query.bytes()).is_some_and(|answer| new(&answer))
        });
        let since = Instant::now();
        let mut last_old = Duration::ZERO;
        // A lease is 400 milliseconds: after that nothing old may come, however busy the machine.
        while since.elapsed() < Duration::from_secs(1) {
            let asked = since.elapsed();
            let answer = client.ask(&query.bytes()).expect("an answer");
            if !new(&answer) {
                last_old = asked;
            }
        }
        println!("last old answer {last_old:?} after the server's first new one");
        assert!(last_old < Duration::from_millis(500), "{last_old:?}");
    }
    assert_eq!(
        attached.call("POST /purge?name=host1.example.test").as_deref(),
        Some("1 answer was dropped from the kernel\n")
    );
}

/// The kernel stops within a second or two when the server does.
fn ends_with(signal: Signal) {
    let mut lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&[]);
    let mut client = lab.client(false);
    let query = Query::new("host1.example.test", A);
    pinned(&attached, &mut client, &query);
    client.set_patience(Duration::from_millis(100));
    match signal {
        Signal::KILL => lab.kill(),
        signal => lab.signal(signal),
    }
    let since = Instant::now();
    eventually_within(Duration::from_secs(20), "nobody answers", || {
        client.ask(&query.bytes()).is_none()
    });
    println!("{signal:?}: no answer {:?} after the server", since.elapsed());
    let before = attached.answered();
    for _ in 0..5 {
        assert_eq!(client.ask(&query.bytes()), None);
    }
    assert_eq!(attached.answered(), before);
    lab.signal(Signal::CONT);
}

#[test]
fn a_killed_server_is_not_spoken_for() {
    ends_with(Signal::KILL);
}

#[test]
fn a_hung_server_is_not_spoken_for() {
    ends_with(Signal::STOP);
}

#[test]
fn a_server_that_refuses_is_not_spoken_for() {
    let lab = match lab(NameServer::Knot) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&[]);
    let (mut client, mut server) = (lab.client(false), lab.past_us(false));
    let query = Query::new("host1.example.test", A);
    pinned(&attached, &mut client, &query);
    let refuses = |client: &mut DnsClient| {
        client.ask(&query.bytes()).is_some_and(|answer| answer[3] & 15 == REFUSED)
    };
    lab.take_zones();
    eventually_within(Duration::from_secs(20), "the server refuses", || refuses(&mut server));
    let since = Instant::now();
    eventually_within(Duration::from_secs(20), "everybody is refused", || refuses(&mut client));
    println!("refused {:?} after the server's first refusal", since.elapsed());
    let before = attached.answered();
    for _ in 0..20 {
        assert!(refuses(&mut client));
    }
    assert_eq!(attached.answered(), before);
}

#[test]
fn a_rule_of_the_firewall_counts() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let nft = |rules: &str| {
        let output = lab.bed().server().command("nft").arg(rules).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !nft("add table inet t; add chain inet t o { type filter hook output priority 0; }") {
        afpa_testkit::skip!("no nft here, or a kernel without nf_tables");
    }
    let attached = lab.attach(&[]);
    let mut client = lab.client(false);
    let query = Query::new("host1.example.test", A);
    pinned(&attached, &mut client, &query);
    client.set_patience(Duration::from_millis(100));
    assert!(nft("add rule inet t o udp sport 53 ip daddr 10.77.64.1 drop"));
    let since = Instant::now();
    eventually_within(Duration::from_secs(20), "the client is not answered", || {
        client.ask(&query.bytes()).is_none()
    });
    println!("no answer {:?} after the rule", since.elapsed());
    let before = attached.answered();
    for _ in 0..5 {
        assert_eq!(client.ask(&query.bytes()), None);
    }
    assert_eq!(attached.answered(), before, "the server's answers do not get through");
}

#[test]
fn a_client_behind_a_known_gateway_is_answered_at_once() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let ip = |namespace: &afpa_netlab::Namespace, arguments: &str| {
        let status = namespace.command("ip").args(arguments.split(' ')).status();
        assert!(status.is_ok_and(|status| status.success()), "{arguments}");
    };
    ip(lab.bed().server(), "route add 10.99.0.0/16 via 10.77.64.1");
    for last in 1..60 {
        ip(lab.bed().client(), &format!("address add 10.99.0.{last}/32 dev lo"));
    }
    let query = Query::new("host1.example.test", A);
    let client = |last: u8| lab.client_at([10, 99, 0, last].into());
    {
        let attached = lab.attach(&[]);
        pinned(&attached, &mut client(1), &query);
        let before = attached.answered();
        client(2).ask(&query.bytes()).expect("an answer");
        assert_eq!(attached.answered(), before, "a client that is not known is the server's");
    }
    let attached = lab.attach(&["--clients", "gateway"]);
    pinned(&attached, &mut client(1), &query);
    // The server's own answer to the first one may be older than a second.
    let mut new = 3..60;
    eventually_within(Duration::from_secs(20), "a client's first query is answered", || {
        client(1).ask(&query.bytes()).expect("an answer");
        let before = attached.answered();
        let next = new.next().expect("clients are left");
        client(next).ask(&query.bytes()).expect("an answer");
        attached.answered() > before
    });
}

#[test]
fn the_excess_of_a_prefix_is_the_servers() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "5"]);
    let mut client = lab.client(false);
    let query = Query::new("host1.example.test", A);
    pinned(&attached, &mut client, &query);
    let (since, before) = (Instant::now(), attached.answered());
    for _ in 0..200 {
        client.ask(&query.bytes()).expect("an answer");
    }
    let answered = attached.answered() - before;
    let most = 5 + 5 * (since.elapsed().as_secs() + 1);
    assert!(answered <= most, "{answered} of {most}");
    assert!(answered > 0);
}

/// How often the server's answer was another one than the pinned.
fn different(attached: &DnsAttached) -> u64 {
    let statistics = attached.statistics();
    let reasons = statistics["reasons"].as_object().expect("reasons").clone();
    let differs = |reason: &str| reason.starts_with("compared") && reason.contains("differs");
    reasons
        .iter()
        .filter(|(reason, _)| differs(reason))
        .filter_map(|(_, n)| n.as_u64())
        .sum::<u64>()
}

/// The server answers both, of which the kernel has to believe one to be the answer to the other.
#[test]
fn two_queries_with_one_id_bar_nothing() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "1"]);
    let mut client = lab.client(false);
    let query = Query::new("host1.example.test", A);
    let other = Query { edns: Some(1232), options: option(3, b""), ..query.clone() };
    pinned(&attached, &mut client, &query);
    let alarms = || attached.statistics()["pinned"]["false_alarms"].as_u64().expect("a number");
    let mut id = 2000;
    eventually_within(Duration::from_secs(60), "several answers were taken for others", || {
        id += 1;
        let with_id = |query: &Query| Query { id, ..query.clone() }.bytes();
        client.send(&with_id(&other));
        client.ask(&with_id(&query)).expect("an answer");
        attached.settle();
        alarms() >= 3
    });
    let statistics = attached.statistics();
    assert!(different(&attached) >= 3, "{statistics:#}");
    assert_eq!(statistics["pinned"]["changed"], 0, "{statistics:#}");
    assert_eq!(statistics["unfit"], serde_json::json!({}), "{statistics:#}");
    pinned(&attached, &mut client, &query);
}

/// Two queries with one id, of which the kernel never brings the first one to the server, or both at once.
#[test]
fn answers_to_other_questions_are_no_differences() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "1"]);
    let mut client = lab.client(false);
    let query = Query::new("host1.example.test", A);
    pinned(&attached, &mut client, &query);
    let different = || different(&attached);
    for turn in 0..40 {
        let with_id = |query: &Query| Query { id: 1000 + turn, ..query.clone() }.bytes();
        let first = with_id(&query);
        let other = match turn % 2 {
            0 => with_id(&Query::new("host2.example.test", MX)),
            // The same question in another class, which no kernel answers.
            _ => with_id(&Query { edns: Some(1232), options: option(3, b""), ..query.clone() }),
        };
        lab.send_damaged(&client, &first);
        client.ask(&other).expect("an answer");
    }
    assert_eq!(different(), 0, "{:#?}", attached.statistics());
    assert_eq!(attached.statistics()["pinned"]["changed"], 0);
}

#[test]
fn guessed_names_do_not_fill_the_table() {
    let lab = match lab(NameServer::Nsd) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let attached = lab.attach(&["--rate", "0"]);
    let mut client = lab.client(false);
    for name in [
        "a.wild.example.test",
        "b.c.wild.example.test",
        "absent.example.test",
        "host1.example.test",
    ] {
        pinned(&attached, &mut client, &Query::new(name, A));
    }
    attached.settle();
    let statistics = attached.statistics();
    let pinned = &statistics["pinned"];
    assert_eq!((&pinned["questions"], &pinned["of_guessed_names"]), (&4.into(), &3.into()));
}

#[test]
fn cookies_of_the_server_are_made_and_checked() {
    let lab = match lab(NameServer::NsdWithCookies) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    fs::write(&secret, COOKIE_SECRET).expect("written");
    let path = secret.display().to_string();
    let attached = lab.attach(&["--rate", "3", "--cookie-secret", &path]);
    for v6 in [false, true] {
        let (mut client, mut server) = (lab.client(v6), lab.past_us(v6));
        let with = |cookie: &[u8]| {
            let plain = Query::new("Host1.example.test", A);
            Query { edns: Some(1232), options: option(10, cookie), ..plain }.bytes()
        };
        pinned(
            &attached,
            &mut client,
            &Query {
                edns: Some(1232),
                options: option(10, b"clients1"),
                ..Query::new("host1.example.test", A)
            },
        );
        let cookie = |answer: &[u8]| answer[answer.len() - 24..].to_vec();
        let without = |answer: &[u8]| answer[..answer.len() - 16].to_vec();
        let theirs = server.ask(&with(b"clients1")).expect("an answer");
        // The server's own cookie proves the client, whose answers are the kernel's whatever the rate.
        let before = attached.answered();
        eventually_within(
            Duration::from_secs(20),
            "the kernel answers whoever has a cookie",
            || {
                let from = attached.answered();
                for _ in 0..30 {
                    let ours = client.ask(&with(&cookie(&theirs))).expect("an answer");
                    assert_eq!(ours, theirs, "a young cookie stays as it is");
                }
                attached.answered() - from > 25
            },
        );
        assert!(attached.answered() > before);
        // The kernel's own cookie is one of the server's: it comes back from there as it was.
        let mut own = None;
        eventually_within(Duration::from_secs(20), "the kernel makes a cookie", || {
            let from = attached.answered();
            let ours = client.ask(&with(b"clients2")).expect("an answer");
            own = (attached.answered() > from).then_some(ours);
            own.is_some()
        });
        let own = own.expect("made");
        let theirs = server.ask(&with(&cookie(&own))).expect("an answer");
        assert_eq!((cookie(&theirs), without(&theirs)), (cookie(&own), without(&own)));
        // One that is not right is the server's to judge.
        let mut wrong = cookie(&own);
        wrong[23] ^= 1;
        for cookie in [wrong, [b"clients2".as_slice(), &[1, 0, 0, 0, 0, 0, 0, 1], &[7; 8]].concat()]
        {
            let from = attached.answered();
            client.ask(&with(&cookie)).expect("an answer");
            assert_eq!(attached.answered(), from);
        }
    }
}

#[test]
fn a_secret_that_is_not_the_servers_is_told() {
    let lab = match lab(NameServer::NsdWithCookies) {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    fs::write(&secret, COOKIE_SECRET.replace('e', "f")).expect("written");
    let attached = lab.attach(&["--cookie-secret", &secret.display().to_string()]);
    let mut client = lab.client(false);
    let plain = Query::new("host1.example.test", A);
    let query = Query { edns: Some(1232), options: option(10, b"clients1"), ..plain };
    eventually_within(Duration::from_secs(30), "the reason is told", || {
        client.ask(&query.bytes()).expect("an answer");
        let unfit = attached.statistics()["unfit"].to_string();
        unfit.contains("the server's cookies have another secret")
    });
}
