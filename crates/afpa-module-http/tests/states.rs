//! The state functions of HTTP, driven by hand in the order of the diagram: no socket, no engine.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;

use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::{Arena, CacheSettings, Key};
use afpa_framework::{
    Cached, Client, Derived, Helpers, Miss, Module, Now, Outbox, Part, Peer, Persistence, Priority,
    Protocol, Secured,
};
use afpa_http::FieldSlots;
use afpa_module_http::NoAccessLog;
use afpa_module_http::{
    DocRoot, DocRootSettings, FileHint, Global, Http, HttpConnection, HttpCounters, PathRule, Site,
};
use afpa_proxy::limit::{Gate, LimitSettings};

const NOW: Now = Now { unix_us: 1_000_000_000_000_000, steady_us: 5_000_000 };

struct Bench {
    http: Http,
    global: Arc<Global>,
    connection: HttpConnection,
    counters: Arc<HttpCounters>,
    out: Outbox,
}

impl Bench {
    fn new(root: &Path, settings: DocRootSettings) -> Self {
        let arena = Arena::new(16 << 20).expect("an arena");
        let root = DocumentRoot::open(root, RootSettings::default()).expect("a root");
        let cache = CacheSettings { pin_threshold: 64 << 10, ..CacheSettings::default() };
        let site = DocRoot::open(root, settings, cache, Default::default(), arena).expect("a site");
        let counters = Arc::new(HttpCounters::default());
        let mut global = Global::alone(site);
        let ours = Arc::get_mut(&mut global).expect("nobody else has it");
        ours.sites.push(Site {
            name: "site".to_owned(),
            gate: Gate::new(LimitSettings::default()),
            forwarded_from: Arc::default(),
            hsts: None,
            clients: None,
        });
        ours.challenges =
            Some(Arc::new(|token| (token == "known").then(|| Arc::from("known.proof"))));
        let mut http = Http::new(
            Arc::clone(&global),
            Arc::clone(&counters),
            Box::new(NoAccessLog),
            Default::default(),
            Arc::new(|| {}),
        );
        let connection = http.connected(Peer { client: Client::Unix, port: 0 }, 0);
        Self { http, global, connection, counters, out: Outbox::default() }
    }

    /// One request through the deferred-interrupt context alone: `None` if it needs a thread.
    fn interrupt(&mut self, request: &[u8]) -> Option<Persistence> {
        self.out.clear();
        let mut slots = FieldSlots::default();
        let (http, connection, out) = (&mut self.http, &mut self.connection, &mut self.out);
        match http.derive_request(connection, NOW, request, &mut slots, out) {
            Derived::Request(parsed, consumed) => {
                assert_eq!(consumed, request.len());
                match http.derive_cached_response(connection, NOW, &parsed, out) {
                    Cached::Hit(persistence) => Some(persistence),
                    Cached::Miss(_) => None,
                }
            }
            other => panic!("not a request: {other:?}", other = describe(&other)),
        }
    }

    /// One request through all states.
    async fn ask(&mut self, request: &[u8]) -> String {
        self.out.clear();
        let mut slots = FieldSlots::default();
        let (http, connection, out) = (&mut self.http, &mut self.connection, &mut self.out);
        let derived = http.derive_request(connection, NOW, request, &mut slots, out);
        let Derived::Request(parsed, _) = derived else { panic!("not a request") };
        if let Cached::Miss(routed) = http.derive_cached_response(connection, NOW, &parsed, out) {
            match <Http>::derive_miss_response(routed, connection, out) {
                Miss::Answered(_) => {}
                Miss::Uncached(request) => {
                    let helpers = Helpers::new(8);
                    let loaded = http.derive_uncached_response(NOW, request, &helpers).await;
                    http.finish_uncached(connection, NOW, loaded, out);
                }
                Miss::Remote(_) => panic!("there are no servers"),
            }
        }
        String::from_utf8_lossy(&self.out.bytes).into_owned()
    }
}

fn describe<R>(derived: &Derived<R>) -> &'static str {
    match derived {
        Derived::Incomplete(_) => "incomplete",
        Derived::Skipped(_) => "skipped",
        Derived::Request(..) => "request",
        Derived::Refused => "refused",
    }
}

fn site() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::write(root.path().join("index.html"), "<p>home").expect("a file");
    std::fs::write(root.path().join("words.txt"), "word ".repeat(1000)).expect("a file");
    std::fs::write(root.path().join("large.bin"), vec![7; 100_000]).expect("a file");
    std::fs::create_dir(root.path().join("folder")).expect("a folder");
    root
}

