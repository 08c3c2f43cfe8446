//! Which request sets requests reach: a site's root stands behind everything, and a section that no request reaches is
//! reported.

use super::*;
use afpa_http::Method;
use afpa_router::{Action, ListenerId, Question, Router};

const SITE: &str = "[[site]]\nroot = \"/srv\"\n";
const WHOLE: &str = "[[site.path]]\nprefix = \"/\"\n";

/// The outcome of a request: the directory, `to`, a status, or `404`.
fn routed(text: &str, method: &str, path: &str, fields: &[(String, String)]) -> String {
    let config = parsed(text).unwrap_or_else(|error| panic!("{error}\n{text}")).config;
    let hierarchy = Hierarchy::of(&config, &mut |_| 0);
    let router = Router::compile(&hierarchy.table).expect("no conflict");
    let question = Question {
        listener: ListenerId(0),
        host: "a.test",
        method: Method::new(method),
        path: path.as_bytes(),
        query: None,
        fields,
    };
    match router.route(&question).map(|verdict| verdict.action) {
        Ok(Action::Cached { root, .. }) => {
            hierarchy.root(*root).unwrap().directory.display().to_string()
        }
        Ok(Action::Distributed { .. }) => "to".to_owned(),
        Ok(Action::Redirect(redirect)) => redirect.status.code().to_string(),
        Ok(Action::Again(target)) => target.to_string(),
        Ok(Action::Fixed(fixed)) => fixed.status.code().to_string(),
        Err(_) => "404".to_owned(),
    }
}

fn group(lines: &str) -> String {
    format!("[[site.path.content]]\n{lines}\n")
}

#[test]
fn a_sites_root_has_what_the_sections_for_its_paths_leave_over() {
    let to = "to = \"127.0.0.1:3000\"";
    let php = group(&format!("extensions = [\"php\"]\n{to}"));
    let post = group(&format!("if_methods = [\"POST\"]\n{to}"));
    let beta = group(&format!("if_cookies = {{ beta = \"*\" }}\n{to}"));
    let none = group(&format!("extensions = [\"none\"]\n{to}"));
    let plain = "[[site.path]]\nprefix = \"/a/\"\n";
    for (lines, asked) in [
        (
            format!("{WHOLE}{php}"),
            &[("GET /x.php", "to"), ("GET /x.html", "/srv"), ("GET /", "/srv")][..],
        ),
        (
            format!("{WHOLE}{post}"),
            &[("POST /x", "to"), ("GET /x", "/srv"), ("GET /x.html", "/srv")],
        ),
        (format!("{WHOLE}{beta}"), &[("GET /x", "/srv"), ("POST /x", "/srv")]),
        (format!("{WHOLE}{none}"), &[("GET /x", "to"), ("GET /", "to"), ("GET /x.y", "/srv")]),
        (
            format!("{WHOLE}{php}{post}"),
            &[("POST /x.y", "to"), ("GET /x.php", "to"), ("GET /x.y", "/srv")],
        ),
        (
            format!("{WHOLE}if_methods = [\"POST\"]\n{to}\n"),
            &[("POST /x", "to"), ("GET /x", "/srv")],
        ),
        (format!("{WHOLE}exact = true\n{to}\n"), &[("GET /", "to"), ("GET /x", "/srv")]),
        (format!("{WHOLE}recursion = false\n{to}\n"), &[("GET /x", "to"), ("GET /x/y", "/srv")]),
        (
            format!("{WHOLE}root = \"/other\"\n{php}"),
            &[("GET /x.php", "to"), ("GET /x.html", "/srv")],
        ),
        (format!("{WHOLE}status = 410\n{php}"), &[("GET /x.php", "to"), ("GET /x.html", "410")]),
        (format!("{WHOLE}{to}\n"), &[("GET /x.html", "to")]),
        (
            format!("{plain}{php}"),
            &[("GET /a/x.php", "to"), ("GET /a/x", "/srv"), ("GET /x.php", "/srv")],
        ),
        (
            format!("{plain}{to}\n{WHOLE}{php}"),
            &[("GET /a/x", "to"), ("GET /b.php", "to"), ("GET /b", "/srv")],
        ),
    ] {
        for (request, expected) in asked {
            let (method, path) = request.split_once(' ').unwrap();
            assert_eq!(
                routed(&format!("{SITE}{lines}"), method, path, &[]),
                *expected,
                "{request}\n{lines}"
            );
        }
    }
    let cookie = [("Cookie".to_owned(), "beta=1".to_owned())];
    assert_eq!(routed(&format!("{SITE}{WHOLE}{beta}"), "GET", "/x", &cookie), "to");
    let without = format!("[[site]]\n{WHOLE}{php}");
    assert_eq!(routed(&without, "GET", "/x.html", &[]), "404", "there is no root");
}

#[test]
fn what_no_request_reaches_is_a_warning() {
    let to = "to = \"127.0.0.1:3000\"";
    let rest = group(&format!("extensions = [\"none\", \"others\"]\n{to}"));
    let get = group(&format!("if_methods = [\"GET\"]\nextensions = [\"a\"]\n{to}"));
    let head = group(&format!("if_methods = [\"HEAD\"]\nextensions = [\"a\"]\n{to}"));
    let site = |lines: &str| format!("{SITE}{lines}");
    for (text, line, warning) in [
        (site(&format!("{WHOLE}{to}\n{rest}")), 3, "no request reaches this"),
        (site(&format!("{WHOLE}{rest}{}", group("status = 404"))), 8, "no request reaches this"),
        (site(&format!("{WHOLE}{get}{head}")), 9, "no request reaches this"),
        (
            site(&format!(
                "[[site.path]]\nprefix = \"/robots.txt\"\nexact = true\n{}",
                group(&format!("extensions = [\"html\"]\n{to}"))
            )),
            6,
            "no request reaches this",
        ),
        (site(&format!("{WHOLE}{to}\n")), 2, "`root` has no effect"),
        (site(&format!("{WHOLE}root = \"/other\"\n")), 2, "`root` has no effect"),
        (
            format!("[[site]]\n{WHOLE}root = \"/other\"\n{}", group("extensions = [\"html\"]")),
            4,
            "requests that fit no content group of this path are answered with 404",
        ),
        (
            site(&format!(
                "{WHOLE}root = \"/other\"\n{}",
                group(&format!("extensions = [\"php\"]\n{to}"))
            )),
            5,
            "`root` has no effect: each content group",
        ),
    ] {
        let warnings = parsed(&text).unwrap().rendered_warnings();
        assert!(warnings.contains(warning), "no {warning:?} for\n{text}\n{warnings}");
        let place = format!("afpa.toml:{line}:");
        assert!(warnings.contains(&place), "not at {place}\n{text}\n{warnings}");
    }
    for text in [
        site(&format!("{WHOLE}{head}{get}")),
        site(&format!("{WHOLE}{get}")),
        site(&format!("{WHOLE}{}", group("extensions = [\"html\"]"))),
        site(&format!("[[site.path]]\nprefix = \"/a/\"\n{to}\n")),
        format!("[[site]]\n{WHOLE}root = \"/srv\"\n{}{rest}", group("extensions = [\"html\"]")),
    ] {
        let warnings = parsed(&text).unwrap().rendered_warnings();
        assert!(
            !warnings.contains("no request reaches") && !warnings.contains("`root`"),
            "{text}\n{warnings}"
        );
    }
}
