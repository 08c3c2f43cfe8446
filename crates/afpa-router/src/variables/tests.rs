//! Variables in Locations and targets.

use afpa_http::{Status, target};

use super::*;
use crate::tests::build::{ask, content, distributed, path, site};
use crate::*;

/// The text is a Location, or else a target.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Location,
    Again,
    AtServer,
}

fn place(prefix: &str, how: Use, text: &str, conditions: &Conditions) -> PathEntry {
    let (status, location) = (Status::FOUND, text.to_owned());
    let (action, rewrite) = match how {
        Use::Location => (Action::Redirect(Redirect { status, location }), None),
        Use::Again => (Action::Again(text.into()), None),
        Use::AtServer => (distributed(0), Some(Rewrite::Target(text.into()))),
    };
    let one = content(ContentGroup::All, action);
    let one = Content { rewrite, conditions: conditions.clone(), ..one };
    path(prefix, Reach::Recursion, vec![one])
}

fn router(paths: Vec<PathEntry>) -> Result<Router, Vec<Conflict>> {
    Router::compile(&Table { sites: vec![site("s", &[], paths)] })
}

fn conditions(paths: &[&str], query: &[(&str, &str)]) -> Conditions {
    let parameters = query.iter();
    let parameters =
        parameters.map(|(name, value)| crate::tests::build::field(FieldSource::Query, name, value));
    Conditions {
        paths: paths.iter().map(|text| Pattern::new(text)).collect(),
        fields: parameters.collect(),
        ..Conditions::default()
    }
}

