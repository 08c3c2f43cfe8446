//! Files, and the conditions, ranges and codings of requests for them.

use std::fs;

use afpa_testkit::{eventually, tree::patterned};
use afpa_tests::quic::{field, sum};
use afpa_tests::tls::Authority;
use rustix::process::Signal;
use serde_json::json;

use crate::{LARGE, both, site};

#[test]
fn files_come_whole_with_the_fields_of_their_answers() {
    let (tree, authority) = (site(), Authority::new());
    let log = "[log]\naccess = \"-\"\n";
    let Some((server, mut client)) = both(&authority, &tree, log, "", |_| {}) else { return };
    for (path, content) in [
        ("/", b"index".to_vec()),
        ("/hello.txt", b"hello".to_vec()),
        ("/empty.txt", Vec::new()),
        ("/large.bin", patterned(LARGE)),
    ] {
        let got = client.get(path);
        assert_eq!(
            (got["status"].as_u64(), &got["error"]),
            (Some(200), &json!("")),
            "{path}: {got}"
        );
        assert_eq!(got["protocol"], "HTTP/3.0");
        assert_eq!(
            (got["length"].as_u64(), &got["sum"]),
            (Some(content.len() as u64), &json!(sum(&content)))
        );
        let alternative = format!("h3=\":{}\"; ma=86400", server.tls.port());
        assert_eq!(field(&got, "Alt-Svc"), alternative);
    }
    let head = client.one(&json!({"do": "ask", "on": "a", "path": "/large.bin", "method": "HEAD"}));
    assert_eq!((&head["status"], &head["length"]), (&json!(200), &json!(0)), "{head}");
    assert_eq!(field(&head, "Content-Length"), LARGE.to_string());
    let got = client.get("/none");
    assert_eq!(got["status"], 404, "{got}");
    // The other protocols tell of it.
    let (right, said) = server.curl(&authority, &["-i", &server.url("/hello.txt")]);
    let said = String::from_utf8_lossy(&said).to_lowercase();
    assert!(
        right && said.contains(&format!("alt-svc: h3=\":{}\"; ma=86400", server.tls.port())),
        "{said}"
    );
    eventually("the requests are in the log", || {
        server.server.log().contains("GET /large.bin HTTP/3.0\" 200 3000000")
    });
    assert!(server.server.log().contains("\"GET /none HTTP/3.0\" 404 "));
    assert!(server.number("/connections/http3") >= 1);
    assert_eq!(server.number("/connections/http3_faults"), 0);
}

#[test]
fn conditions_ranges_and_codings_are_those_of_http_1() {
    let (tree, authority) = (site(), Authority::new());
    let Some((_server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let first = client.get("/hello.txt");
    let mut asks = |path: &str, name: &str, value: &str| {
        client.one(&json!({"do": "ask", "on": "a", "path": path, "fields": {name: value}}))
    };
    let again = asks("/hello.txt", "If-None-Match", field(&first, "Etag"));
    assert_eq!((&again["status"], &again["length"]), (&json!(304), &json!(0)), "{again}");
    let part = asks("/large.bin", "Range", "bytes=1000-1999999");
    assert_eq!((&part["status"], &part["length"]), (&json!(206), &json!(1_999_000)), "{part}");
    assert_eq!(part["sum"], sum(&patterned(LARGE)[1000..2_000_000]));
    let none = asks("/hello.txt", "Range", "bytes=100-");
    assert_eq!(none["status"], 416, "{none}");
    let mut coded = json!(null);
    // In the background.
    eventually("the page is compressed", || {
        coded = asks("/page.html", "Accept-Encoding", "gzip");
        field(&coded, "Content-Encoding") == "gzip"
    });
    assert!(coded["length"].as_u64().expect("a length") < 1000, "{coded}");
}

/// Content is copied behind its head, kept where it lies, or read from its file: each way has edges.
#[test]
fn content_of_every_length_comes_whole_and_in_parts() {
    const KIB: usize = 1024;
    let (tree, authority) = (site(), Authority::new());
    let edges = [16 * KIB, 32 * KIB, 64 * KIB, 80 * KIB, 144 * KIB, 1024 * KIB];
    let lengths: Vec<usize> = edges.into_iter().flat_map(|edge| edge - 1..=edge + 1).collect();
    for length in &lengths {
        tree.file(format!("{length}.bin"), patterned(*length));
    }
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    for length in lengths {
        let (path, content) = (format!("/{length}.bin"), patterned(length));
        // The second time it is in memory.
        for _ in 0..2 {
            let got = client.get(&path);
            assert_eq!((&got["status"], &got["error"]), (&json!(200), &json!("")), "{path}: {got}");
            assert_eq!(got["sum"], sum(&content), "{path}");
        }
        let mut part = |range: String| {
            let fields = json!({ "Range": range });
            client.one(&json!({"do": "ask", "on": "a", "path": path, "fields": fields}))
        };
        let got = part(format!("bytes=1-{}", length - 2));
        assert_eq!((&got["status"], &got["error"]), (&json!(206), &json!("")), "{path}: {got}");
        assert_eq!(got["sum"], sum(&content[1..length - 1]), "{path}");
        let got = part(format!("bytes=0-0,2-{}", length - 3));
        assert_eq!((&got["status"], &got["error"]), (&json!(206), &json!("")), "{path}: {got}");
        assert_eq!(got["length"].to_string(), field(&got, "Content-Length"), "{path}");
    }
    assert_eq!(server.number("/connections/http3_faults"), 0);
}

#[test]
fn many_requests_at_once_are_answered_by_one_connection() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    for (path, count) in [("/hello.txt", 500), ("/large.bin", 20)] {
        let all = client.all(&json!({"do": "ask", "on": "a", "path": path, "count": count}));
        assert_eq!(all.len(), count);
        let content = fs::read(tree.path().join(&path[1..])).expect("it is there");
        let is_right =
            |got: &serde_json::Value| got["status"] == 200 && got["sum"] == sum(&content);
        assert!(all.iter().all(is_right), "{path}: {:?}", all.iter().find(|got| !is_right(got)));
    }
    assert_eq!(server.number("/connections/http3"), 1);
}

#[test]
fn a_reload_changes_the_certificate_and_connections_go_on() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    assert_eq!(client.get("/hello.txt")["status"], 200);
    // The same files: now for another name only.
    authority.issue("localhost", &["other.example"]);
    server.server.signal(Signal::HUP);
    eventually("new connections get the new certificate", || {
        let host = "other.example";
        let got = client.one(&json!({"do": "ask", "on": "b", "host": host, "path": "/hello.txt"}));
        got["status"] == 200
    });
    let refused = client.one(&json!({"do": "ask", "on": "c", "path": "/hello.txt"}));
    assert!(
        refused["error"].as_str().is_some_and(|why| why.contains("other.example")),
        "{refused}"
    );
    assert_eq!(client.get("/hello.txt")["status"], 200, "the first connection goes on");
}

