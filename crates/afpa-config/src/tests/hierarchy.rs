//! Sites, paths and request sets in a file, and the table that the router gets.

use super::*;

#[test]
fn the_common_case_is_three_lines() {
    let text = "[[site]]\nroot = \"/srv\"\nto = \"127.0.0.1:3000\"\n";
    let config = parsed(text).unwrap().config;
    let hierarchy = Hierarchy::of(&config, &mut |_| 0);
    assert_eq!(config.groups.len(), 1);
    assert_eq!(config.groups[0].settings.name, "127.0.0.1:3000");
    let router = afpa_router::Router::compile(&hierarchy.table).unwrap();
    let [cached, rest] = router.sets() else { panic!("{:?}", router.sets()) };
    assert!(cached.name.starts_with("127.0.0.1:8080 / avif,bmp,css"), "{}", cached.name);
    assert_eq!(rest.name, "127.0.0.1:8080 / *");
    assert_eq!(hierarchy.roots.len(), 1);
}

#[test]
fn listeners_keep_the_numbers_that_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.toml");
    let text = |first: &str, second: &str| {
        let site = |address: &str| {
            format!("[[site]]\nlisten = [\"{address}\"]\nto = \"127.0.0.1:3000\"\n")
        };
        site(first) + &site(second)
    };
    let mut listeners = ListenerNumbers::default();
    let mut read = |text: String| {
        std::fs::write(&file, text).unwrap();
        let known = Known { listeners: listeners.clone(), ..Known::default() };
        let loaded = load_by(known, Some(&file), &Overrides::default(), &machine()).unwrap();
        listeners = loaded.routes.listeners.clone();
        let numbers = loaded.routes.hierarchy.table.sites.iter().map(|site| site.listeners[0].0);
        let numbers: Vec<u32> = numbers.collect();
        // The router knows them by these numbers.
        for (number, site) in numbers.iter().zip(0..) {
            let found = loaded.routes.router.site(afpa_router::ListenerId(*number), "any");
            assert_eq!(found, Some(afpa_router::SiteId(site)));
        }
        numbers
    };
    assert_eq!(read(text("127.0.0.1:8001", "127.0.0.1:8002")), [0, 1]);
    assert_eq!(read(text("127.0.0.1:8003", "127.0.0.1:8001")), [2, 0]);
    assert_eq!(read(text("127.0.0.1:8002", "127.0.0.1:8003")), [1, 2]);
}

/// The paper's example of section 4, and what today's users add.
const HIERARCHY: &str = r#"
[[server_group]]
name = "app"
servers = ["127.0.0.1:3000", { to = "10.0.0.2:80", weight = 3 }]
affinity = "client"

[[site]]
hosts = ["www.acme.com", "198.193.16.99"]
root = "/srv/acme"

[[site.path]]
prefix = "/catalog/"
root = "/srv/dogalog"
index = ["default.htm"]

[[site.path.content]]
extensions = ["gif", "html"]

[[site.path.content]]
extensions = ["others", "none"]
to = "app"
rewrite = "/shop/"

[[site.path]]
prefix = "/cgi-bin/"
recursion = false
to = "app"
affinity = "none"

[[site.path]]
prefix = "/old"
exact = true
redirect = "/new{query}"

[[site]]
hosts = ["*.acme.com"]
to = "app"
"#;

