//! The rules of the paper, and those added for today's users.

use afpa_http::{Method, Status, target};

use super::build::*;
use crate::*;

/// The common simple configuration of section 4.
fn simple() -> Router {
    let contents = vec![
        content(listed("html css gif"), cached(0)),
        content(listed("none others"), distributed(7)),
    ];
    let paths = vec![path("/", Reach::Recursion, contents)];
    Router::compile(&Table { sites: vec![site("acme", &[], paths)] }).unwrap()
}

fn action(router: &Router, host: &str, path: &str) -> Option<Action> {
    router.route(&ask(host, path)).ok().map(|verdict| verdict.action.clone())
}

#[test]
fn one_site_with_cached_extensions_and_everything_else_distributed() {
    let router = simple();
    for path in ["/a.html", "/x/y.GIF", "/z.d/a.Css"] {
        assert_eq!(action(&router, "anything", path), Some(cached(0)), "{path}");
    }
    for path in ["/", "/a", "/a.asp", "/a.html/", "/.html"] {
        assert_eq!(action(&router, "", path), Some(distributed(7)), "{path}");
    }
    assert!(router.only_path(SiteId(0)));
    assert_eq!(router.sets()[1].name, "acme / none,others");
}

#[test]
fn the_prefix_gives_way_to_the_directory() {
    let mut gifs = content(listed("gif"), cached(3));
    gifs.rewrite = Some(Rewrite::Prefix { strip: "/catalog".len(), head: Vec::new() });
    let paths = vec![path("/catalog/", Reach::Recursion, vec![gifs])];
    let table = Table { sites: vec![site("acme", &["www.acme.com"], paths)] };
    let router = Router::compile(&table).unwrap();
    let question = ask("www.acme.com", "/catalog/anvils/jumbo.gif");
    let verdict = router.route(&question).unwrap();
    assert_eq!(verdict.path.join(&mut Vec::new()), b"/anvils/jumbo.gif");
    assert_eq!(verdict.action, &cached(3));
    let other = router.route(&ask("acme.com", "/catalog/a.gif"));
    assert_eq!(other, Err(Unrouted::Misdirected));
    let unknown = router.route(&ask("www.acme.com", "/catalog/a.png"));
    assert_eq!(unknown, Err(Unrouted::NotFound(SiteId(0))));
}

#[test]
fn prefixes_match_exactly_and_reach_as_far_as_they_should() {
    let all = |root| vec![content(ContentGroup::All, cached(root))];
    let paths = vec![
        path("/", Reach::Recursion, all(0)),
        path("/a/", Reach::NoRecursion, all(1)),
        path("/a/", Reach::Exact, all(2)),
        path("/a/b", Reach::Recursion, all(3)),
        path("/a/b/c/", Reach::NoRecursion, all(4)),
    ];
    let router = Router::compile(&Table { sites: vec![site("s", &[], paths)] }).unwrap();
    for (path, root) in [
        ("/", 0),
        ("/a", 0),
        ("/a/", 2),
        ("/a/x", 1),
        ("/a/x/", 0),
        ("/a/x/y", 0),
        ("/a/b", 3),
        ("/a/bcd/e", 3),
        ("/a/b/c/", 4),
        ("/a/b/c/d", 4),
        ("/a/b/c/d/e", 3),
        ("/A/b", 0),
    ] {
        assert_eq!(action(&router, "", path), Some(cached(root)), "{path}");
    }
}

#[test]
fn what_no_content_group_of_a_path_has_goes_to_the_shorter_prefix() {
    let paths = vec![
        path("/", Reach::Recursion, vec![content(ContentGroup::All, distributed(0))]),
        path("/img/", Reach::Recursion, vec![content(listed("png"), cached(1))]),
    ];
    let router = Router::compile(&Table { sites: vec![site("s", &[], paths)] }).unwrap();
    assert_eq!(action(&router, "", "/img/a.png"), Some(cached(1)));
    assert_eq!(action(&router, "", "/img/a.jpg"), Some(distributed(0)));
    let question = ask("", "/img/a.jpg");
    let explanation = router.explain(&question);
    let seen: Vec<_> = explanation.considered.iter().map(|c| (c.set.0, c.outcome)).collect();
    assert_eq!(seen, [(1, MatchResult::Content), (0, MatchResult::Taken)]);
    assert_eq!(explanation.outcome, Ok(RequestSetId(0)));
}

