//! Messages that are signed (TSIG): by kdig as an asker, and by Knot and NSD as secondaries.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use afpa_testkit::aloud::say;
use afpa_testkit::server::free_address;
use afpa_testkit::{Running, eventually};

use super::bed::{Bed, ZONE, are_here, readable_folder, run, said};
use super::message::{Answer, Question, exchange};

const SECRET: &str = "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMgbG8=";
const OTHER: &str = "YW5vdGhlciBzZWNyZXQgb2YgdGhlIHRlc3RzLCAzMi4=";

/// A server whose zone is for those with the key; `algorithm` is that of the key.
fn bed(folder: &Path, algorithm: &str, more: &str) -> Bed {
    bed_with(folder, (SECRET, 0o644), algorithm, more)
}

/// The same with this file of the secret, and its rights.
fn bed_with(folder: &Path, (text, mode): (&str, u32), algorithm: &str, more: &str) -> Bed {
    use std::os::unix::fs::PermissionsExt as _;
    let file = folder.join("afpa.key");
    fs::write(&file, text).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("rights");
    let file = file.display();
    let top = format!(
        "[dns]\nrate = 0\n[[dns.key]]\nname = \"Second.Key\"\nalgorithm = \"{algorithm}\"\nfile = \"{file}\"\n"
    );
    Bed::new(&[("example.org", ZONE)], &format!("key = \"second.key\"\n{more}"), &top)
}

fn kdig(at: SocketAddr, arguments: &[&str]) -> String {
    let (server, port) = (format!("@{}", at.ip()), at.port().to_string());
    said(&run("kdig", &[&[&*server, "-p", &*port], arguments].concat()))
}

fn records(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with(';') && !line.trim().is_empty()).count()
}

#[test]
fn a_zone_with_a_key_is_for_those_who_sign_with_it() {
    if !are_here(&["kdig"]) {
        return;
    }
    let folder = readable_folder();
    for algorithm in ["hmac-sha256", "hmac-sha384", "hmac-sha512"] {
        let bed = bed(folder.path(), algorithm, "");
        let own = format!("{algorithm}:second.key:{SECRET}");
        let axfr = |key: &str| kdig(bed.dns, &["-y", key, "example.org", "AXFR"]);
        let whole = axfr(&own);
        assert!(!whole.contains("WARNING") && !whole.contains(";; ERROR"), "{whole}");
        // With the TSIG of kdig's own output counted, the records are the lines of the file but $TTL, and the SOA once more.
        assert!(records(&whole) >= ZONE.lines().count(), "{whole}");
        let soa = kdig(bed.dns, &["-y", &own, "example.org", "SOA"]);
        assert!(soa.contains("status: NOERROR") && !soa.contains("WARNING"), "{soa}");
        let small = kdig(bed.dns, &["-y", &own, "+bufsize=512", "long.example.org", "TXT"]);
        assert!(small.contains("status: NOERROR") && !small.contains("WARNING"), "{small}");
        let without = kdig(bed.dns, &["example.org", "AXFR"]);
        assert!(records(&without) == 0, "{without}");
        let wrong = axfr(&format!("{algorithm}:second.key:{OTHER}"));
        assert!(records(&wrong) == 0, "{wrong}");
    }
}

#[test]
fn a_question_with_a_signature_that_is_not_ours_is_told_why() {
    if !are_here(&["dig"]) {
        return;
    }
    let folder = readable_folder();
    let bed = bed(folder.path(), "hmac-sha256", "");
    let none = Bed::new(&[("example.org", ZONE)], "", "[dns]\nrate = 0\n");
    for (at, key, secret, why) in [
        (none.dns, "second.key", SECRET, "BADKEY"),
        (bed.dns, "third.key", SECRET, "BADKEY"),
        (bed.dns, "second.key", OTHER, "BADSIG"),
    ] {
        for transport in ["+notcp", "+tcp"] {
            let (server, port) = (format!("@{}", at.ip()), at.port().to_string());
            let key = format!("hmac-sha256:{key}:{secret}");
            let arguments = [&server, "-p", &port, "-y", &key, transport, "example.org", "SOA"];
            let answer = said(&run("dig", &arguments));
            assert!(
                answer.contains("status: NOTAUTH") && answer.contains(why),
                "{why}, {transport}: {answer}"
            );
        }
    }
}

#[test]
fn a_key_file_of_bind_counts_whatever_its_names_say() {
    if !are_here(&["kdig"]) {
        return;
    }
    let folder = readable_folder();
    let text = format!(
        "// the secret of the second\nkey \"ns2-secret-{0}\" {{ algorithm hmac-sha256; secret \"{OTHER}\"; }};\n\
         key \"second.key\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n",
        "abcdef".repeat(4)
    );
    let bed = bed_with(folder.path(), (&text, 0o644), "hmac-sha256", "");
    let axfr = |secret: &str| {
        let key = format!("hmac-sha256:second.key:{secret}");
        records(&kdig(bed.dns, &["-y", &key, "example.org", "AXFR"]))
    };
    assert!(axfr(SECRET) >= ZONE.lines().count());
    // Neither the other key's secret nor its name, which is base64 as well.
    assert_eq!((axfr(OTHER), axfr(&"abcdef".repeat(4))), (0, 0));
}

