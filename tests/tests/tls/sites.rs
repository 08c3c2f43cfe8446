//! The behaviour of a site that is specific to TLS.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};

use afpa_testkit::{Server, eventually};
use afpa_tests::proxy::read_head;
use afpa_tests::tls::{Authority, Plan, TlsServer};

use crate::site;

const HSTS: &str = "max-age=31536000; includeSubDomains";

#[test]
fn requests_without_tls_are_redirected_and_answers_over_tls_say_so() {
    let (tree, authority) = (site(), Authority::new());
    let site = format!("https_only = true\nhsts = \"{HSTS}\"\n");
    let server = TlsServer::with(&authority, tree.path(), Plan { site, ..Plan::default() });
    let mut plain = server.server.connect();
    let response = plain.get_with("/a/b?c=d", "");
    assert_eq!(response.status, 308);
    let location = response.field("location").expect("a location").to_owned();
    let port = server.tls.port();
    assert!(
        location.starts_with("https://") && location.ends_with(&format!(":{port}/a/b?c=d")),
        "{location}"
    );
    assert_eq!(response.field("strict-transport-security"), None, "RFC 6797, section 7.2");
    let way = authority.way(&server);
    let mut client = way.connect();
    let tag = client.get("/hello.txt").field("etag").expect("a tag").to_owned();
    for (target, fields, status) in [
        ("/hello.txt", String::new(), 200),
        ("/hello.txt", format!("If-None-Match: {tag}\r\n"), 304),
        ("/hello.txt", "Range: bytes=1-2\r\n".to_owned(), 206),
        ("/large.bin", "Range: bytes=1-2,5-6\r\n".to_owned(), 206),
        ("/missing", String::new(), 404),
        ("/medium.bin", String::new(), 200),
    ] {
        let response = client.get_with(target, &fields);
        assert_eq!(response.status, status, "{target}");
        assert_eq!(response.field("strict-transport-security"), Some(HSTS), "{target} {status}");
    }
}

#[test]
fn servers_behind_are_told_the_scheme_and_their_answers_get_the_field() {
    let (tree, authority) = (site(), Authority::new());
    let site = format!("to = \"{}\"\ncached = [\"txt\"]\nhsts = \"{HSTS}\"\n", echo(""));
    let server = TlsServer::with(&authority, tree.path(), Plan { site, ..Plan::default() });
    let way = authority.way(&server);
    let mut client = way.connect();
    let response = client.get("/echo");
    assert_eq!(response.status, 200);
    let text = response.text().to_ascii_lowercase();
    assert!(text.contains("x-forwarded-proto: https"), "{text}");
    assert_eq!(response.field("strict-transport-security"), Some(HSTS));
    let plain = server.server.connect().get("/echo");
    assert!(plain.text().to_ascii_lowercase().contains("x-forwarded-proto: http\r"), "{plain:?}");
    assert_eq!(plain.field("strict-transport-security"), None);
}