/// The Location or target that is made of a URL; `None`: it is refused.
fn made(router: &Router, how: Use, url: &str) -> Option<String> {
    let (asked, query) =
        url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
    let (mut normal, mut spelled) = (Vec::new(), Vec::new());
    let path = target::normalise(asked.as_bytes(), &mut normal).unwrap();
    let spelled = target::spell(asked.as_bytes(), &mut spelled).unwrap();
    let path = std::str::from_utf8(path).unwrap();
    let question = Question { query: query.map(str::as_bytes), ..ask("h", path) };
    let verdict = router.route(&question).unwrap();
    assert!(how == Use::Location || !verdict.certain, "another target decides");
    let made = match how {
        Use::Location => verdict.location(&question, spelled),
        _ => verdict.target(&question, spelled),
    };
    made.map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn groups_stand_for_what_they_have_found() {
    let patterns = conditions(&["~^/p/(a)?(.*)-(?<end>.*)$", "~^/p/()(b)(?<end>)$"], &[]);
    for (text, url, expected) in [
        ("/{2}/{end}", "/p/x%3By;z-1", "/x%3By;z/1"),
        ("/{1}{2}", "/p/b-", "/b"),
        ("/{1}{2}", "/p/ab-", "/ab"),
        ("/{2}/{end}.x", "/p/b", "/b/.x"),
        ("/?{2}&e={end}", "/p/a&b=c%20d-%3f%23+", "/?%26b%3Dc%20d&e=%3F%23%2B"),
        ("/x#{2}", "/p/a#b/c-", "/x#%23b/c"),
        ("/{2}", "/p/x%2Fb/c-", "/x%2Fb/c"),
        ("/?{2}", "/p/x%2Fb/c-", "/?x%2Fb/c"),
        ("/{2}{query}", "/p/q-?r=s", "/q?r=s"),
        ("/?a={2}{query}", "/p/q-?r=s", "/?a=q&r=s"),
        ("/?{query}", "/p/q-?r=s", "/?r=s"),
        ("/?a={2}{query}", "/p/q-", "/?a=q"),
        ("https://x/{2}", "/p//evil.test/-", "https://x/evil.test/"),
        ("/{1}\\{2}", "/p/evil.test-", "/evil.test"),
        ("/{1}/\\{2}", "/p/evil.test-", "/evil.test"),
    ] {
        let url = url.replace('#', "%23");
        let router = router(vec![place("/p/", Use::Location, text, &patterns)]).unwrap();
        let found = made(&router, Use::Location, &url);
        assert_eq!(found.as_deref(), Some(expected), "{text} {url}");
    }
    let queries = conditions(&[], &[("a", "~(?s)^(?<a>.*)$"), ("b", "~(?<b>\\d)?")]);
    for (text, url, expected) in [
        ("/{a}/{b}", "/p/?b=x&a=1%2f2&b=3", "/1%2F2/"),
        ("/{a}", "/p/?b&a=%0d%0a%00%5c..", "/%0D%0A%00%5C.."),
        ("/?x={a}", "/p/?b&a=%26/+", "/?x=%26/%20"),
        ("/{a}{a}", "/p/?b&a=x&a=y", "/xx"),
    ] {
        let router = router(vec![place("/p/", Use::Location, text, &queries)]).unwrap();
        let found = made(&router, Use::Location, url);
        assert_eq!(found.as_deref(), Some(expected), "{text} {url}");
    }
}

#[test]
fn no_redirect_gets_dots_from_a_client() {
    let queries = conditions(&[], &[("a", "~(?s)^(?<a>.*)$")]);
    for (text, url, expected) in [
        ("/{a}", "/p/?a=..", None),
        ("https://x/{a}/y", "/p/?a=.", None),
        ("/.{a}", "/p/?a=.", None),
        ("/{a};x", "/p/?a=..", None),
        ("/{a}", "/p/?a=..%2fx", None),
        ("/x/{a}", "/p/?a=y%2f.", None),
        ("/{a}", "/p/?a=...", Some("/...")),
        ("/?x={a}", "/p/?a=..", Some("/?x=..")),
        ("/#/{a}", "/p/?a=..", Some("/#/..")),
    ] {
        let router = router(vec![place("/p/", Use::Location, text, &queries)]).unwrap();
        assert_eq!(made(&router, Use::Location, url).as_deref(), expected, "{text} {url}");
    }
}

#[test]
fn a_target_keeps_the_query_unless_it_has_its_own_and_gets_no_dots() {
    let all = conditions(&["~^/p(.*)$"], &[]);
    for how in [Use::Again, Use::AtServer] {
        for (text, url, expected) in [
            ("/n/{rest}", "/p/a?b", Some("/n/a?b")),
            ("/n/{rest}?", "/p/a?b", Some("/n/a")),
            ("/n?", "/p/a?b", Some("/n")),
            ("/n?x", "/p/a?b", Some("/n?x")),
            ("/n?x{query}", "/p/a?b", Some("/n?x&b")),
            ("/n{query}", "/p/a", Some("/n")),
            ("/n{path}", "/p/a%3f", Some("/n/p/a%3F")),
            ("/n/{1}", "/p../a", None),
            ("/n/{1}/b", "/p..", None),
            ("/n/.{1}", "/p./a", None),
            ("/n/{1}", "/p..;a/x", None),
            ("/n/{1}?..", "/p...", Some("/n/...?..")),
        ] {
            let router = router(vec![place("/p", how, text, &all)]).unwrap();
            let url = url.replace("/p/", "/p");
            let text_of = made(&router, how, &url);
            let expected = expected.map(|text| text.replace("/p/", "/p"));
            assert_eq!(text_of, expected, "{text} {url}");
        }
    }
}

#[test]
fn variables_that_cannot_be_used_are_found() {
    let patterns = conditions(&["~^/(a)(?<n>.)$", "~^/(b)(?<m>.)(?<host>)$"], &[("q", "~(?<v>.)")]);
    for (text, location, again) in [
        ("/{1}{2}{v}{path}{rest}{query}", &[][..], &[][..]),
        ("/{3}", &[Misuse::NoGroup], &[Misuse::NoGroup]),
        ("/{n}", &[Misuse::NoGroup], &[Misuse::NoGroup]),
        ("/{x}{0}{10}{}{", &[Misuse::Unknown; 5], &[Misuse::Unknown; 5]),
        ("/{host}", &[Misuse::TwoMeanings], &[Misuse::Unknown]),
        ("{1}/", &[Misuse::Host], &[]),
        ("https://a{1}/{1}", &[Misuse::Host], &[]),
        ("https:/{v}", &[Misuse::Host], &[]),
        ("//{path}", &[Misuse::Host], &[]),
        ("/\\{rest}", &[Misuse::Host], &[]),
        ("https://a{query}{1}", &[Misuse::Host], &[]),
        ("https://{query}{path}", &[Misuse::Host], &[]),
        ("https://a{query}#{1}", &[], &[]),
        ("https://a?{1}", &[], &[]),
        ("/a//{1}", &[], &[]),
    ] {
        let found = |is_location| {
            let found = misuses(text, is_location, &patterns);
            found.into_iter().map(|(_, why)| why).collect::<Vec<_>>()
        };
        assert_eq!(found(true), location, "{text}");
        assert_eq!(found(false), again, "{text}");
    }
    for good in [
        "/",
        "/a%20b/{1}?{2}",
        "{path}.html",
        "/a//b",
        "/{rest}/...",
        "/a%2F{rest}",
        "/%3B?..#".trim_end_matches('#'),
    ] {
        assert!(is_target(good), "{good}");
    }
    for bad in [
        "", "a", "{rest}", "{1}", "?a", "/../{1}", "/a/.", "/%2E%2e/", "/%", "/..%2f", "/ ", "/#",
        "/%0a",
    ] {
        assert!(!is_target(bad), "{bad}");
    }
}

#[test]
fn a_target_that_leads_back_is_found_where_no_condition_decides() {
    let plain = Conditions::default();
    let again = |prefix: &str, text: &str| place(prefix, Use::Again, text, &plain);
    let is_loop = |paths| {
        let conflicts = router(paths).err().unwrap_or_default();
        assert!(conflicts.iter().all(|one| matches!(one, Conflict::Loop { .. })), "{conflicts:?}");
        !conflicts.is_empty()
    };
    assert!(is_loop(vec![again("/", "/x{path}")]));
    assert!(is_loop(vec![again("/", "/index")]));
    assert!(is_loop(vec![again("/a/", "/b/{rest}"), again("/b/", "/a/{rest}")]));
    assert!(is_loop(vec![again("/a/", "/a/{rest}{rest}")]));
    assert!(!is_loop(vec![again("/a/", "/b/{rest}"), again("/b/", "/c/{rest}")]));
    let end = path("/x/", Reach::Recursion, vec![content(ContentGroup::All, distributed(0))]);
    assert!(!is_loop(vec![again("/", "/x{path}"), end]));
    let some = conditions(&["/a/*"], &[]);
    assert!(!is_loop(vec![place("/a/", Use::Again, "{path}", &some)]));
    // The path at a server is not that of a URL.
    assert!(!is_loop(vec![place("/a/", Use::AtServer, "/a/{rest}", &plain)]));
    let router = router(vec![place("/a/", Use::AtServer, "/b/{rest}", &plain)]).unwrap();
    let within = router.within(RequestSetId(0), b"/b/x").unwrap();
    assert_eq!(
        (within.action, within.path.tail, within.certain),
        (&distributed(0), &b"/b/x"[..], false)
    );
    assert_eq!(router.within(RequestSetId(1), b"/"), None);
}
