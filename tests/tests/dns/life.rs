//! Zones that change, rates, reloads.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use afpa_testkit::aloud::say;
use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Running, eventually};
use rustix::process::Signal;

use afpa_tests::dns::TapReader;

use super::bed::{Bed, ZONE, readable_folder};
use super::message::{Answer, Question, exchange};

fn serial(bed: &Bed) -> String {
    let answer = Question::new("example.org", 6).ask(bed.dns).answer;
    answer.first().and_then(|soa| soa.split(' ').nth(5)).unwrap_or_default().to_owned()
}

#[test]
fn a_changed_file_is_served_and_a_broken_one_leaves_the_zone_as_it_was() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "");
    assert_eq!(serial(&bed), "7");
    fs::write(bed.file("example.org"), ZONE.replace("hostmaster 7", "hostmaster 8"))
        .expect("written");
    eventually("the new zone is served", || serial(&bed) == "8");

    fs::write(bed.file("example.org"), format!("{ZONE}broken A 192.0.2\n")).expect("written");
    let line = ZONE.lines().count() + 1;
    let told =
        format!("example.org.zone:{line}: broken.example.org.: the data of A cannot be read");
    eventually("the log has the line of the fault", || bed.server.log().contains(&told));
    assert_eq!(serial(&bed), "8");

    // As editors do it.
    let other = bed.folder.path().join("other");
    fs::write(&other, ZONE.replace("hostmaster 7", "hostmaster 9")).expect("written");
    fs::rename(other, bed.file("example.org")).expect("renamed");
    eventually("the renamed file is served", || serial(&bed) == "9");
}

/// Answers never go back to an older version, none is missing, and the last version is there soon.
#[test]
fn a_zone_that_changes_a_hundred_times_a_second_is_served_all_the_while() {
    let zone = |version: u32| {
        let [_, high, middle, low] = version.to_be_bytes();
        let changed = ZONE.replacen("hostmaster 7 ", &format!("hostmaster {} ", 7 + version), 1);
        format!("{changed}\nversion A 10.{high}.{middle}.{low}\n")
    };
    let bed = Bed::new(&[("example.org", &zone(0))], "", "[dns]\nrate = 0\n");
    let (new, file, told) =
        (bed.folder.path().join("new"), bed.file("example.org"), AtomicU32::new(0));
    let version = || {
        let answer = Question::new("version.example.org", 1).ask(bed.dns);
        assert_eq!((&*answer.rcode, answer.answer.len()), ("NOERROR", 1), "{answer:?}");
        let line = answer.answer.first().expect("a record");
        let address = line.rsplit(' ').next().expect("an address");
        let address: Ipv4Addr = address.parse().unwrap_or_else(|_| panic!("{line}"));
        u32::from(address) & 0x00ff_ffff
    };
    let (mut newest, mut asked, mut seen) = (0, 0, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..=300 {
                fs::write(&new, zone(number)).expect("written");
                told.store(number, Ordering::SeqCst);
                fs::rename(&new, &file).expect("renamed");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        while !writer.is_finished() {
            let now = version();
            assert!((newest..=told.load(Ordering::SeqCst)).contains(&now), "{now}, after {newest}");
            asked += 1;
            seen += u32::from(now > newest);
            newest = now;
        }
    });
    eventually("the last version is served", || version() == 300);
    println!("{asked} answers, {seen} of 300 versions seen");
    assert!(seen >= 3, "{seen} versions of 300 in {asked} answers");
}

