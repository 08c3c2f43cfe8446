//! Settings that no request meets, and errors that stand in the way of others.

use super::*;

#[test]
fn settings_that_no_request_meets_are_told() {
    let site = "[[site]]\nroot = \"/\"\n";
    let to = "to = \"127.0.0.1:3000\"\n";
    let path = "[[site.path]]\nprefix = \"/a/\"\n";
    let content = "[[site.path.content]]\nextensions = [\"x\"]\n";
    let limits = "compress = true\nlargest_content = \"1KiB\"\nfirst_byte = \"1s\"\n";
    for (text, told) in [
        (format!("{site}{limits}"), 3),
        (format!("{site}{to}{limits}"), 0),
        (format!("{site}fallback = \"127.0.0.1:3000\"\n{limits}"), 0),
        (format!("{site}{limits}{path}{to}"), 0),
        (format!("{site}{path}{limits}status = 200\n"), 3),
        (format!("{site}{path}{limits}{to}"), 0),
        (format!("{site}{path}{limits}{content}{to}"), 0),
        (format!("{site}{path}{to}{content}status = 200\n{limits}"), 3),
        (format!("{site}{path}rewrite = \"/b\"\n{limits}"), 3),
    ] {
        let warnings = parsed(&text).unwrap().warnings;
        let idle = warnings.iter().filter(|one| one.cause.contains("no server is asked here"));
        assert_eq!(idle.count(), told, "{text}: {warnings:?}");
    }
    for (patterns, exact, fits) in [
        ("'/a/b', '/b'", false, true),
        ("'/b'", false, false),
        ("'/a*'", false, true),
        ("'/a/b*'", false, true),
        ("'/b*'", false, false),
        ("'*.html'", false, true),
        ("'*/b*'", false, true),
        ("'~/b'", false, true),
        ("'~^/b'", false, false),
        ("'~^/a/b\\d'", false, true),
        ("'~^/ab?/'", false, true),
        ("'~^/ab/'", false, false),
        ("'~^/b|^/a'", false, true),
        ("'~^(/b)'", false, true),
        ("'~*^/b'", false, true),
        ("'/a/'", true, true),
        ("'/a/b'", true, false),
        ("'/a/b*'", true, false),
        ("'~^/a/$'", true, true),
    ] {
        let text = format!("{site}{path}status = 200\nexact = {exact}\nif_path = [{patterns}]\n");
        let warnings = parsed(&text).unwrap().warnings;
        let told = warnings.iter().any(|one| one.cause.contains("fits this"));
        assert_eq!(!told, fits, "{text}: {warnings:?}");
    }
}

#[test]
fn an_exact_path_with_two_actions_has_one_error() {
    let path =
        "[[site]]\nlisten = [\"127.0.0.1:1\"]\n[[site.path]]\nprefix = \"/old\"\nexact = true\n";
    let message = parsed(&format!("{path}root = \"/\"\nredirect = \"/new\"\n"));
    let message = message.expect_err("an error").to_string();
    assert!(message.contains("`root` and `redirect` are two things to do"), "{message}");
    assert!(!message.contains("does not end with a slash"), "{message}");
}
