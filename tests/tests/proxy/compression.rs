//! Answers of servers that are compressed as they pass, and those that never are.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use afpa_testkit::server::program;
use afpa_testkit::{Client, Response, Server, Tree, eventually};
use afpa_tests::codings::decode;
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{PhpFpm, Raw, read_content, read_head};

/// A server whose target says what it answers, and that counts the requests.
struct App {
    raw: Raw,
    asked: Arc<AtomicUsize>,
    /// Answers that pause go on.
    goes_on: Arc<(Mutex<bool>, Condvar)>,
}

/// The content of most answers.
fn text() -> String {
    (0..2000).map(|number| format!("line {number} of many that are alike\n")).collect()
}

/// Status and fields of an answer to a target, and whether it comes in chunks; see [`text`] for the content.
fn answer_to(target: &str) -> (&'static str, &'static str) {
    const TEXT: &str = "Content-Type: text/plain; charset=utf-8\r\n";
    const FULL: &str = "Content-Type: text/plain\r\nETag: \"v1\"\r\nVary: Cookie\r\nAccept-Ranges: bytes\r\n\
        Content-Digest: sha-256=:x:\r\nRepr-Digest: sha-256=:x:\r\nContent-MD5: x\r\nX-Own: 1\r\n";
    match target {
        "/full" => ("200 OK", FULL),
        "/error" => ("500 Internal Server Error", TEXT),
        "/kept" | "/ranged" => {
            ("200 OK", "Content-Type: text/html\r\nETag: \"v1\"\r\nCache-Control: max-age=600\r\n")
        }
        "/stale" => (
            "200 OK",
            "Content-Type: text/html\r\nETag: \"v1\"\r\nCache-Control: max-age=0, must-revalidate\r\n",
        ),
        "/kept-pause" => ("200 OK", "Content-Type: text/html\r\nCache-Control: max-age=600\r\n"),
        "/kept-picture" => ("200 OK", "Content-Type: image/png\r\nCache-Control: max-age=600\r\n"),
        "/identity" => ("200 OK", "Content-Type: text/css\r\nContent-Encoding: identity\r\n"),
        "/picture" => ("200 OK", "Content-Type: image/png\r\n"),
        "/untyped" => ("200 OK", ""),
        "/coded" => ("200 OK", "Content-Type: text/html\r\nContent-Encoding: br\r\n"),
        "/as-it-is" => {
            ("200 OK", "Content-Type: text/html\r\nCache-Control: private, no-transform\r\n")
        }
        "/part" => {
            ("206 Partial Content", "Content-Type: text/html\r\nContent-Range: bytes 0-9/99999\r\n")
        }
        "/events" => ("200 OK", "Content-Type: text/event-stream\r\n"),
        "/grpc" => ("200 OK", "Content-Type: application/grpc\r\n"),
        "/sums" => ("200 OK", "Content-Type: text/html\r\nTrailer: X-Sum\r\n"),
        _ => ("200 OK", TEXT),
    }
}

impl App {
    fn start() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let goes_on = Arc::new((Mutex::new(false), Condvar::new()));
        let (count, pause) = (Arc::clone(&asked), Arc::clone(&goes_on));
        let raw = Raw::start(move |mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                if read_content(&mut stream, &head).is_none() {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                if respond(&mut stream, &head, &pause).is_none() {
                    return;
                }
            }
        });
        Self { raw, asked, goes_on }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn go_on(&self) {
        *self.goes_on.0.lock().expect("a flag") = true;
        self.goes_on.1.notify_all();
    }
}