#[test]
fn a_hierarchy_becomes_the_router_s_table() {
    use afpa_router::{Action, Affinity, ListenerId, Question, Router};
    let config = parsed(HIERARCHY).unwrap().config;
    let hierarchy = Hierarchy::of(&config, &mut |_| 0);
    let router = Router::compile(&hierarchy.table).unwrap();
    let asked = |host: &'static str, path: &'static str| {
        let question = Question {
            listener: ListenerId(0),
            host,
            method: afpa_http::Method::Get,
            path: path.as_bytes(),
            query: None,
            fields: (),
        };
        let verdict = router.route(&question).unwrap();
        let shown = match verdict.action {
            Action::Cached { root, .. } => {
                let root = hierarchy.root(*root).unwrap();
                format!("{} {:?}", root.directory.display(), root.index)
            }
            Action::Distributed { affinity: Affinity::Client, .. } => "app, client".to_owned(),
            Action::Distributed { .. } => "app".to_owned(),
            Action::Redirect(redirect) => redirect.location.clone(),
            Action::Fixed(fixed) => fixed.status.code().to_string(),
            Action::Again(target) => target.to_string(),
        };
        let path = verdict.path.join(&mut Vec::new()).to_vec();
        (shown, String::from_utf8(path).unwrap())
    };
    let expect = |host, path, shown: &str, below: &str| {
        assert_eq!(asked(host, path), (shown.to_owned(), below.to_owned()), "{host} {path}");
    };
    let dogalog = "/srv/dogalog [\"default.htm\"]";
    expect("www.acme.com", "/catalog/anvils/jumbo.gif", dogalog, "/anvils/jumbo.gif");
    expect("www.acme.com", "/catalog/buy.asp", "app, client", "/shop/buy.asp");
    expect("www.acme.com", "/catalog/", "app, client", "/shop/");
    expect("www.acme.com", "/cgi-bin/x", "app", "/cgi-bin/x");
    expect("www.acme.com", "/cgi-bin/x/y", "/srv/acme [\"index.html\"]", "/cgi-bin/x/y");
    expect("www.acme.com", "/old", "/new{query}", "/old");
    expect("www.acme.com", "/older", "/srv/acme [\"index.html\"]", "/older");
    expect("shop.acme.com", "/catalog/a.gif", "app, client", "/catalog/a.gif");
}