/// `enabled` itself is of the start: clients learn before that of the end.
#[test]
fn a_reload_without_http_3_has_clients_forget_it() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let said = || {
        let (_, said) = server.curl(&authority, &["-i", &server.url("/hello.txt")]);
        String::from_utf8_lossy(&said).to_lowercase()
    };
    let told = format!("alt-svc: h3=\":{}\"; ma=86400\r\n", server.tls.port());
    assert!(said().contains(&told));
    let file = server.server.configuration();
    let with = fs::read_to_string(&file).expect("read");
    let without = with.replace("[http3]\nenabled = true", "[http3]\nenabled = false");
    assert_ne!(with, without);
    for (text, line) in
        [(&without, "alt-svc: clear\r\n"), (&without, "alt-svc: clear\r\n"), (&with, &*told)]
    {
        fs::write(&file, text).expect("written");
        let before = server.server.log().matches("reloaded").count();
        server.server.signal(Signal::HUP);
        eventually("it is reloaded", || server.server.log().matches("reloaded").count() > before);
        eventually("clients are told", || said().contains(line));
        assert_eq!(client.get("/hello.txt")["status"], 200, "it is spoken on");
    }
}

/// Behind a router that forwards no UDP.
#[test]
fn a_site_may_be_silent_about_it() {
    let (tree, authority) = (site(), Authority::new());
    let silent = "[[site.header]]\nremove = [\"Alt-Svc\"]\n";
    let Some((server, mut client)) = both(&authority, &tree, "", silent, |_| {}) else { return };
    let (right, said) = server.curl(&authority, &["-i", &server.url("/hello.txt")]);
    assert!(right && !String::from_utf8_lossy(&said).to_lowercase().contains("alt-svc"));
    let got = client.get("/hello.txt");
    assert_eq!((&got["status"], field(&got, "Alt-Svc")), (&json!(200), ""), "{got}");
}

#[test]
fn certificates_of_clients_are_asked_for_and_known() {
    let (tree, authority) = (site(), Authority::new());
    let tls = format!(
        "[tls]\nclient_certificates = \"optional\"\nclient_authorities = \"{}\"\n",
        authority.path().display()
    );
    let path = "[[site.path]]\nprefix = \"/for/\"\nstatus = 403\n[[site.path.content]]\n\
                if_client_subject = \"CN=boss\"\nstatus = 200\n";
    let Some((_server, mut client)) = both(&authority, &tree, &tls, path, |_| {}) else { return };
    let own = authority.issue_with("boss", &["boss"], |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    });
    let files = json!([own.chain, own.key]);
    assert_eq!(client.get("/for/me")["status"], 403, "without a certificate");
    let order = json!({"do": "ask", "on": "b", "path": "/for/me", "certificate": files});
    let got = client.one(&order);
    assert_eq!(got["status"], 200, "{got}");
    let strange = Authority::new().issue("boss", &["boss"]);
    let files = json!([strange.chain, strange.key]);
    let order = json!({"do": "ask", "on": "c", "path": "/for/me", "certificate": files});
    let got = client.one(&order);
    assert_ne!(got["error"], "", "a certificate of nobody: {got}");
}
