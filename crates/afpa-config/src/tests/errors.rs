//! Error pages in whole files.

use super::*;

fn site(lines: &str) -> String {
    format!("[[site]]\nroot = \"/srv\"\n{lines}\n")
}

#[test]
fn pages_of_errors_are_in_the_order_in_which_they_count() {
    let text = site(
        r#"
        [[site.errors]]
        file = "all.html"
        [[site.errors]]
        status = ["5xx", 404]
        file = "{status}.html"
        [[site.path]]
        prefix = "/api/"
        to = "127.0.0.1:3000"
        [[site.path.errors]]
        status = ["4xx"]
        to = "127.0.0.1:3001"
        intercept = true
        [[site.path.content]]
        extensions = ["php"]
        [[site.path.content.errors]]
        status = [502]
        answer = 200
        "#,
    );
    let config = parsed(&text).unwrap().config;
    let site = &config.sites[0];
    let path = &site.paths[0];
    let ranges = |path, content| {
        error_pages(site, path, content).iter().map(|(_, range)| *range).collect::<Vec<_>>()
    };
    assert_eq!(ranges(None, None), [(404, 404), (500, 599), (400, 599)]);
    let all = ranges(Some(path), path.contents.first());
    assert_eq!(all, [(502, 502), (400, 499), (404, 404), (500, 599), (400, 599)]);
    assert!(config.groups.iter().any(|group| group.settings.name == "127.0.0.1:3001"));
}

#[test]
fn wrong_pages_are_refused_with_line_and_remedy() {
    for (lines, line, cause) in [
        ("status = [200]", 4, "neither the status of an error"),
        ("status = [\"3xx\"]", 4, "neither the status of an error"),
        ("status = [\"xx\"]", 4, "neither the status of an error"),
        ("to = \"nobody\"", 4, "nobody"),
        ("path = \"/x\"", 4, "no effect without `to`"),
        ("to = \"127.0.0.1:1\"\npath = \"x\"", 5, "is not the path of a URL"),
        ("to = \"127.0.0.1:1\"\npath = \"/a b\"", 5, "is not the path of a URL"),
        ("to = \"127.0.0.1:1\"\npath = \"/a\\r\\nHost: b\"", 5, "is not the path of a URL"),
        ("file = \"a\"\nto = \"127.0.0.1:1\"", 5, "not from both"),
        ("answer = 302", 4, "no status that an error page can have"),
        ("answer = 206", 4, "no status that an error page can have"),
        ("answer = 205", 4, "no status that an error page can have"),
        ("answer = 401", 4, "no status that an error page can have"),
        ("answer = 99", 4, "no status that an error page can have"),
    ] {
        let error = parsed(&site(&format!("[[site.errors]]\n{lines}"))).unwrap_err().to_string();
        assert!(error.contains(cause), "{lines}: {error}");
        assert!(error.contains(&format!(":{line}:")), "{lines}: {error}");
    }
}

#[test]
fn a_file_that_is_no_page_is_an_error_of_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("404.html"), "page").unwrap();
    std::fs::write(path("503.html"), "page").unwrap();
    std::fs::File::create(path("long")).unwrap().set_len((1 << 20) + 1).unwrap();
    let load_with = |status: &str, name: &str| {
        let file = folder.path().join("afpa.toml");
        let root = folder.path().display();
        let text = format!(
            "[[site]]\nroot = \"{root}\"\n[[site.errors]]\nstatus = {status}\nfile = \"{name}\"\n"
        );
        std::fs::write(&file, text).unwrap();
        load(Some(&file), &Overrides::default(), &Machine::probe())
            .map_err(|error| error.to_string())
    };
    for (status, name) in
        [("[404]", "404.html"), ("[404, \"5xx\"]", "{status}.html"), ("[]", "404.html")]
    {
        let loaded = load_with(status, name).unwrap();
        let page = &loaded.config.sites[0].errors[0];
        let files = page.files().len();
        assert_eq!(files, if status.contains("5xx") { 2 } else { 1 }, "{page:?}");
    }
    for (status, name, cause) in [
        ("[404]", "none.html", "cannot read the error page"),
        ("[404, 410]", "{status}.html", "410.html"),
        ("[\"5xx\"]", "none/{status}.html", "exists for any of these statuses"),
        ("[404]", "long", "at most 64KiB"),
        ("[404]", ".", "at most 64KiB"),
    ] {
        let error = load_with(status, name).unwrap_err();
        assert!(error.contains(cause) && error.contains(":5:"), "{name}: {error}");
    }
}