/// Answers one request. `None`: the connection is over.
fn respond(stream: &mut TcpStream, head: &str, pause: &(Mutex<bool>, Condvar)) -> Option<()> {
    let (mut words, lower) = (head.split(' '), head.to_ascii_lowercase());
    let (method, target) = (words.next()?, words.next()?);
    let target = target.split('?').next()?;
    let target = target.trim_start_matches("/plain").trim_end_matches(".x");
    let value = |name: &str| {
        let line = lower.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.trim_start_matches(':').trim().to_owned())
    };
    let coding = value("accept-encoding").unwrap_or_else(|| "-".to_owned());
    let (status, fields) = answer_to(target);
    if value("if-none-match").is_some_and(|tags| tags.split(", ").any(|tag| tag == "\"v1\"")) {
        let head = "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=0\r\nX-Own: 2\r\n\r\n";
        return stream.write_all(head.as_bytes()).ok();
    }
    let head = format!("HTTP/1.1 {status}\r\n{fields}X-Coding: {coding}\r\n");
    let content = text();
    let chunk = |data: &str| format!("{:x}\r\n{data}\r\n", data.len());
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    match target {
        _ if method == "HEAD" => {
            let length = content.len();
            write!(stream, "{head}Content-Length: {length}\r\n\r\n").ok()
        }
        "/ranged" if value("range").as_deref() == Some("bytes=0-9") => {
            let (head, whole) = (head.replace("200 OK", "206 Partial Content"), content.len());
            let fields = format!("Content-Range: bytes 0-9/{whole}\r\nContent-Length: 10\r\n");
            write!(stream, "{head}{fields}\r\n{}", &content[..10]).ok()
        }
        "/short" => write!(stream, "{head}Content-Length: 5\r\n\r\nshort").ok(),
        "/empty" => write!(stream, "{head}Content-Length: 0\r\n\r\n").ok(),
        "/close" => {
            write!(stream, "{head}\r\n{content}").ok()?;
            None
        }
        "/chunked" => {
            stream.write_all(chunked.as_bytes()).ok()?;
            for piece in content.as_bytes().chunks(777) {
                let piece = chunk(str::from_utf8(piece).ok()?);
                stream.write_all(piece.as_bytes()).ok()?;
            }
            write!(stream, "0\r\n\r\n").ok()
        }
        "/sums" => write!(stream, "{chunked}{}0\r\nX-Sum: 1\r\n\r\n", chunk(&content)).ok(),
        "/cut" => {
            write!(stream, "{chunked}{}", chunk(&content)).ok()?;
            None
        }
        "/events" | "/pause" | "/kept-pause" => {
            write!(stream, "{chunked}{}", chunk("data: first\n\n")).ok()?;
            let waiting = pause.1.wait_while(pause.0.lock().ok()?, |goes_on| !*goes_on);
            drop(waiting);
            write!(stream, "{}0\r\n\r\n", chunk("data: last\n\n")).ok()
        }
        _ => write!(stream, "{head}Content-Length: {}\r\n\r\n{content}", content.len()).ok(),
    }
}

/// A server that compresses, except below `/plain/`.
fn serve(app: &App, settings: &str) -> Server {
    let to = app.raw.to();
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "workers = 1\nhttp2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\nto = \"{to}\"\n\
                 compress = true\n{settings}\n[[site.path]]\nprefix = \"/plain/\"\nto = \"{to}\"\n\
                 compress = false\n[[site.path.content]]\nextensions = [\"x\"]\nto = \"{to}\"\ncompress = true\n"
            )
        });
    })
}

fn coding(answer: &Response) -> Option<&str> {
    answer.field("content-encoding")
}

/// The count of answers that were compressed, or were not for want of room.
fn count(server: &Server, name: &str) -> u64 {
    let output = server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("statistics");
    stats["compression"][name].as_u64().expect("a count")
}

