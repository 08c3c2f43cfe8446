use super::*;
use crate::answer::Asked;

/// A server made of a function from the request to the answer.
struct Scripted<F>(F, usize);

impl<F: FnMut(&str) -> String> Ask for Scripted<F> {
    fn ask(&mut self, asked: Asked, request: &str) -> Result<Answer, AskError> {
        self.1 += 1;
        let mut text = (self.0)(request);
        if asked == Asked::Head {
            text.truncate(text.find("\r\n\r\n").unwrap() + 4);
        }
        Ok(Answer::read(text.as_bytes(), asked)?.expect("a whole answer"))
    }
}

const DATE: &str = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

fn ok(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{DATE}{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn gathered(server: impl FnMut(&str) -> String) -> Result<Gathered, Unfit> {
    let hosts = ["one".to_owned(), "two".to_owned()];
    let wanted = Wanted { hosts: &hosts, target: "/a", longest: 1460 };
    let fits = |answer: &Answer| answer.body() == b"content";
    gather(&mut Scripted(server, 0), &wanted, &fits, &|_, _| true)
}

#[test]
fn validators_that_the_server_honours() {
    let server = |request: &str| {
        let matched = request.contains("\"tag\"") || request.contains("If-Modified-Since");
        let fields = "ETag: \"tag\"\r\nLast-Modified: Sat, 05 Nov 1994 08:49:37 GMT\r\n";
        match matched {
            true => format!("HTTP/1.1 304 Not Modified\r\n{DATE}{fields}\r\n"),
            false => ok(fields, "content"),
        }
    };
    let gathered = gathered(server).unwrap();
    let [variant] = gathered.variants()[..] else { panic!("{gathered:?}") };
    assert_eq!((variant.coding, variant.etag), (Coding::Identity, &b"\"tag\""[..]));
    assert!(variant.not_modified.is_some() && variant.last_modified.is_some());
}

#[test]
fn a_server_that_compares_strongly_answers_conditions_itself() {
    let server = |request: &str| match request.contains(": \"tag\"") {
        true => format!("HTTP/1.1 304 Not Modified\r\n{DATE}ETag: \"tag\"\r\n\r\n"),
        false => ok("ETag: \"tag\"\r\n", "content"),
    };
    let gathered = gathered(server).unwrap();
    let [variant] = gathered.variants()[..] else { panic!("{gathered:?}") };
    assert!(variant.not_modified.is_none() && variant.whole.is_some());
}

#[test]
fn what_is_said_differently_is_not_kept() {
    let mut count = 0;
    let counting = |_: &str| {
        count += 1;
        ok(&format!("X-Request: {count}\r\n"), "content")
    };
    assert!(matches!(gathered(counting), Err(Unfit::Differs(_))));
    let by_host = |request: &str| {
        ok(if request.contains("Host: two") { "X: two\r\n" } else { "X: one\r\n" }, "content")
    };
    assert!(matches!(gathered(by_host), Err(Unfit::Differs(_))));
    let to_head =
        |request: &str| ok(if request.starts_with("HEAD") { "X: h\r\n" } else { "" }, "content");
    assert!(matches!(gathered(to_head), Err(Unfit::Differs("to HEAD"))));
    let unsaid = |request: &str| {
        ok(if request.contains("gzip") { "Content-Encoding: gzip\r\n" } else { "" }, "content")
    };
    assert!(matches!(gathered(unsaid), Err(Unfit::Differs(_))), "Vary is missing");
    assert!(matches!(gathered(|_| ok("", "another")), Err(Unfit::Content)));
    assert!(matches!(gathered(|_| ok("Set-Cookie: a\r\n", "content")), Err(Unfit::Refused(_))));
}

#[test]
fn codings_that_the_server_stores() {
    let server = |request: &str| {
        let fields = "Vary: Accept-Encoding\r\n";
        match request.contains("gzip") {
            true => ok(&format!("{fields}Content-Encoding: gzip\r\n"), "packed"),
            false => ok(fields, "content"),
        }
    };
    let gathered = gathered(server).unwrap();
    let bodies: Vec<_> =
        gathered.variants().iter().map(|v| (v.coding, v.whole.unwrap().body.to_vec())).collect();
    assert_eq!(
        bodies,
        [(Coding::Identity, b"content".to_vec()), (Coding::Gzip, b"packed".to_vec())]
    );
}
