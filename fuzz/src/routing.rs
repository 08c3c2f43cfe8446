//! Promises of the router, and of the parser of the PROXY protocol, that hold for any bytes: one function per
//! fuzz target. They panic when a promise is broken, and are driven like those of `lib.rs`, and by an ordinary
//! test of afpa-router.

use std::sync::OnceLock;

use afpa_framework::preface::{self, MAX_PREFACE, Preface};
use afpa_http::{Host, Method, target};
use afpa_router::{
    Action, Affinity, Conditions, Content, ContentGroup, FieldCondition, FieldSource, GroupId,
    HostPattern, ListenerId, PathEntry, Pattern, Question, Reach, Redirect, Rewrite, RootId,
    Router, SiteEntry, Table,
};

/// Requests: host, path, cookie and method, a line each. The explanation is the same as the verdict, a certain
/// verdict does not depend on fields, no path loses its slash, and no Location can end its line.
pub fn route(data: &[u8]) {
    let mut lines = data.splitn(4, |&byte| byte == b'\n');
    let mut next = || lines.next().unwrap_or_default();
    let (host, path, cookie, method) = (next(), next(), next(), next());
    let (mut scratch, mut scratch_of_target) = (Vec::new(), Vec::new());
    let Ok(path) = target::normalise(path, &mut scratch) else { return };
    let mut spelled = Vec::new();
    target::encode(path, &mut spelled);
    let fields = [("cookie".to_owned(), String::from_utf8_lossy(cookie).into_owned())];
    let question = Question {
        listener: ListenerId(u32::try_from(cookie.len() % 2).unwrap_or(0)),
        // A request with an invalid host is refused before it is routed.
        host: Host::parse(host).map_or("", |host| host.name()),
        method: str::from_utf8(method).map_or(Method::Get, Method::new),
        path,
        query: Some(cookie),
        fields: &fields[..],
    };
    let router = router();
    let verdict = router.route(&question);
    assert_eq!(router.explain(&question).outcome, verdict.map(|verdict| verdict.set));
    let Ok(verdict) = verdict else { return };
    assert_eq!(verdict.path.join(&mut Vec::new()).first(), Some(&b'/'));
    if let Some(location) = verdict.location(&question, &spelled) {
        assert!(!location.iter().any(u8::is_ascii_control));
    }
    if let Some(target) = verdict.target(&question, &spelled) {
        let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
        let again = target::normalise(path, &mut scratch_of_target).map(<[u8]>::len);
        assert!(again.is_ok_and(|length| length > 0) && !target.iter().any(u8::is_ascii_control));
    }
    if verdict.certain {
        let Question { listener, host, .. } = question;
        let (method, query) = (Method::Head, None);
        let bare = Question { listener, host, method, path, query, fields: () };
        assert_eq!(router.route(&bare), Ok(verdict));
    }
}

/// Headers of the PROXY protocol: the parser's verdict never changes once it is given, and no header is longer than
/// the bytes that the server waits for.
pub fn preface(data: &[u8]) {
    let whole = preface::parse(data);
    let mut given = false;
    for end in 0..data.len().min(MAX_PREFACE + 2) {
        let now = preface::parse(&data[..end]);
        given |= now != Ok(None);
        assert!(!given || now == whole, "{now:?} after {end} bytes, {whole:?} in the end");
    }
    match whole {
        Ok(Some((_, length))) => {
            assert!((13..=MAX_PREFACE).contains(&length) && length <= data.len())
        }
        Ok(None) => assert!(data.len() < MAX_PREFACE),
        Err(_) => {}
    }
    if let Ok(Some((Preface::Client(client), _))) = whole {
        assert_eq!(client.ip(), client.ip().to_canonical());
    }
}

/// One of everything.
fn router() -> &'static Router {
    static ROUTER: OnceLock<Router> = OnceLock::new();
    ROUTER.get_or_init(|| Router::compile(&table()).expect("a table without conflicts"))
}

fn table() -> Table {
    let list = |words: &[&str], none, others| ContentGroup::List {
        extensions: words.iter().map(|word| (*word).to_owned()).collect(),
        none,
        others,
    };
    let content =
        |group, action| Content { group, conditions: Conditions::default(), action, rewrite: None };
    let cached = |root| Action::Cached { root: RootId(root), fallback: None, scripts: None };
    let to = |group| Action::Distributed { group: GroupId(group), affinity: Affinity::Client };
    let cookie = FieldCondition {
        source: FieldSource::Cookie,
        name: "beta".to_owned(),
        value: Pattern::new("y*"),
    };
    let mut beta = content(ContentGroup::All, to(1));
    beta.conditions.fields.push(cookie);
    let mut posted = content(list(&["html"], true, false), to(2));
    posted.conditions.methods = vec!["POST".to_owned()];
    let mut below = content(list(&["gif"], true, true), cached(1));
    below.rewrite = Some(Rewrite::Prefix { strip: 4, head: Vec::new() });
    let mut shop = content(ContentGroup::All, to(3));
    shop.rewrite = Some(Rewrite::Prefix { strip: 4, head: b"/shop".to_vec() });
    let location = "https://{host}/new/{rest}{query}".to_owned();
    let moved = content(
        ContentGroup::All,
        Action::Redirect(Redirect { status: afpa_http::Status::MOVED_PERMANENTLY, location }),
    );
    let expression = Pattern::new("~^/re/(a?)(.*?)(?<tail>[^/]*)$");
    let conditions = Conditions { paths: vec![expression], ..Conditions::default() };
    let again = Action::Again("/old/{2}{1}x?t={tail}{query}".into());
    let again = Content { conditions: conditions.clone(), ..content(ContentGroup::All, again) };
    let location = "/{2}{1}?t={tail}".to_owned();
    let grouped = Redirect { status: afpa_http::Status::MOVED_PERMANENTLY, location };
    let grouped = content(list(&["html"], false, false), Action::Redirect(grouped));
    let grouped = Content { conditions, ..grouped };
    let path = |prefix: &str, reach, contents| PathEntry {
        prefix: prefix.as_bytes().to_vec(),
        reach,
        contents,
    };
    let plain = content(list(&["html", "css"], false, false), cached(0));
    let rest = content(ContentGroup::All, to(0));
    let first = vec![
        path("/", Reach::Recursion, vec![plain, rest.clone(), posted]),
        path("/two/", Reach::Recursion, vec![below, shop]),
        path("/beta", Reach::NoRecursion, vec![beta]),
        path("/old/", Reach::Recursion, vec![moved.clone()]),
        path("/re/", Reach::Recursion, vec![grouped, again]),
        path("/old/", Reach::Exact, vec![rest.clone()]),
    ];
    let site = |name: &str, hosts: Vec<HostPattern>, paths| SiteEntry {
        name: name.to_owned(),
        listeners: vec![ListenerId(0)],
        hosts,
        paths,
    };
    let exact = HostPattern::Exact("a.org".to_owned());
    let wild = HostPattern::Below("a.org".to_owned());
    Table {
        sites: vec![
            site("first", vec![exact], first),
            site("second", vec![wild], vec![path("/o", Reach::Recursion, vec![moved])]),
            site("third", Vec::new(), vec![path("/", Reach::Recursion, vec![rest])]),
        ],
    }
}