/// By the control socket: zones are listed, read again at once, and told to secondaries.
#[test]
fn zones_are_listed_read_and_told_by_order() {
    let secondary = UdpSocket::bind("127.0.0.1:0").expect("bound");
    secondary.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    let at = secondary.local_addr().expect("bound");
    let told = |wanted: &str| {
        let mut message = [0; 512];
        let (length, from) = secondary.recv_from(&mut message).expect(wanted);
        message[2] |= 0x80;
        secondary.send_to(&message[..length], from).expect("answered");
        assert_eq!(message[2] >> 3 & 15, 4, "a NOTIFY");
    };
    let other = ZONE.replace("hostmaster 7", "hostmaster 3");
    let more = format!("notify = [\"{at}\"]\n");
    let bed = Bed::new(&[("example.org", ZONE), ("example.net", &other)], &more, "");
    let call = |arguments: &[&str]| {
        let output = bed.server.command(arguments);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for _ in 0..2 {
        told("each zone is told at the start");
    }
    let zones = || -> serde_json::Value {
        serde_json::from_str(&call(&["call", "dns/zones"])).expect("JSON")
    };
    let listed = zones();
    let of = |at: usize, key: &str| listed[at][key].clone();
    assert_eq!((of(0, "zone"), of(0, "serial")), ("example.net.".into(), 3.into()), "{listed:#}");
    assert_eq!((of(1, "zone"), of(1, "serial")), ("example.org.".into(), 7.into()));
    assert_eq!((of(1, "signed_until"), of(1, "transfers")), (serde_json::Value::Null, 0.into()));
    let metrics = call(&["call", "metrics"]);
    assert!(metrics.contains("afpa_dns_zone_serial{zone=\"example.org.\"} 7\n"), "{metrics}");

    let said = call(&["call", "dns/notify", "zone=example.net"]);
    assert_eq!(said.trim_end(), "1 secondaries are told of serial 3");
    told("the zone is told by order");
    // A file that is not closed yet is read by order.
    let mut file = fs::OpenOptions::new().append(true).open(bed.file("example.org")).expect("open");
    std::io::Write::write_all(&mut file, b"ordered A 192.0.2.99\n").expect("written");
    let said = call(&["purge", "--name", "www.Example.org"]);
    assert_eq!(said.trim_end(), "the zone example.org. was read again: serial 7");
    assert_eq!(Question::new("ordered.example.org", 1).ask(bed.dns).answer.len(), 1);
    std::io::Write::write_all(&mut file, b"broken A 192.0.2\n").expect("written");
    let said = call(&["purge", "--zone", "example.org."]);
    assert!(said.contains("stays as it was: ") && said.contains("example.org.zone:"), "{said}");
    for (order, why) in [
        (["call", "dns/read", "zone=www.example.org"], "no [[zone]] is www.example.org"),
        (["call", "dns/read", "name=example.com"], "no [[zone]] has example.com"),
        (["call", "dns/read", "zone=a..b"], "a..b is no name"),
        (["call", "dns/notify", "name=example.org"], "zone=NAME is missing"),
    ] {
        assert!(call(&order).contains(why), "{order:?}: {}", call(&order));
    }
}

#[test]
fn answers_are_samples_for_dnstap() {
    let reader = match TapReader::start() {
        Ok(reader) => reader,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    let socket = reader.socket();
    let top = format!("workers = 1\n[dns]\ndnstap = \"{socket}\"\ndnstap_sample = 2\n");
    let bed = Bed::new(&[("example.org", ZONE)], "", &top);
    let written = || bed.stats()["dns"]["samples"].as_u64().unwrap_or(0);
    // The first samples come before the reader is found.
    eventually("the reader has samples", || {
        Question::new("www.example.org", 1).ask(bed.dns);
        written() > 0
    });
    let before = written();
    for _ in 0..20 {
        Question::new("www.example.org", 28).ask(bed.dns);
    }
    eventually("one of two answers is a sample", || written() == before + 10);
    drop(bed);
    let lines = reader.lines();
    let of = lines.iter().filter(|line| line.ends_with("www.example.org/IN/AAAA")).count();
    assert_eq!(of, 10, "{lines:#?}");
    assert!(lines.iter().all(|line| line.contains(" AR 127.0.0.1:")), "{lines:#?}");
}

#[test]
fn no_question_is_lost_while_the_configuration_is_read_again() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "[dns]\nrate = 0\n");
    for round in 0..20 {
        if round % 5 == 0 {
            bed.server.signal(Signal::HUP);
        }
        for _ in 0..50 {
            assert_eq!(Question::new("www.example.org", 1).ask(bed.dns).answer.len(), 1);
        }
    }
    eventually("it was read again", || bed.server.log().contains("reloaded"));
}