#[tokio::test]
async fn the_first_request_loads_and_the_second_never_leaves_the_interrupt_context() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    assert!(bench.interrupt(request).is_none());
    let first = bench.ask(request).await;
    assert!(
        first.starts_with("HTTP/1.1 200 OK\r\nDate: Sun, 09 Sep 2001 01:46:40 GMT\r\n"),
        "{first}"
    );
    assert!(first.ends_with("\r\n\r\n<p>home"), "{first}");
    assert_eq!(bench.interrupt(request), Some(Persistence::Keep));
    assert_eq!(first.as_bytes(), bench.out.bytes);
    assert_eq!((bench.counters.hits.get(), bench.counters.misses.get()), (1, 1));
}

/// RFC 9112 section 9.6: only then the engine may close without waiting for more bytes of the client.
#[tokio::test]
async fn a_client_sends_nothing_more_if_it_has_asked_for_the_end_and_has_no_content() {
    let root = site();
    for (request, persistence) in [
        ("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", Persistence::CloseAsAsked),
        ("GET / HTTP/1.0\r\n\r\n", Persistence::CloseAsAsked),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            Persistence::CloseAsAsked,
        ),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\n",
            Persistence::Close,
        ),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
            Persistence::Close,
        ),
        (
            "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
            Persistence::Close,
        ),
    ] {
        let mut bench = Bench::new(root.path(), DocRootSettings::default());
        bench.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert_eq!(bench.interrupt(request.as_bytes()), Some(persistence), "{request}");
    }
    // The server's own wish to end does not show whether the client sends more.
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    bench.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    bench.http.drain();
    let kept = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(bench.interrupt(kept), Some(Persistence::Close));
}

