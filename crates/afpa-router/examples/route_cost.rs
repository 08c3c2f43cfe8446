//! The time of a decision with ten to 10,000 request sets: `cargo run --release -p afpa-router --example route_cost`.
//! Prints nanoseconds a decision, the least and the median of eleven rounds.

use std::hint::black_box;
use std::time::Instant;

use afpa_http::Method;
use afpa_router::{
    Action, Conditions, Content, ContentGroup, HostPattern, ListenerId, PathEntry, Question, Reach,
    RootId, Router, SiteEntry, Table,
};

const ROUNDS: usize = 11;
const DECISIONS: usize = 200_000;

fn main() {
    println!("{:<12} {:>8} {:>8} {:>8}", "shape", "sets", "least", "median");
    for (shape, table, address) in SHAPES {
        for count in [10, 100, 1000, 10_000] {
            let router = Router::compile(&table(count)).expect("a table without conflicts");
            // A hundred requests, each of another request set, whatever the number of sets.
            let asked: Vec<(String, String)> =
                (0..100).map(|n| address(n * count.div_ceil(100) % count)).collect();
            let mut times: Vec<f64> = (0..ROUNDS).map(|_| round(&router, &asked)).collect();
            times.sort_by(f64::total_cmp);
            let (least, median) = (times[0], times[ROUNDS / 2]);
            println!("{shape:<12} {count:>8} {least:>8.1} {median:>8.1}");
        }
    }
}

type Shape = (&'static str, fn(usize) -> Table, fn(usize) -> (String, String));

const SHAPES: [Shape; 3] = [
    ("hosts", hosts, |n| (format!("h{n:05}.example.org"), "/news/today.html".to_owned())),
    ("prefixes", prefixes, |n| (String::new(), format!("/customer/{n:05}/today.html"))),
    ("extensions", extensions, |n| (String::new(), format!("/news/today.e{n:05}"))),
];

fn round(router: &Router, asked: &[(String, String)]) -> f64 {
    let start = Instant::now();
    for (host, path) in asked.iter().cycle().take(DECISIONS) {
        let question = Question {
            listener: ListenerId(0),
            host,
            method: Method::Get,
            path: path.as_bytes(),
            query: None,
            fields: (),
        };
        assert!(black_box(router.route(black_box(&question))).is_ok());
    }
    start.elapsed().as_nanos() as f64 / DECISIONS as f64
}

fn cached(number: usize, group: ContentGroup) -> Content {
    let root = RootId(u32::try_from(number).unwrap_or(u32::MAX));
    let conditions = Conditions::default();
    Content {
        group,
        conditions,
        action: Action::Cached { root, fallback: None, scripts: None },
        rewrite: None,
    }
}

fn path(prefix: String, contents: Vec<Content>) -> PathEntry {
    PathEntry { prefix: prefix.into_bytes(), reach: Reach::Recursion, contents }
}

fn site(hosts: Vec<HostPattern>, paths: Vec<PathEntry>) -> SiteEntry {
    SiteEntry { name: "site".to_owned(), listeners: vec![ListenerId(0)], hosts, paths }
}

fn hosts(count: usize) -> Table {
    let sites = (0..count).map(|n| {
        let host = HostPattern::Exact(format!("h{n:05}.example.org"));
        site(vec![host], vec![path("/".to_owned(), vec![cached(n, ContentGroup::All)])])
    });
    Table { sites: sites.collect() }
}

fn prefixes(count: usize) -> Table {
    let own = |n| path(format!("/customer/{n:05}/"), vec![cached(n, ContentGroup::All)]);
    Table { sites: vec![site(Vec::new(), (0..count).map(own).collect())] }
}

fn extensions(count: usize) -> Table {
    let group = |n: usize| ContentGroup::List {
        extensions: vec![format!("e{n:05}")],
        none: false,
        others: false,
    };
    let contents = (0..count).map(|n| cached(n, group(n))).collect();
    Table { sites: vec![site(Vec::new(), vec![path("/".to_owned(), contents)])] }
}
