//! Partial answers: the parts that are kept, and servers that must not lead to a wrong answer.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use afpa_testkit::{Asked as Expect, Response, Server, eventually_within};

use crate::origin::{Asked, Origin, Reply, message, ok};

const SOON: Duration = Duration::from_secs(10);
const FRESH: &str = "Cache-Control: max-age=60\r\n";
const TAGGED: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n";
const TEN: &str = "0123456789";

/// First and last byte of the range of a request, if it asks for a part of so many bytes.
fn range(asked: &Asked, length: usize) -> Option<(usize, usize)> {
    let field = asked.field("Range")?;
    let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
    Some(match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) => (first, last.min(length - 1)),
        (Ok(first), Err(_)) => (first, length - 1),
        (Err(_), last) => (length - last.expect("a length").min(length), length - 1),
    })
}

/// The answer of an honest server.
fn honest(asked: &Asked, fields: &str, content: &str) -> Reply {
    match range(asked, content.len()) {
        Some((first, last)) => {
            part(fields, &format!("{first}-{last}/{}", content.len()), &content[first..=last])
        }
        None => ok(fields, content),
    }
}

fn part(fields: &str, range: &str, content: &str) -> Reply {
    Reply::Bytes(message(206, &format!("{fields}Content-Range: bytes {range}\r\n"), content))
}

/// The answer to a request for a part.
fn get(proxy: &Server, target: &str, range: &str) -> Response {
    proxy.connect().get_with(target, &format!("Range: bytes={range}\r\n"))
}

/// Status, Content-Range and content of it.
fn told(answer: &Response) -> (u16, Option<&str>, &str) {
    (answer.status, answer.field("Content-Range"), answer.text())
}

#[test]
fn parts_are_kept_combined_and_completed() {
    let fields = "Cache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Type: text/x\r\nX-Own: 1\r\n";
    let origin = Origin::start(move |asked: &Asked| honest(asked, fields, TEN));
    let proxy = origin.proxy("status_field = true");
    // The range in the request, the response, and how often the server has been asked then.
    for (range, status, place, content, count) in [
        ("2-4", 206, Some("bytes 2-4/10"), "234", 1),
        ("2-4", 206, Some("bytes 2-4/10"), "234", 1),
        ("3-3", 206, Some("bytes 3-3/10"), "3", 1),
        ("4-7", 206, Some("bytes 4-7/10"), "4567", 2),
        ("3-6", 206, Some("bytes 3-6/10"), "3456", 2),
        ("2-7", 206, Some("bytes 2-7/10"), "234567", 2),
        ("-3", 206, Some("bytes 7-9/10"), "789", 3),
        ("5-", 206, Some("bytes 5-9/10"), "56789", 3),
        ("-1", 206, Some("bytes 9-9/10"), "9", 3),
        ("0-1", 206, Some("bytes 0-1/10"), "01", 4),
        ("0-99", 206, Some("bytes 0-9/10"), TEN, 4),
    ] {
        let answer = get(&proxy, "/", range);
        assert_eq!(told(&answer), (status, place, content), "{range}");
        assert_eq!(origin.count("/"), count, "{range}");
        let own = ["Content-Type", "ETag", "X-Own"].map(|name| answer.field(name));
        assert_eq!(own, [Some("text/x"), Some("\"a\""), Some("1")], "{range}");
    }
    let whole = proxy.get("/");
    assert_eq!((told(&whole), whole.field("Content-Type")), ((200, None, TEN), Some("text/x")));
    assert!(whole.field("Cache-Status").is_some_and(|told| told.starts_with("afpa; hit")));
    let head = proxy.connect().head_with("/", "");
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("10")));
    assert_eq!(origin.count("/"), 4);
}

#[test]
fn the_whole_is_asked_for_as_a_whole_and_takes_the_place_of_its_parts() {
    let origin = Origin::start(|asked: &Asked| honest(asked, TAGGED, TEN));
    let proxy = origin.proxy("status_field = true");
    get(&proxy, "/", "0-4");
    let whole = proxy.get("/");
    assert_eq!(told(&whole), (200, None, TEN));
    assert_eq!(whole.field("Cache-Status"), Some("afpa; fwd=partial; stored"));
    assert_eq!(origin.requests("/")[1].field("Range"), None);
    assert_eq!(told(&get(&proxy, "/", "5-")), (206, Some("bytes 5-9/10"), "56789"));
    assert_eq!(origin.count("/"), 2);
}