#[tokio::test]
async fn a_pinned_hit_allocates_nothing() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    // The head of a browser: the normal case, not that of a load generator.
    let request = b"GET /words.txt HTTP/1.1\r\nHost: www.example.org\r\n\
        User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
        Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
        Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
        Referer: http://www.example.org/\r\nCookie: session=0123456789abcdef\r\n\
        Connection: keep-alive\r\n\r\n";
    // Loaded, asked for again, and from then on compressed.
    let mut asked = 0;
    eventually_coded(&mut bench, request, &mut asked).await;
    let counted = allocation_counter::measure(|| {
        for _ in 0..1000 {
            assert_eq!(bench.interrupt(request), Some(Persistence::Keep));
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    let scopes = bench.counters.scopes();
    let counted = scopes.iter().next().expect("the site").report();
    assert_eq!((counted.responses, counted.in_flight), ([0, 1000 + asked, 0, 0, 0], 0));
    assert!(String::from_utf8_lossy(&bench.out.bytes).contains("Content-Encoding: br"));
}

/// The result of a handshake of QUIC.
fn by_http3() -> Rc<Secured> {
    Rc::new(Secured {
        version: "TLSv1.3",
        cipher: "unknown",
        resumed: false,
        protocol: Some((*b"h3").into()),
        subject: None,
        authorities: None,
        is_early: false,
    })
}

/// The field section was made when the object was loaded, and the date stands in it.
#[tokio::test]
async fn a_pinned_hit_by_http3_has_its_field_section_and_allocates_nothing() {
    let root = site();
    let request = b"GET /words.txt HTTP/1.1\r\nHost: x\r\n\r\n";
    for http3 in [true, false] {
        let mut bench = Bench::new(root.path(), DocRootSettings { http3, ..Default::default() });
        bench.http.secured(&mut bench.connection, by_http3());
        bench.ask(request).await;
        assert_eq!(bench.interrupt(request), Some(Persistence::Keep));
        assert_eq!(bench.out.block > 0, http3, "{:?}", bench.out);
        let counted = allocation_counter::measure(|| {
            for _ in 0..1000 {
                assert_eq!(bench.interrupt(request), Some(Persistence::Keep));
            }
        });
        assert_eq!(counted.count_total, 0, "{counted:?}");
        if !http3 {
            assert!(bench.out.bytes.starts_with(b"HTTP/1.1 200 OK\r\n"));
            continue;
        }
        let (section, content) = bench.out.bytes.split_at(bench.out.block);
        assert_eq!(content, "word ".repeat(1000).as_bytes());
        let mut said = String::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        afpa_h3::qpack::decode(section, |name, value| {
            said += &format!("{}: {}\n", text(name), text(value));
        })
        .expect("a field section");
        for line in
            [":status: 200\n", "date: Sun, 09 Sep 2001 01:46:40 GMT\n", "content-length: 5000\n"]
        {
            assert!(said.contains(line), "{said}");
        }
    }
}

#[tokio::test]
async fn a_pinned_hit_waits_for_no_lock_of_the_cache() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    let request = b"GET /words.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br\r\n\r\n";
    eventually_coded(&mut bench, request, &mut 0).await;
    let root = Arc::clone(&bench.global.roots[0]);
    let ((held, is_held), (over, is_over)) = (channel(), channel::<()>());
    std::thread::scope(|scope| {
        let holder = scope.spawn(move || {
            let mut end = None;
            root.cache().recall(&Key::new(root.key(), b"/words.txt"), |_| {
                held.send(()).expect("the test goes on");
                end = Some(is_over.recv_timeout(std::time::Duration::from_secs(20)));
            });
            end
        });
        is_held.recv().expect("the lock is held");
        for _ in 0..1000 {
            assert_eq!(bench.interrupt(request), Some(Persistence::Keep));
        }
        let _ = over.send(());
        assert_eq!(holder.join().expect("it held"), Some(Ok(())), "a hit waited for the lock");
    });
}

/// Asks until the answer is compressed, and counts how often.
async fn eventually_coded(bench: &mut Bench, request: &[u8], asked: &mut u64) {
    let begun = std::time::Instant::now();
    loop {
        *asked += 1;
        if bench.ask(request).await.contains("Content-Encoding: br") {
            return;
        }
        assert!(begun.elapsed().as_secs() < 20, "not compressed after {asked} requests");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[tokio::test]
async fn the_first_answers_are_not_compressed_and_say_that_others_will_be() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    let request = |more: &str| {
        format!("GET /words.txt HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br\r\n{more}\r\n")
    };
    let first = bench.ask(request("").as_bytes()).await;
    let part = bench.ask(request("Range: bytes=5-8\r\n").as_bytes()).await;
    for answer in [&first, &part] {
        assert!(answer.contains("\r\nVary: Accept-Encoding\r\n"), "{answer}");
        assert!(!answer.contains("Content-Encoding"), "{answer}");
    }
    assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\nword"), "{part}");
    eventually_coded(&mut bench, request("").as_bytes(), &mut 0).await;
    assert_eq!(bench.counters.misses.get(), 1, "the file was read once");
    // The bytes of before are still to be had, under the tag that they had.
    let plain = bench.ask(b"GET /words.txt HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(plain, first);
}

#[tokio::test]
async fn a_large_object_is_sent_from_its_file() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    let head = bench.ask(b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(head.contains("Content-Length: 100000\r\n"), "{head}");
    assert_eq!(bench.out.parts.len(), 1);
    assert!(matches!(&bench.out.parts[0], Part::File { range, .. } if *range == (0..100_000)));
    assert!(!bench.out.takes_more(), "nothing may be gathered behind it");
}

#[tokio::test]
async fn a_long_answer_has_the_priority_of_its_file_and_the_next_one_its_own() {
    let root = site();
    let rule = PathRule { prefix: "/large".to_owned(), extensions: Vec::new() };
    let hint = FileHint { rule, priority: Priority::High, ..FileHint::default() };
    let settings = DocRootSettings { hints: vec![hint], ..DocRootSettings::default() };
    let mut bench = Bench::new(root.path(), settings);
    let request = b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n";
    bench.ask(request).await;
    assert_eq!(bench.out.priority, Priority::High);
    assert!(bench.interrupt(request).is_some(), "a hit");
    assert_eq!(bench.out.priority, Priority::High);
    bench.ask(b"GET /words.txt HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(bench.out.priority, Priority::Normal);
}

#[tokio::test]
async fn what_needs_no_file_is_answered_in_the_interrupt_context() {
    let root = site();
    let settings = DocRootSettings { hosts: vec!["x".into()], ..DocRootSettings::default() };
    let mut bench = Bench::new(root.path(), settings);
    for (request, expected) in [
        ("OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n", "204 No Content\r\n"),
        ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "204 No Content\r\n"),
        ("DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", "405 Method Not Allowed\r\n"),
        ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", "501 Not Implemented\r\n"),
        ("GET / HTTP/1.1\r\nHost: y\r\n\r\n", "421 Misdirected Request\r\n"),
        ("GET /../x HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request\r\n"),
        ("GET /a%2fb HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found\r\n"),
    ] {
        let answer = bench.ask(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{request}\n{answer}");
        assert_eq!(bench.counters.misses.get(), 0, "{request} went to a thread");
    }
}

#[tokio::test]
async fn directories_are_redirected_forbidden_or_listed() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    let redirect = bench.ask(b"GET /folder?a=1 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(redirect.starts_with("HTTP/1.1 301 "), "{redirect}");
    assert!(redirect.contains("\r\nLocation: /folder/?a=1\r\n"), "{redirect}");
    let forbidden = bench.ask(b"GET /folder/ HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(forbidden.starts_with("HTTP/1.1 403 "), "{forbidden}");

    std::fs::write(root.path().join("folder/a&b.txt"), "x").expect("a file");
    let settings = DocRootSettings { listing: true, ..DocRootSettings::default() };
    let mut bench = Bench::new(root.path(), settings);
    let listing = bench.ask(b"GET /folder/ HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(listing.contains("a&amp;b.txt"), "{listing}");
}

#[tokio::test]
async fn a_tilde_leads_to_the_home_of_a_user_and_of_nobody_else() {
    let Ok(Some(user)) = nix::unistd::User::from_uid(nix::unistd::getuid()) else {
        println!("SKIP: the user who runs this test has no name");
        return;
    };
    let (root, home) = (site(), tempfile::tempdir().expect("a folder"));
    std::fs::write(home.path().join("index.html"), "<p>of a user").expect("a file");
    // An absolute directory stands for itself: no home of a real user has to be written to.
    let settings =
        DocRootSettings { homes: Some(home.path().into()), ..DocRootSettings::default() };
    let mut bench = Bench::new(root.path(), settings);
    for _ in 0..2 {
        let request = format!("GET /~{}/ HTTP/1.1\r\nHost: x\r\n\r\n", user.name);
        let answer = bench.ask(request.as_bytes()).await;
        assert!(answer.ends_with("\r\n\r\n<p>of a user"), "{answer}");
    }
    assert_eq!(bench.counters.hits.get(), 1, "a page of a home is cached, too");
    for nobody in ["/~no-such-user/", "/~../index.html", "/~"] {
        let request = format!("GET {nobody} HTTP/1.1\r\nHost: x\r\n\r\n");
        let answer = bench.ask(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{nobody}: {answer}");
    }
}

#[tokio::test]
async fn a_path_is_normalised_on_the_way_to_the_cache_and_to_the_file() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    let odd = b"GET /folder/../w%6frds.txt HTTP/1.1\r\nHost: x\r\n\r\n";
    let first = bench.ask(odd).await;
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    assert_eq!(bench.interrupt(odd), Some(Persistence::Keep));
    let plain = b"GET /words.txt HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(bench.interrupt(plain), Some(Persistence::Keep));
    assert_eq!((bench.counters.hits.get(), bench.counters.misses.get()), (2, 1));
}

#[test]
fn content_is_skipped_and_what_is_too_long_is_refused_before_it_comes() {
    let root = site();
    let settings = DocRootSettings { body_limit: 10, ..DocRootSettings::default() };
    let mut bench = Bench::new(root.path(), settings);
    let (http, connection, out) = (&mut bench.http, &mut bench.connection, &mut bench.out);
    let mut slots = FieldSlots::default();
    let post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345GET / HTTP/1.1\r\n";
    let consumed = match http.derive_request(connection, NOW, post, &mut slots, out) {
        Derived::Request(_, consumed) => consumed,
        other => panic!("{}", describe(&other)),
    };
    let mut slots = FieldSlots::default();
    match http.derive_request(connection, NOW, &post[consumed..], &mut slots, out) {
        Derived::Skipped(bytes) => assert_eq!(bytes, 5),
        other => panic!("{}", describe(&other)),
    }
    let mut slots = FieldSlots::default();
    let long = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n";
    let derived = http.derive_request(connection, NOW, long, &mut slots, out);
    assert!(matches!(derived, Derived::Refused), "{}", describe(&derived));
    assert!(out.bytes.starts_with(b"HTTP/1.1 413 "), "{:?}", out.bytes.escape_ascii());
}

#[tokio::test]
async fn the_challenge_of_an_authority_is_answered_for_any_host() {
    let root = site();
    let mut bench = Bench::new(root.path(), DocRootSettings::default());
    let ask = |method: &str, path: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n\r\n").into_bytes()
    };
    let path = "/.well-known/acme-challenge/known";
    let answer = bench.ask(&ask("GET", path)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nknown.proof"), "{answer}");
    let answer = bench.ask(&ask("HEAD", path)).await;
    assert!(answer.contains("Content-Length: 11\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    for (method, path, status) in [
        ("GET", "/.well-known/acme-challenge/other", "404"),
        ("GET", "/.well-known/acme-challenge/known/", "404"),
        ("GET", "/.well-known/acme-challenge/", "404"),
        ("POST", path, "405"),
    ] {
        let answer = bench.ask(&ask(method, path)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
    }
}
