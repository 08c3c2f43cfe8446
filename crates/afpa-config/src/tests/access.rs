//! `allow` and `deny`, and which of them decide for a path.

use afpa_http::Method;
use afpa_router::{ListenerId, Question, SiteId};

use super::*;

/// A request for a path.
fn question(path: &str) -> Question<'_, ()> {
    Question {
        listener: ListenerId(0),
        host: "",
        method: Method::Get,
        path: path.as_bytes(),
        query: None,
        fields: (),
    }
}

/// The first prefix that is allowed or denied for a path; `None`: everybody may use it.
fn decides(loaded: &Loaded, path: &str) -> Option<String> {
    let guarded = &loaded.routes.guarded.addresses;
    let verdict = guarded.router.route_in(SiteId(0), &question(path)).ok()?;
    let access = &guarded.demands[verdict.set.0 as usize];
    access.allow.iter().chain(&access.deny).next().map(ToString::to_string)
}

#[test]
fn the_nearest_lists_decide() {
    let text = "[[site]]\nroot = \"/\"\ndeny = [\"10.0.0.0/32\"]\n\
        [[site.path]]\nprefix = \"/a/\"\nallow = [\"10.0.0.1\"]\n\
        [[site.path.content]]\nextensions = [\"css\"]\ndeny = [\"10.0.0.2\"]\n\
        [[site.path.content]]\nextensions = [\"js\"]\n\
        [[site.path]]\nprefix = \"/a/b/\"\n\
        [[site.path]]\nprefix = \"/a/c/\"\nrecursion = false\nallow = [\"10.0.0.3\"]\n\
        [[site.path]]\nprefix = \"/d\"\nexact = true\nstatus = 200\nallow = [\"10.0.0.4\"]\n\
        [[site.path]]\nprefix = \"/\"\n[[site.path.content]]\nextensions = [\"php\"]\nallow = [\"10.0.0.5\"]\n";
    let loaded = parsed(text).unwrap();
    for (path, address) in [
        ("/", "10.0.0.0"),
        ("/x.css", "10.0.0.0"),
        ("/x.php", "10.0.0.5"),
        ("/a", "10.0.0.0"),
        ("/a/", "10.0.0.1"),
        ("/a/x", "10.0.0.1"),
        // Neither a content group nor a path without lists lets in more than its surroundings do.
        ("/a/x.js", "10.0.0.1"),
        ("/a/b/x", "10.0.0.1"),
        ("/a/x.css", "10.0.0.2"),
        ("/a/b/x.css", "10.0.0.2"),
        ("/a/c/x", "10.0.0.3"),
        ("/a/c/d/x", "10.0.0.1"),
        ("/d", "10.0.0.4"),
        ("/de", "10.0.0.0"),
    ] {
        assert_eq!(decides(&loaded, path).as_deref(), Some(address), "{path}");
    }
    let open = "[[site]]\nroot = \"/\"\n[[site.path]]\nprefix = \"/a/\"\nallow = [\"::1\"]\n";
    let loaded = parsed(open).unwrap();
    assert_eq!((decides(&loaded, "/a/b").as_deref(), decides(&loaded, "/b")), (Some("::1"), None));
}

#[test]
fn a_wrong_prefix_has_its_place_and_a_remedy() {
    let text = |line: &str| format!("[[site]]\nroot = \"/\"\n{line}\n");
    let message = refused(&text("allow = [\"all\"]"));
    assert!(message.contains("afpa.toml:3:10: error: `allow`: \"all\" is neither"), "{message}");
    let message = refused(&text("deny = [\"10.0.0.1/8\"]"));
    assert!(message.contains("afpa.toml:3:9: error: `deny`: \"10.0.0.1/8\" has bits"), "{message}");
    assert!(message.contains("= write 10.0.0.0/8 for all of it"), "{message}");
}