#[test]
fn conditions_come_first_and_make_answers_uncertain() {
    let with = |conditions, action| Content {
        group: ContentGroup::All,
        conditions,
        action,
        rewrite: None,
    };
    let posts = Conditions { methods: vec!["POST".into(), "PUT".into()], ..Conditions::default() };
    let beta = Conditions {
        fields: vec![field(FieldSource::Cookie, "beta", "yes")],
        ..Conditions::default()
    };
    let canary = Conditions {
        methods: vec!["GET".into()],
        fields: vec![field(FieldSource::Field, "X-Canary", "v2*")],
        ..Conditions::default()
    };
    let paths = vec![
        path(
            "/",
            Reach::Recursion,
            vec![content(ContentGroup::All, cached(0)), with(posts, distributed(1))],
        ),
        path(
            "/new/",
            Reach::Recursion,
            vec![with(beta, distributed(2)), with(canary, distributed(3))],
        ),
    ];
    let router = Router::compile(&Table { sites: vec![site("s", &[], paths)] }).unwrap();
    let ask = |method, path, fields: &[(&str, &str)]| {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let fields: Vec<(String, String)> = fields.iter().map(own).collect();
        let question = Question { method, ..ask("", path) };
        let Question { listener, host, method, path, query, .. } = question;
        let question = Question { listener, host, method, path, query, fields: &fields[..] };
        router.route(&question).map(|verdict| (verdict.action.clone(), verdict.certain))
    };
    assert_eq!(ask(Method::Get, "/a", &[]), Ok((cached(0), true)));
    assert_eq!(ask(Method::Head, "/a", &[]), Ok((cached(0), true)));
    assert_eq!(ask(Method::Post, "/a", &[]), Ok((distributed(1), false)));
    assert_eq!(ask(Method::Get, "/new/a", &[]), Ok((cached(0), false)));
    let cookie = [("cookie", "a=b; beta=yes")];
    assert_eq!(ask(Method::Get, "/new/a", &cookie), Ok((distributed(2), false)));
    assert_eq!(ask(Method::Get, "/new/a", &[("Cookie", "beta=no")]), Ok((cached(0), false)));
    let canary = [("x-canary", "v2.1")];
    assert_eq!(ask(Method::Head, "/new/a", &canary), Ok((distributed(3), false)));
    assert_eq!(ask(Method::Post, "/new/a", &canary), Ok((distributed(1), false)));
    assert!(!router.only_path(SiteId(0)));
}

#[test]
fn redirects_name_the_place_they_came_from() {
    let redirect = |location: &str| {
        let redirect =
            Redirect { status: Status::PERMANENT_REDIRECT, location: location.to_owned() };
        content(ContentGroup::All, Action::Redirect(redirect))
    };
    let paths = vec![
        path("/old/", Reach::Recursion, vec![redirect("https://{host}/new/{rest}{query}")]),
        path("/", Reach::Recursion, vec![redirect("https://x{path}{query}")]),
    ];
    let router = Router::compile(&Table { sites: vec![site("s", &[], paths)] }).unwrap();
    let location = |asked: &str, query: Option<&str>| {
        let (mut normal, mut spelled) = (Vec::new(), Vec::new());
        let path = target::normalise(asked.as_bytes(), &mut normal).unwrap();
        let spelled = target::spell(asked.as_bytes(), &mut spelled).unwrap();
        let path = std::str::from_utf8(path).unwrap();
        let question = Question { query: query.map(str::as_bytes), ..ask("a.org", path) };
        let location = router.route(&question).unwrap().location(&question, spelled).unwrap();
        String::from_utf8(location).unwrap()
    };
    assert_eq!(location("/%6fld/a%3Bb;c", None), "https://a.org/new/a%3Bb;c");
    assert_eq!(location("/x%2c", None), "https://x/x%2C");
    assert_eq!(location("/old/a b/é", Some("q=1")), "https://a.org/new/a%20b/%C3%A9?q=1");
    assert_eq!(location("/z", None), "https://x/z");
    assert_eq!(location("/z", Some("a b\u{7f}")), "https://x/z?a%20b%7F");
}

#[test]
fn no_client_chooses_the_host_of_a_redirect() {
    let table = |prefix: &str, location: &str| {
        let status = Status::PERMANENT_REDIRECT;
        let redirect = Action::Redirect(Redirect { status, location: location.to_owned() });
        let group = content(ContentGroup::All, redirect);
        Table { sites: vec![site("s", &[], vec![path(prefix, Reach::Recursion, vec![group])])] }
    };
    for open in ["https://x{rest}", "//x{rest}", "{host}//x{rest}", "https://{host}{rest}{path}"] {
        for prefix in ["/old", "/old/"] {
            let conflicts = Router::compile(&table(prefix, open)).unwrap_err();
            let is_host = matches!(conflicts[..], [Conflict::Variable { why: Misuse::Host, .. }]);
            assert!(is_host, "{open}: {conflicts:?}");
        }
    }
    let router = Router::compile(&table("/old", "https://{host}/{rest}")).unwrap();
    let question = ask("", "/old/evil.test/a");
    let verdict = router.route(&question).unwrap();
    assert_eq!(verdict.location(&question, b"/old/evil.test/a"), None, "it has no host");
    for (location, expected) in [
        ("/{rest}", "/evil.test/a"),
        ("{rest}", "/evil.test/a"),
        ("{path}", "/old/evil.test/a"),
        ("https://x/{rest}", "https://x//evil.test/a"),
        ("https://x{path}", "https://x/old/evil.test/a"),
        ("//x/{rest}", "//x//evil.test/a"),
        ("/new?{rest}", "/new?/evil.test/a"),
    ] {
        let router = Router::compile(&table("/old", location)).unwrap();
        let question = ask("a.org", "/old/evil.test/a");
        let verdict = router.route(&question).unwrap();
        let found = verdict.location(&question, b"/old/evil.test/a").unwrap();
        assert_eq!(String::from_utf8(found).unwrap(), expected, "{location}");
    }
}

