//! `afpa attach --cache`: answers of applications are kept for as long as the applications allow it.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afpa_testkit::{Asked, Client, Response, eventually, eventually_within};
use afpa_tests::attach::{Attached, Lab};

const PATIENCE: Duration = Duration::from_secs(30);

/// An application behind the lab's nginx: the answer at a path is the content of the last POST to it.
#[derive(Clone, Default)]
struct App(Arc<AppState>);

#[derive(Default)]
struct AppState {
    contents: Mutex<HashMap<String, String>>,
    /// Targets of the questions of `afpa attach`.
    asked: Mutex<HashMap<String, usize>>,
    /// Nothing is answered.
    hangs: AtomicBool,
    /// The paths that end in `turns` have begun to forbid that their answers are kept.
    turned: AtomicBool,
}

/// nginx's configuration for it.
const LOCATION: &str = "location /app/ { proxy_pass http://127.0.0.1:9000; proxy_http_version 1.1; \
     proxy_set_header Connection ''; proxy_read_timeout 60s; }";

impl App {
    fn start(lab: &Lab) -> Self {
        let bind = || TcpListener::bind("127.0.0.1:9000").expect("a port of the namespace's own");
        let listener = lab.bed().server().run(bind).expect("the namespace");
        let app = Self::default();
        let serving = app.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let app = serving.clone();
                std::thread::spawn(move || app.serve(stream));
            }
        });
        app
    }

    fn set(&self, target: &str, content: &str) {
        self.0.contents.lock().expect("no panic").insert(target.into(), content.into());
    }

    fn asked(&self, target: &str) -> usize {
        self.0.asked.lock().expect("no panic").get(target).copied().unwrap_or_default()
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut input = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = input.windows(4).position(|end| end == b"\r\n\r\n") {
                    break end + 4;
                }
                read_more(&mut stream, &mut input)?;
            };
            let head = String::from_utf8_lossy(&input[..end]).into_owned();
            let length = field(&head, "content-length").map_or(0, |text| text.parse().unwrap_or(0));
            while input.len() < end + length {
                read_more(&mut stream, &mut input)?;
            }
            let content = String::from_utf8_lossy(&input[end..end + length]).into_owned();
            input.drain(..end + length);
            while self.0.hangs.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
            stream.write_all(self.answer(&head, content).as_bytes()).ok()?;
        }
    }

    fn answer(&self, head: &str, content: String) -> String {
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if field(head, "user-agent").is_some_and(|agent| agent == "afpa-attach") {
            *self.0.asked.lock().expect("no panic").entry(target.into()).or_default() += 1;
        }
        if method == "POST" {
            if target.contains("slow") {
                std::thread::sleep(Duration::from_millis(700)); // it has not happened before that
            }
            self.set(target, &content);
            return "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone".into();
        }
        let (fields, more) = match target.split(['/', '?']).nth(2).unwrap_or_default() {
            "private" => ("Cache-Control: private, max-age=60\r\n", String::new()),
            "nostore" => ("Cache-Control: no-store, max-age=60\r\n", String::new()),
            "cookie" => ("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", String::new()),
            "vary" => ("Cache-Control: max-age=60\r\nVary: Cookie\r\n", String::new()),
            "forever" => ("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", String::new()),
            "bycookie" => (FRESH, field(head, "cookie").unwrap_or_default()),
            "bylanguage" => (FRESH, field(head, "accept-language").unwrap_or_default()),
            "byagent" => (FRESH, field(head, "user-agent").unwrap_or_default()),
            "short" => ("Cache-Control: s-maxage=4\r\n", String::new()),
            "session" => {
                let cookie = field(head, "cookie").filter(|cookie| cookie.contains("sid="));
                ("Cache-Control: max-age=60\r\n", cookie.unwrap_or_default())
            }
            "turns" if self.0.turned.load(Ordering::Relaxed) => (turned(target), String::new()),
            _ => (FRESH, String::new()),
        };
        let contents = self.0.contents.lock().expect("no panic");
        let body = contents.get(target).cloned().unwrap_or_else(|| "first".into()) + &more;
        let text = if method == "HEAD" { "" } else { &body };
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{text}", body.len())
    }
}