/// The file whose users may use a path, and the address that may; `none`: nobody is asked.
fn asked_for(loaded: &Loaded, path: &str) -> (Option<String>, Option<String>) {
    let question = Question {
        listener: ListenerId(0),
        host: "",
        method: Method::Get,
        path: path.as_bytes(),
        query: None,
        fields: (),
    };
    let guarded = &loaded.routes.guarded.passwords;
    let verdict = guarded.router.route_in(SiteId(0), &question).ok();
    let demand = verdict.map(|verdict| &guarded.demands[verdict.set.0 as usize]);
    let file = demand.map(|demand| match demand {
        BasicAuth::Off => "none".to_owned(),
        BasicAuth::Users { file, .. } => file.display().to_string(),
    });
    (file, decides(loaded, path))
}

#[test]
fn addresses_and_passwords_are_inherited_each_by_itself() {
    let text = "[[site]]\nroot = \"/\"\nbasic_auth = \"/u/site\"\n\
        [[site.path]]\nprefix = \"/a/\"\nallow = [\"10.0.0.1\"]\n\
        [[site.path]]\nprefix = \"/a/b/\"\nbasic_auth = \"/u/b\"\n\
        [[site.path.content]]\nextensions = [\"css\"]\nbasic_auth = \"none\"\n\
        [[site.path]]\nprefix = \"/a/b/c/\"\nbasic_auth = \"site\"\nallow = [\"10.0.0.2\"]\n\
        [[site.path]]\nprefix = \"/open/\"\nbasic_auth = \"none\"\n";
    let loaded = parsed(text).unwrap();
    for (path, file, address) in [
        ("/", "/u/site", None),
        ("/a/x", "/u/site", Some("10.0.0.1")),
        ("/a/b/x", "/u/b", Some("10.0.0.1")),
        ("/a/b/x.css", "none", Some("10.0.0.1")),
        ("/a/b/c/x", "/u/b", Some("10.0.0.2")),
        ("/open/x", "none", None),
    ] {
        let (file, address) = (Some(file.to_owned()), address.map(str::to_owned));
        assert_eq!(asked_for(&loaded, path), (file, address), "{path}");
    }
    let open = "[[site]]\nroot = \"/\"\n[[site.path]]\nprefix = \"/a/\"\nbasic_auth = \"/u\"\n";
    assert_eq!(asked_for(&parsed(open).unwrap(), "/b"), (None, None));
    let message =
        refused("[[site]]\nroot = \"/\"\nbasic_auth = \"u\"\nbasic_auth_realm = \"\u{fc}\"\n");
    assert!(message.contains("afpa.toml:4:20: error: `basic_auth_realm`"), "{message}");
    let message = refused("[[site]]\nroot = \"/\"\nbasic_auth_realm = \"x\"\n");
    assert!(message.contains("afpa.toml:3:") && message.contains("has no effect"), "{message}");
}

#[test]
fn servers_that_are_asked_are_inherited_and_groups_like_others() {
    let text = "[[site]]\nroot = \"/\"\nforward_auth = \"portal\"\nforward_auth_path = \"/verify\"\n\
        [[site.path]]\nprefix = \"/a/\"\nforward_auth = \"10.0.0.1:90\"\nforward_auth_path = \"/v?x=1\"\n\
        forward_auth_copy = [\"Remote-User\"]\n\
        [[site.path.content]]\nextensions = [\"css\"]\nforward_auth = \"none\"\n\
        [[site.path]]\nprefix = \"/a/b/\"\nforward_auth = \"site\"\n\
        [[server_group]]\nname = \"portal\"\nservers = [\"127.0.0.1:1\"]\n";
    let loaded = parsed(text).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let guarded = &loaded.routes.guarded.consents;
    for (path, asked) in [
        ("/", "portal /verify "),
        ("/a/x", "10.0.0.1:90 /v?x=1 Remote-User"),
        ("/a/x.css", "none"),
        ("/a/b/x", "10.0.0.1:90 /v?x=1 Remote-User"),
    ] {
        let verdict = guarded.router.route_in(SiteId(0), &question(path)).unwrap();
        let said = match &guarded.demands[verdict.set.0 as usize] {
            ForwardAuth::Off => "none".to_owned(),
            ForwardAuth::Server { to, path, copy } => format!("{to} {path} {}", copy.join(" ")),
        };
        assert_eq!(said, asked, "{path}");
    }
    let names = |config: &Config| {
        config.groups.iter().map(|group| group.settings.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&loaded.config), ["portal", "10.0.0.1:90"]);
}

