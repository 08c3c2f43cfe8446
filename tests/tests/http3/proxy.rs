//! Requests that go on to servers.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use afpa_testkit::eventually;
use afpa_tests::proxy::{Raw, read_content, read_head, switched};
use afpa_tests::quic::field;
use afpa_tests::tls::Authority;
use serde_json::json;

use crate::{both, site};

fn to(server: &Raw) -> String {
    format!("[[site.path]]\nprefix = \"/app/\"\nto = \"{}\"\n", server.to())
}

/// Answers with the length of the content, and with the fields of its trailers.
fn counting() -> Raw {
    Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(content) = read_content(&mut stream, &head) else { return };
            let length = content.matches('z').count();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n{:x}\r\n{}\r\n0\r\nX-Sum: all\r\n\r\n",
                length.to_string().len(),
                length
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

#[test]
fn uploads_arrive_whole_and_answers_keep_their_trailers() {
    let (tree, authority, server) = (site(), Authority::new(), counting());
    let Some((_server, mut client)) = both(&authority, &tree, "", &to(&server), |_| {}) else {
        return;
    };
    for (content, chunked) in [(5, false), (2_000_000, false), (2_000_000, true), (0, true)] {
        let got = client.one(&json!({
            "do": "ask", "on": "a", "path": "/app/x", "method": "POST", "content": content, "chunked": chunked,
        }));
        let text = got["text"].as_str().unwrap_or_default();
        assert_eq!((text, &got["status"]), (&*content.to_string(), &json!(200)), "{got}");
        assert_eq!(got["trailers"]["X-Sum"][0], "all", "{got}");
    }
}

#[test]
fn hints_come_before_the_answer_and_an_answer_that_breaks_off_is_no_whole_one() {
    let (tree, authority) = (site(), Authority::new());
    let server = Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let answer = match head.contains("/broken") {
                true => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
                false => {
                    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n\
                     HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                }
            };
            if stream.write_all(answer.as_bytes()).is_err() || head.contains("/broken") {
                return;
            }
        }
    });
    let Some((_server, mut client)) = both(&authority, &tree, "", &to(&server), |_| {}) else {
        return;
    };
    let got = client.get("/app/x");
    assert_eq!((&got["interim"], &got["text"]), (&json!([103]), &json!("ok")), "{got}");
    let got = client.get("/app/broken");
    assert_ne!(got["error"], "", "{got}");
    drop(server);
    let got = client.get("/app/gone");
    assert_eq!(got["status"], 502, "{got}");
    assert_eq!(client.get("/hello.txt")["status"], 200, "the connection goes on");
}

/// Their heads are kept as field sections, which a change of what is there does not use.
#[test]
fn kept_answers_of_a_server_have_their_fields_their_age_and_those_of_the_operator() {
    let (tree, authority) = (site(), Authority::new());
    let (told, asked) = std::sync::mpsc::channel();
    let length_of = |text: &str| if text.contains("/app/small") { 300 } else { 40_000 };
    let server = Raw::start(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let _ = told.send(head.lines().next().map(str::to_owned));
            let length = length_of(&head);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nCache-Control: max-age=600\r\n\
                 ETag: \"1\"\r\nX-Own: one\r\nX-Own: two\r\n\r\n"
            );
            let content = [answer.as_bytes(), &vec![b'k'; length]].concat();
            if stream.write_all(&content).is_err() {
                return;
            }
        }
    });
    let changes = "[[site.header]]\nadd = { X-Added = \"by the operator\" }\n\
                   [[site.header]]\nprefix = \"/app/changed\"\nremove = [\"X-Own\"]\n";
    let site = format!("{changes}{}", to(&server));
    let Some((_server, mut client)) = both(&authority, &tree, "", &site, |_| {}) else { return };
    for path in ["/app/small", "/app/long", "/app/changed"] {
        let whole = length_of(path);
        for (time, method) in ["GET", "GET", "HEAD", "GET"].into_iter().enumerate() {
            let order = json!({"do": "ask", "on": "a", "path": path, "method": method});
            let got = client.one(&order);
            let length = if method == "GET" { whole } else { 0 };
            assert_eq!((&got["status"], &got["length"]), (&json!(200), &json!(length)), "{got}");
            let own = if path == "/app/changed" { json!(null) } else { json!(["one", "two"]) };
            assert_eq!(got["fields"]["X-Own"], own, "{got}");
            assert_eq!(field(&got, "X-Added"), "by the operator", "{got}");
            assert_eq!(field(&got, "Content-Length"), whole.to_string(), "{got}");
            assert_eq!(field(&got, "Content-Type"), "text/plain", "{got}");
            assert!(field(&got, "Alt-Svc").starts_with("h3="), "{got}");
            assert!(time == 0 || field(&got, "Age").parse::<u64>().is_ok(), "{got}");
        }
        let fields = json!({"If-None-Match": "\"1\""});
        let order = json!({"do": "ask", "on": "a", "path": path, "fields": fields});
        assert_eq!(client.one(&order)["status"], 304);
        let order = json!({"do": "ask", "on": "a", "path": path, "fields": {"Range": "bytes=5-8"}});
        let got = client.one(&order);
        assert_eq!((&got["status"], &got["text"]), (&json!(206), &json!("kkkk")), "{got}");
    }
    assert_eq!(asked.try_iter().count(), 3, "the others were kept");
}

#[test]
fn websocket_goes_through_by_extended_connect() {
    let (tree, authority) = (site(), Authority::new());
    let server = Raw::start(|mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        stream.write_all(switched(&head).as_bytes()).expect("written");
        let mut room = [0; 4096];
        while let Ok(n @ 1..) = stream.read(&mut room) {
            if stream.write_all(&room[..n]).is_err() {
                return;
            }
        }
    });
    let Some((_server, mut client)) = both(&authority, &tree, "", &to(&server), |_| {}) else {
        return;
    };
    let bytes = "68656c6c6f";
    let fields = json!({"Sec-WebSocket-Version": "13"});
    let got = client.one(&json!({
        "do": "tunnel", "on": "a", "path": "/app/chat", "bytes": bytes, "count": 5, "fields": fields,
    }));
    assert_eq!(
        (&got["status"], &got["text"], &got["error"]),
        (&json!(200), &json!(bytes), &json!("")),
        "{got}"
    );
    assert_eq!(field(&got, "Sec-Websocket-Accept"), "", "{got}");
}

#[test]
fn clients_that_wait_for_a_slow_server_are_not_idle_and_those_that_leave_end_its_request() {
    let (tree, authority) = (site(), Authority::new());
    let (told, ended) = std::sync::mpsc::channel();
    let server = Raw::start(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            if head.contains("/never") {
                stream.set_read_timeout(None).expect("a time-out");
                let _ = told.send(stream.read(&mut [0; 10]).unwrap_or_default());
                return;
            }
            std::thread::sleep(Duration::from_secs(3));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
        }
    });
    let idle = "[timeouts]\nidle = \"1s\"\n";
    let Some((_server, mut client)) = both(&authority, &tree, idle, &to(&server), |_| {}) else {
        return;
    };
    let got = client.get("/app/slow");
    assert_eq!(got["text"], "late", "{got}");
    let order = json!({"do": "resets", "on": "a", "path": "/app/never", "count": 1, "wait": 100, "delay": 1000});
    assert_eq!(client.one(&order)["error"], "");
    let mut heard = None;
    eventually("the server's connection ends", || {
        heard = heard.or(ended.try_recv().ok());
        heard.is_some()
    });
    assert_eq!(heard, Some(0));
}
