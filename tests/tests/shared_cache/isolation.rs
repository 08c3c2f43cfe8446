//! What belongs to one route, one client or one moment, and must not answer others.

use crate::origin::{Asked, Origin, ok};

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
