//! `afpa attach`: a cached answer is the server's own, and only what is everybody's is cached.

use afpa_testkit::{Asked, Client, Response};
use afpa_tests::attach::{Attached, Kind, Lab};

const SMALL: &str = "<p>small</p>";

pub(crate) fn corpus(lab: &Lab) {
    lab.file("index.html", "<h1>index</h1>");
    lab.file("small.html", SMALL);
    lab.file("empty.txt", "");
    lab.file("style.css", "p { color: red }");
    lab.file("with space.html", "blank");
    lab.file("full.txt", [b'f'; 900]);
    lab.file("large.txt", vec![b'l'; 200_000]);
    lab.file("deep/er/page.html", "deep");
    lab.file("deep/index.html", "index of deep");
    lab.file("script.php", "<?php ?>");
    lab.file("coded.html", "identity ".repeat(20));
    lab.file("coded.html.gz", gzip("identity ".repeat(20).as_bytes()));
    for folder in ["cookie", "nostore", "private", "vary", "secret"] {
        lab.file(&format!("{folder}/page.html"), folder);
    }
    lab.file("dynamic/page.html", "dynamic ".repeat(50));
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, content).expect("memory");
    encoder.finish().expect("memory")
}

/// Paths whose answers never come from the kernel.
const PRIVATE: [&str; 9] = [
    "/cookie/page.html",
    "/nostore/page.html",
    "/private/page.html",
    "/vary/page.html",
    "/secret/page.html",
    "/script.php",
    "/large.txt",
    "/missing.html",
    "/small.html?query",
];

/// Paths that the kernel answers to a plain GET.
const PUBLIC: [&str; 8] = [
    "/",
    "/index.html",
    "/small.html",
    "/style.css",
    "/with%20space.html",
    "/full.txt",
    "/deep/er/page.html",
    "/deep/",
];

const HOST: &str = "Host: 10.77.0.1:8080\r\n";

/// Requests of every form, with validators from the server's answers.
pub(crate) fn requests(lab: &Lab) -> Vec<String> {
    let mut all = Vec::new();
    for path in PUBLIC.iter().chain(&PRIVATE).chain(&[
        "/empty.txt",
        "/coded.html",
        "/dynamic/page.html",
        "/deep",
    ]) {
        let mut fields = vec![
            String::new(),
            "Accept-Encoding: gzip\r\n".into(),
            "Accept-Encoding: gzip, deflate, br, zstd\r\n".into(),
            "Accept-Encoding: gzip;q=0, br\r\n".into(),
            "Accept-Encoding: deflate\r\n".into(),
            "Range: bytes=0-3\r\n".into(),
            "Cookie: a=b\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n".into(),
            "If-None-Match: \"other\"\r\n".into(),
            "If-None-Match: *\r\n".into(),
            "Authorization: Basic eDp5\r\n".into(),
        ];
        let whole = ask(&mut lab.connect(), &get(path, ""));
        if let Some(tag) = whole.field("etag") {
            fields.push(format!("If-None-Match: {tag}\r\n"));
            fields.push(format!("If-None-Match: \"no\", {tag}\r\n"));
            fields.push(format!("Accept-Encoding: gzip\r\nIf-None-Match: W/{tag}\r\n"));
        }
        if let Some(date) = whole.field("last-modified") {
            fields.push(format!("If-Modified-Since: {date}\r\n"));
            fields.push(format!("If-Unmodified-Since: {date}\r\n"));
        }
        fields.push("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".into());
        for fields in fields {
            for method in ["GET", "HEAD"] {
                all.push(format!("{method} {path} HTTP/1.1\r\n{HOST}{fields}\r\n"));
            }
        }
    }
    all.push(format!("POST /small.html HTTP/1.1\r\n{HOST}Content-Length: 3\r\n\r\nabc"));
    all.push(format!("OPTIONS /small.html HTTP/1.1\r\n{HOST}\r\n"));
    all
}