/// The fields by which an answer forbids from now on to be kept; it is otherwise the same.
fn turned(target: &str) -> &'static str {
    match target.rsplit('/').next().unwrap_or_default() {
        "nostore" => "Cache-Control: public, max-age=60, no-store\r\nETag: \"v\"\r\n",
        "vary" => "Cache-Control: public, max-age=60\r\nETag: \"v\"\r\nVary: Cookie\r\n",
        _ => "Cache-Control: public, max-age=60\r\nETag: \"v\"\r\nSet-Cookie: a=b\r\n",
    }
}

const FRESH: &str = "Cache-Control: public, max-age=60\r\nETag: \"v\"\r\n";

fn read_more(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 4096];
    let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
    input.extend_from_slice(&buffer[..count]);
    Some(())
}

fn field(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

fn get(target: &str, more: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n{more}\r\n")
}

fn post(target: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "POST {target} HTTP/1.1\r\nHost: 10.77.0.1:8080\r\nContent-Length: {length}\r\n\r\n{content}"
    )
}

fn is_kept(response: &Response) -> bool {
    response.field("age").is_some()
}

/// Asks until the kernel answers.
#[track_caller]
fn until_kept(lab: &Lab, target: &str) -> Response {
    let mut client = lab.connect();
    let mut kept = None;
    eventually_within(PATIENCE, "it is kept", || {
        let response = client.exchange(get(target, ""));
        kept = Some(response).filter(is_kept);
        kept.is_some()
    });
    kept.expect("kept")
}

fn count(attached: &Attached, name: &str) -> u64 {
    attached.statistics().expect("it runs")["kept"][name].as_u64().expect("a count")
}

#[test]
fn what_the_application_allows_is_answered_until_it_ends() {
    let lab = lab!(afpa_tests::attach::Kind::Nginx, |_| LOCATION.to_owned());
    let app = App::start(&lab);
    let attached = lab.attach(&["--cache", "/app", "--cache-clients", "1"]);
    assert_eq!(count(&attached, "targets"), 0);
    until_kept(&lab, "/app/page");
    let mut client = lab.connect();
    let forms = [
        get("/app/page", ""),
        get("/app/page", "Cookie: a=b\r\nUser-Agent: x\r\nAccept-Language: de\r\n"),
        get("/app/page", "If-None-Match: \"w\"\r\n"),
        get("/app/page", "").replacen("GET", "HEAD", 1),
    ];
    for request in &forms {
        let asked = if request.starts_with("HEAD") { Asked::Head } else { Asked::Body };
        let mut exchange = |request: &str| {
            client.send(request);
            client.try_receive(asked).expect("an answer")
        };
        // The kernel leaves fields that it does not know to the server.
        let own = exchange(&request.replacen("\r\n\r\n", "\r\nX-Unknown: 1\r\n\r\n", 1));
        let kept = exchange(request);
        assert!(is_kept(&kept) && !is_kept(&own), "{request}: {kept:?} {own:?}");
        let plain = |response: &Response| {
            let same = |(name, _): &&(String, String)| {
                !["age", "date"].contains(&name.to_ascii_lowercase().as_str())
            };
            let fields: Vec<_> = response.fields.iter().filter(same).cloned().collect();
            (response.status, fields, response.body.clone())
        };
        assert_eq!(plain(&kept), plain(&own), "{request}");
    }
    let secret = client.exchange(get("/app/page", "Authorization: Basic eDp5\r\n"));
    assert!(!is_kept(&secret), "{secret:?}");
    // The whole target is the key.
    app.set("/app/page?a=1", "one");
    app.set("/app/page?a=2", "two");
    assert_eq!(until_kept(&lab, "/app/page?a=1").text(), "one");
    assert_eq!(until_kept(&lab, "/app/page?a=2").text(), "two");
    assert_eq!(until_kept(&lab, "/app/page").text(), "first");
    // The server hangs and cannot confirm the answer: the kernel gives it to its end, and not longer.
    until_kept(&lab, "/app/short");
    app.0.hangs.store(true, Ordering::Relaxed);
    let (began, mut ages) = (Instant::now(), Vec::new());
    eventually_within(PATIENCE, "it ends", || {
        let mut client = lab.connect();
        client.set_patience(Duration::from_millis(300)).expect("set");
        let asked = began.elapsed();
        client.send(get("/app/short", ""));
        let Ok(response) = client.try_receive(Asked::Body) else { return true };
        ages.push(response.field("age").expect("of the kernel").parse::<u64>().expect("a number"));
        assert!(asked < Duration::from_secs(4), "{ages:?}");
        false
    });
    assert!(ages.iter().all(|age| *age < 4) && ages.is_sorted(), "{ages:?}");
    app.0.hangs.store(false, Ordering::Relaxed);
    // The question that hung was seconds of the server's time, so nothing is asked for the better part of a minute.
    let own = client.exchange(get("/app/short", ""));
    assert!(!is_kept(&own) && own.text() == "first", "{own:?}");
}

