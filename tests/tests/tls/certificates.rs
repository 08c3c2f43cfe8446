//! Certificates by name, of clients, wrong ones, and those that change.

use std::fs;
use std::process::Command;

use afpa_testkit::eventually;
use afpa_testkit::server::program;
use afpa_tests::tls::{Authority, Files, Plan, TlsServer};
use rustix::process::Signal;

use crate::site;

/// The subject of the certificate that a client gets for a name.
fn subject(server: &TlsServer, authority: &Authority, name: &str) -> String {
    let arguments = match name {
        "" => vec!["-noservername"],
        name => vec!["-servername", name],
    };
    let said = server.openssl(authority, &arguments, "");
    let line = said.lines().find(|line| line.starts_with("subject="));
    line.unwrap_or_else(|| panic!("{said}")).replace(' ', "")
}

#[test]
fn the_name_chooses_the_certificate() {
    let (tree, authority) = (site(), Authority::new());
    let more = [
        authority.issue("exact", &["a.example", "b.example"]),
        authority.issue("wild", &["*.example"]),
    ];
    let first = authority.issue("first", &["first.example"]);
    let sections: String = [&first].into_iter().chain(&more).map(Files::section).collect();
    let plan = Plan { sections, ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    for (name, subject_of) in [
        ("a.example", "exact"),
        ("b.example", "exact"),
        ("c.example", "wild"),
        ("first.example", "first"),
        ("localhost", "localhost"),
        ("d.c.example", "first"),
        ("unknown.org", "first"),
        ("", "first"),
    ] {
        assert_eq!(
            subject(&server, &authority, name),
            format!("subject=CN={subject_of}"),
            "{name}"
        );
    }
}

#[test]
fn changed_files_are_taken_without_a_reload_and_broken_ones_are_not() {
    let (tree, authority) = (site(), Authority::new());
    let sections = "[internals]\nreread = \"100ms\"\n".to_owned();
    let server = TlsServer::with(&authority, tree.path(), Plan { sections, ..Plan::default() });
    let serial = || {
        let said = server.openssl(&authority, &["-showcerts"], "");
        said.split("-----BEGIN CERTIFICATE-----").nth(1).map(str::to_owned).unwrap_or_default()
    };
    let first = serial();
    let way = authority.way(&server);
    let mut open = way.connect();
    open.assert_open("/hello.txt");
    let files = authority.issue("localhost", &["localhost"]);
    eventually("the new one is in use", || serial() != first);
    let second = serial();
    fs::write(&files.key, "nonsense").expect("written");
    let says_so = || server.server.log().contains("the running certificates stay");
    eventually("the log says that the key is wrong", says_so);
    assert_eq!(serial(), second);
    open.assert_open("/hello.txt");
    let other = fs::read_to_string(authority.issue("other", &["localhost"]).key).expect("read");
    fs::write(&files.key, &other).expect("written");
    let says_so = || server.server.log().contains("does not fit the first certificate");
    eventually("the log says that the key is another's", says_so);
    let log = server.server.log();
    let secret = |line: &str| !line.starts_with('-') && log.contains(line);
    assert!(!other.lines().any(secret), "no secret is in the log");
}

#[test]
fn a_reload_with_a_broken_certificate_changes_nothing() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let files = authority.issue("broken", &["localhost"]);
    fs::write(&files.chain, "no certificate").expect("written");
    let text = fs::read_to_string(server.server.configuration()).expect("read");
    fs::write(server.server.configuration(), format!("{text}\n{}", files.section()))
        .expect("written");
    server.server.signal(Signal::HUP);
    eventually("the reload fails", || server.server.log().contains("the reload failed"));
    let log = server.server.log();
    assert!(log.contains("there is no certificate in it"), "{log}");
    authority.way(&server).connect().assert_open("/hello.txt");
    // And one that is right again is taken, with sessions and connections going on.
    let way = authority.way(&server);
    let mut open = way.connect();
    open.assert_open("/hello.txt");
    fs::write(server.server.configuration(), text).expect("written");
    server.server.signal(Signal::HUP);
    eventually("it is reloaded", || server.server.log().contains("reloaded"));
    open.assert_open("/hello.txt");
    let before = server.number("/tls/resumed");
    way.connect().assert_open("/hello.txt");
    eventually("a session is resumed", || server.number("/tls/resumed") > before);
}