#[test]
fn contradictions_of_the_hierarchy_come_with_line_cause_and_remedy() {
    let group = "[[server_group]]\nname = \"app\"\nservers = [\"127.0.0.1:3000\"]\n";
    let site = "[[site]]\nroot = \"/srv\"\n";
    let in_path = |text: &str| format!("{group}{site}[[site.path]]\nprefix = \"/a/\"\n{text}");
    let content = "[[site.path.content]]\nextensions";
    for (text, expected) in [
        (
            in_path(&format!(
                "{content} = [\"gif\"]\n{content} = [\"html\", \"GIF\"]\nto = \"app\"\n"
            )),
            &[
                ":10:1: error: the extension \"gif\" is in two content groups of the same path",
                "= remove it from one of them",
            ][..],
        ),
        (
            "[[server_group]]\nname = \"app\"\nservers = []\n[[site]]\nto = \"app\"\n".to_owned(),
            &[":3:11: error: `servers`: the list is empty", "= name at least one"],
        ),
        (
            "[[server_group]]\nname = \"app\"\n[[site]]\nto = \"app\"\n".to_owned(),
            &[":2:8: error: server group \"app\" has no `servers`"],
        ),
        (
            format!("{group}[[site]]\nto = \"ap\"\n"),
            &[":5:6: error: there is no server group \"ap\"", "= did you mean \"app\"?"],
        ),
        (
            format!("{site}{site}"),
            &[
                ":3:1: error: the address 127.0.0.1:8080 is in use by site 1, which answers to any host too",
                "= give site 1 or 2 its `hosts`, or another address",
            ],
        ),
        (
            format!("{site}hosts = [\"a.org\"]\n{site}hosts = [\"b.org\", \"A.org\"]\n"),
            &[":6:9: error: the host \"a.org\" on 127.0.0.1:8080 belongs to site 1 already"],
        ),
        (
            format!("{site}hosts = [\"a.org\"]\nproxy_from = [\"10.0.0.0/8\"]\n{site}"),
            &[":4:14: error: two sites on 127.0.0.1:8080 differ in `proxy_from`"],
        ),
        (
            in_path("to = \"app\"\nredirect = \"/b\"\n"),
            &[":9:12: error: `to` and `redirect` are two things to do with one request"],
        ),
        (
            in_path("to = \"app\"\nrewrite = \"/b\"\n"),
            &[":9:11: error: \"/b\" instead of \"/a/\" would lose or double a slash"],
        ),
        (
            in_path("redirect = \"https://b.example{rest}\"\n"),
            &["`redirect` has {rest} behind the name of a host"],
        ),
        (
            in_path("redirect = \"/b/$1\"\n"),
            &[":8:12: error: `redirect`: \"/b/$1\" has $1", "write {1}; for a dollar sign, %24"],
        ),
        (in_path("rewrite = \"/b$request_uri\"\n"), &["has $request_uri", "write {path}{query}"]),
        (in_path("redirect = \"/b{pth}\"\n"), &["`redirect` has {pth}, which stands for nothing"]),
        (
            in_path("status = 304\nbody = \"x\"\n"),
            &[":9:8: error: a response with the status 304 has no content"],
        ),
        (
            in_path("affinity = \"client\"\n"),
            &[":8:12: error: `affinity` has no effect without `to`"],
        ),
        (
            format!("{site}[[site.path]]\nprefix = \"/a//b/\"\n"),
            &[":4:10: error: `prefix`: no path begins with \"/a//b/\"", "= write \"/a/b/\""],
        ),
        (
            format!("{group}{site}to = \"app\"\n[[site.path]]\nprefix = \"/\"\n"),
            &[":6:6: error: `to` has no effect: the section for the path \"/\" decides"],
        ),
        (
            "[[site]]\n[[site.path]]\nprefix = \"/\"\n".to_owned(),
            &[":2:1: error: nothing says what is done with these requests"],
        ),
        (
            format!("{site}[[site.path]]\nprefix = \"/a\"\nroot = \"/x\"\n"),
            &[
                ":5:8: error: `root` replaces the prefix \"/a\", which does not end with a slash",
                "= use the prefix \"/a/\"",
            ],
        ),
        (
            "[[site]]\nto = \"127.0.0.1\"\n".to_owned(),
            &["error: there is no server group \"127.0.0.1\""],
        ),
        (
            "[[site]]\nto = \"127.0.0.1:0\"\n".to_owned(),
            &[":2:6: error: `to`: \"127.0.0.1:0\" has no port that exists"],
        ),
        (
            format!("{group}[server_group.helth]\nrefused = 2\n[[site]]\nto = \"app\"\n"),
            &[
                ":4:15: error: unknown setting `helth` in [[server_group]]",
                "= did you mean `health`?",
            ],
        ),
        (
            group.replace("\"127.0.0.1:3000\"", "{ to = \"a:1\", wieght = 2 }")
                + "[[site]]\nto = \"app\"\n",
            &["unknown setting `wieght` of a server", "= did you mean `weight`?"],
        ),
    ] {
        let message = refused(&text);
        for expected in expected {
            assert!(
                message.contains(expected),
                "{expected:?} is missing in\n{message}\nof\n{text}"
            );
        }
    }
}

#[test]
fn servers_are_asked_by_http2_only_where_a_group_says_so() {
    let read = |lines: &str| {
        let site = "[[site]]\nto = \"app\"\n";
        let group = "[[server_group]]\nname = \"app\"\nservers = [\"127.0.0.1:3000\"]\n";
        parsed(&format!("{group}{lines}{site}")).map(|loaded| loaded.config.groups[0].clone())
    };
    assert_eq!(read("").unwrap().settings.http2, None);
    assert_eq!(read("[server_group.streams]\nmost = 3\n").unwrap().settings.http2, None);
    let limits = read("http2 = true\n").unwrap().settings.http2.expect("it says so");
    assert_eq!((limits.streams, limits.stream_window), (100, 256 * 1024));
    assert_eq!((limits.connection_window, limits.head), (100 * 256 * 1024, 32 * 1024));
    let lines = "http2 = true\n[server_group.streams]\nmost = 1024\nwindow = \"16MiB\"\n\
                 [server_group.connections]\nhead = \"2KiB\"\n";
    let limits = read(lines).unwrap().settings.http2.expect("it says so");
    assert_eq!((limits.streams, limits.block, limits.head), (1024, 64 * 1024, 2048));
    assert!(u64::from(limits.connection_window) >= 1 << 31, "one for each stream, if it can be");
    for (line, wrong) in [
        ("most = 0", "`most`"),
        ("most = 1025", "`most`"),
        ("window = \"63KiB\"", "`window`"),
        ("window = \"17MiB\"", "`window`"),
    ] {
        let error = read(&format!("http2 = true\n[server_group.streams]\n{line}\n")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(wrong) && error.contains(":6:"), "{error}");
    }
}

