//! Places that lead requests back to themselves.

use super::*;

const CERTIFICATE: &str = "[[certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n";

/// The lines and causes of the warnings that a request comes back.
fn rounds(text: &str) -> Vec<(usize, String)> {
    let warnings = parsed(text).unwrap_or_else(|error| panic!("{text}: {error}")).warnings;
    let ours = warnings.into_iter().filter(|one| one.cause.contains("leads back to itself"));
    ours.map(|one| {
        let Location::File(span) = &one.location else { panic!("{text}: {one:?}") };
        (text[..span.start].matches('\n').count() + 1, one.cause)
    })
    .collect()
}

fn site(lines: &str) -> String {
    format!("[[site]]\nroot = \"/\"\n{lines}")
}

fn path(prefix: &str, lines: &str) -> String {
    format!("[[site.path]]\nprefix = \"{prefix}\"\n{lines}\n")
}

#[test]
fn a_redirect_below_itself_is_told_with_its_targets() {
    for (lines, shown) in [
        (path("/old/", "redirect = \"/old/{rest}\""), "/old/x -> /old/x"),
        (path("/docs/", "redirect = \"/docs/{path}\""), "/docs/x -> /docs//docs/x -> "),
        (path("/", "redirect = \"/index.html\""), "/x -> /index.html -> /index.html"),
        (path("/a b/", "redirect = \"/a%20b/c\""), "/a%20b/x -> /a%20b/c -> /a%20b/c"),
        (
            path("/", "if_path = ['~^/blog/(.*)$']\nredirect = \"/blog/{1}/\""),
            "/blog/x -> /blog/x/ -> /blog/x//",
        ),
        (path("/", "if_path = [\"*.php\"]\nredirect = \"/index.php\""), "/index.php"),
        (path("/a", "exact = true\nredirect = \"{path}{query}\""), "/a -> /a"),
        (path("/q/", "if_query = { l = \"de\" }\nredirect = \"/q/de{query}\""), "/q/x?l=de -> "),
    ] {
        let found = rounds(&site(&lines));
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert!(found[0].1.contains(shown), "{lines}: {found:?}");
    }
}

#[test]
fn a_target_that_each_hop_makes_several_times_as_long_is_followed_up_to_a_length() {
    let found = rounds(&site(&path("/", "redirect = \"/a{path}{path}{path}\"")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.contains("/x -> /a/x/x/x -> /a/a/x/x/x"), "{found:?}");
    assert!(found[0].1.len() < 1000, "{found:?}");
    let at_once = format!("redirect = \"/a{}\"", "{path}".repeat(5000));
    let found = rounds(&site(&path("/", &at_once)));
    assert!(found.iter().all(|(_, cause)| cause.ends_with("/x -> ...")), "{found:?}");
}

#[test]
fn circles_over_several_places_are_told_at_each() {
    let two = path("/a/", "redirect = \"/b/{rest}\"") + &path("/b/", "redirect = \"/a/{rest}\"");
    let lines: Vec<usize> = rounds(&site(&two)).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [3, 6]);
    let rewritten = path("/a/", "if_path = ['~^/a/(.*)']\nrewrite = \"/b/{1}\"")
        + &path("/b/", "redirect = \"/a/{rest}\"");
    assert_eq!(rounds(&site(&rewritten)).len(), 2);
    // Led into a circle, but no part of it.
    let outside = path("/in/", "redirect = \"/a/\"") + &two;
    assert_eq!(rounds(&site(&outside)).len(), 2);
}

#[test]
fn what_ends_or_cannot_be_known_is_not_told() {
    for lines in [
        path("/old/", "redirect = \"/new/{rest}\""),
        path("/", "redirect = \"/index.html\"")
            + &path("/index.html", "exact = true\nstatus = 200"),
        path("/a/", "redirect = \"/b/\"") + &path("/b/", "redirect = \"/c/\""),
        // Cookies and fields may change with the answer.
        path("/", "if_headers = { Cookie = \"*\" }\nredirect = \"{path}\""),
        path(
            "/",
            "[[site.path.content]]\nif_cookies = { seen = \"1\" }\nroot = \"/\"\n\
             [[site.path.content]]\nredirect = \"{path}\"",
        ),
        path(
            "/",
            "[[site.path.content]]\nif_query = { seen = \"1\" }\nroot = \"/\"\n\
             [[site.path.content]]\nredirect = \"{path}?seen=1\"",
        ),
        path("/", "if_methods = [\"POST\"]\nredirect = \"{path}\"\nredirect_status = \"303\""),
        path("/", "redirect = \"https://b.example{path}\""),
        path("/", "redirect = \"https://{host}{path}\""),
        path("/", "if_path = ['~^/(.*[^/])$']\nredirect = \"/{1}/\""),
    ] {
        assert_eq!(rounds(&site(&lines)), [], "{lines}");
    }
}