#[test]
fn conditions_of_a_range_are_the_servers_unless_what_is_kept_decides() {
    let origin = Origin::start(|asked: &Asked| {
        if asked.field("If-Range").is_some_and(|tag| tag != "\"a\"") {
            return ok(TAGGED, TEN);
        }
        // With If-Range, it leaves out what describes the representation (RFC 9110 section 15.3.7).
        let kind = if asked.field("If-Range").is_some() { "" } else { "Content-Type: text/x\r\n" };
        honest(asked, &format!("{TAGGED}{kind}"), TEN)
    });
    let proxy = origin.proxy("");
    let mut client = proxy.connect();
    let mut asks = |target: &str, fields: &str| client.get_with(target, fields);
    // Nothing is kept of a part that may lack fields.
    asks("/", "Range: bytes=0-4\r\nIf-Range: \"a\"\r\n");
    let first = asks("/", "Range: bytes=0-4\r\n");
    assert_eq!((told(&first), origin.count("/")), ((206, Some("bytes 0-4/10"), "01234"), 2));
    // This part joins the kept one, and does not change its fields.
    asks("/", "Range: bytes=5-\r\nIf-Range: \"a\"\r\n");
    let whole = asks("/", "");
    assert_eq!((told(&whole), whole.field("Content-Type")), ((200, None, TEN), Some("text/x")));
    assert_eq!(origin.count("/"), 3);

    asks("/other", "Range: bytes=0-4\r\n");
    assert_eq!(asks("/other", "Range: bytes=1-2\r\nIf-Range: \"a\"\r\n").text(), "12");
    assert_eq!(origin.count("/other"), 1);
    let changed = asks("/other", "Range: bytes=1-2\r\nIf-Range: \"b\"\r\n");
    assert_eq!((told(&changed), origin.count("/other")), ((200, None, TEN), 2));
}

#[test]
fn what_is_no_part_that_can_be_used_is_passed_on() {
    let multipart = "Content-Type: multipart/byteranges; boundary=x\r\n";
    let cases: &[(&str, String, &str)] = &[
        ("/short", format!("{TAGGED}Content-Range: bytes 0-4/10\r\n"), "0123"),
        ("/long", format!("{TAGGED}Content-Range: bytes 0-4/10\r\n"), "012345"),
        ("/unknown", format!("{TAGGED}Content-Range: bytes 0-4/*\r\n"), "01234"),
        ("/unit", format!("{TAGGED}Content-Range: lines 0-4/10\r\n"), "01234"),
        ("/beyond", format!("{TAGGED}Content-Range: bytes 8-12/10\r\n"), "01234"),
        ("/backwards", format!("{TAGGED}Content-Range: bytes 4-0/10\r\n"), "01234"),
        ("/none", TAGGED.into(), "01234"),
        (
            "/two",
            format!("{TAGGED}Content-Range: bytes 0-4/10\r\nContent-Range: bytes 5-9/10\r\n"),
            "01234",
        ),
        ("/several", format!("{TAGGED}{multipart}"), "--x--"),
        ("/both", format!("{TAGGED}{multipart}Content-Range: bytes 0-4/10\r\n"), "01234"),
        (
            "/large",
            format!("{TAGGED}Content-Range: bytes 0-18446744073709551615/18446744073709551616\r\n"),
            "01234",
        ),
        ("/silent", "ETag: \"a\"\r\nContent-Range: bytes 0-4/10\r\n".into(), "01234"),
        (
            "/private",
            "Cache-Control: private, max-age=60\r\nContent-Range: bytes 0-4/10\r\n".into(),
            "01234",
        ),
        ("/cookie", format!("{TAGGED}Set-Cookie: a=b\r\nContent-Range: bytes 0-4/10\r\n"), "01234"),
    ];
    let answers = cases.to_vec();
    let origin = Origin::start(move |asked: &Asked| {
        let (_, fields, content) =
            answers.iter().find(|case| case.0 == asked.target).expect("a case");
        Reply::Bytes(message(206, fields, content))
    });
    let proxy = origin.proxy("");
    for (target, _, content) in cases {
        for count in 1..=2 {
            let answer = get(&proxy, target, "0-4");
            assert_eq!((answer.status, answer.text()), (206, *content), "{target}");
            assert_eq!(origin.count(target), count, "{target}");
        }
    }
    // A part that nobody asked for is none.
    assert_eq!(proxy.get("/none").status, 206);
    assert_eq!(origin.count("/none"), 3);
    let off = origin.proxy("parts = 0");
    let before = origin.count("/none");
    get(&off, "/none", "0-4");
    assert_eq!(origin.count("/none"), before + 1);
}

