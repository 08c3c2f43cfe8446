//! Requests that servers answer: content both ways, trailers, stored responses, servers that fail.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afpa_h2::frame::{flag, kind};
use afpa_testkit::{Server, eventually, eventually_within, tree::patterned};
use afpa_tests::h2::{H2Client, block, request};
use afpa_tests::proxy::{Raw, configuration, read_content, read_head, resetting, server_row};

pub(crate) fn proxy(servers: &[String], settings: &str) -> Server {
    Server::start("/", |launch| {
        launch
            .written(|listen| {
                format!(
                    "workers = 1\n[http2]\ncleartext = true\n{}",
                    configuration(listen, servers, settings)
                )
            })
            .admin();
    })
}

/// A server that answers with the request as it got it, in chunks, with a trailer.
fn mirror() -> Raw {
    Raw::start(|mut stream| {
        while let Some(mut request) = read_head(&mut stream) {
            if request.to_ascii_lowercase().contains("expect: 100-continue") {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").expect("written");
            }
            let Some(content) = read_content(&mut stream, &request) else { return };
            request += &content;
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\
                        Keep-Alive: 5\r\nX-Case: Kept\r\n\r\n";
            let (first, rest) = request.split_at(request.len() / 2);
            let chunks = format!(
                "{:x}\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\nx-sum: 7\r\n\r\n",
                first.len(),
                rest.len()
            );
            if stream.write_all(format!("{head}{chunks}").as_bytes()).is_err() {
                return;
            }
        }
    })
}

#[test]
fn a_request_reaches_its_server_and_the_response_its_client() {
    let server = mirror();
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    let mut fields = request("GET", "/path?query");
    fields.extend([("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-mine", "yes")]);
    let id = client.request(&fields, b"");
    let response = client.response(id);
    assert_eq!(response.status, 200);
    assert_eq!(response.field("x-case"), Some("Kept"));
    assert_eq!(response.field("keep-alive"), None);
    let got = response.text();
    assert!(got.starts_with("GET /path?query HTTP/1.1\r\n"), "{got}");
    for line in ["\r\ncookie: a=1; b=2\r\n", "\r\nx-mine: yes\r\n", "\r\nVia: 2.0 "] {
        assert!(got.contains(line), "{line:?} is not in {got}");
    }
    assert!(
        !got.contains(":authority") && got.to_ascii_lowercase().contains("\r\nhost: "),
        "{got}"
    );
    assert_eq!(response.trailers, [("x-sum".to_owned(), "7".to_owned())]);
}

#[test]
fn content_goes_up_with_a_length_and_without_one() {
    let server = mirror();
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    let mut fields = request("POST", "/");
    fields.push(("content-length", "11"));
    let id = client.request(&fields, b"hello world");
    let response = client.response(id);
    assert!(response.text().ends_with("\r\n\r\nhello world"), "{}", response.text());

    let id = client.open(&request("POST", "/"), false);
    client.frame(kind::DATA, 0, id, b"hello ");
    client.frame(kind::DATA, flag::PADDED, id, b"\x03world\0\0\0");
    client.frame(kind::HEADERS, 5, id, &block(&[("x-end", "1")]));
    let text = client.response(id).text().to_owned();
    assert!(text.contains("\r\nTransfer-Encoding: chunked\r\n"), "{text}");
    let text = text.split("\r\n\r\n").nth(1).expect("content").replace("\r\n", " ");
    assert!(text.contains("hello ") && text.contains("world"), "{text}");

    let mut fields = request("PUT", "/");
    fields.push(("expect", "100-continue"));
    let id = client.open(&fields, false);
    client.until("the interim response", |client| client.so_far(id).interims == [100]);
    client.frame(kind::DATA, flag::END_STREAM, id, b"now");
    assert!(client.response(id).text().contains("3\r\nnow\r\n0\r\n"));
}

#[test]
fn a_server_s_reset_reaches_the_client_as_what_it_means_for_it() {
    let server = resetting();
    let settings = "http2 = true\n[server_group.errors]\npercent = 0\n";
    let proxy = proxy(&[server.to()], settings);
    let mut client = H2Client::connect(&proxy);
    // CANCEL and ENHANCE_YOUR_CALM are about the request. After NO_ERROR something is missing, after REFUSED_STREAM the
    // client must not believe that nobody has looked at its request, and all others are about our connection.
    for code in 0..=14 {
        let id = client.request(&request("GET", &format!("/{code}")), b"");
        let expected = if matches!(code, 8 | 11) { code } else { 2 };
        let got = client.whole(id);
        assert_eq!((got.reset, got.ended), (Some(expected), false), "code {code}: {got:?}");
    }
    client.ping();
}

