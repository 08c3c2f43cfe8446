//! Messages of an attachment that pins nothing, and names that the operator gives.

use afpa_testkit::eventually;
use afpa_tests::attach::{Kind, Lab};

use crate::body;

/// A site that answers to its name only.
fn named() -> Result<Lab, String> {
    let inside = |_: &std::path::Path| {
        "server_name www.example.org; } server { listen 0.0.0.0:8080 default_server; location / { return 200; }".to_owned()
    };
    Lab::configured(Kind::Nginx, inside, |_| String::new())
}

#[test]
fn a_site_with_a_name_is_asked_for_by_it() {
    let lab = match named() {
        Ok(lab) => lab,
        Err(reason) => afpa_testkit::skip!("{reason}"),
    };
    for path in ["a.html", "b.html", "c.html"] {
        lab.file(path, path);
    }
    let attached = lab.attach(&[]);
    let why = "! the kernel answers nothing: its content is not that of the file \
               (asked for Host localhost:8080: name the site with --host)";
    eventually("it says why", || lab.log().contains("  3 URLs not: "));
    assert!(lab.log().contains(why), "{}", lab.log());
    attached.kill();
    let (done, said) = lab.detach(&["--wait", "0", "--force"]);
    assert!(done, "{said}");
    for host in ["www.example.org", "www.example.org:8080"] {
        let attached = lab.attach(&["--host", host]);
        assert_eq!(attached.pinned(), 3, "{host}: {}", lab.log());
        let before = attached.answered();
        let mut client = lab.connect();
        client.send("GET /a.html HTTP/1.1\r\nHost: www.example.org:8080\r\n\r\n");
        assert_eq!(client.receive().body, b"a.html");
        assert_eq!(attached.answered(), before + 1);
        assert_eq!(body(&mut client, "/a.html"), b"", "of the other site");
        attached.kill();
        assert!(lab.detach(&["--wait", "0", "--force"]).0);
    }
    let said = lab.attach_in_vain_with("10.77.0.1:8080", &["--host", "http://www.example.org"]);
    assert!(said.contains("is no name: write one such as www.example.org"), "{said}");
}

#[test]
fn requests_that_went_to_the_server_are_told_with_the_remedy() {
    let lab = lab!();
    lab.file("a.html", "a");
    let attached = lab.attach(&[]);
    let mut client = lab.connect();
    client.send("GET /a.html HTTP/1.1\r\nHost: other\r\n\r\n");
    client.receive();
    let told = &attached.statistics().expect("it runs")["went_to_the_server"];
    assert_eq!(told["its Host is no name of the site (--host NAME)"], 1, "{told:#}");
    let (_, table) = lab.run_afpa(&["stats"]);
    assert!(table.contains("its Host is no name of the site (--host NAME)"), "{table}");
}