#[test]
fn parts_of_different_representations_are_never_combined() {
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nLast-Modified: Sun, 06 Nov 1994";
    let aged = "Cache-Control: max-age=9999999999\r\n";
    // Fields of the two parts of `aaaaabbbbb`, and whether they are parts of one.
    let cases: &[(&str, String, String, bool)] = &[
        ("/same", TAGGED.into(), TAGGED.into(), true),
        ("/other", TAGGED.into(), format!("{FRESH}ETag: \"b\"\r\n"), false),
        ("/weak", format!("{FRESH}ETag: W/\"a\"\r\n"), format!("{FRESH}ETag: W/\"a\"\r\n"), false),
        ("/weaker", TAGGED.into(), format!("{FRESH}ETag: W/\"a\"\r\n"), false),
        ("/untagged", TAGGED.into(), FRESH.into(), false),
        ("/nothing", FRESH.into(), FRESH.into(), false),
        (
            "/dated",
            format!("{aged}{date} 07:49:37 GMT\r\n"),
            format!("{aged}{date} 07:49:37 GMT\r\n"),
            true,
        ),
        (
            "/young",
            format!("{aged}{date} 08:49:36 GMT\r\n"),
            format!("{aged}{date} 08:49:36 GMT\r\n"),
            false,
        ),
        (
            "/later",
            format!("{aged}{date} 07:49:37 GMT\r\n"),
            format!("{aged}{date} 07:49:38 GMT\r\n"),
            false,
        ),
    ];
    let answers = cases.to_vec();
    let origin = Origin::start(move |asked: &Asked| {
        let (_, first, second, _) =
            answers.iter().find(|case| case.0 == asked.target).expect("a case");
        match asked.field("Range").as_deref() {
            Some("bytes=0-4") => part(first, "0-4/10", "aaaaa"),
            Some("bytes=5-9") => part(second, "5-9/10", "bbbbb"),
            _ => ok(second, "BBBBBBBBBB"),
        }
    });
    let proxy = origin.proxy("");
    for (target, _, _, one) in cases {
        for range in ["0-4", "1-2", "5-9", "6-7"] {
            let expected = if range < "5" { "a" } else { "b" };
            assert!(get(&proxy, target, range).text().starts_with(expected), "{target} {range}");
        }
        assert_eq!(origin.count(target), 2, "{target}: each is kept on its own");
        let whole = proxy.get(target);
        let expected = if *one { "aaaaabbbbb" } else { "BBBBBBBBBB" };
        assert_eq!(told(&whole), (200, None, expected), "{target}");
    }
}

#[test]
fn a_server_that_contradicts_itself_is_not_believed() {
    let origin = Origin::start(|asked: &Asked| match (asked.target.as_str(), asked.number) {
        (_, 1) => part(TAGGED, "0-4/10", "01234"),
        ("/bytes", 2) => part(TAGGED, "4-7/10", "x567"),
        ("/length", 2) => part(TAGGED, "4-7/11", "4567"),
        _ => honest(asked, TAGGED, TEN),
    });
    let proxy = origin.proxy("");
    for (target, second) in [("/bytes", "x567"), ("/length", "4567")] {
        assert_eq!(get(&proxy, target, "0-4").text(), "01234");
        assert_eq!(get(&proxy, target, "4-7").text(), second);
        // Neither of the two is kept.
        assert_eq!(get(&proxy, target, "0-4").text(), "01234");
        assert_eq!(get(&proxy, target, "4-7").text(), "4567");
        assert_eq!(origin.count(target), 4, "{target}");
        assert_eq!(get(&proxy, target, "0-7").text(), "01234567");
        assert_eq!(origin.count(target), 4, "{target}");
    }
}

#[test]
fn a_length_that_a_server_claims_takes_no_memory() {
    let origin = Origin::start(|asked: &Asked| {
        let first: u64 = asked.number as u64 * 1_000_000;
        part(TAGGED, &format!("{first}-{}/9999999999999999999", first + 9), TEN)
    });
    let proxy = origin.proxy("parts = 4");
    for number in 1..=100_u64 {
        let first = number * 1_000_000;
        let answer = get(&proxy, "/", &format!("{first}-{}", first + 9));
        assert_eq!(answer.text(), TEN);
    }
    let output = proxy.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("statistics");
    let bytes = stats["shared_cache"]["pinned_bytes"].as_u64().expect("a count");
    assert!((1..100_000).contains(&bytes), "{bytes}");
}