#[test]
fn a_key_file_that_only_root_can_read_is_told_at_the_start() {
    if !rustix::process::geteuid().is_root() {
        return say("SKIP", "only root has rights to give up");
    }
    let folder = readable_folder();
    let bed = bed_with(folder.path(), (SECRET, 0o600), "hmac-sha256", "");
    let log = bed.server.log();
    let told = "afpa.key cannot be read by this user any more, so each reload will fail";
    assert!(log.contains(told) && log.contains("chmod g+r"), "{log}");
}

#[test]
fn a_question_about_changes_gets_them() {
    if !are_here(&["kdig"]) {
        return;
    }
    let bed = Bed::new(&[("example.org", ZONE)], "transfer = [\"127.0.0.1\"]\n", "");
    for serial in 8..12 {
        let text = ZONE.replace("hostmaster 7", &format!("hostmaster {serial}"));
        fs::write(bed.file("example.org"), format!("{text}new{serial} A 192.0.2.{serial}\n"))
            .expect("written");
        eventually("the new version is served", || {
            let soa = Question::new("example.org", 6).ask(bed.dns).answer;
            soa.iter().any(|line| line.contains(&format!(" {serial} ")))
        });
    }
    let ixfr = |serial: &str| kdig(bed.dns, &["+noall", "+answer", "+tcp", "example.org", serial]);
    let changes = ixfr("IXFR=9");
    // SOA of 11, of 9 and new9, of 11 and new11, of 11.
    assert_eq!(records(&changes), 6, "{changes}");
    assert!(changes.contains("new9") && changes.contains("new11") && !changes.contains("new10"));
    assert_eq!(records(&ixfr("IXFR=11")), 1);
    assert!(records(&ixfr("IXFR=3")) > ZONE.lines().count() - 1);
}

#[test]
fn knot_and_nsd_follow_a_zone_with_a_key() {
    for (name, start) in
        [("knotd", knot as fn(&Path, SocketAddr, SocketAddr) -> Running), ("nsd", nsd)]
    {
        if !are_here(&[name]) {
            continue;
        }
        let folder = readable_folder();
        let at = free_address();
        let bed = bed(folder.path(), "hmac-sha512", &format!("notify = [\"{at}\"]\n"));
        let place = folder.path().join(name);
        fs::create_dir(&place).expect("made");
        let _secondary = start(&place, bed.dns, at);
        eventually("the secondary has the zone", || serial(at).as_deref() == Some("7"));
        for serial_number in 8..11 {
            let text = ZONE.replace("hostmaster 7", &format!("hostmaster {serial_number}"));
            let text = format!("{text}new{serial_number} A 192.0.2.{serial_number}\n");
            fs::write(bed.file("example.org"), text).expect("written");
            let expected = serial_number.to_string();
            eventually("the secondary has the new version", || {
                serial(at).as_deref() == Some(&*expected)
            });
            let there =
                |number: u32| Question::new(&format!("new{number}.example.org"), 1).ask(at).rcode;
            assert_eq!(
                (&*there(serial_number), &*there(serial_number - 1)),
                ("NOERROR", "NXDOMAIN"),
                "{name}"
            );
        }
        let log = bed.server.log();
        assert!(!log.contains("does not answer a NOTIFY"), "{name}: {log}");
    }
}

fn serial(at: SocketAddr) -> Option<String> {
    let answer = Answer::read(&exchange(at, &Question::new("example.org", 6).bytes())?).answer;
    answer.first()?.split(' ').nth(5).map(str::to_owned)
}

fn knot(folder: &Path, primary: SocketAddr, at: SocketAddr) -> Running {
    let place = folder.display();
    let text = format!(
        "server:\n    listen: {}@{}\n    rundir: {place}\nlog:\n  - target: stderr\n    any: warning\n\
         key:\n  - id: second.key\n    algorithm: hmac-sha512\n    secret: {SECRET}\n\
         database:\n    storage: {place}\nremote:\n  - id: primary\n    address: {}@{}\n    key: second.key\n\
         acl:\n  - id: told\n    address: 127.0.0.0/8\n    key: second.key\n    action: notify\n\
         zone:\n  - domain: example.org\n    file: {place}/zone\n    master: primary\n    acl: told\n",
        at.ip(),
        at.port(),
        primary.ip(),
        primary.port()
    );
    let file = folder.join("knot.conf");
    fs::write(&file, text).expect("written");
    started(Command::new("knotd").arg("-c").arg(file))
}

fn nsd(folder: &Path, primary: SocketAddr, at: SocketAddr) -> Running {
    let place = folder.display();
    let text = format!(
        "server:\n  ip-address: {}@{}\n  username: \"\"\n  zonesdir: \"{place}\"\n  database: \"\"\n\
         \n  pidfile: \"{place}/pid\"\n  xfrdfile: \"{place}/xfrd\"\n  zonelistfile: \"{place}/list\"\n\
         \n  xfrdir: \"{place}\"\n  rrl-ratelimit: 0\nremote-control:\n  control-enable: no\n\
         key:\n  name: \"second.key\"\n  algorithm: hmac-sha512\n  secret: \"{SECRET}\"\n\
         zone:\n  name: example.org\n  zonefile: zone\n  allow-notify: 127.0.0.0/8 second.key\n\
         \n  request-xfr: {}@{} second.key\n",
        at.ip(),
        at.port(),
        primary.ip(),
        primary.port()
    );
    let file = folder.join("nsd.conf");
    fs::write(&file, text).expect("written");
    started(Command::new("nsd").arg("-d").arg("-c").arg(file))
}

fn started(command: &mut Command) -> Running {
    Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
}
