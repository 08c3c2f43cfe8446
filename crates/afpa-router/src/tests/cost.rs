//! 10,000 request sets cost no more per request than ten: counted.

use super::build::*;
use crate::*;

/// Ways to have many request sets.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// A site each.
    Hosts,
    /// A wildcard each.
    Wildcards,
    /// A directory each.
    Directories,
    /// An extension each.
    Extensions,
}

const SHAPES: [Shape; 4] = [Shape::Hosts, Shape::Wildcards, Shape::Directories, Shape::Extensions];

fn router(shape: Shape, count: u32) -> Router {
    let all = |root| content(ContentGroup::All, cached(root));
    let sites = match shape {
        Shape::Hosts | Shape::Wildcards => (0..count)
            .map(|n| {
                let star = if matches!(shape, Shape::Wildcards) { "*." } else { "" };
                let host = format!("{star}h{n:05}.example.org");
                site("s", &[&host], vec![path("/", Reach::Recursion, vec![all(n)])])
            })
            .collect(),
        Shape::Directories => {
            let prefix = |n| format!("/customer/{n:05}/");
            let paths = (0..count).map(|n| path(&prefix(n), Reach::Recursion, vec![all(n)]));
            vec![site("s", &[], paths.collect())]
        }
        Shape::Extensions => {
            let contents = (0..count).map(|n| content(listed(&format!("e{n:05}")), cached(n)));
            vec![site("s", &[], vec![path("/", Reach::Recursion, contents.collect())])]
        }
    };
    Router::compile(&Table { sites }).unwrap()
}

fn address(shape: Shape, n: u32) -> (String, String) {
    match shape {
        Shape::Hosts => (format!("H{n:05}.example.org"), "/a/b.html".into()),
        Shape::Wildcards => (format!("www.h{n:05}.example.org"), "/a/b.html".into()),
        Shape::Directories => (String::new(), format!("/customer/{n:05}/b.html")),
        Shape::Extensions => (String::new(), format!("/a/b.E{n:05}")),
    }
}

/// The most steps that any of ten request sets takes, from the first to the last.
fn most_steps(router: &Router, shape: Shape, count: u32) -> u32 {
    let steps = |n| {
        let (host, path) = address(shape, n);
        let mut steps = 0u32;
        let verdict = router.route_counted(&ask(&host, &path), &mut steps).unwrap();
        assert_eq!(verdict.action, &cached(n));
        steps
    };
    (0..10).map(|tenth| steps(tenth * (count - 1) / 9)).max().unwrap()
}

#[test]
fn ten_thousand_request_sets_take_no_more_steps_than_ten() {
    for shape in SHAPES {
        let few = most_steps(&router(shape, 10), shape, 10);
        let many = most_steps(&router(shape, 10_000), shape, 10_000);
        // The tree has a node where prefixes part: a digit of the number more to look at, each.
        let deeper = if matches!(shape, Shape::Directories) { 4 } else { 0 };
        assert!(many <= few + deeper, "{shape:?}: {many} against {few}");
        assert!(many <= 10, "{shape:?}: {many}");
    }
}

#[test]
fn deciding_allocates_nothing() {
    for shape in SHAPES {
        let router = router(shape, 1000);
        let (host, path) = address(shape, 999);
        let question = ask(&host, &path);
        let counted = allocation_counter::measure(|| {
            assert!(router.route(&question).is_ok());
            let _ = router.route(&ask("nobody.example", "/nowhere/a.b"));
        });
        assert_eq!(counted.count_total, 0, "{shape:?}");
    }
}

#[test]
fn conditions_of_one_path_are_tried_one_by_one_and_no_more_than_allowed() {
    let contents = (0..MAX_CONDITIONAL as u32).map(|n| Content {
        conditions: Conditions {
            fields: vec![field(FieldSource::Field, "X", &n.to_string())],
            ..Conditions::default()
        },
        ..content(ContentGroup::All, cached(n))
    });
    let paths = vec![path("/", Reach::Recursion, contents.collect())];
    let router = Router::compile(&Table { sites: vec![site("s", &[], paths)] }).unwrap();
    let mut steps = 0u32;
    assert_eq!(router.route_counted(&ask("", "/"), &mut steps), Err(Unrouted::NotFound(SiteId(0))));
    assert!(steps <= 2 * MAX_CONDITIONAL as u32 + 3, "{steps}");
}