#[test]
fn forged_trailers_of_a_stream_reach_no_server() {
    let server = mirror();
    let settings = "[server_group.request]\nclient_subject = \"X-Client-Subject\"\n";
    let proxy = proxy(&[server.to()], settings);
    let mut client = H2Client::connect(&proxy);
    let forged = [
        ("x-client-subject", "CN=admin"),
        ("x_client_subject", "CN=admin"),
        ("x-forwarded-for", "CN=admin"),
        ("x_sum", "CN=admin"),
        ("cookie", "CN=admin"),
    ];
    for names in [None, Some("x-client-subject, x_client_subject, x-forwarded-for, x_sum, cookie")]
    {
        let mut fields = request("POST", "/");
        fields.extend(names.map(|names| ("trailer", names)));
        let id = client.open(&fields, false);
        client.frame(kind::DATA, 0, id, b"abc");
        client.frame(kind::HEADERS, 5, id, &block(&forged));
        let got = client.response(id).text().to_owned();
        assert!(got.contains("abc") && !got.contains("CN=admin"), "{got}");
    }
}

/// A server that counts content of a length, and answers with the count and as much content.
fn counter() -> Raw {
    Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1);
            let length: usize = length
                .and_then(|rest| rest.lines().next()?.trim().parse().ok())
                .unwrap_or_default();
            let mut content = vec![0; length];
            stream.read_exact(&mut content).expect("the content");
            let right = content == patterned(length);
            let head =
                format!("HTTP/1.1 200 OK\r\nX-Right: {right}\r\nContent-Length: {length}\r\n\r\n");
            if stream.write_all(head.as_bytes()).is_err() || stream.write_all(&content).is_err() {
                return;
            }
        }
    })
}

#[test]
fn large_content_goes_both_ways_on_several_streams() {
    const SIZE: usize = 700_000;
    let server = counter();
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    client.get("/");
    let length = SIZE.to_string();
    let mut fields = request("POST", "/");
    fields.push(("content-length", &length));
    let content = patterned(SIZE);
    let ids: Vec<u32> = (0..4).map(|_| client.open(&fields, false)).collect();
    let mut of_connection = 0;
    for (at, part) in content.chunks(16_000).enumerate() {
        let end = if (at + 1) * 16_000 >= SIZE { flag::END_STREAM } else { 0 };
        for id in &ids {
            of_connection += part.len() as u64;
            client.until_open(*id, (at * 16_000 + part.len()) as u64, of_connection);
            client.frame(kind::DATA, end, *id, part);
        }
    }
    for id in ids {
        let response = client.response(id);
        assert_eq!(response.field("x-right"), Some("true"));
        assert!(response.body == content);
    }
}

#[test]
fn slow_answers_do_not_hold_up_quick_ones() {
    let told = Arc::new(AtomicBool::new(false));
    let may_answer = Arc::clone(&told);
    let slow = Raw::start(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            if head.starts_with("GET /slow") {
                eventually("it may answer", || may_answer.load(Ordering::Acquire));
            }
            let name = head.split(' ').nth(1).expect("a target").to_owned();
            let response =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    });
    let proxy = proxy(&[slow.to()], "");
    let mut client = H2Client::connect(&proxy);
    let slow_id = client.request(&request("GET", "/slow"), b"");
    for _ in 0..3 {
        assert_eq!(client.get("/quick").text(), "/quick");
    }
    told.store(true, Ordering::Release);
    assert_eq!(client.response(slow_id).text(), "/slow");
    assert_eq!(client.complete.last(), Some(&slow_id));
}

