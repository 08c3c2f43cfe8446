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
fn scope() -> AnswerScope {
    let cookie = FieldCondition {
        source: FieldSource::Cookie,
        name: "beta".to_owned(),
        value: Pattern::new("*"),
    };
    let beta = Conditions { fields: vec![cookie], ..Conditions::default() };
    let plain = || content(Conditions::default(), None);
    let strip = |strip| Some(Rewrite { strip, head: Vec::new() });
    let into = Some(Rewrite { strip: 0, head: b"/x".to_vec() });
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

fn targets(scope: u32, path: &str, query: Option<&str>) -> Vec<String> {
    let place = KernelPlace {
        scope,
        host: "a",
        path: path.as_bytes(),
        query: query.map(str::as_bytes),
        codings: None,
    };
    let targets = self::scope().targets(&place).into_iter();
    targets.map(|found| String::from_utf8(found.target).expect("ASCII")).collect()
}

#[test]
fn only_what_host_and_path_alone_lead_to_is_pinned() {
    for (scope, path, query, expected) in [
        (7, "/a b", None, &["/a%20b", "/app/a%20b"][..]),
        (7, "/", Some("q=1&b"), &["/?q=1&b", "/app/?q=1&b"]),
        (7, "/a", Some(""), &["/a?", "/app/a?"]),
        (7, "/app/a", None, &["/app/app/a"]),
        (7, "/x/into/a", None, &["/x/into/a", "/app/x/into/a"]),
        (7, "/beta/a", None, &["/app/beta/a"]),
        (7, "/other/a", None, &["/app/other/a"]),
        (8, "/other/a", None, &["/other/a"]),
        (8, "/a", None, &[]),
        (9, "/a", None, &[]),
    ] {
        assert_eq!(targets(scope, path, query), expected, "{scope} {path} {query:?}");
    }
}

#[test]
fn each_name_has_a_class_and_matters_where_it_is_named() {
    let scope = scope();
    assert_eq!(scope.classes().collect::<Vec<_>>(), [("cookie", 1), ("x-a", 2)]);
    let place = KernelPlace { scope: 7, host: "a", path: b"/a", query: None, codings: None };
    let matter: Vec<u32> = scope.targets(&place).iter().map(|found| found.matter).collect();
    assert_eq!(matter, [2, 3]);
}

#[test]
fn only_the_answers_of_a_site_that_is_told_to_say_how_long_they_are_fresh() {
    let scope = scope();
    assert_eq!([7, 8, 9].map(|number| scope.tells(number)), [false, true, false]);
}