#[test]
fn answers_are_compressed_as_they_pass() {
    let app = App::start();
    let server = serve(&app, "cache.mode = \"off\"");
    let mut client = server.connect();
    for wanted in ["gzip", "br", "zstd"] {
        for target in ["/sized", "/chunked", "/close", "/full", "/error", "/identity", "/plain/a.x"]
        {
            let answer = client.get_with(target, &format!("Accept-Encoding: {wanted}\r\n"));
            assert_eq!(coding(&answer), Some(wanted), "{target} {answer:?}");
            assert_eq!(answer.values("content-encoding").count(), 1, "{target} {answer:?}");
            assert!(answer.lists("vary", "accept-encoding"), "{target} {answer:?}");
            assert_eq!(answer.field("x-coding"), Some(wanted), "the server is told: {answer:?}");
            assert!(answer.body.len() < text().len() / 4, "{target} {}", answer.body.len());
            assert_eq!(decode(coding(&answer), &answer.body), text().as_bytes(), "{target}");
        }
    }
    let chosen = client.get_with("/full", "Accept-Encoding: GZIP;q=0.5, br\r\n");
    assert_eq!(coding(&chosen), Some("br"));
    assert_eq!(chosen.field("etag"), Some("W/\"v1\""));
    assert_eq!(chosen.values("vary").collect::<Vec<_>>(), ["Cookie, Accept-Encoding"]);
    assert_eq!(chosen.field("x-own"), Some("1"));
    for gone in ["content-length", "accept-ranges", "content-digest", "repr-digest", "content-md5"]
    {
        assert_eq!(chosen.field(gone), None, "{gone}");
    }
    let posted = client.exchange(
        "POST /sized HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
    );
    assert_eq!(coding(&posted), Some("gzip"));
    // HEAD has what GET would have.
    let head = client.head_with("/full", "Accept-Encoding: br\r\n");
    let names = |answer: &Response| {
        let names = answer.fields.iter().map(|(name, _)| name.to_ascii_lowercase());
        names.filter(|name| !["transfer-encoding", "date"].contains(&&**name)).collect::<Vec<_>>()
    };
    assert_eq!((names(&head), head.field("etag")), (names(&chosen), Some("W/\"v1\"")));
    assert_eq!((coding(&head), head.body.len()), (Some("br"), 0));
    // HTTP/1.0 has no chunks: the end of the connection is that of the content.
    let mut old = server.connect();
    let answer = old.exchange("GET /sized HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_eq!(decode(Some("gzip"), &answer.body), text().as_bytes(), "{answer:?}");
    let mut streams = H2Client::connect(&server);
    for wanted in ["gzip", "br", "zstd"] {
        let mut fields = h2::request("GET", "/full");
        fields.extend([("accept-encoding", wanted), ("te", "trailers")]);
        let id = streams.request(&fields, b"");
        let answer = streams.response(id);
        assert_eq!((coding(&answer), answer.field("content-length")), (Some(wanted), None));
        assert_eq!(decode(Some(wanted), &answer.body), text().as_bytes(), "{wanted}");
    }
    assert!(count(&server, "answers") >= 26);
    assert_eq!(count(&server, "answers_refused"), 0);
    // An answer that breaks off does so when it is compressed, too.
    let mut cut = server.connect();
    cut.send("GET /cut HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    let cut = cut.read_to_close().expect("it closes");
    assert!(!cut.ends_with(b"0\r\n\r\n"), "{} bytes", cut.len());
}

#[test]
fn what_must_not_be_compressed_passes_as_it_is() {
    let app = App::start();
    let server = serve(&app, "cache.mode = \"off\"");
    let mut client = server.connect();
    app.go_on();
    let gzip = "Accept-Encoding: gzip\r\n";
    for target in [
        "/picture",
        "/untyped",
        "/as-it-is",
        "/events",
        "/grpc",
        "/sums",
        "/short",
        "/empty",
        "/coded",
        "/plain/a",
    ] {
        let own = if target == "/coded" { Some("br") } else { None };
        let answer = client.get_with(target, gzip);
        assert_eq!((coding(&answer), answer.field("vary")), (own, None), "{target} {answer:?}");
    }
    let part = client.get_with("/part", gzip);
    assert_eq!((coding(&part), part.field("vary")), (None, Some("Accept-Encoding")), "{part:?}");
    let sums = client.get_with("/sums", gzip);
    assert_eq!(sums.trailers, [("X-Sum".to_owned(), "1".to_owned())]);
    // Others would get these compressed, and caches have to know that.
    for lines in [
        "",
        "Accept-Encoding: deflate\r\n",
        "Accept-Encoding: gzip;q=0\r\n",
        "Accept-Encoding: *, gzip;q=0, br;q=0, zstd;q=0\r\n",
        "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\n",
        "Accept-Encoding: gzip\r\nCache-Control: no-transform\r\n",
    ] {
        let answer = client.get_with("/full", lines);
        assert_eq!(coding(&answer), None, "{lines}");
        assert_eq!(answer.field("vary"), Some("Cookie, Accept-Encoding"), "{lines}");
        assert_eq!(answer.field("etag"), Some("\"v1\""), "{lines}");
        assert_eq!(answer.field("accept-ranges"), Some("bytes"), "{lines}");
        assert_eq!(answer.text(), text(), "{lines}");
    }
    // The client's tag is the weak one; the server compares with its own, byte by byte.
    for tag in ["W/\"v1\"", "\"v1\"", "\"x\", W/\"v1\""] {
        let answer = client.get_with("/full", &format!("{gzip}If-None-Match: {tag}\r\n"));
        let seen = (answer.status, answer.field("etag"), answer.field("vary"));
        assert_eq!(seen, (304, Some("W/\"v1\""), Some("Accept-Encoding")), "{tag}");
    }
    let changed = client.get_with("/full", &format!("{gzip}If-None-Match: W/\"v0\"\r\n"));
    assert_eq!((changed.status, coding(&changed)), (200, Some("gzip")));
    // A date does not tell the compressed content from the other, so only all of it is right.
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (lines, validator, status) in [(gzip, DATE, 200), (gzip, "\"v1\"", 206), ("", DATE, 206)] {
        let lines = format!("{lines}Range: bytes=0-9\r\nIf-Range: {validator}\r\n");
        assert_eq!(client.get_with("/ranged", &lines).status, status, "{lines}");
    }
}

/// The content behind the head so far, without its chunks.
fn unchunked(bytes: &[u8]) -> Vec<u8> {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let mut rest = at.and_then(|at| bytes.get(at + 4..)).unwrap_or_default();
    let mut content = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(str::from_utf8(&rest[..end]).expect("a length"), 16);
        let Some(chunk) = rest.get(end + 2..end + 2 + length.expect("a length")) else { break };
        content.extend_from_slice(chunk);
        rest = rest.get(end + 2 + chunk.len() + 2..).unwrap_or_default();
    }
    content
}

/// As much of the content as can be decoded from these bytes.
fn decoded_so_far(coding: &str, bytes: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut reader: Box<dyn Read> = match coding {
        "gzip" => Box::new(flate2::read::GzDecoder::new(bytes)),
        "br" => Box::new(brotli::Decompressor::new(bytes, 4096)),
        "zstd" => Box::new(zstd::Decoder::new(bytes).expect("a decoder")),
        _ => Box::new(bytes),
    };
    let (mut content, mut room) = (Vec::new(), [0; 256]);
    while let Ok(n @ 1..) = reader.read(&mut room) {
        content.extend_from_slice(&room[..n]);
    }
    content
}

#[test]
fn what_a_server_has_said_before_it_pauses_is_not_held_back() {
    let app = App::start();
    let server = serve(&app, "");
    let mut clients = Vec::new();
    for (target, coding) in
        [("/pause", "gzip"), ("/pause", "br"), ("/pause", "zstd"), ("/events", "")]
    {
        let mut client = server.connect();
        client.send(format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAccept-Encoding: {coding}\r\n\r\n"
        ));
        let (mut bytes, mut room) = (Vec::new(), [0; 1024]);
        while decoded_so_far(coding, &unchunked(&bytes)) != b"data: first\n\n" {
            let n = client.read_raw(&mut room).expect("more");
            assert!(n > 0, "{coding}: the connection ended before the first words");
            bytes.extend_from_slice(&room[..n]);
        }
        clients.push((client, coding, bytes));
    }
    app.go_on();
    for (mut client, coding, mut bytes) in clients {
        let mut room = [0; 1024];
        while !bytes.ends_with(b"0\r\n\r\n") {
            let n = client.read_raw(&mut room).expect("more");
            assert!(n > 0, "{coding}: the connection ended before the last chunk");
            bytes.extend_from_slice(&room[..n]);
        }
        let whole = unchunked(&bytes);
        let coding = Some(coding).filter(|coding| !coding.is_empty());
        assert_eq!(decode(coding, &whole), b"data: first\n\ndata: last\n\n", "{coding:?}");
    }
}