#[test]
fn contradictions_are_found() {
    let all = || content(ContentGroup::All, cached(0));
    let conflicts = |sites: Vec<SiteEntry>| Router::compile(&Table { sites }).unwrap_err();
    let one = |contents: Vec<Content>| {
        conflicts(vec![site("s", &[], vec![path("/", Reach::Recursion, contents)])])
    };
    let disputed = |first, second, what: &str| {
        vec![Conflict::Extension { site: 0, path: 0, first, second, what: what.into() }]
    };
    let two = |a, b| vec![content(listed(a), cached(0)), content(listed(b), cached(1))];
    assert_eq!(one(two("gif html", "HTML")), disputed(0, 1, "html"));
    assert_eq!(one(two("none", "a none")), disputed(0, 1, "no extension"));
    assert_eq!(one(vec![all(), all()]), disputed(0, 1, "everything else"));
    let bad = Conflict::BadExtension { site: 0, path: 0, content: 0, extension: "a.b".into() };
    assert_eq!(one(vec![content(listed("a.b"), cached(0))]), [bad]);

    let host =
        |name: Option<&str>| Conflict::Host { first: 0, second: 1, host: name.map(Into::into) };
    let sites = |a: &[&str], b: &[&str]| vec![site("a", a, Vec::new()), site("b", b, Vec::new())];
    assert_eq!(conflicts(sites(&["a.org"], &["A.ORG", "b.org"])), [host(Some("A.ORG"))]);
    assert_eq!(conflicts(sites(&["*.a.org"], &["*.a.org"])), [host(Some("*.a.org"))]);
    assert_eq!(conflicts(sites(&[], &[])), [host(None)]);

    let paths = |a: &str, b: &str| {
        let paths =
            vec![path(a, Reach::Recursion, vec![all()]), path(b, Reach::Recursion, vec![all()])];
        Router::compile(&Table { sites: vec![site("s", &[], paths)] }).err().unwrap_or_default()
    };
    assert_eq!(paths("/a/", "/a/"), [Conflict::Path { site: 0, first: 0, second: 1 }]);
    for prefix in ["", "a", "//", "/a//b", "/./a", "/a/../b", "/a\n"] {
        assert_eq!(paths("/", prefix), [Conflict::Prefix { site: 0, path: 1 }], "{prefix}");
    }
    for prefix in ["/.", "/..", "/a/.well", "/~u/"] {
        assert_eq!(paths("/", prefix), [], "{prefix}");
    }

    let rewritten = |strip, head: &str| {
        let rewrite = Some(Rewrite::Prefix { strip, head: head.as_bytes().to_vec() });
        let contents = vec![Content { rewrite, ..all() }];
        let paths = vec![path("/a/", Reach::Recursion, contents)];
        Router::compile(&Table { sites: vec![site("s", &[], paths)] }).is_ok()
    };
    assert!(rewritten(2, "") && rewritten(3, "/") && rewritten(2, "/b") && rewritten(0, ""));
    assert!(!rewritten(3, "") && !rewritten(1, "") && !rewritten(4, "/") && !rewritten(3, "b"));

    let location = content(
        ContentGroup::All,
        Action::Redirect(Redirect {
            status: Status::MOVED_PERMANENTLY,
            location: "/{nobody}/{rest".into(),
        }),
    );
    assert_eq!(one(vec![location]).len(), 2);
    let conditions = Conditions { methods: vec!["PUT".into()], ..Conditions::default() };
    let many = (0..=MAX_CONDITIONAL).map(|_| Content { conditions: conditions.clone(), ..all() });
    assert_eq!(one(many.collect()), [Conflict::TooManyConditions { site: 0, path: 0 }]);
}

#[test]
fn listeners_have_their_own_sites() {
    let all =
        |root| vec![path("/", Reach::Recursion, vec![content(ContentGroup::All, cached(root))])];
    let mut second = site("b", &[], all(1));
    second.listeners = vec![ListenerId(2)];
    let router = Router::compile(&Table { sites: vec![site("a", &[], all(0)), second] }).unwrap();
    let on = |listener| {
        let question = Question { listener: ListenerId(listener), ..ask("x", "/") };
        router.route(&question).map(|verdict| verdict.site.0)
    };
    assert_eq!(on(0), Ok(0));
    assert_eq!(on(2), Ok(1));
    assert_eq!(on(1), Err(Unrouted::Misdirected));
    assert_eq!(on(u32::MAX), Err(Unrouted::Misdirected));
}