/// The answer, its Date aside.
fn ask(client: &mut Client, request: &str) -> Response {
    let asked = if request.starts_with("HEAD") { Asked::Head } else { Asked::Body };
    client.send(request);
    undated(client.try_receive(asked).unwrap_or_else(|error| panic!("{request:?}: {error}")))
}

fn undated(mut response: Response) -> Response {
    for (name, value) in &mut response.fields {
        if name.eq_ignore_ascii_case("date") {
            assert_eq!(value.len(), 29, "{value:?}");
            value.clear();
        }
    }
    response
}

/// One request a connection, so that a server that closes one does not matter.
pub(crate) fn all_answers(lab: &Lab, requests: &[String]) -> Vec<Response> {
    requests.iter().map(|request| ask(&mut lab.connect(), request)).collect()
}

pub(crate) fn same_answers_with_and_without(kind: Kind) {
    let lab = lab!(kind);
    corpus(&lab);
    let requests = requests(&lab);
    let without = all_answers(&lab, &requests);
    let attached = lab.attach(&[]);
    let before = attached.answered();
    for ((request, without), with) in
        requests.iter().zip(&without).zip(all_answers(&lab, &requests))
    {
        assert_eq!(*without, with, "{request:?}\n{}", lab.log());
    }
    let answered = attached.answered() - before;
    assert!(answered > 100, "{answered} of {}: {:#?}", requests.len(), attached.statistics());
}

#[test]
fn nginx_says_the_same_with_and_without() {
    same_answers_with_and_without(Kind::Nginx);
}

#[test]
fn apache_says_the_same_with_and_without() {
    same_answers_with_and_without(Kind::Apache);
}

/// How many of these requests, each on its own connection, the kernel answers.
fn answered(lab: &Lab, attached: &Attached, requests: &[String]) -> u64 {
    let before = attached.answered();
    all_answers(lab, requests);
    attached.answered() - before
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\n{HOST}{fields}\r\n")
}

pub(crate) fn the_kernel_answers_what_is_everybodys(kind: Kind) {
    let lab = lab!(kind);
    corpus(&lab);
    let attached = lab.attach(&[]);
    for path in PUBLIC {
        let request = [get(path, "")];
        assert_eq!(answered(&lab, &attached, &request), 1, "{path}: {:#?}", attached.statistics());
    }
    for path in PRIVATE {
        let request = [get(path, ""), get(path, "Accept-Encoding: gzip\r\n")];
        assert_eq!(answered(&lab, &attached, &request), 0, "{path}");
    }
    let small = ask(&mut lab.connect(), &get("/small.html", ""));
    let tag = small.field("etag").expect("a tag");
    let date = small.field("last-modified").expect("a date");
    let validators =
        [format!("If-None-Match: {tag}\r\n"), format!("If-Modified-Since: {date}\r\n")];
    for fields in &validators {
        let request = [get("/small.html", fields)];
        assert_eq!(answered(&lab, &attached, &request), 1, "{fields:?}");
    }
    for fields in ["Authorization: Basic eDp5\r\n", "Range: bytes=0-1\r\n", "Host: other\r\n"] {
        let request = get("/small.html", fields)
            .replace(if fields.starts_with("Host") { HOST } else { "\0" }, "");
        assert_eq!(answered(&lab, &attached, &[request]), 0, "{fields:?}");
    }
}

#[test]
fn nginx_everybodys_answers_come_from_the_kernel_and_no_others() {
    the_kernel_answers_what_is_everybodys(Kind::Nginx);
}

#[test]
fn apache_everybodys_answers_come_from_the_kernel_and_no_others() {
    the_kernel_answers_what_is_everybodys(Kind::Apache);
}

