//! Requests that try to have others answered with something that was not meant for them.

use afpa_testkit::Asked as Expect;

use crate::origin::{Asked, Origin, Reply, message, ok};

const FRESH: &str = "Cache-Control: max-age=600\r\n";

/// A server that shows everything of a request that it got.
fn mirror() -> Origin {
    Origin::start(|asked: &Asked| {
        let shown = ["Host", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Evil"];
        let front = ["Scheme", "Port", "Prefix", "Ssl", "Server", "Other"];
        let front = front.map(|name| format!("X-Forwarded-{name}"));
        let front = front.iter().map(String::as_str);
        let shown = shown.into_iter().chain(front);
        let others = ["X-Real-IP", "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override"];
        let alike = ["X_Forwarded_Host", "X.Forwarded.Proto"];
        let shown: Vec<&str> = shown.chain(others).chain(alike).collect();
        let shown: Vec<String> =
            shown.iter().map(|name| asked.field(name).unwrap_or_default()).collect();
        ok(FRESH, &format!("{} {}", asked.target, shown.join("|").trim_end_matches('|')))
    })
}

/// After each of these requests a plain one has the answer that it would have had anyway.
#[test]
fn what_reaches_the_server_and_is_no_part_of_the_key_is_not_shown_to_others() {
    let origin = mirror();
    for (number, evil) in [
        "GET {} HTTP/1.1\r\nHost: test\r\nX-Forwarded-Host: evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX-Forwarded-Proto: evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nForwarded: host=evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX-Forwarded-Scheme: evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX-Forwarded-Port: evil\r\nX-Forwarded-Prefix: evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX-Forwarded-Ssl: on\r\nX-Forwarded-Server: evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX-Forwarded-Other: evil\r\nX-Real-IP: evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX-Original-URL: /evil\r\nX-Rewrite-URL: /evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX-HTTP-Method-Override: PUT\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nX_Forwarded_Host: evil\r\nX.Forwarded.Proto: evil\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: TEST\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test:1337\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: evil\r\n\r\n",
        "GET http://evil{} HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET https://test{} HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET {}?evil HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET {}%3Fevil HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET {}%0Aevil HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET {}%00evil HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET {}/..%2fevil HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET {} HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nevil",
        "GET {} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n",
        "GET {} HTTP/1.0\r\n\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let proxy = origin.proxy("");
        let path = format!("/p{number}");
        let mut client = proxy.connect();
        client.send(evil.replace("{}", &path));
        let _answer = client.try_receive(Expect::Body);
        let text = proxy.get(&path).text().to_owned();
        assert_eq!(text, format!("{path} test|test|http"), "after {evil:?}");
    }
}

/// A server may distinguish escaped characters from plain ones, so it gets them as the client sent them.
#[test]
fn escapes_of_reserved_characters_reach_the_server_and_have_keys_of_their_own() {
    let origin = mirror();
    let proxy = origin.proxy("");
    for byte in *b"!$&'()*+,;=:@/" {
        let (plain, escaped) = (format!("/a{}b", char::from(byte)), format!("/a%{byte:02X}b"));
        for target in [&escaped, &plain] {
            let seen = proxy.get(target).text().to_owned();
            assert!(seen.starts_with(&format!("{target} ")), "{target}: {seen}");
        }
        assert_eq!(proxy.get(&escaped.to_lowercase()).text(), proxy.get(&escaped).text());
        assert_eq!(origin.count(&escaped), 1, "{escaped}");
    }
    assert!(proxy.get("/%61%7e%2D").text().starts_with("/a~- "), "what is not reserved");
}

#[test]
fn a_get_with_content_neither_fills_nor_uses_the_cache() {
    let origin = mirror();
    let proxy = origin.proxy("");
    let fat = "GET /fat HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nevil";
    for number in 1..=2 {
        assert_eq!(proxy.connect().exchange(fat).status, 200);
        assert_eq!(origin.count("/fat"), number);
    }
    proxy.get("/fat");
    assert_eq!(origin.count("/fat"), 3);
    proxy.get("/fat");
    proxy.connect().exchange(fat);
    assert_eq!(origin.count("/fat"), 4);
}

#[test]
fn an_answer_to_a_part_or_a_condition_is_not_that_to_the_whole() {
    let origin = Origin::start(|asked: &Asked| {
        if asked.field("Range").is_some() {
            let part = format!("{FRESH}Content-Range: bytes 0-0/4\r\n");
            return Reply::Bytes(message(206, &part, "w"));
        }
        if asked.field("If-None-Match").is_some() {
            return Reply::Bytes(format!("HTTP/1.1 304 X\r\n{FRESH}\r\n").into_bytes());
        }
        ok(FRESH, "whole")
    });
    let proxy = origin.proxy("");
    let mut client = proxy.connect();
    assert_eq!(client.get_with("/range", "Range: bytes=0-0\r\n").status, 206);
    assert_eq!(client.get("/range").text(), "whole");
    assert_eq!(client.get_with("/known", "If-None-Match: \"x\"\r\n").status, 304);
    assert_eq!(client.get("/known").text(), "whole");
    assert_eq!(client.head_with("/head", "").status, 200);
    assert_eq!(client.get("/head").text(), "whole");
}

#[test]
fn what_was_asked_for_with_credentials_is_for_others_only_if_it_says_so() {
    let origin = Origin::start(|asked: &Asked| {
        let control = if asked.target == "/public" { "public, max-age=60" } else { "max-age=60" };
        let who = asked.field("Authorization").unwrap_or_default();
        ok(&format!("Cache-Control: {control}\r\n"), &format!("for {who}"))
    });
    let proxy = origin.proxy("");
    let mut client = proxy.connect();
    for (target, text) in [("/secret", "for "), ("/public", "for me")] {
        assert_eq!(client.get_with(target, "Authorization: me\r\n").text(), "for me");
        assert_eq!(client.get(target).text(), text, "{target}");
    }
}

#[test]
fn a_path_that_looks_like_a_file_is_kept_only_if_its_answer_says_so() {
    let origin = Origin::start(|asked: &Asked| {
        let who = asked.field("Cookie").unwrap_or_default();
        ok("Content-Type: text/html\r\n", &format!("account of {who}"))
    });
    let proxy = origin.proxy("mode = \"heuristic\"");
    for target in ["/account/x.css", "/account;x.css", "/account/%78.css", "/account.css?a"] {
        let mut client = proxy.connect();
        assert_eq!(client.get_with(target, "Cookie: me\r\n").text(), "account of me");
        assert_eq!(client.get(target).text(), "account of ", "{target}");
    }
}