#[test]
fn a_server_that_cannot_be_asked_has_its_place_and_a_remedy() {
    let path = "forward_auth_path = \"/v\"\n";
    for (lines, place, cause, remedy) in [
        ("forward_auth = \"127.0.0.1:1\"\n", "3:16", "without `forward_auth_path`", "Authelia"),
        (
            "forward_auth = \"portal\"\nforward_auth_path = \"/v\"\n",
            "3:16",
            "there is no server group \"portal\"",
            "[[server_group]]",
        ),
        (path, "3:21", "no effect without `forward_auth`", "remove it"),
        ("forward_auth_copy = [\"A\"]\n", "3:21", "no effect", "remove it"),
        (
            "forward_auth = \"127.0.0.1:1\"\nforward_auth_path = \"v\"\n",
            "4:21",
            "is not the path of a URL",
            "begin it with a slash",
        ),
        (
            "forward_auth = \"127.0.0.1:1\"\nforward_auth_path = \"/v\"\nforward_auth_copy = [\"Host\"]\n",
            "5:22",
            "Host decides which answer",
            "`host`",
        ),
        ("forward_auth_copy = [\"Set-Cookie\"]\n", "3:22", "nothing about the user", "reach"),
        ("forward_auth_copy = [\"Transfer-Encoding\"]\n", "3:22", "frames the message", "remove"),
        ("forward_auth_copy = [\"a b\"]\n", "3:22", "not a field name", "hyphens"),
    ] {
        let message = refused(&format!("[[site]]\nroot = \"/\"\n{lines}"));
        let is_told = message.contains(&format!("afpa.toml:{place}: error"));
        assert!(is_told && message.contains(cause) && message.contains(remedy), "{message}");
    }
    let fastcgi = "[[site]]\nroot = \"/\"\nphp = \"127.0.0.1:1\"\n\
        forward_auth = \"127.0.0.1:1\"\nforward_auth_path = \"/v\"\n";
    assert!(refused(fastcgi).contains("is asked by HTTP in another place"));
}

#[test]
fn passwords_that_others_can_read_are_told() {
    let users = "basic_auth = \"/etc/users\"\n";
    let path = "[[site.path]]\nprefix = \"/a/\"\n";
    let content = "[[site.path.content]]\nextensions = [\"x\"]\n";
    let tls = "tls = [\"0.0.0.0:443\"]\n";
    let names = "acme.domains = [\"a.example\"]\n";
    for (listen, rest, told) in [
        ("0.0.0.0:80", users.to_owned(), true),
        ("[::]:80", format!("{path}{users}"), true),
        ("192.0.2.1:80", format!("{path}{content}{users}"), true),
        ("0.0.0.0:80", format!("{tls}{users}"), true),
        ("0.0.0.0:80", format!("{tls}https_only = true\n{users}"), false),
        ("0.0.0.0:80", format!("forwarded_from = [\"192.0.2.0/24\"]\n{users}"), false),
        ("0.0.0.0:80", format!("proxy_from = [\"192.0.2.0/24\"]\n{users}"), false),
        ("127.0.0.1:80", users.to_owned(), false),
        ("[::1]:80", users.to_owned(), false),
        ("unix:/run/a.sock", users.to_owned(), false),
        ("0.0.0.0:80", format!("{path}basic_auth = \"none\"\n"), false),
    ] {
        let top = if rest.starts_with("tls") { names } else { "" };
        let text = format!("{top}[[site]]\nlisten = [\"{listen}\"]\nroot = \"/\"\n{rest}");
        let warnings = match parsed(&text) {
            Ok(loaded) => loaded.warnings,
            Err(error) => panic!("{text}: {error}"),
        };
        let mut found = warnings.iter().filter(|one| one.cause.contains("without TLS"));
        assert_eq!(found.next().is_some(), told, "{text}: {warnings:?}");
        assert!(found.next().is_none(), "{text}: {warnings:?}");
    }
}