#[test]
fn those_who_are_let_in_do_not_matter_to_those_who_are_not() {
    let some = |networks: &str| {
        site(&format!(
            "[[site.path]]\nprefix = \"/\"\n\
             [[site.path.content]]\nif_clients = [{networks}]\nroot = \"/\"\n\
             [[site.path.content]]\nredirect = \"/maintenance.html\"\n"
        ))
    };
    assert_eq!(rounds(&some("\"10.0.0.0/8\"")).len(), 1);
    assert_eq!(rounds(&some("\"0.0.0.0/0\", \"::/0\"")).len(), 0);
    let page = path("/maintenance.html", "exact = true\nstatus = 503");
    assert_eq!(rounds(&(some("\"10.0.0.0/8\"") + &page)).len(), 0);
    let blocked =
        "[[site.path]]\nprefix = \"/\"\nif_clients = [\"10.0.0.0/8\"]\nredirect = \"/no\"\n";
    assert_eq!(rounds(&site(blocked)).len(), 1);
}

#[test]
fn a_site_that_leads_to_its_own_name_or_to_https_is_told() {
    let both = "listen = [\"0.0.0.0:80\"]\ntls = [\"0.0.0.0:443\"]\n";
    let to_tls = path("/", "redirect = \"https://{host}{path}{query}\"");
    let at = |hosts: &str, listen: &str, lines: &str| {
        format!("{CERTIFICATE}[[site]]\n{hosts}{listen}{lines}")
    };
    let text = at("", both, &to_tls);
    let found = parsed(&text).unwrap().warnings;
    let found = found.iter().find(|one| one.cause.contains("leads back")).expect("a warning");
    assert!(found.remedy.contains("https_only"), "{found:?}");
    assert!(found.cause.contains("https://name.invalid/x"), "{found:?}");
    let names = "hosts = [\"a.example\", \"www.a.example\"]\n";
    let canonical = path("/", "redirect = \"https://a.example{path}\"");
    assert_eq!(rounds(&at(names, both, &canonical)).len(), 1);
    assert_eq!(rounds(&at("hosts = [\"www.a.example\"]\n", both, &canonical)).len(), 0);
    // The name may be anybody's.
    assert_eq!(rounds(&at("", both, &canonical)).len(), 0);
    let secured = "listen = [\"0.0.0.0:80\"]\ntls = [\"0.0.0.0:443\"]\nhttps_only = true\n";
    let back = path("/", "redirect = \"http://{host}{path}\"");
    assert_eq!(rounds(&at(names, secured, &back)).len(), 1);
    let plain = "[[site]]\nlisten = [\"0.0.0.0:80\"]\n".to_owned() + &to_tls;
    assert_eq!(rounds(&plain).len(), 0);
    let apart = format!("{CERTIFICATE}{plain}[[site]]\ntls = [\"0.0.0.0:443\"]\nroot = \"/\"\n");
    assert_eq!(rounds(&apart).len(), 0);
    let port = path("/", "redirect = \"https://{host}:8443{path}\"");
    let other = "listen = [\"0.0.0.0:80\"]\ntls = [\"0.0.0.0:8443\"]\n";
    assert_eq!(rounds(&at("", other, &port)).len(), 1);
    assert_eq!(rounds(&at("", other, &to_tls)).len(), 0);
}

#[test]
fn a_site_that_asks_itself_is_told() {
    let at = |listen: &str, to: &str, more: &str| {
        let listen = format!("[[site]]\nroot = \"/\"\nlisten = [\"{listen}\"]\n");
        listen + &path("/api/", &format!("to = \"{to}\"{more}"))
    };
    for (listen, to) in [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("0.0.0.0:8080", "127.0.0.1:8080"),
        ("[::]:8080", "localhost:8080"),
        ("unix:/run/a", "unix:/run/a"),
    ] {
        let found = rounds(&at(listen, to, ""));
        assert_eq!(found.len(), 1, "{listen} {to}");
        assert!(found[0].1.starts_with("`to` leads back"), "{found:?}");
    }
    assert_eq!(rounds(&at("127.0.0.1:8080", "127.0.0.1:8081", "")).len(), 0);
    assert_eq!(rounds(&at("127.0.0.1:8080", "127.0.0.2:8080", "")).len(), 0);
    // Another place of the same site answers.
    assert_eq!(rounds(&at("127.0.0.1:8080", "127.0.0.1:8080", "\nrewrite = \"/\"")).len(), 0);
}