#[test]
fn what_is_not_for_everybody_is_not_kept() {
    let lab = lab!(afpa_tests::attach::Kind::Nginx, |_| LOCATION.to_owned());
    let app = App::start(&lab);
    let _attached = lab.attach(&["--cache", "/app/", "--exclude", "/app/excluded"]);
    let refused = [
        "/app/private",
        "/app/nostore",
        "/app/cookie",
        "/app/vary",
        "/app/forever",
        "/app/bycookie",
        "/app/bylanguage",
        "/app/byagent",
    ];
    let ask = |client: &mut Client, target: &str| {
        let response = client.exchange(get(target, ""));
        assert!(!is_kept(&response), "{target}: {response:?}");
    };
    let mut clients = refused.map(|_| lab.connect());
    eventually_within(PATIENCE, "all are asked for", || {
        clients.iter_mut().zip(refused).for_each(|(client, target)| ask(client, target));
        refused.iter().all(|target| app.asked(target) > 0)
    });
    // Wait for a page that is asked for later: the targets before it have been judged by then.
    until_kept(&lab, "/app/page");
    for target in refused.iter().chain(&["/app/excluded/page", "/app/x/../excluded/page"]) {
        let mut client = lab.connect();
        (0..20).for_each(|_| ask(&mut client, target));
    }
    assert_eq!(app.asked("/app/excluded/page") + app.asked("/app/x/../excluded/page"), 0);
}

/// A session's page that says `max-age` means the browser that gets it.
#[test]
fn a_page_that_goes_by_a_cookie_is_nobody_elses() {
    let lab = lab!(afpa_tests::attach::Kind::Nginx, |_| LOCATION.to_owned());
    let _app = App::start(&lab);
    let _attached = lab.attach(&["--cache", "/app"]);
    until_kept(&lab, "/app/page");
    assert_eq!(until_kept(&lab, "/app/session").text(), "first");
    let mut client = lab.connect();
    for session in ["sid=alice", "sid=bob", "a=b; sid=alice", "a=b"] {
        let own = client.exchange(get("/app/session", &format!("Cookie: {session}\r\n")));
        let expected = if session == "a=b" { "" } else { session };
        assert_eq!(own.text(), format!("first{expected}"), "{session}: {own:?}");
        assert!(!is_kept(&own), "{session}: {own:?}");
        until_kept(&lab, "/app/page");
        let public = client.exchange(get("/app/page", &format!("Cookie: {session}\r\n")));
        assert!(is_kept(&public), "{session}: {public:?}");
    }
}

/// One client can think of as many queries as it likes, and the server is asked for none of them.
#[test]
fn what_one_client_thinks_of_is_asked_for_by_nobody_else() {
    let lab = lab!(afpa_tests::attach::Kind::Nginx, |_| LOCATION.to_owned());
    let app = App::start(&lab);
    let attached = lab.attach(&["--cache", "/app", "--revalidate", "4"]);
    let mut client = lab.connect();
    let queries: Vec<String> = (0..30).map(|query| format!("/app/page?q={query}")).collect();
    for target in &queries {
        (0..16).for_each(|_| drop(client.exchange(get(target, ""))));
    }
    until_kept(&lab, "/app/page");
    assert_eq!(queries.iter().map(|target| app.asked(target)).sum::<usize>(), 0);
    // Targets that no client asks for any more are forgotten, without a question to the server.
    eventually_within(PATIENCE, "it ended", || count(&attached, "targets") == 0);
    assert!(count(&attached, "confirmed") <= 1, "{:#?}", attached.statistics());
}

