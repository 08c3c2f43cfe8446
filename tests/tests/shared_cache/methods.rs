//! The effect on kept answers of answers to other methods than GET.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use afpa_testkit::Client;

use crate::origin::{Asked, Origin, Reply, message, ok};

const SOON: Duration = Duration::from_secs(10);

/// An answer to HEAD, without a length of its own.
fn head(fields: &str) -> Reply {
    Reply::Bytes(format!("HTTP/1.1 200 X\r\n{fields}\r\n").into_bytes())
}

#[test]
fn the_answer_to_head_refreshes_or_outdates_what_is_kept() {
    const DATE: &str = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    const LATER: &str = "Last-Modified: Mon, 07 Nov 1994 08:49:37 GMT\r\n";
    // Target, fields of the answers to GET and to HEAD, and whether GET is answered without the server after that.
    let cases: &[(&str, String, String, bool)] = &[
        ("/tag", "ETag: \"a\"\r\n".into(), "ETag: \"a\"\r\nX-New: 1\r\n".into(), true),
        ("/other-tag", "ETag: \"a\"\r\n".into(), "ETag: \"b\"\r\n".into(), false),
        ("/weaker-tag", "ETag: \"a\"\r\n".into(), "ETag: W/\"a\"\r\n".into(), false),
        ("/new-tag", String::new(), "ETag: \"a\"\r\n".into(), false),
        ("/date", DATE.into(), DATE.into(), true),
        ("/other-date", DATE.into(), LATER.into(), false),
        ("/mixed", format!("ETag: \"a\"\r\n{DATE}"), format!("ETag: \"a\"\r\n{LATER}"), false),
        ("/length", String::new(), "Content-Length: 8\r\n".into(), true),
        (
            "/other-length",
            "ETag: \"a\"\r\n".into(),
            "ETag: \"a\"\r\nContent-Length: 9\r\n".into(),
            false,
        ),
        ("/nothing", String::new(), "X-New: 1\r\n".into(), true),
        (
            "/private",
            "ETag: \"a\"\r\n".into(),
            "ETag: \"a\"\r\nCache-Control: private\r\n".into(),
            false,
        ),
    ];
    let answers = cases.to_vec();
    let origin = Origin::start(move |asked: &Asked| {
        let (_, get, on_head, _) =
            answers.iter().find(|case| case.0 == asked.target).expect("a case");
        match asked.method.as_str() {
            "HEAD" => head(&format!("{on_head}X-Head: {}\r\n", asked.number)),
            _ => ok(
                &format!("Cache-Control: max-age=60\r\n{get}"),
                &format!("answer {}", asked.number),
            ),
        }
    });
    // With `no-cache`, HEAD goes to the server although what is kept is fresh.
    let proxy = origin.proxy("obey_clients = true");
    let mut client = proxy.connect();
    for (target, _, on_head, kept) in cases {
        assert_eq!(client.get(target).text(), "answer 1", "{target}");
        let told = client.head_with(target, "Cache-Control: no-cache\r\n");
        assert_eq!((told.status, told.field("X-Head")), (200, Some("2")), "{target}");
        let after = client.get(target);
        let expected = if *kept { "answer 1" } else { "answer 3" };
        assert_eq!(after.text(), expected, "{target}");
        let is_updated = *kept && on_head != "X-New: 1\r\n";
        assert_eq!(after.field("X-Head"), is_updated.then_some("2"), "{target}: the new fields");
    }
}

#[test]
fn the_answer_to_head_makes_a_stale_answer_fresh() {
    let origin = Origin::start(|asked: &Asked| match asked.method.as_str() {
        "HEAD" => head("ETag: \"a\"\r\nCache-Control: max-age=60\r\n"),
        _ => ok("ETag: \"a\"\r\nCache-Control: max-age=0\r\n", "content"),
    });
    let proxy = origin.proxy("");
    let mut client = proxy.connect();
    assert_eq!(client.get("/").text(), "content");
    assert_eq!(client.head_with("/", "").status, 200);
    assert_eq!(client.get("/").text(), "content");
    let methods: Vec<_> = origin.requests("/").into_iter().map(|asked| asked.method).collect();
    assert_eq!(methods, ["GET", "HEAD"]);
}

fn post(client: &mut Client, target: &str, fields: &str) -> String {
    let answer = client.exchange(format!(
        "POST {target} HTTP/1.1\r\nHost: test\r\n{fields}Content-Length: 0\r\n\r\n"
    ));
    answer.text().to_owned()
}

