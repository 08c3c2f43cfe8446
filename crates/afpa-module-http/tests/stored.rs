//! The cost of keeping an answer that is passed on: memory for the kept bytes, and little more.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use afpa_cache::{Arena, CacheSettings};
use afpa_framework::{
    Cached, Client, Derived, Miss, Module, Outbox, Peer, Persistence, Then, steady_ms,
};
use afpa_http::FieldSlots;
use afpa_module_http::NoAccessLog;
use afpa_module_http::{Global, Http, HttpConnection, HttpCounters, ServerGroup, Site};
use afpa_proxy::limit::{Gate, LimitSettings};
use afpa_proxy::select::{Group, GroupSettings, ServerSettings};
use afpa_router::{
    Action, Affinity, Conditions, Content, ContentGroup, GroupId, ListenerId, PathEntry, Reach,
    Router, SiteEntry, Table,
};
use afpa_shared_cache::{CachePolicy, Responses, SiteCache};
use tokio::runtime::Runtime;

#[path = "../../afpa-framework/testing/sink.rs"]
mod sink;

use sink::{Sink, now};

const LENGTH: usize = 512;

/// A server that answers every request on its one connection alike, with this Cache-Control; its place.
fn server(control: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let place = listener.local_addr().expect("bound").to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Type: text/html\r\nContent-Length: {LENGTH}\r\n\
         Last-Modified: Sat, 01 Sep 2001 00:00:00 GMT\r\nETag: \"3b9aca00-200\"\r\n\
         Cache-Control: {control}\r\n\r\n"
    );
    let answer = [head.as_bytes(), &[b'x'; LENGTH]].concat();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_nodelay(true).expect("a setting");
        let mut room = [0; 4096];
        // One request at a time, each of which fits into one read.
        while stream.read(&mut room).is_ok_and(|n| n > 0) {
            stream.write_all(&answer).expect("sent");
        }
    });
    place
}

/// One core before that server, with or without a shared cache.
struct Bench {
    http: Http,
    connection: HttpConnection,
    out: Outbox,
    client: Sink,
    runtime: Runtime,
    responses: Arc<Responses>,
}

impl Bench {
    fn new(keeps: bool) -> Self {
        Self::before("max-age=3600", keeps)
    }

    fn before(control: &str, keeps: bool) -> Self {
        let arena = Arena::new(64 << 20).expect("an arena");
        let responses = Responses::new(CacheSettings::default(), arena);
        let policy = Arc::new(CachePolicy::default());
        let scope = responses.scope("", &policy);
        let place = [0; 16];
        let cache = SiteCache { responses: Arc::clone(&responses), policy, scope, place };
        let caches = vec![keeps.then_some(cache); 4];
        let global = global(&server(control), Arc::clone(&responses), caches);
        let counters = Arc::new(HttpCounters::default());
        let mut http = Http::new(
            Arc::new(global),
            counters,
            Box::new(NoAccessLog),
            Default::default(),
            Arc::new(|| {}),
        );
        let connection = http.connected(Peer { client: Client::Unix, port: 0 }, 0);
        let (out, client) = (Outbox::default(), Sink::with_room(1 << 20));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        Self { http, connection, out, client, runtime, responses }
    }

    /// A request for a URL that was not asked for before, and whether the connection goes on.
    fn ask(&mut self, request: &[u8]) -> Persistence {
        self.out.clear();
        self.client.received.clear();
        let mut slots = FieldSlots::default();
        let (http, connection, out) = (&mut self.http, &mut self.connection, &mut self.out);
        let derived = http.derive_request(connection, now(), request, &mut slots, out);
        let Derived::Request(parsed, _) = derived else { panic!("not a request") };
        let Cached::Miss(routed) = http.derive_cached_response(connection, now(), &parsed, out)
        else {
            panic!("a hit");
        };
        let Miss::Remote(remote) = <Http>::derive_miss_response(routed, connection, out) else {
            panic!("it does not go to the server");
        };
        let exchange = http.derive_remote_response(remote, &mut self.client);
        let exchanged = self.runtime.block_on(exchange);
        let Then::Answered(persistence) = http.finish_remote(connection, now(), exchanged, out)
        else {
            panic!("nothing is derived again");
        };
        assert!(self.client.received.ends_with(&[b'x'; LENGTH]), "the answer is whole");
        persistence
    }

