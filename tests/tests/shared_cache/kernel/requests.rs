//! The requests that the kernel answers, and its answers: byte by byte the same as user mode's.

use std::time::Duration;

use afpa_testkit::{Client, eventually};

use super::{Kernel, get};
use crate::origin::{Asked, Reply, ok};

/// So old that no test lasts until its age gets another digit, and it is pinned anew.
const FRESH: &str = "Cache-Control: max-age=900\r\nAge: 100\r\n";
const MODIFIED: &str = "Sat, 05 Nov 1994 08:49:37 GMT";

/// Answers with the target, the host and the number of the request, so that no two answers are the same.
fn reply(asked: &Asked) -> Reply {
    let host = asked.field("Host").unwrap_or_default();
    let own = format!("{} {host} {}", asked.target, asked.number);
    let known = format!("{FRESH}ETag: \"one\"\r\nLast-Modified: {MODIFIED}\r\n");
    match asked.target.split('?').next().unwrap_or_default() {
        "/old" => ok("Cache-Control: max-age=4000000000\r\nAge: 1234567\r\n", &own),
        // One digit more than the kernel writes.
        "/oldest" => ok("Cache-Control: max-age=4000000000\r\nAge: 100000000\r\n", &own),
        "/known" => ok(&known, &own),
        "/weak" => ok(&format!("{FRESH}ETag: W/\"weak\"\r\n"), &own),
        "/empty" => ok(FRESH, ""),
        "/long" => ok(&known, &format!("{own}{}", "0123456789abcdef".repeat(512))),
        "/young" => ok("Cache-Control: max-age=4000\r\nAge: 1000\r\n", &own),
        "/coded" => {
            let coding = asked.field("Accept-Encoding").unwrap_or_default();
            ok(&format!("{FRESH}Vary: Accept-Encoding\r\nX-Coding: {coding}\r\n"), &own)
        }
        "/compressed" => {
            let text = own.repeat(100);
            ok(&format!("{FRESH}Content-Type: text/html\r\nETag: \"one\"\r\n"), &text)
        }
        "/language" => ok(&format!("{FRESH}Vary: Accept-Language\r\n"), &own),
        "/error" => Reply::Bytes(crate::origin::message(404, FRESH, &own)),
        _ => ok(FRESH, &own),
    }
}

/// Compares the kernel's answer to a request with user mode's in the same second of the answer's age. Returns whether
/// the kernel answered.
#[track_caller]
fn same(kernel: &Kernel, client: &mut Client, user: &mut Client, request: &str) -> bool {
    kernel.proxy.connect().exchange(request); // it is there
    let before = kernel.hits();
    for _ in 0..50 {
        let first = client.exchange_bytes(request);
        let other = user.exchange_bytes(request);
        if first == client.exchange_bytes(request) {
            let (first, other) = (String::from_utf8_lossy(&first), String::from_utf8_lossy(&other));
            assert_eq!(first, other, "{request}");
            return kernel.hits() > before;
        }
    }
    panic!("each answer to {request} is another");
}

#[test]
fn the_kernel_says_what_user_mode_says() {
    says_what_user_mode_says("");
}

/// Cache-Status, of which `ttl` is another number of each second.
#[test]
fn the_kernel_says_for_how_long_an_answer_is_fresh_as_user_mode_does() {
    says_what_user_mode_says("status_field = true");
}

