//! Answers that belong to one route, one client or one moment, and must not be given to others.

use crate::origin::{Asked, Origin, Reply, message, ok};

const FRESH: &str = "Cache-Control: max-age=600\r\n";

fn named(name: &'static str) -> Origin {
    Origin::start(move |asked: &Asked| ok(FRESH, &format!("{name} {}", asked.target)))
}

#[test]
fn routes_that_conditions_tell_apart_keep_their_own_answers() {
    let (stable, beta, german) = (named("stable"), named("beta"), named("german"));
    let (to_beta, to_german) = (beta.to(), german.to());
    let to_stable = stable.to();
    let proxy = stable.proxy(&format!(
        "[[site.path]]\nprefix = \"/app/\"\nto = \"{to_stable}\"\n\
         [[site.path.content]]\nif_headers = {{ X-Version = \"beta\" }}\nto = \"{to_beta}\"\n\
         [[site.path.content]]\nif_cookies = {{ lang = \"de\" }}\nto = \"{to_german}\""
    ));
    let mut client = proxy.connect();
    for _ in 0..2 {
        assert_eq!(client.get_with("/app/", "X-Version: beta\r\n").text(), "beta /app/");
        assert_eq!(client.get_with("/app/", "Cookie: lang=de\r\n").text(), "german /app/");
        assert_eq!(client.get("/app/").text(), "stable /app/");
    }
    assert_eq!([&stable, &beta, &german].map(|origin| origin.count("/app/")), [1, 1, 1]);
}

#[test]
fn paths_that_become_one_keep_their_own_answers() {
    let (one, other) = (named("one"), named("other"));
    let (to_one, to_other) = (one.to(), other.to());
    let proxy = one.proxy(&format!(
        "[[site.path]]\nprefix = \"/one/\"\nto = \"{to_one}\"\nrewrite = \"/\"\n\
         [[site.path]]\nprefix = \"/other/\"\nto = \"{to_other}\"\nrewrite = \"/\""
    ));
    for _ in 0..2 {
        assert_eq!(proxy.get("/one/x").text(), "one /x");
        assert_eq!(proxy.get("/other/x").text(), "other /x");
    }
    assert_eq!((one.count("/x"), other.count("/x")), (1, 1));
}

/// A field that the client's Connection names does not reach the server, which answers as if it were not there.
#[test]
fn a_field_for_this_connection_alone_fills_no_place_for_its_value() {
    let origin = Origin::start(|asked: &Asked| {
        let of = |name| asked.field(name).unwrap_or_default();
        let text = format!("{} {}", of("X-Lang"), of("Cookie"));
        ok(&format!("{FRESH}Vary: X-Lang\r\n"), &text)
    });
    let proxy = origin.proxy("cookies = [\"lang\"]");
    let mut client = proxy.connect();
    let fields = "X-Lang: de\r\nCookie: lang=de\r\n";
    for name in ["x-lang", "Cookie", "close, X-LANG"] {
        let evil = format!("{fields}Connection: {name}\r\n");
        proxy.connect().get_with("/", &evil);
    }
    assert_eq!(client.get_with("/", fields).text(), "de lang=de");
    let asked = origin.count("/");
    let kept = client.get_with("/", &format!("{fields}Connection: keep-alive\r\n"));
    assert_eq!(
        (kept.text(), origin.count("/")),
        ("de lang=de", asked),
        "and this is no such field"
    );
}

/// The server gets the value that the proxy writes into such a field, and no key has it.
#[test]
fn what_varies_by_a_field_of_the_proxy_is_not_kept() {
    for name in ["X-Forwarded-For", "via"] {
        let origin = Origin::start(move |_| ok(&format!("{FRESH}Vary: {name}\r\n"), "mine"));
        let proxy = origin.proxy("");
        proxy.get("/");
        proxy.get("/");
        assert_eq!(origin.count("/"), 2, "{name}");
    }
    for name in ["Host", "X-Forwarded-Proto", "X-Forwarded-Host"] {
        let origin = Origin::start(move |_| ok(&format!("{FRESH}Vary: {name}\r\n"), "mine"));
        let proxy = origin.proxy("");
        proxy.get("/");
        proxy.get("/");
        assert_eq!(origin.count("/"), 1, "the key has {name}");
    }
}

/// A server that has to be asked each time, and says with its 304 that the answer is for one user now.
#[test]
fn a_validation_may_end_what_was_for_everybody() {
    for fields in [
        "Set-Cookie: session=secret\r\n",
        "Cache-Control: private\r\n",
        "Cache-Control: no-store\r\n",
        "Vary: *\r\n",
    ] {
        let origin = Origin::start(move |asked: &Asked| {
            let plain = "ETag: \"1\"\r\nCache-Control: max-age=0\r\n";
            let own = asked.field("Cookie").is_some();
            let of_user = if own { fields } else { "" };
            match asked.field("If-None-Match") {
                Some(_) => {
                    let fields = match of_user.starts_with("Cache-Control") {
                        true => format!("ETag: \"1\"\r\n{of_user}"),
                        false => format!("{plain}{of_user}"),
                    };
                    Reply::Bytes(format!("HTTP/1.1 304 X\r\n{fields}\r\n").into_bytes())
                }
                None if own => ok(of_user, "of one user"),
                None => Reply::Bytes(message(200, plain, "for everybody")),
            }
        });
        let proxy = origin.proxy("");
        assert_eq!(proxy.get("/").text(), "for everybody");
        let mut client = proxy.connect();
        let own = client.get_with("/", "Cookie: me\r\n");
        assert_eq!(own.text(), "of one user", "after {fields:?}");
        let next = proxy.get("/");
        assert_eq!(next.text(), "for everybody", "after {fields:?}");
        for name in ["Set-Cookie", "Vary"] {
            assert_eq!(next.field(name), None, "after {fields:?}");
        }
        assert_eq!(next.field("Cache-Control"), Some("max-age=0"), "after {fields:?}");
    }
}

#[test]
fn a_url_is_dropped_under_whatever_query_it_was_kept() {
    let origin = Origin::start(|asked: &Asked| match asked.method.as_str() {
        "GET" => ok(FRESH, &format!("answer {}", asked.number)),
        _ => Reply::Bytes(message(204, "", "")),
    });
    let proxy = origin.proxy(
        "query = \"without\"\nquery_names = [\"utm_*\"]\nquery_sort = true\npurge_from = [\"127.0.0.0/8\"]",
    );
    let ends = [
        "POST /?b=1&a=2&utm_x=y HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n",
        "PURGE /?b=1&utm_x=y&a=2 HTTP/1.1\r\nHost: test\r\n\r\n",
    ];
    for (number, end) in ends.into_iter().enumerate() {
        assert_eq!(proxy.get("/?utm_source=x&b=1&a=2").text(), format!("answer {}", number + 1));
        assert_eq!(proxy.get("/?a=2&b=1").text(), format!("answer {}", number + 1));
        proxy.connect().exchange(end);
    }
    assert_eq!(origin.count("/?a=2&b=1"), 0, "all that was asked for had another query");
}