#[test]
fn an_answer_that_breaks_off_is_a_part_if_it_says_what_of() {
    let origin = Origin::start(|asked: &Asked| {
        let fields = match asked.target.as_str() {
            "/tagged" | "/range" => TAGGED.to_owned(),
            "/weak" => format!("{FRESH}ETag: W/\"a\"\r\n"),
            _ => FRESH.to_owned(),
        };
        match (asked.target.as_str(), asked.number) {
            ("/chunks", 1) => {
                let head = format!("HTTP/1.1 200 X\r\n{TAGGED}Transfer-Encoding: chunked\r\n\r\n");
                Reply::Last(format!("{head}4\r\n0123\r\n").into_bytes())
            }
            ("/range", 1) => {
                let head = format!("HTTP/1.1 206 X\r\n{TAGGED}Content-Range: bytes 2-9/10\r\n");
                Reply::Last(format!("{head}Content-Length: 8\r\n\r\n2345").into_bytes())
            }
            (_, 1) => {
                let head = format!("HTTP/1.1 200 X\r\n{fields}Content-Length: 10\r\n\r\n");
                Reply::Last(format!("{head}0123").into_bytes())
            }
            _ => honest(asked, &fields, TEN),
        }
    });
    let proxy = origin.proxy("");
    for (target, kept) in [
        ("/tagged", true),
        ("/range", true),
        ("/weak", false),
        ("/plain", false),
        ("/chunks", false),
    ] {
        let mut client = proxy.connect();
        let field = if target == "/range" { "Range: bytes=2-\r\n" } else { "" };
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{field}\r\n"));
        assert!(client.try_receive(Expect::Body).is_err(), "{target}: it is not whole");
        let start = get(&proxy, target, "2-3");
        assert_eq!(told(&start), (206, Some("bytes 2-3/10"), "23"), "{target}");
        assert_eq!(origin.count(target), if kept { 1 } else { 2 }, "{target}");
        assert_eq!(told(&proxy.get(target)), (200, None, TEN), "{target}");
    }
}

#[test]
fn a_purge_means_parts_and_those_on_their_way() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let origin = Origin::start(move |asked: &Asked| {
        if asked.number == 2 {
            let _told = wait.lock().expect("no panic").recv_timeout(SOON);
        }
        let letter = if asked.number < 3 { "a" } else { "b" };
        honest(asked, &format!("{FRESH}ETag: \"{letter}\"\r\n"), &letter.repeat(10))
    });
    let proxy = origin.proxy("");
    for (target, soft) in [("/hard", false), ("/soft", true)] {
        assert_eq!(get(&proxy, target, "0-4").text(), "aaaaa");
        let mut client = proxy.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nRange: bytes=5-9\r\n\r\n"));
        eventually_within(SOON, "it is asked for", || origin.count(target) == 2);
        let url = format!("http://test{target}");
        let purge = if soft { vec!["purge", "--soft", &url] } else { vec!["purge", &url] };
        assert!(proxy.command(&purge).status.success());
        go.send(()).expect("it waits");
        assert_eq!(client.receive().text(), "aaaaa");
        assert_eq!(get(&proxy, target, "5-9").text(), "bbbbb", "{target}");
        assert_eq!(get(&proxy, target, "0-4").text(), "bbbbb", "{target}");
    }
}

#[test]
fn what_a_server_says_about_a_range_is_not_said_about_the_whole() {
    let origin = Origin::start(|asked: &Asked| match asked.field("Range").as_deref() {
        Some("bytes=20-") => {
            let fields = format!("{FRESH}Content-Range: bytes */10\r\n");
            Reply::Bytes(message(416, &fields, "no"))
        }
        Some("bytes=30-") => Reply::Bytes(message(404, FRESH, "gone")),
        _ => honest(asked, TAGGED, TEN),
    });
    let proxy = origin.proxy("");
    get(&proxy, "/", "0-4");
    assert_eq!(get(&proxy, "/", "20-").status, 416);
    assert_eq!(get(&proxy, "/", "0-4").text(), "01234");
    assert_eq!(origin.count("/"), 2, "what is kept stays");
    assert_eq!(get(&proxy, "/", "30-").status, 404);
    assert_eq!(told(&proxy.get("/")), (200, None, TEN));
    assert_eq!(origin.count("/"), 4);
}