fn says_what_user_mode_says(cache: &str) {
    let Some(kernel) = Kernel::before(cache, reply) else { return };
    let (mut client, mut user) = (kernel.proxy.connect(), kernel.user());
    for target in ["/plain?a=1&b", "/p%20q", "/old", "/known", "/weak", "/empty", "/long", "/young"]
    {
        kernel.warm(&get(target, ""));
        for (fields, in_kernel) in [
            ("", true),
            ("User-Agent: x\r\nCookie: a=b\r\nX-Forwarded-Host: evil\r\n", true),
            ("Accept-Encoding: gzip, deflate, br\r\n", true),
            ("If-None-Match: \"one\"\r\n", true),
            ("If-None-Match: W/\"weak\"\r\n", true),
            ("If-None-Match: \"other\"\r\n", true),
            ("If-None-Match: \"one\", \"other\"\r\n", false),
            ("Range: bytes=0-1\r\n", false),
            // The site compresses, so a no-transform would have to be obeyed.
            ("Cache-Control: no-cache\r\n", false),
            ("Authorization: Basic eA==\r\n", false),
        ] {
            let request = get(target, fields);
            let answered = same(&kernel, &mut client, &mut user, &request);
            assert_eq!(answered, in_kernel, "{request}");
            let request = request.replacen("GET", "HEAD", 1);
            assert_eq!(same(&kernel, &mut client, &mut user, &request), in_kernel, "{request}");
        }
        let request = get(target, &format!("If-Modified-Since: {MODIFIED}\r\n"));
        let has_date = matches!(target, "/known" | "/long");
        assert_eq!(same(&kernel, &mut client, &mut user, &request), has_date, "{target}");
        assert_eq!(kernel.origin.count(target), 1, "{target}");
    }
    let other = "GET /./known HTTP/1.1\r\nHost: test\r\n\r\n";
    assert!(!same(&kernel, &mut client, &mut user, other), "another spelling");
}

#[test]
fn an_answer_that_closes_its_connection_is_the_same() {
    if let Some(why) = afpa_bpf::Socketless::refusal() {
        return afpa_testkit::aloud::say("SKIP", &why.to_string());
    }
    let Some(kernel) = Kernel::of("connections = \"known\"\n", "", reply) else { return };
    for request in [
        get("/known", "Connection: close\r\n"),
        get("/known", "Connection: close\r\nIf-None-Match: \"one\"\r\n"),
        get("/long", "Connection: close\r\n"),
        "GET /known HTTP/1.0\r\nHost: test\r\n\r\n".to_owned(),
    ] {
        kernel.warm(&request);
        let in_kernel = || kernel.proxy.connect().exchange_bytes(&request);
        eventually("both have been asked in one second", || {
            let (first, other) = (in_kernel(), kernel.user().exchange_bytes(&request));
            let is_same_second = first == in_kernel();
            let (first, other) = (String::from_utf8_lossy(&first), String::from_utf8_lossy(&other));
            assert!(!is_same_second || first == other, "{first}{other}");
            is_same_second
        });
    }
}

#[test]
fn what_varies_is_told_apart_as_in_user_mode() {
    let Some(kernel) = Kernel::before("", reply) else { return };
    let (mut client, mut user) = (kernel.proxy.connect(), kernel.user());
    let values = ["gzip", "br, gzip", "gzip, deflate, br", "identity", "zstd"];
    let coding = |value: &str| get("/coded", &format!("Accept-Encoding: {value}\r\n"));
    for request in values.map(coding).into_iter().chain([get("/coded", "")]) {
        kernel.warm(&request);
        assert!(same(&kernel, &mut client, &mut user, &request), "{request}");
    }
    assert_eq!(kernel.origin.count("/coded"), 6);
    for value in ["gzip,br", "deflate, gzip,br", "gzip, deflate, br"] {
        assert!(same(&kernel, &mut client, &mut user, &coding(value)), "{value}");
    }
    assert_eq!(kernel.origin.count("/coded"), 6, "order and space do not matter");
    // Answers that AFPA has compressed vary as those of a server.
    for (fields, own) in
        [("", ""), ("Accept-Encoding: gzip\r\n", "gzip"), ("Accept-Encoding: br\r\n", "br")]
    {
        let request = get("/compressed", fields);
        kernel.warm(&request);
        assert!(same(&kernel, &mut client, &mut user, &request), "{request}");
        let answer = client.exchange(&request);
        assert_eq!(answer.field("content-encoding").unwrap_or_default(), own, "{answer:?}");
        assert!(answer.lists("vary", "accept-encoding"), "{answer:?}");
        let known = request.replace("\r\n\r\n", "\r\nIf-None-Match: \"one\"\r\n\r\n");
        assert!(same(&kernel, &mut client, &mut user, &known), "{known}");
        assert_eq!(client.exchange(&known).status, 304, "{known}");
    }
    for request in [
        coding("gzip;q=0.5"),
        coding("*"),
        coding("gzip, x"),
        get("/language", "Accept-Language: de\r\n"),
        get("/language", ""),
        get("/error", ""),
        get("/oldest", ""),
    ] {
        (0..3).for_each(|_| assert!(!same(&kernel, &mut client, &mut user, &request), "{request}"));
    }
}