#[test]
fn thousands_of_request_sets_are_read_at_once() {
    use std::fmt::Write as _;
    let mut text = "[[site]]\nroot = \"/srv\"\n".to_owned();
    for number in 0..2_000 {
        let _ = writeln!(text, "[[site.path]]\nprefix = \"/p{number}/\"\nto = \"127.0.0.1:3000\"");
    }
    let config = parsed(&text).unwrap().config;
    let hierarchy = Hierarchy::of(&config, &mut |_| 0);
    let router = afpa_router::Router::compile(&hierarchy.table).unwrap();
    assert_eq!(router.sets().len(), 2_001);
}

#[test]
fn options_of_a_site_are_refused_when_there_are_several() {
    let mut overrides = Overrides::default();
    overrides.list("site", "listen", "--listen", &["[::1]:81".to_owned()]);
    let text = "[[site]]\nroot = \"/a\"\nhosts = [\"a.org\"]\n[[site]]\nroot = \"/b\"\n";
    let error = parse_text(Source::new("f", text), &overrides, &machine()).unwrap_err().to_string();
    assert!(error.contains("--listen: error: this is for one site, and the file has 2"), "{error}");
}

#[test]
fn a_site_with_single_brackets_and_a_section_with_a_value_are_explained() {
    assert!(refused("[site]\nroot = \"/a\"\n").contains("= write [[site]]"));
    let path = refused("[[site]]\nroot = \"/a\"\n[site.path]\nprefix = \"/\"\n");
    assert!(path.contains("= write [[site.path]]"), "{path}");
    assert!(refused("limits = 3\n").contains("`limits` is a section, not a number"));
}

#[test]
fn sites_that_agree_share_a_root() {
    let site = |host: &str, root: &str, more: &str| {
        format!("[[site]]\nhosts = [\"{host}\"]\nroot = \"{root}\"\n{more}")
    };
    let text = [
        site("a.org", "/srv/a", ""),
        site("b.org", "/srv/a", "hsts = \"none\"\n"),
        site("c.org", "/srv/b", ""),
        site("d.org", "/srv/a", "listing = true\n"),
        site("e.org", "/srv/a", "headers = { X-A = \"1\" }\n"),
        site("f.org", "/srv/a", "index = [\"other.html\"]\n"),
        site("g.org", "/srv/a", "symlinks = \"never\"\n"),
        site("h.org", "/srv/a", "types = { x = \"text/x\" }\n"),
        site("i.org", "/srv/a", "dotfiles = true\n"),
        site("j.org", "/srv/a", "listing = true\n"),
        site("l.org", "/srv/a", "homes = true\n"),
        site("m.org", "/srv/a", "[[site.hint]]\nkeep = \"always\"\n"),
        site("n.org", "/srv/a", "[[site.filter]]\ncharset = \"none\"\n"),
    ];
    let config = parsed(&text.concat()).unwrap().config;
    let hierarchy = Hierarchy::of(&config, &mut |_| 0);
    let root = |site: &afpa_router::SiteEntry| match site.paths[0].contents[0].action {
        afpa_router::Action::Cached { root, .. } => root.0,
        _ => panic!("it has a root"),
    };
    let roots: Vec<u32> = hierarchy.table.sites.iter().map(root).collect();
    assert_eq!(roots, [0, 0, 1, 2, 3, 4, 5, 6, 7, 2, 8, 9, 10]);
    assert_eq!(hierarchy.roots[2].site, 3, "the first that lists");
}