#[test]
fn servers_behind_are_told_the_subject_of_the_client() {
    let (tree, authority) = (site(), Authority::new());
    let client = authority.issue("client", &["client"]);
    let sections = format!(
        "[tls]\nclient_certificates = \"optional\"\nclient_authorities = \"{}\"\n\
         [[server_group]]\nname = \"app\"\nservers = [\"{}\"]\n\
         [server_group.request]\nclient_subject = \"X-Client-Subject\"\n",
        authority.path().display(),
        echo("")
    );
    let site = "to = \"app\"\ncached = [\"txt\"]\n".to_owned();
    let plan = Plan { sections, site, ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    let url = server.url("/echo");
    let forged = ["-H", "X-Client-Subject: CN=root", "-H", "X_Client_Subject: CN=root", &url];
    let (chain, key) = (client.chain.display().to_string(), client.key.display().to_string());
    let with = [&["--cert", &chain, "--key", &key][..], &forged].concat();
    for (arguments, told) in [(&forged[..], 0), (&with, 1)] {
        let (content, said) = server.curl(&authority, arguments);
        let said = String::from_utf8(said).expect("text");
        assert!(content && !said.contains("root"), "{said}");
        assert_eq!(said.matches("X-Client-Subject: CN=client\r\n").count(), told, "{said}");
    }
}

#[test]
fn a_sticky_cookie_over_tls_is_secure() {
    let (tree, authority) = (site(), Authority::new());
    for (keys, over_tls, plainly) in [
        ("", "; Path=/; HttpOnly; Secure; SameSite=Lax", "; Path=/; HttpOnly; SameSite=Lax"),
        (
            "cookie_secure = \"always\"\ncookie_same_site = \"none\"\ncookie_lifetime = \"1h\"\n",
            "; Path=/; HttpOnly; Secure; SameSite=None; Max-Age=3600",
            "; Path=/; HttpOnly; Secure; SameSite=None; Max-Age=3600",
        ),
        (
            "cookie_secure = \"never\"\ncookie_same_site = \"strict\"\n",
            "; Path=/; HttpOnly; SameSite=Strict",
            "; Path=/; HttpOnly; SameSite=Strict",
        ),
    ] {
        let sections = format!(
            "[[server_group]]\nname = \"app\"\nservers = [\"{}\"]\naffinity = \"cookie\"\n{keys}",
            echo("")
        );
        let plan = Plan { sections, site: "to = \"app\"\n".to_owned(), ..Plan::default() };
        let server = TlsServer::with(&authority, tree.path(), plan);
        let way = authority.way(&server);
        let mut clients = [way.connect(), server.server.connect()];
        for (client, expected) in clients.iter_mut().zip([over_tls, plainly]) {
            let response = client.get("/echo");
            let cookie = response.field("set-cookie").expect("a cookie").to_owned();
            let (value, attributes) = cookie.split_at("afpa=".len() + 32);
            assert_eq!(attributes, expected, "{keys}");
            let again = client.get_with("/echo", &format!("Cookie: {value}\r\n"));
            assert_eq!(again.field("set-cookie"), None, "{keys}");
        }
    }
}

/// close_notify ends the client's direction only (RFC 8446, section 6.1).
#[test]
fn a_client_that_has_sent_all_over_tls_gets_its_answers() {
    let (tree, authority) = (site(), Authority::new());
    for io in ["readiness", "completion"] {
        let plan = Plan {
            sections: format!("engine.io = \"{io}\"\n"),
            site: format!("to = \"{}\"\ncached = [\"txt\"]\n", slow_echo()),
            ..Plan::default()
        };
        let server = TlsServer::with(&authority, tree.path(), plan);
        let way = authority.way(&server);
        for target in ["/echo", "/hello.txt"] {
            let mut client = way.connect();
            let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
            client.send(request.repeat(3));
            client.finish_sending().expect("half closed");
            for _ in 0..3 {
                assert_eq!(client.receive().status, 200, "{io} {target}");
            }
            assert!(client.take_all().is_empty(), "{io} {target}: an orderly end");
        }
    }
}

/// A server that takes its time, so that the client's end comes before the answer.
fn slow_echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while read_head(&mut stream).is_some() {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").ok()?;
                }
                Some(())
            });
        }
    });
    address
}

/// A server that answers with the head that it has got, and with these fields.
pub(crate) fn echo(fields: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while let Some(head) = read_head(&mut stream) {
                    let length = head.len();
                    let said = format!(
                        "HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n{head}"
                    );
                    stream.write_all(said.as_bytes()).ok()?;
                }
                Some(())
            });
        }
    });
    address
}

#[test]
fn options_alone_serve_over_tls() {
    let (tree, authority) = (site(), Authority::new());
    let files = authority.issue("localhost", &["localhost"]);
    let tls = afpa_testkit::server::free_address();
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--tls").arg(tls.to_string());
        launch.arg("--cert").arg(&files.chain).arg("--key").arg(&files.key);
    });
    let server = TlsServer { server, tls };
    let get = || server.curl(&authority, &[&server.url("/hello.txt")]);
    eventually("it answers", || get() == (true, b"hello".to_vec()));
    assert_eq!(server.server.get("/hello.txt").text(), "hello");
}

#[test]
fn the_log_and_the_metrics_know_what_was_agreed() {
    let (tree, authority) = (site(), Authority::new());
    let sections = "[log]\naccess = \"-\"\naccess_format = \"json\"\n".to_owned();
    let launch = Box::new(|launch: &mut afpa_testkit::Launch| {
        launch.admin();
    });
    let plan = Plan { sections, launch, ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    assert!(server.curl(&authority, &["--tlsv1.3", &server.url("/hello.txt")]).0);
    eventually("the line is written", || server.server.log().contains("\"tls\":\"TLSv1.3\""));
    let log = server.server.log();
    for part in ["\"cipher\":\"TLS13_AES_", "\"resumed\":false", "\"protocol\":\"h2\""] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(server.curl(&authority, &["--http1.1", &server.url("/hello.txt")]).0);
    eventually("the next line is written", || {
        server.server.log().contains("\"protocol\":\"http/1.1\"")
    });
    let mut admin = afpa_testkit::Client::connect(&server.server.admin()).expect("connected");
    let metrics = admin.get("/metrics");
    let metrics = metrics.text();
    for line in [
        "afpa_tls_handshakes_total{version=\"TLSv1.3\",resumed=\"false\"} 2",
        "afpa_tls_protocols_total{protocol=\"http/1.1\"} 1",
        "afpa_tls_handshake_failures_total{reason=\"malformed\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}