#[test]
fn there_are_only_so_many_encoders_and_what_passes_without_one_is_not_kept() {
    const MOST: u64 = 64;
    const FOR_KEPT: u64 = 16;
    let app = App::start();
    let server = serve(&app, "");
    let mut held: Vec<Client> = Vec::new();
    let mut hold = |target: &str| {
        let mut client = server.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"));
        // Its head has come, so it has its encoder.
        assert_eq!(client.take(12), b"HTTP/1.1 200");
        held.push(client);
    };
    (0..MOST - FOR_KEPT).for_each(|number| hold(&format!("/pause?{number}")));
    let mut client = server.connect();
    let gzip = "Accept-Encoding: gzip\r\n";
    assert_eq!(coding(&client.get_with("/full", gzip)), None, "the others are for kept answers");
    (0..FOR_KEPT).for_each(|number| hold(&format!("/kept-pause?{number}")));
    let answer = client.get_with("/kept", gzip);
    assert_eq!((coding(&answer), answer.field("etag")), (None, Some("\"v1\"")));
    assert_eq!((answer.field("vary"), answer.text()), (Some("Accept-Encoding"), &*text()));
    assert_eq!(count(&server, "answers_refused"), 2);
    app.go_on();
    eventually("there is room again", || count(&server, "answers") >= MOST);
    assert_eq!(coding(&client.get_with("/kept", gzip)), Some("gzip"), "it was not kept as it was");
}