#[test]
fn an_unsafe_request_drops_it_before_its_response_is_there() {
    let lab = lab!(afpa_tests::attach::Kind::Nginx, |_| LOCATION.to_owned());
    let _app = App::start(&lab);
    let attached = lab.attach(&["--cache", "/app"]);
    let (mut writer, mut reader) = (lab.connect(), lab.connect());
    for (round, target) in ["/app/page", "/app/slow"].iter().enumerate() {
        let content = format!("version {round}");
        until_kept(&lab, target);
        writer.send(post(target, &content));
        // Until then the kept answer may be the one from before the POST.
        eventually("the response", || {
            let _before = reader.exchange(get(target, ""));
            has_come(&writer)
        });
        assert_eq!(writer.receive().text(), "done");
        for client in [&mut reader, &mut writer] {
            assert_eq!(client.exchange(get(target, "")).text(), content, "{target}");
        }
        assert_eq!(until_kept(&lab, target).text(), content, "{target}");
    }
    assert!(count(&attached, "outdated_by_unsafe_requests") >= 2, "{:#?}", attached.statistics());
}

/// Whether bytes wait to be read.
fn has_come(client: &Client) -> bool {
    client.tcp().set_nonblocking(true).expect("set");
    let has = client.tcp().peek(&mut [0]).is_ok();
    client.tcp().set_nonblocking(false).expect("set");
    has
}

#[test]
fn a_purge_and_another_answer_drop_it() {
    let lab = lab!(afpa_tests::attach::Kind::Nginx, |_| LOCATION.to_owned());
    let app = App::start(&lab);
    let attached = lab.attach(&["--cache", "/app", "--revalidate", "4"]);
    // Another one may be running on this machine.
    let id = attached.id().to_string();
    let tell = |order: &[&str]| lab.run_afpa(&[order, &["--pid", &id]].concat());
    let mut client = lab.connect();
    for (version, order) in [
        ("one", &["purge", "/app/page"][..]),
        ("two", &["purge", "--below", "http://10.77.0.1:8080/app/p"]),
        ("three", &[]), // no purge: the next confirmation finds the change
    ] {
        until_kept(&lab, "/app/page");
        app.set("/app/page", version);
        if !order.is_empty() {
            let (done, said) = tell(order);
            assert!(done, "{said}");
            assert_eq!(client.exchange(get("/app/page", "")).text(), version, "{said}");
        }
        eventually_within(PATIENCE, "the server was asked again", || {
            client.exchange(get("/app/page", "")).text() == version
        });
    }
    let (done, said) = tell(&["purge", "/app/other"]);
    assert!(done && said.contains("0 answers"), "{said}");
    let (done, said) = tell(&["purge", "--tag", "a"]);
    assert!(!done && said.contains("URL"), "{said}");
    eventually_within(PATIENCE, "the server was asked about what is in use", || {
        client.exchange(get("/app/page", ""));
        count(&attached, "confirmed") + count(&attached, "changed") >= 1
    });
    let (_, found) = lab.run_afpa(&["doctor"]);
    assert!(found.contains("answers of applications are kept"), "{found}");
    let (_, table) = tell(&["stats"]);
    assert!(table.contains("Kept") && table.contains("purged"), "{table}");
}

#[test]
fn what_the_server_forbids_later_is_kept_no_longer() {
    let lab = lab!(afpa_tests::attach::Kind::Nginx, |_| LOCATION.to_owned());
    let app = App::start(&lab);
    let attached = lab.attach(&["--cache", "/app", "--revalidate", "4"]);
    let targets = ["/app/turns/nostore", "/app/turns/vary", "/app/turns/cookie"];
    targets.iter().for_each(|target| drop(until_kept(&lab, target)));
    app.0.turned.store(true, Ordering::Relaxed);
    let mut client = lab.connect();
    let mut are_kept = || targets.map(|target| is_kept(&client.exchange(get(target, ""))));
    eventually_within(PATIENCE, "none is kept", || !are_kept().contains(&true));
    (0..20).for_each(|_| assert_eq!(are_kept(), [false; 3]));
    assert!(count(&attached, "changed") >= 3, "{:#?}", attached.statistics());
}