/// `head` is the time for the first request; behind an answer of the kernel `idle` is the time for the next one. A kept
/// answer has the Date of its server, which may be of long ago.
#[test]
fn between_answers_of_the_kernel_a_connection_may_rest_for_the_idle_time() {
    let timeouts = "[timeouts]\nhead = \"1s\"\nidle = \"1m\"\n";
    let Some(kernel) = Kernel::of(timeouts, "", reply) else { return };
    let request = get("/plain", "");
    kernel.warm(&request);
    let (mut client, before) = (kernel.proxy.connect(), kernel.hits());
    for rest in [3, 3, 0] {
        assert_eq!(client.exchange(&request).status, 200);
        std::thread::sleep(Duration::from_secs(rest));
    }
    assert_eq!(kernel.hits(), before + 3, "user mode saw it");
}

#[test]
fn each_host_value_has_its_own_answers() {
    let Some(kernel) = Kernel::before("", reply) else { return };
    let hosts = ["test", "other", "test:8080", "OTHER:8080", "test.example"];
    let asks = |host: &str| format!("GET /plain HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for host in hosts {
        kernel.warm(&asks(host));
    }
    for host in hosts {
        let before = kernel.hits();
        let answer = kernel.proxy.connect().exchange(asks(host));
        let own = format!("/plain {} ", host.to_ascii_lowercase());
        assert!(answer.text().to_ascii_lowercase().starts_with(&own), "{host}: {answer:?}");
        assert_eq!(kernel.hits(), before + 1, "{host}");
    }
    assert_eq!(kernel.origin.count("/plain"), hosts.len());
    assert!(!kernel.answers(&asks("test:81")), "never asked before");
}

#[test]
fn requests_that_the_rules_take_out_are_left_to_user_mode() {
    let rules = "bypass_cookies = [\"session*\"]\nbypass_headers = [\"X-Debug\"]\n\
                 obey_clients = true\nquery = \"without\"\nquery_names = [\"utm_*\"]\n";
    let Some(kernel) = Kernel::before(rules, reply) else { return };
    for fields in [
        "Cookie: session_id=1\r\n",
        "Cookie: a=b\r\n",
        "x-debug: 1\r\n",
        "Cache-Control: no-cache\r\n",
        "Pragma: no-cache\r\n",
    ] {
        kernel.warm(&get("/plain", ""));
        assert!(!kernel.answers(&get("/plain", fields)), "{fields}");
    }
    kernel.warm(&get("/plain", ""));
    assert!(kernel.answers(&get("/plain", "User-Agent: x\r\nX-Debugger: 1\r\n")));
    // Under the query that belongs to the key.
    kernel.warm(&get("/q?a=1", ""));
    let counted = kernel.origin.count("/q?a=1");
    assert!(!kernel.answers(&get("/q?a=1&utm_x=2", "")));
    assert_eq!((kernel.origin.count("/q?a=1&utm_x=2"), counted), (0, 1));
    kernel.reload("bypass_headers = [\"X-Other\"]");
    kernel.warm(&get("/plain", ""));
    assert!(kernel.answers(&get("/plain", "Cookie: session_id=1\r\nX-Debugger: 1\r\n")));
    assert!(!kernel.answers(&get("/plain", "X-Other: 1\r\n")));
    kernel.reload("in_kernel = false");
    (0..3).for_each(|_| assert!(!kernel.answers(&get("/plain", ""))));
}