#[test]
fn kept_answers_are_compressed_once() {
    let app = App::start();
    let more = "status_field = true\ncache.obey_clients = true";
    let server = serve(&app, &format!("cache.purge_from = [\"127.0.0.0/8\"]\ncache.{more}"));
    let mut client = server.connect();
    let gzip = "Accept-Encoding: gzip\r\n";
    let first = client.get_with("/kept", gzip);
    assert_eq!((coding(&first), first.field("etag")), (Some("gzip"), Some("W/\"v1\"")));
    eventually("the answer is kept", || client.get_with("/kept", gzip).field("age").is_some());
    let (asked, compressed) = (app.asked(), count(&server, "answers"));
    for _ in 0..20 {
        let kept = client.get_with("/kept", gzip);
        assert_eq!((coding(&kept), kept.values("vary").count()), (Some("gzip"), 1), "{kept:?}");
        assert_eq!(decode(Some("gzip"), &kept.body), text().as_bytes());
        assert_eq!(kept.body, first.body, "it is not compressed again");
    }
    assert_eq!((app.asked(), count(&server, "answers")), (asked, compressed));
    // Each client gets what it takes, whatever others have got.
    for (lines, expected) in
        [("", None), ("Accept-Encoding: br\r\n", Some("br")), (gzip, Some("gzip"))]
    {
        for _ in 0..3 {
            let answer = client.get_with("/kept", lines);
            assert_eq!(coding(&answer), expected, "{lines}");
            assert_eq!(decode(coding(&answer), &answer.body), text().as_bytes(), "{lines}");
            let etag = expected.map_or("\"v1\"", |_| "W/\"v1\"");
            assert_eq!(answer.field("etag"), Some(etag), "{lines}");
            assert!(answer.lists("vary", "accept-encoding"), "{lines}");
        }
        let head = client.head_with("/kept", lines);
        assert_eq!((coding(&head), head.body.len()), (expected, 0), "{lines}");
    }
    for tag in ["\"v1\"", "W/\"v1\""] {
        let answer = client.get_with("/kept", &format!("{gzip}If-None-Match: {tag}\r\n"));
        assert_eq!((answer.status, answer.field("etag")), (304, Some("W/\"v1\"")), "{tag}");
    }
    // No part of compressed content is given: the next time its bytes may be others. Some want it as it is.
    for lines in [
        "Range: bytes=0-9\r\n",
        "Range: bytes=0-9\r\nIf-Range: W/\"v1\"\r\n",
        "Cache-Control: no-transform\r\n",
    ] {
        let answer = client.get_with("/kept", &format!("{gzip}{lines}"));
        assert_eq!((answer.status, coding(&answer)), (200, None), "{lines} {answer:?}");
        assert_eq!(answer.text(), text(), "{lines}");
    }
    let only_kept = format!("{gzip}Range: bytes=0-9\r\nCache-Control: only-if-cached\r\n");
    assert_eq!(client.get_with("/kept", &only_kept).status, 504);
    let part = client.get_with("/kept", "Range: bytes=0-9\r\nIf-Range: \"v1\"\r\n");
    assert_eq!((part.status, part.text()), (206, &text()[..10]));
    let still = client.get_with("/kept", gzip);
    assert_eq!((coding(&still), &still.body), (Some("gzip"), &first.body), "those were not kept");
    // A purge is for all codings.
    let purged = client.exchange("PURGE /kept HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(purged.status, 200, "{purged:?}");
    let asked = app.asked();
    for lines in ["", gzip, "Accept-Encoding: br\r\n"] {
        client.get_with("/kept", lines);
    }
    assert_eq!(app.asked(), asked + 3);
    // An answer that nobody gets compressed is kept once for all.
    client.get_with("/kept-picture", gzip);
    eventually("the picture is kept", || client.get("/kept-picture").field("age").is_some());
    let asked = app.asked();
    for lines in ["", gzip, "Accept-Encoding: br\r\n", "Accept-Encoding: x\r\n"] {
        assert_eq!(client.get_with("/kept-picture", lines).field("vary"), None);
    }
    let as_it_is = "Cache-Control: no-transform\r\n";
    for (lines, status) in [("Range: bytes=0-9\r\n", 206), (as_it_is, 200)] {
        let answer = client.get_with("/kept-picture", &format!("{gzip}{lines}"));
        assert_eq!(answer.status, status, "{lines}");
    }
    assert_eq!(app.asked(), asked);
}

#[test]
fn a_kept_part_takes_the_place_of_no_compressed_answer() {
    let app = App::start();
    let server = serve(&app, "");
    let mut client = server.connect();
    let gzip = "Accept-Encoding: gzip\r\n";
    client.get_with("/ranged", gzip);
    eventually("the answer is kept", || client.get_with("/ranged", gzip).field("age").is_some());
    let mut part = || client.get_with("/ranged", "Range: bytes=0-9\r\n");
    let first = part();
    assert_eq!((first.status, first.field("vary")), (206, Some("Accept-Encoding")), "{first:?}");
    eventually("the part is kept", || part().field("age").is_some());
    let asked = app.asked();
    let whole = client.get_with("/ranged", gzip);
    assert_eq!((coding(&whole), app.asked()), (Some("gzip"), asked));
}

#[test]
fn a_kept_answer_that_its_server_confirms_stays_compressed() {
    let app = App::start();
    let server = serve(&app, "");
    let mut client = server.connect();
    let gzip = "Accept-Encoding: gzip\r\n";
    let first = client.get_with("/stale", gzip);
    assert_eq!(coding(&first), Some("gzip"), "{first:?}");
    eventually("the answer is confirmed", || {
        client.get_with("/stale", gzip).field("x-own") == Some("2")
    });
    let compressed = count(&server, "answers");
    for _ in 0..3 {
        let answer = client.get_with("/stale", gzip);
        assert_eq!((coding(&answer), answer.field("etag")), (Some("gzip"), Some("W/\"v1\"")));
        assert_eq!(answer.values("vary").collect::<Vec<_>>(), ["Accept-Encoding"]);
        assert_eq!(answer.body, first.body);
    }
    assert_eq!(count(&server, "answers"), compressed, "the content did not come again");
    let plain = client.get("/stale");
    assert_eq!((coding(&plain), plain.text()), (None, &*text()));
    let plain = client.get("/stale");
    assert_eq!(
        (coding(&plain), plain.field("etag"), plain.text()),
        (None, Some("\"v1\""), &*text())
    );
}

#[test]
fn changes_of_fields_and_error_pages_go_with_compression() {
    let app = App::start();
    let tree = Tree::new();
    tree.file("500.html", "<p>own page");
    let page = tree.path().join("500.html").display().to_string();
    let site = format!(
        "[[site.header]]\nset = {{ X-Set = \"1\" }}\nadd = {{ Vary = \"Origin\" }}\n[[site.errors]]\nstatus = [500]\nfile = \"{page}\"\nintercept = true\n"
    );
    let server = serve(&app, &site);
    let mut client = server.connect();
    for _ in 0..3 {
        let answer = client.get_with("/kept", "Accept-Encoding: gzip\r\n");
        assert_eq!((coding(&answer), answer.field("x-set")), (Some("gzip"), Some("1")));
        assert!(answer.lists("vary", "origin"), "{answer:?}");
        let vary: Vec<_> = answer.values("vary").collect();
        assert!(vary.contains(&"Accept-Encoding"), "a cache behind has to know: {vary:?}");
    }
    let answer = client.get_with("/error", "Accept-Encoding: gzip\r\n");
    assert_eq!((answer.status, coding(&answer), answer.text()), (500, None, "<p>own page"));
}

#[test]
fn scripts_are_compressed_too() {
    let Ok(php) = PhpFpm::start(true, 2, "") else { return println!("SKIP: there is no PHP-FPM") };
    let tree = Tree::new();
    tree.file("a.php", "<?php for ($i = 0; $i < 3000; $i++) echo \"line $i of a script\\n\";");
    tree.file(
        "zipped.php",
        "<?php header('Content-Encoding: gzip'); echo gzencode(str_repeat('a', 5000));",
    );
    let (root, to) = (tree.path().display().to_string(), php.to().to_owned());
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            format!("[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\nphp = \"{to}\"\ncompress = true\n")
        });
    });
    let mut client = server.connect();
    let whole = client.get("/a.php");
    assert_eq!((whole.field("vary"), coding(&whole)), (Some("Accept-Encoding"), None), "{whole:?}");
    for wanted in ["gzip", "br", "zstd"] {
        let answer = client.get_with("/a.php", &format!("Accept-Encoding: {wanted}\r\n"));
        assert_eq!(coding(&answer), Some(wanted), "{answer:?}");
        assert_eq!(decode(Some(wanted), &answer.body), whole.body, "{wanted}");
    }
    let own = client.get_with("/zipped.php", "Accept-Encoding: br, gzip\r\n");
    assert_eq!(decode(coding(&own), &own.body), [b'a'; 5000], "{own:?}");
}

#[test]
fn the_page_about_compression_has_a_configuration_that_does_what_it_says() {
    let app = App::start();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/compression.md");
    let page = fs::read_to_string(page).expect("the page");
    assert!(page.lines().count() <= 30, "it is one page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let site = format!("[[site]]\nlisten = [\"{listen}\"]\n");
            example.replace("[[site]]\n", &site).replace("127.0.0.1:3000", &app.raw.to())
        });
    });
    let mut client = server.connect();
    let mut coding_of = |target: &str| {
        let answer = client.get_with(target, "Accept-Encoding: gzip, br\r\n");
        answer.field("content-encoding").map(str::to_owned)
    };
    assert_eq!(coding_of("/page").as_deref(), Some("br"));
    assert_eq!((coding_of("/account/page"), coding_of("/short")), (None, None));
    let route = |target: &str| {
        let mut command = Command::new(program());
        let file = server.configuration();
        let output = command.args(["route", target, "--config"]).arg(file).output().expect("run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let told = "compression  br, zstd, gzip for servers' text/*, application/json, image/svg+xml of 1000 bytes or more\n";
    assert!(route("/page").contains(told), "{}", route("/page"));
    assert!(!route("/account/page").contains("compression"), "{}", route("/account/page"));
}