    fn miss(&mut self, request: &[u8]) {
        assert_eq!(self.ask(request), Persistence::Keep);
    }

    /// Allocations of a miss, the mean of many.
    fn allocations(&mut self) -> f64 {
        const MISSES: usize = 1000;
        let request = |number| {
            format!("GET /some/where/{number}?x=y HTTP/1.1\r\nHost: www.example.org\r\n\r\n")
        };
        let requests: Vec<String> = (0..2 * MISSES).map(request).collect();
        let (first, later) = requests.split_at(MISSES);
        first.iter().for_each(|request| self.miss(request.as_bytes()));
        let counted = allocation_counter::measure(|| {
            later.iter().for_each(|request| self.miss(request.as_bytes()));
        });
        counted.count_total as f64 / MISSES as f64
    }
}

fn global(place: &str, responses: Arc<Responses>, caches: Vec<Option<SiteCache>>) -> Global {
    let action = Action::Distributed { group: GroupId(0), affinity: Affinity::None };
    let content = Content {
        group: ContentGroup::All,
        conditions: Conditions::default(),
        action,
        rewrite: None,
    };
    let path = PathEntry { prefix: "/".into(), reach: Reach::Recursion, contents: vec![content] };
    let site = SiteEntry {
        name: "site".into(),
        listeners: vec![ListenerId(0)],
        hosts: Vec::new(),
        paths: vec![path],
    };
    let router = Router::compile(&Table { sites: vec![site] }).expect("no conflicts");
    let servers = vec![ServerSettings::at(place.parse().expect("a place"))];
    let group = GroupSettings { name: "app".into(), servers, ..GroupSettings::default() };
    Global {
        router: Some(Arc::new(router)),
        sites: vec![Site {
            name: "site".into(),
            gate: Gate::new(LimitSettings::default()),
            forwarded_from: Arc::default(),
            hsts: None,
            clients: None,
        }],
        groups: vec![ServerGroup {
            group: Group::new(group, None, steady_ms()),
            settings: Arc::default(),
        }],
        responses: Some(responses),
        caches,
        body_limit: 1 << 20,
        counted_sets: 100,
        ..Global::default()
    }
}

/// RFC 9112 section 9.6: only then the engine may close without waiting for more bytes of the client.
#[test]
fn a_client_of_a_server_sends_nothing_more_if_it_has_asked_for_the_end() {
    let mut bench = Bench::new(false);
    for (request, persistence) in [
        ("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", Persistence::Keep),
        ("GET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", Persistence::CloseAsAsked),
        ("GET /3 HTTP/1.0\r\nHost: h\r\n\r\n", Persistence::CloseAsAsked),
    ] {
        assert_eq!(bench.ask(request.as_bytes()), persistence, "{request}");
    }
}

#[test]
fn a_stored_miss_allocates_what_is_kept_and_little_more() {
    let passed_on = Bench::new(false).allocations();
    let mut bench = Bench::new(true);
    let stored = bench.allocations();
    println!("allocations of a miss: {passed_on} passed on, {stored} stored");
    assert_eq!(bench.responses.stats().stored, 2000);
    assert!(stored - passed_on < MOST, "{stored} stored, {passed_on} passed on");
}

/// The mode of caches by default looks at every answer. For one that it does not keep, that may cost little.
#[test]
fn a_miss_that_is_not_kept_allocates_three_times_at_most() {
    for control in ["no-store", "private", "no-transform"] {
        let passed_on = Bench::before(control, false).allocations();
        let mut bench = Bench::before(control, true);
        let not_kept = bench.allocations();
        println!(
            "allocations of a miss, {control}: {passed_on} without a cache, {not_kept} with one"
        );
        assert_eq!(bench.responses.stats().stored, 0);
        assert!(not_kept <= 3.0, "{control}: {not_kept}");
    }
}

/// Allocations of a stored miss beyond those of one that is passed on: six of the kept response (key, label, head,
/// facts that decide about its use, content, object), a share of the nodes of the index, and those of the question,
/// which its answer ends.
const MOST: f64 = 12.0;