/// There is no socket that could prove a first request; it opens the connection to the kernel all the same.
#[test]
fn apache_as_it_comes_is_helped_from_the_second_request_on() {
    let lab = lab!(Kind::DeferringApache);
    corpus(&lab);
    let attached = lab.attach(&[]);
    let expected = ask(&mut lab.connect(), &get("/small.html", ""));
    for _ in 0..20 {
        let before = attached.answered();
        let mut client = lab.connect();
        assert_eq!(ask(&mut client, &get("/small.html", "")), expected);
        assert_eq!(attached.answered(), before, "the first is the server's");
        assert_eq!(ask(&mut client, &get("/small.html", "")), expected);
        assert_eq!(attached.answered(), before + 1, "{:#?}", attached.statistics());
        assert_eq!(ask(&mut client, &get("/large.txt", "")).body.len(), 200_000);
        assert_eq!(ask(&mut client, &get("/small.html", "")), expected);
        assert_eq!(attached.answered(), before + 2, "{:#?}", attached.statistics());
    }
}

/// nginx finds `coded.html.gz`: one coding for all that name gzip, and identity for the others.
#[test]
fn stored_codings_come_from_the_kernel() {
    let lab = lab!(Kind::Nginx);
    corpus(&lab);
    let attached = lab.attach(&[]);
    let table = [
        ("", None, 1),
        ("Accept-Encoding: gzip\r\n", Some("gzip"), 1),
        ("Accept-Encoding: gzip, deflate, br, zstd\r\n", Some("gzip"), 1),
        ("Accept-Encoding: br\r\n", None, 1),
        ("Accept-Encoding: gzip;q=0\r\n", None, 0),
    ];
    for (fields, coding, kernel) in table {
        let before = attached.answered();
        let response = ask(&mut lab.connect(), &get("/coded.html", fields));
        assert_eq!(response.field("content-encoding"), coding, "{fields:?}");
        assert_eq!(attached.answered() - before, kernel, "{fields:?}");
    }
}

fn pieces_and_pipelines(kind: Kind) {
    let lab = lab!(kind);
    corpus(&lab);
    let attached = lab.attach(&[]);
    let request = get("/small.html", "");
    let expected = ask(&mut lab.connect(), &request);
    for at in (1..request.len()).step_by(7) {
        let mut client = lab.connect();
        client.send_split(request.as_bytes(), at).expect("sent");
        assert_eq!(undated(client.receive()), expected, "split at {at}");
    }
    let mut client = lab.connect();
    let before = attached.answered();
    for round in 0..5 {
        client.send(format!("{request}{}{request}", get("/missing.html", "")));
        assert_eq!(undated(client.receive()), expected);
        assert_eq!(client.receive().status, 404);
        assert_eq!(undated(client.receive()), expected);
        assert_eq!(ask(&mut client, &request), expected, "round {round}");
        assert_eq!(ask(&mut client, &get("/large.txt", "")).body.len(), 200_000);
    }
    for _ in 0..5 {
        let mut client = lab.connect();
        assert_eq!(ask(&mut client, &request), expected);
        assert_eq!(ask(&mut client, &get("/large.txt", "")).body.len(), 200_000);
        assert_eq!(ask(&mut client, &request), expected);
    }
    assert!(attached.answered() > before, "{:#?}", attached.statistics());
}

#[test]
fn nginx_split_and_pipelined_requests() {
    pieces_and_pipelines(Kind::Nginx);
}

#[test]
fn apache_split_and_pipelined_requests() {
    pieces_and_pipelines(Kind::Apache);
}

#[test]
fn only_named_hosts_and_extensions_and_nothing_excluded() {
    let lab = lab!(Kind::Nginx);
    corpus(&lab);
    let attached =
        lab.attach(&["--host", "www.example.org", "--ext", "html", "--exclude", "/deep"]);
    let ask = |path: &str, host: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        answered(&lab, &attached, &[request])
    };
    assert_eq!(ask("/small.html", "www.example.org:8080"), 1);
    assert_eq!(ask("/small.html", "WWW.example.org"), 1);
    assert_eq!(ask("/small.html", "example.org:8080"), 0);
    assert_eq!(ask("/style.css", "www.example.org"), 0);
    assert_eq!(ask("/deep/er/page.html", "www.example.org"), 0);
}