#[test]
fn an_answer_to_post_that_names_its_own_url_answers_get() {
    const FRESH: &str = "Cache-Control: max-age=60\r\n";
    // Target, status, fields of the answer, fields of the request, whether it answers GET.
    let cases: &[(&str, u16, String, &str, bool)] = &[
        ("/path", 200, format!("{FRESH}Content-Location: /path\r\n"), "", true),
        ("/url", 200, format!("{FRESH}Content-Location: http://TEST/url\r\n"), "", true),
        ("/query?a=1", 200, format!("{FRESH}Content-Location: /query?a=1\r\n"), "", true),
        ("/spelled", 200, format!("{FRESH}Content-Location: /x/../s%70elled\r\n"), "", true),
        (
            "/expires",
            200,
            "Expires: Thu, 18 Aug 2050 02:01:18 GMT\r\nContent-Location: /expires\r\n".into(),
            "",
            true,
        ),
        ("/none", 200, FRESH.into(), "", false),
        ("/elsewhere", 200, format!("{FRESH}Content-Location: /x\r\n"), "", false),
        (
            "/other-query?a=1",
            200,
            format!("{FRESH}Content-Location: /other-query?a=2\r\n"),
            "",
            false,
        ),
        ("/no-query?a=1", 200, format!("{FRESH}Content-Location: /no-query\r\n"), "", false),
        ("/host", 200, format!("{FRESH}Content-Location: http://other/host\r\n"), "", false),
        ("/scheme", 200, format!("{FRESH}Content-Location: https://test/scheme\r\n"), "", false),
        (
            "/twice",
            200,
            format!("{FRESH}Content-Location: /twice\r\nContent-Location: /x\r\n"),
            "",
            false,
        ),
        ("/created", 201, format!("{FRESH}Content-Location: /created\r\n"), "", false),
        (
            "/guessed",
            200,
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Location: /guessed\r\n".into(),
            "",
            false,
        ),
        (
            "/private",
            200,
            "Cache-Control: private, max-age=60\r\nContent-Location: /private\r\n".into(),
            "",
            false,
        ),
        ("/own", 200, format!("{FRESH}Content-Location: /own\r\n"), "Authorization: a\r\n", false),
    ];
    let answers = cases.to_vec();
    let origin = Origin::start(move |asked: &Asked| {
        let (_, status, fields, ..) =
            answers.iter().find(|case| case.0 == asked.target).expect("a case");
        let text = format!("{} {}", asked.method, asked.number);
        Reply::Bytes(match asked.method.as_str() {
            "POST" => message(*status, fields, &text),
            _ => message(200, FRESH, &text),
        })
    });
    let proxy = origin.proxy("mode = \"heuristic\"");
    let mut client = proxy.connect();
    for (target, _, _, fields, answers_get) in cases {
        assert_eq!(client.get(target).text(), "GET 1", "{target}");
        assert_eq!(post(&mut client, target, fields), "POST 2", "{target}");
        let expected = if *answers_get { "POST 2" } else { "GET 3" };
        assert_eq!(client.get(target).text(), expected, "{target}");
    }
    // Each request is passed on all the same.
    assert_eq!(post(&mut client, "/path", ""), "POST 3");
    assert_eq!(client.get("/path").text(), "POST 3");
}

#[test]
fn an_answer_to_post_that_was_purged_on_its_way_answers_nothing() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let origin = Origin::start(move |asked: &Asked| {
        if asked.method == "POST" && asked.number == 1 {
            let _told = wait.lock().expect("no panic").recv_timeout(SOON);
        }
        let fields = format!(
            "Cache-Control: max-age=60\r\nCache-Tag: t\r\nContent-Location: {}\r\n",
            asked.target
        );
        ok(&fields, &format!("{} {}", asked.method, asked.number))
    });
    let proxy = origin.proxy("");
    for (target, purge) in [("/url", "http://test/url"), ("/tag", "")] {
        let mut client = proxy.connect();
        client.send(format!("POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"));
        afpa_testkit::eventually_within(SOON, "it is asked for", || origin.count(target) == 1);
        let output = match purge {
            "" => proxy.command(&["purge", "--tag", "t"]),
            url => proxy.command(&["purge", url]),
        };
        assert!(output.status.success(), "{output:?}");
        go.send(()).expect("it waits");
        assert_eq!(client.receive().text(), "POST 1");
        assert_eq!(client.get(target).text(), "GET 2", "{target}");
    }
}