#[test]
fn a_reload_adds_zones_and_removes_them_and_refuses_broken_ones() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "");
    let configuration = bed.server.configuration();
    let text = fs::read_to_string(&configuration).expect("there");
    let file = bed.file("other.test");
    fs::write(&file, "$TTL 60\n@ SOA a b 1 1 1 1 1\n@ NS ns.example.org.\n@ A 192.0.2.77\n")
        .expect("written");
    let more = format!(
        "{text}\n[[zone]]\nname = \"other.test\"\nfile = \"{}\"\nlisten = [\"{}\"]\n",
        file.display(),
        bed.dns
    );
    let other = || Question::new("other.test", 1).ask(bed.dns).rcode;
    assert_eq!(other(), "REFUSED");
    fs::write(&configuration, &more).expect("written");
    bed.server.signal(Signal::HUP);
    eventually("the zone is there", || other() == "NOERROR");
    fs::write(&file, "@ A\n").expect("written");
    bed.server.signal(Signal::HUP);
    eventually("the reload fails", || bed.server.log().contains("the reload failed"));
    assert_eq!(other(), "NOERROR", "the zone stays");
    fs::write(&configuration, &text).expect("written");
    bed.server.signal(Signal::HUP);
    eventually("the zone is gone", || other() == "REFUSED");
    assert_eq!(serial(&bed), "7");
}

/// Beyond the rate of the prefix every second question is answered with *ask by TCP*; a cookie exempts.
#[test]
fn a_prefix_gets_its_rate_and_a_client_with_a_cookie_more() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "[dns]\nrate = 5\n");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.connect(bed.dns).expect("connected");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    let question = Question::new("www.example.org", 1).bytes();
    (0..40).for_each(|_| _ = socket.send(&question).expect("sent"));
    let (mut whole, mut cut) = (0, 0);
    let mut room = [0; 512];
    while let Ok(length) = socket.recv(&mut room) {
        match Answer::read(&room[..length]).tc {
            true => cut += 1,
            false => whole += 1,
        }
    }
    assert!((5..30).contains(&whole), "{whole} {cut}");
    let silent = 40 - whole - cut;
    assert!(cut > 0 && cut - silent <= 1 && silent - cut <= 1, "{whole} {cut} {silent}");
    assert_eq!(Question::new("www.example.org", 1).ask_by_tcp(bed.dns).answer.len(), 1);
    let stats = bed.stats();
    assert_eq!(stats["dns"]["slipped"], cut);
    assert_eq!(stats["dns"]["dropped"], silent);
    assert_eq!(stats["dns"]["tcp"], 1);

    let cookie = |cookie: &[u8]| {
        let mut message = question.clone();
        message[11] = 1;
        let length = cookie.len() as u8;
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, length + 4, 0, 10, 0, length]);
        message.extend_from_slice(cookie);
        message
    };
    let mut first = None;
    eventually("the prefix has an answer left", || {
        socket.send(&cookie(&[7; 8])).expect("sent");
        let Ok(length) = socket.recv(&mut room) else { return false };
        first = room.get(length - 24..length).map(<[u8]>::to_vec);
        !Answer::read(&room[..length]).tc
    });
    let proven = cookie(&first.expect("a cookie"));
    for _ in 0..50 {
        socket.send(&proven).expect("sent");
        let length = socket.recv(&mut room).expect("an answer to each");
        assert_eq!(Answer::read(&room[..length]).answer.len(), 1);
    }
}

#[test]
fn metrics_tell_answers_by_code_and_type() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "");
    for (name, rtype) in [("www.example.org", 1), ("nothing.example.org", 28), ("example.com", 15)]
    {
        Question::new(name, rtype).ask(bed.dns);
    }
    let stats = bed.stats();
    let dns = &stats["dns"];
    assert_eq!(dns["rcodes"]["NOERROR"], 1, "{dns}");
    assert_eq!((&dns["rcodes"]["NXDOMAIN"], &dns["rcodes"]["REFUSED"]), (&1.into(), &1.into()));
    assert_eq!(
        (&dns["types"]["A"], &dns["types"]["AAAA"], &dns["types"]["MX"]),
        (&1.into(), &1.into(), &1.into())
    );
    let said = bed.server.command(&["stats", "--all"]);
    assert!(said.status.success());
}