#[test]
fn a_server_that_fails_is_502_and_one_that_breaks_off_resets_the_stream() {
    let broken = Raw::start(|mut stream| {
        if let Some(head) = read_head(&mut stream) {
            let response: &[u8] = if head.starts_with("GET /garbage") {
                b"this is not HTTP\r\n\r\n"
            } else {
                b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"
            };
            let _ = stream.write_all(response);
        }
    });
    let proxy = proxy(&[broken.to()], "");
    let mut client = H2Client::connect(&proxy);
    assert_eq!(client.get("/garbage").status, 502);
    let id = client.request(&request("GET", "/cut"), b"");
    let cut = client.whole(id);
    assert_eq!((cut.reset, cut.ended), (Some(2), false), "{cut:?}");
    assert_eq!(client.get("/garbage").status, 502, "the connection goes on");
}

#[test]
fn a_stream_that_is_reset_ends_its_exchange() {
    let slow = Raw::start(|mut stream| {
        let _head = read_head(&mut stream);
        // It never answers; the end of the connection ends it.
        let _ = stream.read(&mut [0; 10]);
    });
    let proxy = proxy(&[slow.to()], "");
    let mut client = H2Client::connect(&proxy);
    let id = client.request(&request("GET", "/"), b"");
    let in_flight = || server_row(&proxy, &slow.to())["in_flight"].as_u64();
    eventually_within(Duration::from_secs(5), "the server is asked", || in_flight() == Some(1));
    client.frame(kind::RST_STREAM, 0, id, &8_u32.to_be_bytes());
    eventually_within(Duration::from_secs(5), "the exchange ends", || in_flight() == Some(0));
    let id = client.request(&request("GET", "/"), b"");
    eventually_within(Duration::from_secs(5), "the server is asked", || in_flight() == Some(1));
    assert_eq!(client.so_far(id).body, b"");
    drop(client);
    eventually_within(Duration::from_secs(5), "so does it with the client", || {
        in_flight() == Some(0)
    });
}

/// A server whose answer may be kept, and has to be validated each time.
fn validated() -> Raw {
    Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let tag = "ETag: \"1\"\r\nCache-Control: no-cache\r\n";
            let known = head.to_ascii_lowercase().contains("\r\nif-none-match: \"1\"\r\n");
            let mut response = match known {
                true => format!("HTTP/1.1 304 Not Modified\r\n{tag}\r\n").into_bytes(),
                false => format!("HTTP/1.1 200 OK\r\n{tag}Content-Length: {STORED}\r\n\r\n").into(),
            };
            if !known {
                response.extend(patterned(STORED));
            }
            if stream.write_all(&response).is_err() {
                return;
            }
        }
    })
}

/// More than a window, and more than is copied behind a head.
const STORED: usize = 200_000;

#[test]
fn a_long_stored_response_comes_whole_after_an_exchange() {
    let server = validated();
    let proxy = Server::start("/", |launch| {
        let log = launch.home().join("access.log");
        launch
            .written(|listen| {
                let rest = configuration(listen, &[server.to()], "");
                format!("workers = 1\n[http2]\ncleartext = true\n{rest}")
            })
            .arg("--access-log")
            .arg(log);
    });
    let mut client = H2Client::connect(&proxy);
    assert!(client.get("/").body == patterned(STORED));
    let ids: Vec<u32> = (0..3).map(|_| client.request(&request("GET", "/"), b"")).collect();
    for id in ids {
        let response = client.response(id);
        assert!(response.body == patterned(STORED), "{} bytes", response.body.len());
    }
    let log = proxy.home().join("access.log");
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    let whole = format!(" 200 {STORED} ");
    eventually_within(Duration::from_secs(5), "all four are in the log", || {
        lines().matches(&whole).count() == 4
    });
}

/// A 304 and an answer to HEAD may say the length that the content would have (RFC 9110 section 8.6): none comes.
#[test]
fn a_length_without_content_ends_no_stream() {
    let server = Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let status = if head.starts_with("HEAD") { "200 OK" } else { "304 Not Modified" };
            let answer = format!("HTTP/1.1 {status}\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    let proxy = proxy(&[server.to()], "");
    let mut client = H2Client::connect(&proxy);
    for (method, status) in [("GET", 304), ("HEAD", 200), ("GET", 304)] {
        let mut fields = request(method, "/");
        fields.push(("if-none-match", "\"1\""));
        let id = client.request(&fields, b"");
        let whole = client.whole(id);
        assert!(whole.ended && whole.reset.is_none() && whole.body.is_empty(), "{whole:?}");
        assert_eq!(whole.fields[0].1, status.to_string(), "{whole:?}");
    }
    assert_eq!(server.connections(), 1, "its connection goes on");
}