/// RFC 9530 section 2: a digest of the content of one message is wrong in a message with other content.
#[test]
fn a_digest_of_one_message_is_in_no_message_with_other_content() {
    let origin = Origin::start(|asked: &Asked| {
        let own = asked.field("Range").unwrap_or_else(|| "all".to_owned());
        let digests =
            format!("Content-Digest: {own}\r\nContent-MD5: {own}\r\nRepr-Digest: all\r\n");
        honest(asked, &format!("{TAGGED}{digests}"), TEN)
    });
    let proxy = origin.proxy("");
    let digests = |answer: &Response| {
        ["Content-Digest", "Content-MD5", "Repr-Digest"].map(|name| answer.field(name).is_some())
    };
    assert_eq!(get(&proxy, "/parts", "0-4").field("Content-Digest"), Some("bytes=0-4"));
    assert_eq!(get(&proxy, "/parts", "5-9").field("Content-Digest"), Some("bytes=5-9"));
    for answer in [get(&proxy, "/parts", "2-6"), proxy.get("/parts")] {
        assert_eq!(digests(&answer), [false, false, true], "{answer:?}");
    }
    assert_eq!(proxy.get("/whole").field("Content-Digest"), Some("all"));
    for range in ["2-6", "0-1,8-9"] {
        let answer = get(&proxy, "/whole", range);
        assert_eq!((answer.status, digests(&answer)), (206, [false, false, true]), "{answer:?}");
    }
    assert_eq!(proxy.get("/whole").field("Content-Digest"), Some("all"));
    assert_eq!((origin.count("/parts"), origin.count("/whole")), (2, 1));
}

#[test]
fn parts_that_vary_are_kept_apart() {
    let origin = Origin::start(|asked: &Asked| {
        let who = asked.field("X-Who").unwrap_or_default();
        let fields = format!("{FRESH}Vary: X-Who\r\nETag: \"{who}\"\r\n");
        honest(asked, &fields, &who.repeat(10))
    });
    let proxy = origin.proxy("");
    let mut client = proxy.connect();
    let mut asks = |who: &str, range: &str| {
        let answer = client.get_with("/", &format!("X-Who: {who}\r\nRange: bytes={range}\r\n"));
        answer.text().to_owned()
    };
    for (who, range, content) in
        [("a", "0-4", "aaaaa"), ("b", "0-4", "bbbbb"), ("a", "1-2", "aa"), ("b", "1-2", "bb")]
    {
        assert_eq!(asks(who, range), content);
    }
    assert_eq!(origin.count("/"), 2);
}

/// Ranges in any order are answered byte for byte as the server would have answered them, with few pieces and with many,
/// while the server changes the representation now and then.
#[test]
fn parts_are_byte_for_byte_what_the_server_would_send() {
    const LENGTH: usize = 20_000;
    let version = Arc::new(Mutex::new(0_usize));
    let content = |version: usize| -> String {
        (0..LENGTH).map(|at| char::from(b'a' + ((at * at + at / 7 + version) % 26) as u8)).collect()
    };
    let current = Arc::clone(&version);
    let origin = Origin::start(move |asked: &Asked| {
        let version = *current.lock().expect("no panic");
        let fields = format!("{FRESH}ETag: \"{version}\"\r\nX-Version: {version}\r\n");
        honest(asked, &fields, &content(version))
    });
    for pieces in [1, 8] {
        let proxy = origin.proxy(&format!("parts = {pieces}"));
        let target = format!("/{pieces}");
        let mut client = proxy.connect();
        let mut random = 12_345_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        let asks = 250;
        for _ in 0..asks {
            if next(40) == 0 {
                *version.lock().expect("no panic") += 1;
            }
            let first = next(LENGTH);
            let last = (first + next(3000)).min(LENGTH - 1);
            let answer = client.get_with(&target, &format!("Range: bytes={first}-{last}\r\n"));
            let of: usize = answer.field("X-Version").expect("it says").parse().expect("a number");
            let expected = content(of);
            assert_eq!(answer.field("ETag"), Some(&*format!("\"{of}\"")));
            let place = format!("bytes {first}-{last}/{LENGTH}");
            assert!(told(&answer) == (206, Some(&place), &expected[first..=last]), "{place}");
        }
        let asked = origin.count(&target);
        assert!(asked < asks, "some came from what is kept: {asked}");
    }
}