#[test]
fn check_tells_file_line_and_remedy() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "");
    fs::write(bed.file("example.org"), format!("{ZONE}x MX mail\n")).expect("written");
    let configuration = bed.server.configuration();
    let output = super::bed::run(
        afpa_testkit::server::program().to_str().expect("a path"),
        &["check", configuration.to_str().expect("a path")],
    );
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &super::bed::said(&output);
    let line = ZONE.lines().count() + 1;
    assert!(
        said.contains(&format!("example.org.zone:{line}: x.example.org.: the data of MX")),
        "{said}"
    );
    assert!(said.contains("10 mail"), "{said}");
}

/// A process that serves this configuration, with its output in a file of the folder.
fn serve_alone(folder: &Path, text: &str) -> Running {
    let (file, log) = (folder.join("afpa.toml"), folder.join("log"));
    fs::write(&file, text).expect("written");
    let log = fs::File::create(log).expect("made");
    let mut command = Command::new(program());
    command.args(["serve", "--fast-path", "off", "--config"]).arg(&file);
    Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log))
}

#[test]
fn a_configuration_of_zones_alone_is_served() {
    let folder = readable_folder();
    let zone = folder.path().join("zone");
    fs::write(&zone, ZONE).expect("written");
    let dns = free_address();
    let text = format!(
        "[control]\npath = \"{}\"\n[[zone]]\nname = \"example.org\"\nfile = \"{}\"\nlisten = [\"{dns}\"]\n",
        folder.path().join("control").display(),
        zone.display()
    );
    let _server = serve_alone(folder.path(), &text);
    let www = Question::new("www.example.org", 1);
    eventually("it answers", || {
        exchange(dns, &www.bytes()).is_some_and(|bytes| Answer::read(&bytes).answer.len() == 1)
    });
    eventually("the summary names zone and address", || {
        let log = fs::read_to_string(folder.path().join("log")).expect("a log");
        log.contains("example.org.") && log.contains(&format!("dns://{dns}"))
    });
}

#[test]
fn an_address_in_use_is_named_with_the_process_that_has_it() {
    let folder = readable_folder();
    let zone = folder.path().join("zone");
    fs::write(&zone, ZONE).expect("written");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("bound");
    let held = [udp.local_addr(), tcp.local_addr()].map(|address| address.expect("bound"));
    let other = "192.0.2.1:53".parse().expect("an address");
    let own = format!("process {} (", std::process::id());
    for (address, told) in [(held[0], &*own), (held[1], &*own), (other, "no interface has")] {
        let text = format!(
            "[[zone]]\nname = \"example.org\"\nfile = \"{}\"\nlisten = [\"{address}\"]\n",
            zone.display()
        );
        let _server = serve_alone(folder.path(), &text);
        let log = || fs::read_to_string(folder.path().join("log")).expect("a log");
        eventually("the start fails", || log().contains("cannot answer DNS on"));
        assert!(log().contains(told), "{}", log());
    }
}

#[test]
fn a_reload_that_adds_an_address_without_the_right_to_it_says_what_to_do() {
    if !rustix::process::geteuid().is_root() {
        return say("SKIP", "only root has rights to give up");
    }
    let bed = Bed::new(&[("example.org", ZONE)], "", "");
    let configuration = bed.server.configuration();
    let text = fs::read_to_string(&configuration).expect("there");
    let low = format!("\"{}:1000\"", bed.dns.ip());
    let more = text.replace(
        &format!("listen = [\"{}\"]", bed.dns),
        &format!("listen = [\"{}\", {low}]", bed.dns),
    );
    assert_ne!(more, text);
    fs::write(&configuration, more).expect("written");
    bed.server.signal(Signal::HUP);
    eventually("the reload fails", || bed.server.log().contains("the reload failed"));
    assert!(bed.server.log().contains("kill -USR2"), "{}", bed.server.log());
    assert_eq!(serial(&bed), "7");
}