#[test]
fn check_names_file_line_and_remedy() {
    let (tree, authority) = (site(), Authority::new());
    let good = authority.issue("good", &["localhost"]);
    let other = authority.issue("other", &["localhost"]);
    let expired = authority.issue_with("expired", &["localhost"], |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 2, 1);
    });
    let encrypted = Files { key: authority.folder().join("encrypted.key"), ..good.clone() };
    let text = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    fs::write(&encrypted.key, text).expect("written");
    let missing = Files { key: authority.folder().join("missing.key"), ..good.clone() };
    let crossed = Files { key: other.key.clone(), ..good.clone() };
    let hosts = "hosts = [\"localhost\", \"www.example.org\"]";
    for (files, site, ok, words) in [
        (&good, "", true, ""),
        (&good, hosts, true, "no certificate is for www.example.org"),
        (&expired, "", true, "expired.pem expired"),
        (&crossed, "", false, "does not fit the first certificate"),
        (&encrypted, "", false, "openssl pkey -in KEY -out PLAIN"),
        (&missing, "", false, "it does not exist"),
    ] {
        let root = tree.path().display();
        let path = authority.folder().join("checked.toml");
        let site = format!("[[site]]\ntls = [\"127.0.0.1:4443\"]\nroot = \"{root}\"\n{site}\n");
        fs::write(&path, format!("{}{site}", files.section())).expect("written");
        let check = Command::new(program()).args(["check", "--quiet"]).arg(&path).output();
        let output = check.expect("afpa runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.success(), ok, "{files:?}: {said}");
        assert!(said.contains(words), "{files:?}: {said}");
        assert!(ok || said.contains("checked.toml:3:"), "the line of the key: {said}");
    }
}

#[test]
fn certificates_of_clients_are_demanded_and_logged() {
    let (tree, authority) = (site(), Authority::new());
    let client = authority.issue("client", &["client"]);
    let log = authority.folder().join("access.log");
    let authorities = authority.path();
    for required in [true, false] {
        let _ = fs::remove_file(&log);
        let which = if required { "required" } else { "optional" };
        let sections = format!(
            "[tls]\nclient_certificates = \"{which}\"\nclient_authorities = \"{}\"\n\
             [log]\naccess = \"-\"\naccess_format = \"json\"\n",
            authorities.display()
        );
        let plan = Plan { sections, ..Plan::default() };
        let server = TlsServer::with(&authority, tree.path(), plan);
        let url = server.url("/hello.txt");
        let (got, said) = server.curl(&authority, &[&url]);
        assert_eq!(got, !required, "{}", String::from_utf8_lossy(&said));
        let (chain, key) = (client.chain.display().to_string(), client.key.display().to_string());
        let with = ["--cert", &chain, "--key", &key, &url];
        assert_eq!(server.curl(&authority, &with), (true, b"hello".to_vec()));
        eventually("the subject is in the log", || {
            server.server.log().contains("\"subject\":\"CN=client\"")
        });
        if required {
            assert!(server.number("/tls/failed/peer_certificate") == 1);
        }
        // Its files are there as long as it is.
        let others = Authority::new();
        let stranger = others.issue("client", &["client"]);
        let (chain, key) =
            (stranger.chain.display().to_string(), stranger.key.display().to_string());
        assert!(!server.curl(&authority, &["--cert", &chain, "--key", &key, &url]).0, "{which}");
        eventually("the refusal is in the log", || {
            server.server.log().contains("a client's certificate is refused")
        });
    }
}

#[test]
fn a_staple_is_sent_to_those_who_ask_and_a_new_one_is_taken() {
    let (tree, authority) = (site(), Authority::new());
    let files = authority.issue("first", &["localhost"]);
    let staple = authority.staple("first", &files);
    let section = format!("{}staple = \"{}\"\n", files.section(), staple.display());
    let sections = format!("[internals]\nreread = \"100ms\"\n{section}");
    let server = TlsServer::with(&authority, tree.path(), Plan { sections, ..Plan::default() });
    for version in ["-tls1_2", "-tls1_3"] {
        let said = server.openssl(&authority, &[version, "-status"], "");
        assert!(said.contains("OCSP Response Status: successful"), "{said}");
        assert!(said.contains("Cert Status: good"), "{said}");
        assert!(!server.openssl(&authority, &[version], "").contains("OCSP Response"), "not asked");
    }
    fs::write(&staple, "<html>the responder is down</html>").expect("written");
    eventually("it is told", || server.server.log().contains("no response of OCSP"));
    let said = server.openssl(&authority, &["-status"], "");
    assert!(said.contains("Cert Status: good"), "the one before stays: {said}");
    let this =
        |said: &str| said.lines().find(|line| line.contains("This Update")).map(str::to_owned);
    let before = this(&said).expect("a time");
    eventually("the next one is sent", || {
        authority.staple("first", &files);
        let said = server.openssl(&authority, &["-status"], "");
        this(&said).is_some_and(|now| now != before)
    });
}
