use afpa_router::{
    Affinity, Conditions, Content, ContentGroup, FieldCondition, FieldSource, GroupId, PathEntry,
    Pattern, Reach, RequestSet, Rewrite, SiteEntry, Table,
};

use super::*;

const SERVER: Action = Action::Distributed { group: GroupId(0), affinity: Affinity::None };

fn path(prefix: &str, contents: Vec<Content>) -> PathEntry {
    PathEntry { prefix: prefix.into(), reach: Reach::Recursion, contents }
}

fn content(conditions: Conditions, rewrite: Option<Rewrite>) -> Content {
    Content { group: ContentGroup::All, conditions, action: SERVER, rewrite }
}

/// All is one scope, 7, but for the last path, which is 8.
fn scope_of_all() -> AnswerScope {
    let cookie = FieldCondition {
        source: FieldSource::Cookie,
        name: "beta".to_owned(),
        value: Pattern::new("*"),
    };
    let beta = Conditions { fields: vec![cookie], ..Conditions::default() };
    let plain = || content(Conditions::default(), None);
    let strip = |strip| Some(Rewrite::Prefix { strip, head: Vec::new() });
    let into = Some(Rewrite::Prefix { strip: 0, head: b"/x".to_vec() });
    let paths = vec![
        path("/", vec![plain()]),
        path("/app/", vec![content(Conditions::default(), strip(4))]),
        path("/into/", vec![content(Conditions::default(), into)]),
        path("/beta/", vec![content(beta, None), plain()]),
        path("/other/", vec![plain()]),
    ];
    let site = SiteEntry { paths, ..SiteEntry::default() };
    let router = Router::compile(&Table { sites: vec![site] }).expect("no conflicts");
    let rules = |set: &RequestSet| KernelRules {
        scope: if set.prefix.starts_with(b"/other/") { 8 } else { 7 },
        fields: match set.prefix.starts_with(b"/app/") {
            true => vec!["cookie".into(), "x-a".into()],
            false => vec!["x-a".into()],
        },
        tells: set.prefix.starts_with(b"/other/"),
    };
    let rules: Vec<_> = (0..).zip(router.sets().iter().map(rules)).collect();
    AnswerScope::new(Arc::new(router), &rules)
}

fn place<'q>(scope: u32, url: &str, path: &str, query: Option<&'q str>) -> KernelPlace<'q> {
    KernelPlace {
        scope,
        host: "a".to_owned(),
        url: url.into(),
        path: path.into(),
        query: query.map(str::as_bytes),
        codings: None,
    }
}

#[test]
fn only_what_host_and_path_alone_lead_to_is_pinned() {
    for (scope, url, path, query, expected) in [
        (7, "/a%20b", "/a%20b", None, Some("/a%20b")),
        (7, "/app/a%20b", "/a%20b", None, Some("/app/a%20b")),
        (7, "/a%2Fb", "/a%2Fb", None, None),
        (7, "/app/", "/", Some("q=1&b"), Some("/app/?q=1&b")),
        (7, "/a", "/a", Some(""), Some("/a?")),
        (7, "/app/app/a", "/app/a", None, Some("/app/app/a")),
        (7, "/into/a", "/x/into/a", None, Some("/into/a")),
        (7, "/beta/a", "/beta/a", None, None),
        (7, "/app/beta/a", "/beta/a", None, Some("/app/beta/a")),
        (8, "/other/a", "/other/a", None, Some("/other/a")),
        // The router leads elsewhere now.
        (7, "/other/a", "/other/a", None, None),
        (7, "/app/a", "/app/a", None, None),
        (8, "/a", "/a", None, None),
        (9, "/a", "/a", None, None),
    ] {
        let targets = scope_of_all().targets(&place(scope, url, path, query)).into_iter();
        let targets = targets.map(|found| String::from_utf8(found.target).expect("ASCII"));
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(targets.collect::<Vec<_>>(), expected, "{scope} {url} {path} {query:?}");
    }
}

#[test]
fn each_name_has_a_class_and_matters_where_it_is_named() {
    let scope = scope_of_all();
    assert_eq!(scope.classes().collect::<Vec<_>>(), [("cookie", 1), ("x-a", 2)]);
    let matter = |url: &str| {
        let found = scope.targets(&place(7, url, "/a", None));
        found.iter().map(|found| found.matter).collect::<Vec<_>>()
    };
    assert_eq!((matter("/a"), matter("/app/a")), (vec![2], vec![3]));
}

#[test]
fn a_class_stays_that_of_its_name_over_configurations() {
    let mut scope = scope_of_all();
    let mut known = vec!["x-gone".to_owned(), "x-a".to_owned()];
    scope.keep_classes(&mut known);
    assert_eq!(known, ["x-gone", "x-a", "cookie"]);
    assert_eq!(scope.classes().collect::<Vec<_>>(), [("cookie", 4), ("x-a", 2)]);
    let matter = |url: &str| scope.targets(&place(7, url, "/a", None))[0].matter;
    assert_eq!((matter("/a"), matter("/app/a")), (2, 6));
}

#[test]
fn only_the_answers_of_a_site_that_is_told_to_say_how_long_they_are_fresh() {
    let scope = scope_of_all();
    assert_eq!([7, 8, 9].map(|number| scope.tells(number)), [false, true, false]);
}
