use afpa_testkit::Tree;
use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

/// A handler of a root with one file, and the root's life.
fn handler(arguments: &[&str]) -> (Handler, Tree) {
    let tree = Tree::new();
    tree.file("page.html", "the content");
    tree.set_modified("page.html", 784_111_777);
    let root = tree.path().to_str().expect("a plain path").to_owned();
    let line = ["serve", &root].into_iter().chain(arguments.iter().copied());
    let options = Line::try_parse_from(line).expect("a good line").options;
    let content = Content::open(&options, 1).expect("opened");
    (Handler::new(&content, &options, options.close), tree)
}

/// The answer to a request: its head, its body, whether another may follow.
fn ask(handler: &mut Handler, request: &str) -> (String, Vec<u8>, bool) {
    let (mut head, mut loaded) = (Vec::new(), None);
    loop {
        match handler.answer(request.as_bytes(), loaded.take(), &mut head) {
            Step::More => panic!("{request:?} is whole"),
            Step::Miss(path) => loaded = Some(handler.content().load(&path)),
            Step::Answer(answer) => {
                assert_eq!(answer.consumed, request.len());
                let body = match answer.body {
                    Body::None => Vec::new(),
                    Body::Memory(bytes) => bytes.to_vec(),
                    Body::File(file, length) => {
                        let mut bytes = vec![0; length as usize];
                        std::os::unix::fs::FileExt::read_exact_at(&**file, &mut bytes, 0)
                            .expect("as long as it says");
                        bytes
                    }
                };
                return (String::from_utf8(head).expect("text"), body, answer.keep);
            }
        }
    }
}

fn get(handler: &mut Handler, lines: &str) -> (String, Vec<u8>, bool) {
    ask(handler, &format!("GET /page.html HTTP/1.1\r\nHost: x\r\n{lines}\r\n"))
}

#[test]
fn an_object_is_loaded_once_and_answered_from_memory() {
    let (mut handler, _tree) = handler(&[]);
    let request = b"GET /page.html HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut head = Vec::new();
    let Step::Miss(path) = handler.answer(request, None, &mut head) else { panic!("a miss") };
    assert_eq!(path, b"/page.html");
    let loaded = handler.content().load(&path);
    assert!(matches!(handler.answer(request, Some(loaded), &mut head), Step::Answer(_)));
    let Step::Answer(again) = handler.answer(request, None, &mut head) else { panic!("a hit") };
    assert!(again.keep && matches!(again.body, Body::Memory(bytes) if bytes == "the content"));
}

#[test]
fn without_an_optimisation_the_answer_is_the_same() {
    // The answers may differ in their second.
    let without_date = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("Date: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (mut plain, tree) = handler(&[]);
    let root = tree.path().to_str().expect("a plain path");
    for without in ["cached-headers", "lazy-date", "gather-write"] {
        let line = ["serve", root, "--without", without];
        let options = Line::try_parse_from(line).expect("a good line").options;
        let content = Content::open(&options, 1).expect("opened");
        let mut handler = Handler::new(&content, &options, false);
        for lines in ["", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"] {
            let (expected, body, _) = get(&mut plain, lines);
            let (head, same, _) = get(&mut handler, lines);
            assert_eq!(without_date(&head), without_date(&expected), "{without}");
            assert_eq!(same, body);
        }
    }
}

#[test]
fn conditions_are_evaluated() {
    let (mut handler, _tree) = handler(&[]);
    let (head, ..) = get(&mut handler, "");
    let etag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("a tag").to_owned();
    let (head, body, keep) = get(&mut handler, &format!("If-None-Match: {etag}\r\n"));
    assert!(head.starts_with("HTTP/1.1 304 ") && body.is_empty() && keep, "{head}");
    let (head, body, _) = get(&mut handler, "If-None-Match: \"other\"\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && body == b"the content", "{head}");
    let (head, ..) = get(&mut handler, "If-Match: \"other\"\r\n");
    assert!(head.starts_with("HTTP/1.1 412 "), "{head}");
}

#[test]
fn head_has_the_length_and_no_content() {
    let (mut handler, _tree) = handler(&[]);
    let (head, body, _) = ask(&mut handler, "HEAD /page.html HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.contains("\r\nContent-Length: 11\r\n") && body.is_empty(), "{head}");
}

#[test]
fn the_connection_ends_when_either_side_wants_it() {
    let (mut handler, _tree) = handler(&[]);
    assert!(get(&mut handler, "").2);
    let (head, _, keep) = get(&mut handler, "Connection: close\r\n");
    assert!(!keep && head.contains("\r\nConnection: close\r\n"), "{head}");
    assert!(!ask(&mut handler, "GET /page.html HTTP/1.0\r\n\r\n").2);
    let kept = ask(&mut handler, "GET /page.html HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(kept.2 && kept.0.contains("\r\nConnection: keep-alive\r\n"), "{}", kept.0);
    let (mut closing, _tree) = self::handler(&["--close"]);
    let (head, _, keep) = get(&mut closing, "");
    assert!(!keep && head.contains("\r\nConnection: close\r\n"), "{head}");
}

#[test]
fn what_is_not_there_or_not_served_is_said() {
    let (mut handler, tree) = handler(&[]);
    tree.dir("folder");
    for (request, status) in [
        ("GET /missing HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("GET /folder HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("GET /folder/ HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("GET /../page.html HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("DELETE /page.html HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    ] {
        let (head, _, keep) = ask(&mut handler, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")) && keep, "{request:?}: {head}");
    }
    for request in [
        "GET /page.html HTTP/1.1\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET /page.html HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let (head, _, keep) = ask(&mut handler, request);
        assert!(head.starts_with("HTTP/1.1 4") && !keep, "{request:?}: {head}");
    }
}

#[test]
fn what_is_not_pinned_is_sent_from_its_file() {
    let (mut handler, _tree) = handler(&["--pin-threshold", "10"]);
    let (head, body, _) = get(&mut handler, "");
    assert!(head.contains("\r\nContent-Length: 11\r\n") && body == b"the content", "{head}");
}

#[test]
fn a_file_that_changed_is_noticed_when_its_object_is_old_enough() {
    let (mut handler, tree) = handler(&["--recheck", "0"]);
    assert_eq!(get(&mut handler, "").1, b"the content");
    tree.replace("page.html", "another");
    // The clock of the cache counts whole seconds.
    afpa_testkit::eventually("the new version is served", || get(&mut handler, "").1 == b"another");
}
