//! nginx's syntax: words, quotes, comments, blocks, included files; and faults with file, line and remedy.

use afpa_adapt::{SyntaxError, Translation, adapt};

fn run(text: &str) -> Result<Translation, SyntaxError> {
    adapt("t.conf", text, &mut |path| Err(format!("{path} is not here")))
}

/// The body of a `return 200`, as nginx reads the word.
fn body(word: &str) -> String {
    let text = format!("server {{ listen 80; return 200 {word}; }}");
    let done = run(&text).unwrap_or_else(|error| panic!("{word}: {error}"));
    let line = done.toml.lines().find_map(|line| line.strip_prefix("body = "));
    line.unwrap_or_else(|| panic!("{word}: {}", done.toml)).to_owned()
}

#[test]
fn words_are_read_as_nginx_reads_them() {
    let cases = [
        ("plain", "\"plain\""),
        ("\"a b\"", "\"a b\""),
        ("'a b'", "\"a b\""),
        ("\"}\"", "\"}\""),
        ("\"a;{b}\"", "\"a;{b}\""),
        ("'say \"x\"'", "\"say \\\"x\\\"\""),
        ("\"say \\\"x\\\"\"", "\"say \\\"x\\\"\""),
        ("\"a\\nb\"", "\"a\\nb\""),
        ("a\\;b", "\"a\\\\;b\""),
        ("a#b", "\"a#b\""),
        ("\"a\r\nb\"", "\"a\\r\\nb\""),
    ];
    for (word, expected) in cases {
        assert_eq!(body(word), expected, "{word}");
    }
}

#[test]
fn white_space_comments_and_line_ends_mean_nothing() {
    let plain = run("server { listen 80; root /a; }").expect("read");
    let texts = [
        "server{listen 80;root /a;}",
        "# a { comment\nserver { # }\n listen 80; root /a; } # end",
        "server\r\n{\r\n\tlisten 80;\r\n\troot\r\n/a;\r\n}\r\n",
        "\u{feff}server { listen 80; root \"/a\"; }",
    ];
    for text in texts {
        let done = run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let tail = |toml: &str| toml.split_once('\n').map(|(_, rest)| rest.to_owned());
        assert_eq!(tail(&done.toml), tail(&plain.toml), "{text}");
    }
}

#[test]
fn an_expression_with_braces_stands_in_quotes() {
    let done = run("server { root /a; location ~ \"^/[a-f]{2}/\" { return 404; } }").expect("read");
    assert!(done.toml.contains("if_path = [\"~^/[a-f]{2}/\"]"), "{}", done.toml);
}

#[test]
fn faults_have_a_file_a_line_and_a_remedy() {
    let cases = [
        ("server {\n listen 80\n}", 2, "`listen` does not end", ";"),
        ("server {\n listen 80\n location / {}\n}", 2, "`listen` does not end", ";"),
        ("http {\n worker_processes 1\n server {}\n}", 2, "`worker_processes` does not end", ";"),
        ("server {\n more_set_headers a\n location / {}\n}", 2, "does not end", ";"),
        ("root /a\nserver { listen 80; }", 1, "`root` does not end", ";"),
        ("server {\n return 200 \"a;\n}", 2, "does not end", "quote"),
        ("http {\n server {\n }", 1, "a block does not end", "}"),
        ("a;\n}", 2, "closes no block", "remove"),
        (";", 1, "ends no directive", "remove"),
        ("{ }", 1, "without a name", "name"),
        ("a \"b\"c;", 1, "right behind", "white space"),
        ("a {\n b_by_lua_block {\n \"}\"", 2, "code does not end", "}"),
        ("\n\ninclude none.conf;", 3, "cannot be included", "nginx's files"),
    ];
    for (text, line, cause, remedy) in cases {
        let error = run(text).expect_err(text);
        assert_eq!((&*error.file, error.line), ("t.conf", line), "{text}");
        assert!(error.cause.contains(cause) && error.remedy.contains(remedy), "{text}: {error}");
    }
    let deep = "a {".repeat(100_000);
    assert!(run(&deep).expect_err("deep").cause.contains("too deeply"));
}

#[test]
fn included_files_stand_in_the_place_of_the_include() {
    let mut asked = Vec::new();
    let mut files = |path: &str| {
        asked.push(path.to_owned());
        Ok(match path {
            "/etc/nginx/sites/*" => vec![
                ("/etc/nginx/sites/a".to_owned(), "server { listen 81; root /a; }".to_owned()),
                (
                    "/etc/nginx/sites/b".to_owned(),
                    "server { listen 82; bad 1; root /b; }".to_owned(),
                ),
            ],
            _ => Vec::new(),
        })
    };
    let text = "http { include sites/*; include /none/*; }";
    let done = adapt("/etc/nginx/nginx.conf", text, &mut files).expect("read");
    assert_eq!(asked, ["/etc/nginx/sites/*", "/none/*"]);
    let (first, second) = (done.toml.find("\"/a\""), done.toml.find("\"/b\""));
    assert!(first.is_some() && first < second, "{}", done.toml);
    let note = done.notes.first().map(ToString::to_string).unwrap_or_default();
    assert!(note.starts_with("/etc/nginx/sites/b:1: left out: bad 1: "), "{note}");
}

#[test]
fn a_file_that_includes_itself_is_an_error() {
    let mut files = |path: &str| Ok(vec![(path.to_owned(), "\ninclude t.conf;".to_owned())]);
    let error = adapt("/n/t.conf", "include o.conf;", &mut files).expect_err("a circle");
    assert_eq!((&*error.file, error.line), ("/n/o.conf", 2));
    assert!(error.cause.contains("/n/t.conf includes itself"), "{error}");
    let mut growing = |path: &str| Ok(vec![(format!("{path}x"), format!("include {path}x;"))]);
    assert!(adapt("/n/t.conf", "include o;", &mut growing).is_err());
}
