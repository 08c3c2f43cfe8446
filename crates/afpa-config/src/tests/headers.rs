//! Changes of fields in whole files.

use super::*;

fn site(lines: &str) -> String {
    format!("[[site]]\nroot = \"/srv\"\n{lines}\n")
}

#[test]
fn changes_of_fields_are_read_at_every_level() {
    let text = site(
        r#"
        [[site.header]]
        status = [404, "5xx"]
        set = { X-A = "1" }
        [site.cors]
        origins = ["*"]
        [[site.path]]
        prefix = "/api/"
        to = "127.0.0.1:3000"
        [[site.path.header]]
        prefix = "/api/two/"
        remove = ["Server"]
        [[site.path.content]]
        extensions = ["php"]
        to = "127.0.0.1:3000"
        [[site.path.content.header]]
        request_set = { X-B = "2" }
        [site.path.content.cors]
        origins = ["https://app.test"]
        "#,
    );
    let config = parsed(&text).unwrap().config;
    let site = &config.sites[0];
    let path = &site.paths[0];
    let rules = field_rules(site, Some(path), Some(&path.contents[0]));
    assert_eq!(rules.rules.len(), 4, "the innermost cors comes last: {rules:?}");
    assert!(rules.depends_on_origin() && rules.has_prefixes());
    assert_eq!(rules.rules[0].statuses, [(404, 404), (500, 599)]);
    assert_eq!(rules.rules[1].prefix, b"/api/two/");
    assert_eq!(rules.rules[2].request.set, [("X-B".to_owned(), "2".to_owned())]);
    assert!(!field_rules(site, Some(path), None).depends_on_origin());
}

#[test]
fn what_would_break_an_answer_is_refused_with_line_and_remedy() {
    for (lines, line, cause) in [
        ("[[site.header]]\nset = { Content-Length = \"3\" }", 4, "frames the message"),
        ("[[site.header]]\nremove = [\"Transfer-Encoding\"]", 4, "frames the message"),
        ("[[site.header]]\nset = { \"X A\" = \"3\" }", 4, "is not a field name"),
        ("[[site.header]]\nremove = [\"X-*\"]", 4, "has a star, which stands for nothing here"),
        ("[[site.header]]\nset = { X-A = \"3\\r\\nX-B: 4\" }", 4, "line break"),
        ("[[site.header]]\nset = { X-A = \"\" }", 4, "is empty"),
        (
            "[site.cors]\norigins = [\"*\"]\n[[site.header]]\nadd = { access-control-allow-origin = \"*\" }",
            6,
            "`cors` decides about access-control-allow-origin",
        ),
        ("[[site.header]]\nset = { Vary = \"Cookie\" }", 4, "caches need the Vary"),
        ("[[site.header]]\nremove = [\"Date\"]", 4, "every answer has it"),
        ("[[site.header]]\nrequest_set = { Host = \"a\" }", 4, "decides which answer"),
        ("[[site.header]]\nrequest_set = { X-Real-IP = \"$remote_addr\" }", 4, "no variables"),
        ("[[site.header]]\nstatus = [99]\nset = { X-A = \"3\" }", 4, "neither a status"),
        (
            "[[site.header]]\nstatus = [404]\nrequest_set = { X-A = \"3\" }",
            4,
            "no effect on requests",
        ),
        (
            "hsts = \"max-age=60\"\n[[site.header]]\nadd = { Strict-Transport-Security = \"max-age=1\" }",
            5,
            "writes Strict-Transport-Security",
        ),
        ("[site.cors]\norigins = [\"*\"]\ncredentials = true", 5, "every origin"),
        ("[site.cors]\norigins = [\"*\", \"https://a\"]", 4, "lets in every origin"),
        ("[site.cors]\norigins = [\"https://a/\"]", 4, "is not an origin"),
        ("[site.cors]\ncredentials = true", 4, "no effect without `origins`"),
        ("[[site.headers]]\nset = { X-A = \"3\" }", 3, "`headers`"),
    ] {
        let error = parsed(&site(lines)).expect_err(lines).to_string();
        assert!(error.contains(cause), "{lines}\n{error}");
        assert!(error.contains(&format!(":{line}")), "line {line} of\n{lines}\n{error}");
    }
}

#[test]
fn a_policy_that_browsers_ignore_is_told() {
    let policy = |value: &str| {
        site(&format!("[[site.header]]\nset = {{ Content-Security-Policy = \"{value}\" }}"))
    };
    let told = |value: &str| parsed(&policy(value)).unwrap().rendered_warnings();
    assert_eq!(told("default-src 'self'"), "");
    assert!(told("default-scr 'self'").contains("did you mean \"default-src\"?"));
    assert!(told("script-src self").contains("in single quotes"));
    let nothing = parsed(&site("[[site.header]]\nprefix = \"/a/\"")).unwrap();
    assert!(nothing.rendered_warnings().contains("no field is changed here"));
}

#[test]
fn credentials_for_a_collector_are_not_shown() {
    let text = "[tracing]\notlp = \"http://127.0.0.1:4318\"\n\
        headers = { Authorization = \"Bearer s3cret\", X-Team = \"web\" }\n\
        [[site]]\nroot = \"/srv\"\ntraceparent = \"on\"\n";
    let loaded = parsed(text).unwrap();
    for told in [loaded.table(), loaded.explanation()] {
        assert!(!told.contains("s3cret") && told.contains("\"Authorization\" = \"...\""), "{told}");
        assert!(told.contains("\"X-Team\" = \"web\""), "{told}");
    }
    assert!(loaded.as_one_file().contains("s3cret"), "that is a configuration");
    assert_eq!(loaded.config.tracing.headers[0].1, "Bearer s3cret");
}
