//! Servers behind that are reached by TLS.

use afpa_testkit::{Server, Tree, eventually, tree::patterned};
use afpa_tests::proxy::server_row;
use afpa_tests::tls::{Authority, Plan, TlsServer};

use crate::site;

/// A proxy whose one server is `server`, by TLS, with more settings of the group and of its verification.
fn proxy(server: &TlsServer, verify: &str, more: &str) -> Server {
    let address = server.tls;
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "[[server_group]]\nname = \"app\"\nservers = [\"{address}\"]\ntls = true\n\
                 [server_group.verify]\n{verify}\n{more}\n\
                 [[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n"
            )
        });
    })
}

fn trusting(authority: &Authority) -> String {
    format!("authorities = \"{}\"\nname = \"localhost\"\n", authority.path().display())
}

/// A server with content, and the tree that it serves.
fn behind(authority: &Authority, sections: &str) -> (Tree, TlsServer) {
    let tree = site();
    let plan = Plan { sections: sections.to_owned(), ..Plan::default() };
    let server = TlsServer::with(authority, tree.path(), plan);
    (tree, server)
}

#[test]
fn requests_go_to_a_server_by_tls_and_connections_are_kept() {
    let authority = Authority::new();
    let (_tree, server) = behind(&authority, "");
    let proxy = proxy(&server, &trusting(&authority), "");
    let mut client = proxy.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/hello.txt").text(), "hello");
    }
    assert!(client.get("/large.bin").body == patterned(10_000_000));
    let head = "GET /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n";
    client.send([head.as_bytes(), &patterned(300_000)].concat());
    assert_eq!(client.receive().text(), "hello");
    let handshakes = server.number("/tls/full") + server.number("/tls/resumed");
    assert!((1..=4).contains(&handshakes), "{handshakes} handshakes for 22 requests");
}

#[test]
fn a_server_that_cannot_be_verified_gets_no_request() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (_tree, server) = behind(&authority, "");
    let wrong_name =
        trusting(&authority).replace("name = \"localhost\"", "name = \"www.example.org\"");
    for verify in [trusting(&other), wrong_name, "name = \"localhost\"".to_owned()] {
        let proxy = proxy(&server, &verify, "");
        let status = proxy.get("/hello.txt").status;
        assert!(status == 502 || status == 503, "{verify}: {status}");
    }
    assert_eq!(server.number("/requests/responses"), 0);
}

#[test]
fn health_checks_go_by_tls() {
    let authority = Authority::new();
    let (_tree, server) = behind(&authority, "");
    let check = "[server_group.check]\npath = \"/hello.txt\"\nevery = \"100ms\"\n";
    let proxy = proxy(&server, &trusting(&authority), check);
    eventually("checks are answered", || server.number("/requests/responses") >= 3);
    let row = server_row(&proxy, &server.tls.to_string());
    assert_eq!(row["state"], "up", "{row}");
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_one() {
    let authority = Authority::new();
    let ca = authority.path();
    let sections = format!(
        "[tls]\nclient_certificates = \"required\"\nclient_authorities = \"{}\"\n",
        ca.display()
    );
    let (_tree, server) = behind(&authority, &sections);
    let own = authority.issue("proxy", &["proxy"]);
    let with = format!(
        "{}chain = \"{}\"\nkey = \"{}\"\n",
        trusting(&authority),
        own.chain.display(),
        own.key.display()
    );
    let proxy_with = proxy(&server, &with, "");
    assert_eq!(proxy_with.get("/hello.txt").text(), "hello");
    let without = proxy(&server, &trusting(&authority), "");
    assert!([502, 503].contains(&without.get("/hello.txt").status));
}
