//! HTTPS, HTTP/2, certificates.

use std::fs;

use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, curl::curl, eventually, skip};
use afpa_tests::proxy::Raw;
use afpa_tests::tls::Authority;

use super::place::{Page, Place};

/// The answer, with its head, that curl gets for `/` of a name that lives at this address.
fn ask(authority: &Authority, at: std::net::SocketAddr, name: &str, more: &[&str]) -> String {
    let place = format!("{name}:{}:{}", at.port(), at.ip());
    let ca = authority.path().display().to_string();
    let url = format!("https://{name}:{}/", at.port());
    let all = [&["--resolve", &place, "--cacert", &ca, "--include"], more, &[&*url]].concat();
    let said = curl(all).expect("curl is there");
    format!("{}{}", String::from_utf8_lossy(&said.output), said.errors)
}

#[test]
pub(super) fn https() {
    let page = Page::of("https.md");
    let [site, staff] = page.blocks("toml");
    if curl(["--version"]).is_none() {
        skip!("no curl");
    }
    let authority = Authority::new();
    let names = ["example.org", "www.example.org", "admin.example.org"];
    let files = authority.issue("site", &names);
    let (plain, tls) = (free_address(), free_address());
    let app = Raw::named("staff");
    let mut place = Place::default();
    for (path, file) in [
        ("/etc/letsencrypt/live/example.org/fullchain.pem", &files.chain),
        ("/etc/letsencrypt/live/example.org/privkey.pem", &files.key),
        ("/etc/afpa/staff.pem", &authority.path()),
        ("/fullchain.pem", &files.chain),
        ("/privkey.pem", &files.key),
    ] {
        place.file(path, fs::read(file).expect("its file"));
    }
    place.file("/var/www/html/index.html", "<p>hello");
    place.file("/site/index.html", "<p>hello");
    place.replace("\"0.0.0.0:80\", \"[::]:80\"", format!("\"{plain}\""));
    place.replace("\"0.0.0.0:443\", \"[::]:443\"", format!("\"{tls}\""));
    place.replace("127.0.0.1:3000", app.to());
    let server = place.serve_with(&format!("{site}\n{staff}"), |launch| {
        launch.endpoint(Endpoint::Tcp(plain));
    });
    eventually("the address for TLS is open", || Client::connect(&Endpoint::Tcp(tls)).is_ok());
    let said = ask(&authority, tls, "www.example.org", &["--http1.1"]);
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("<p>hello"), "{said}");
    assert!(
        said.to_lowercase().contains("\nstrict-transport-security: max-age=31536000"),
        "{said}"
    );
    let plainly = Client::to(plain).exchange("GET /a HTTP/1.1\r\nHost: example.org\r\n\r\n");
    let to = format!("https://example.org:{}/a", tls.port());
    assert_eq!((plainly.status, plainly.field("location")), (308, Some(&*to)), "{plainly:?}");
    let own = authority.issue("ann", &["ann"]);
    let (chain, key) = (own.chain.display().to_string(), own.key.display().to_string());
    let said = ask(&authority, tls, "admin.example.org", &["--cert", &chain, "--key", &key]);
    assert!(said.ends_with("staff"), "{said}");
    let said = ask(&authority, tls, "admin.example.org", &[]);
    assert!(!said.contains("staff"), "no certificate: {said}");
    drop(server);

    place.forget_replaced();
    place.replace("0.0.0.0:80", plain.to_string());
    place.replace("0.0.0.0:443", tls.to_string());
    let _daemon = place.run(&page.command("afpa serve site --listen"));
    let said = ask(&authority, tls, "www.example.org", &["--http1.1"]);
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("<p>hello"), "{said}");
    let plainly = Client::to(plain).exchange("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    assert_eq!(plainly.status, 308);
}

#[test]
pub(super) fn http2() {
    let page = Page::of("http2.md");
    let place = Place::default();
    place.file("/srv/index.html", "<p>hello");
    let server = place.serve("http2.cleartext = true\n[[site]]\nroot = \"/srv/\"\n");
    let by_tls = page.command("curl https://www.example.org/");
    let mut plain = page.command("curl --http2-prior-knowledge");
    plain.remove(0);
    plain.last_mut().expect("its URL").clone_from(&server.url());
    plain.extend(["--write-out", " %{http_version}"].map(str::to_owned));
    let Some(said) = curl(plain) else { skip!("no curl") };
    assert_eq!(String::from_utf8_lossy(&said.output), "<p>hello 2");
    drop(server);

    let (authority, tls) = (Authority::new(), free_address());
    let section = authority.issue("site", &["www.example.org"]).section();
    let site = format!("[[site]]\ntls = [\"{tls}\"]\nroot = \"/srv/\"\n");
    let _server = place.serve(&format!("{section}{site}"));
    eventually("the address for TLS is open", || Client::connect(&Endpoint::Tcp(tls)).is_ok());
    assert_eq!(by_tls[1], "https://www.example.org/");
    let said = ask(&authority, tls, "www.example.org", &[]);
    assert!(said.starts_with("HTTP/2 200") && said.ends_with("<p>hello"), "{said}");
}

#[test]
pub(super) fn certificates_that_come_by_themselves() {
    // tests/tests/acme has the authority; here the configuration is one, and hands are shaken without a certificate.
    let page = Page::of("certificates.md");
    let [example] = page.blocks("toml");
    let place = Place::default();
    place.file("/var/www/html/index.html", "<p>hello");
    place.file("/afpa.toml", place.text(&example, ""));
    let checked = place.done(&["afpa", "check", "afpa.toml"].map(str::to_owned), "");
    assert!(checked.status.success(), "{checked:?}");
}
