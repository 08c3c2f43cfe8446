use afpa_http::request::FieldClasses;

use super::*;
use crate::answer::Asked;

/// A server made of a function from viewpoint and request to the answer, and how many viewpoints there are.
struct Scripted<F>(F, usize);

impl<F: FnMut(usize, &str) -> String> Ask for Scripted<F> {
    fn viewpoints(&mut self) -> usize {
        self.1
    }

    fn ask_at(
        &mut self,
        viewpoint: usize,
        asked: Asked,
        request: &str,
    ) -> Result<Answer, AskError> {
        let mut text = (self.0)(viewpoint, request);
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

fn gathered(mut server: impl FnMut(&str) -> String) -> Result<Gathered, Unfit> {
    gathered_from(1, move |_, request| server(request))
}

fn gathered_from(
    viewpoints: usize,
    server: impl FnMut(usize, &str) -> String,
) -> Result<Gathered, Unfit> {
    let hosts = ["one".to_owned(), "two".to_owned()];
    let wanted = Wanted { hosts: &hosts, target: "/a", longest: 1460, closes: false, kept: false };
    let fits = |answer: &Answer| answer.content() == b"content";
    gather(&mut Scripted(server, viewpoints), &wanted, &fits, &|_, _| true)
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
    assert!(gathered.rules().tag_weakly);
}

#[test]
fn a_server_that_compares_strongly_answers_conditions_itself() {
    let server = |request: &str| match request.contains(": \"tag\"") {
        true => format!("HTTP/1.1 304 Not Modified\r\n{DATE}ETag: \"tag\"\r\n\r\n"),
        false => ok("ETag: \"tag\"\r\n", "content"),
    };
    let found = gathered(server).unwrap();
    let [variant] = found.variants()[..] else { panic!("{found:?}") };
    assert!(variant.not_modified.is_some() && variant.whole.is_some());
    assert!(!found.rules().tag_weakly, "a tag with W/ is for the server");
    // Its own tag is weak: no tag that the programs compare is sure.
    let weak = |request: &str| match request.contains(": \"tag\"") {
        true => format!("HTTP/1.1 304 Not Modified\r\n{DATE}ETag: W/\"tag\"\r\n\r\n"),
        false => ok("ETag: W/\"tag\"\r\n", "content"),
    };
    assert!(gathered(weak).unwrap().variants()[0].not_modified.is_none());
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
    let nameless = |request: &str| {
        ok(if request.contains("User-Agent") { "" } else { "X: who?\r\n" }, "content")
    };
    assert!(matches!(
        gathered(nameless),
        Err(Unfit::Differs("when the client does not say what it is"))
    ));
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

#[test]
fn what_is_said_only_here_or_only_there_is_not_kept() {
    for odd in 0..3 {
        let server = move |viewpoint, _: &str| {
            ok(if viewpoint == odd { "X: for you\r\n" } else { "" }, "content")
        };
        assert!(matches!(gathered_from(3, server), Err(Unfit::Differs(_))), "{odd}");
    }
    assert!(gathered_from(3, |_, _| ok("", "content")).is_ok());
    let in_gzip = |viewpoint, request: &str| match request.contains("gzip") {
        true if viewpoint == 2 => ok("Content-Encoding: gzip\r\nX: y\r\n", "packed"),
        true => ok("Content-Encoding: gzip\r\n", "packed"),
        false => ok("", "content"),
    };
    assert!(matches!(gathered_from(3, in_gzip), Err(Unfit::Differs(_))), "in every coding");
}

#[test]
fn codings_that_vary_does_not_name_are_found_all_the_same() {
    let server = |request: &str| match request.contains("gzip") {
        true => ok("Content-Encoding: gzip\r\n", "packed"),
        false => ok("", "content"),
    };
    let codings: Vec<_> = gathered(server).unwrap().variants().iter().map(|v| v.coding).collect();
    assert_eq!(codings, [Coding::Identity, Coding::Gzip]);
}

#[test]
fn fields_that_matter_are_found_one_by_one() {
    use afpa_http::request::FieldClass::{self, *};
    let table: [(&str, &[FieldClass]); 6] = [
        ("X-Forwarded-Proto: https", &[ForwardedAs]),
        ("https://decoy.example/page", &[Referer]),
        ("Googlebot", &[UserAgent]),
        ("Accept-Language: de", &[Language]),
        ("Cookie: ", &[Cookie]),
        ("no such field", &[]),
    ];
    for (sign, matter) in table {
        let server = |request: &str| {
            ok(if request.contains(sign) { "X: noticed\r\n" } else { "" }, "content")
        };
        let rules = gathered(server).unwrap().rules();
        let expected =
            matter.iter().fold(FieldClasses::classed(), |all, class| all.without(*class));
        assert_eq!(rules.fields, expected.bits(), "{sign}");
    }
    // Only together.
    let server = |request: &str| {
        let both = request.contains("Cookie: ") && request.contains("Via: ");
        ok(if both { "X: noticed\r\n" } else { "" }, "content")
    };
    assert_eq!(gathered(server).unwrap().rules().fields, 0);
}

/// As `gathered`, for an answer that no file stands behind; with the number of questions.
fn kept(mut server: impl FnMut(&str) -> String) -> (Result<Gathered, Unfit>, usize) {
    let hosts = ["one".to_owned(), "two".to_owned()];
    let wanted = Wanted { hosts: &hosts, target: "/a", longest: 1460, closes: false, kept: true };
    let mut questions = 0;
    let counting = |_: usize, request: &str| {
        questions += 1;
        server(request)
    };
    let found = gather(&mut Scripted(counting, 2), &wanted, &|_| true, &|_, _| true);
    (found, questions)
}

#[test]
fn what_depends_on_who_asks_is_refused_after_few_questions() {
    let signs = [
        "Cookie: ",
        "Googlebot",
        "Accept-Language: de",
        "X-Forwarded-Proto: https",
        "Via: ",
        "Origin: null",
        "Sec-CH-",
        "Cache-Control: ",
    ];
    for sign in signs {
        let server = |request: &str| {
            let noticed = if request.contains(sign) { "X: noticed\r\n" } else { "" };
            ok(&format!("Cache-Control: public, max-age=60\r\n{noticed}"), "content")
        };
        let (found, questions) = kept(server);
        assert!(matches!(found, Err(Unfit::Differs(_))) && questions <= 7, "{sign}: {questions}");
    }
    // Only alone: the first decoy that shows it ends the questions.
    let server = |request: &str| {
        let alone = request.contains("Referer: https://decoy") && !request.contains("Cookie: ");
        let noticed = if alone { "X: noticed\r\n" } else { "" };
        ok(&format!("Cache-Control: public, max-age=60\r\n{noticed}"), "content")
    };
    let all = kept(|_| ok("Cache-Control: public, max-age=60\r\n", "content")).1;
    let (found, questions) = kept(server);
    assert!(matches!(found, Err(Unfit::Differs(_))) && questions < all / 2, "{questions} of {all}");
}

#[test]
fn cookies_are_the_servers_unless_the_answer_is_for_everybody() {
    use afpa_http::request::FieldClass;
    let all = FieldClasses::classed();
    for (control, fields) in [
        ("max-age=60", all.without(FieldClass::Cookie)),
        ("public, max-age=60", all),
        ("s-maxage=60", all),
    ] {
        // Of a session that no decoy has.
        let server = |request: &str| {
            let body = if request.contains("sid=") { "another" } else { "content" };
            ok(&format!("Cache-Control: {control}\r\n"), body)
        };
        let found = kept(server).0.unwrap();
        assert_eq!(found.rules().fields, fields.bits(), "{control}");
        let mut claim = found.claim;
        for _ in 0..8 {
            let server = |_: usize, request: &str| {
                assert!(control != "max-age=60" || !request.contains("Cookie: "), "{request}");
                ok(&format!("Cache-Control: {control}\r\n"), "content")
            };
            assert!(claim.confirm(&mut Scripted(server, 2)).unwrap());
        }
    }
}

#[test]
fn chunks_are_kept_and_head_is_left_to_the_server() {
    let server = |request: &str| {
        let chunked = "HTTP/1.1 200 OK\r\n".to_owned() + DATE;
        match request.starts_with("HEAD") {
            true => format!("{chunked}\r\n"),
            false => {
                format!("{chunked}Transfer-Encoding: chunked\r\n\r\n7\r\ncontent\r\n0\r\n\r\n")
            }
        }
    };
    let gathered = gathered(server).unwrap();
    assert_eq!(gathered.rules().head, [false; 4]);
    assert!(gathered.variants()[0].whole.unwrap().body.starts_with(b"7\r\n"));
}

#[test]
fn a_claim_is_confirmed_until_something_changes() {
    let mut claim = gathered_from(2, |_, _| ok("", "content")).unwrap().claim;
    for _ in 0..8 {
        assert!(claim.confirm(&mut Scripted(|_, _: &str| ok("", "content"), 2)).unwrap());
    }
    let changes: [fn(usize, &str) -> bool; 4] = [
        |_, _| true,
        |viewpoint, _| viewpoint == 1,
        |_, request| request.contains("Host: two"),
        |_, request| request.contains("Cookie: "),
    ];
    for changed in changes {
        let server = move |viewpoint, request: &str| match changed(viewpoint, request) {
            true => ok("", "content").replace("200 OK", "403 Forbidden"),
            false => ok("", "content"),
        };
        assert!(!claim.confirm(&mut Scripted(server, 2)).unwrap());
    }
}

#[test]
fn a_timeout_that_stays_the_same_is_part_of_the_answer_and_a_counter_is_not() {
    let fields = "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n";
    let gathered_all = gathered(|_| ok(fields, "content")).unwrap();
    assert_eq!(gathered_all.timeout(), Some(5));
    let head = gathered_all.variants()[0].whole.unwrap().head.to_vec();
    assert!(String::from_utf8(head).unwrap().contains("Keep-Alive: timeout=5\r\n"));
    assert_eq!(gathered(|_| ok("", "content")).unwrap().timeout(), None);
    let mut left = 5;
    let moving = |_: &str| {
        left -= 1;
        ok(&format!("Keep-Alive: timeout={left}\r\n"), "content")
    };
    assert!(matches!(gathered(moving), Err(Unfit::Differs("each time"))));
    let counting = |_: &str| ok("Keep-Alive: timeout=5, max=100\r\n", "content");
    assert!(matches!(gathered(counting), Err(Unfit::Refused(_))));
}

/// As Node.js does: the field goes where the connection ends.
#[test]
fn an_answer_that_ends_its_connection_has_no_timeout() {
    let hosts = ["one".to_owned()];
    let wanted = Wanted { hosts: &hosts, target: "/a", longest: 1460, closes: true, kept: false };
    for stays in [false, true] {
        let server = |_: usize, request: &str| {
            let closes = request.contains("Connection: close") || request.contains("HTTP/1.0\r\n");
            let timeout = if !closes || stays { "Keep-Alive: timeout=5\r\n" } else { "" };
            let option = if closes { "close" } else { "keep-alive" };
            ok(&format!("Connection: {option}\r\n{timeout}"), "content")
        };
        let found = gather(&mut Scripted(server, 1), &wanted, &|_| true, &|_, _| true).unwrap();
        let closing = found.variants().into_iter().find(|variant| variant.closing).unwrap();
        assert_eq!(closing.whole.is_some(), !stays);
        assert_eq!(found.timeout(), Some(5));
    }
}

#[test]
fn a_reason_is_named_for_compression_that_the_kernel_cannot_follow() {
    let said = |coding: &'static str, head: &'static str| {
        let server = move |request: &str| {
            let named = request.contains(&format!("Encoding: {coding}"))
                || request.contains(&format!(", {coding}"));
            let vary = "Vary: Accept-Encoding\r\n";
            match (named, request.starts_with("HEAD")) {
                (true, true) => ok(&format!("{vary}Content-Encoding: {coding}\r\n{head}"), ""),
                (true, false) => ok(&format!("{vary}Content-Encoding: {coding}\r\n"), "packed"),
                (false, _) => ok(vary, "content"),
            }
        };
        gathered(server).map(|_| ()).map_err(|unfit| unfit.to_string())
    };
    let deflate = said("deflate", "").unwrap_err();
    assert!(deflate.starts_with("it is compressed on the way: also with deflate"), "{deflate}");
    assert_eq!(said("gzip", "X: y\r\n"), Ok(()), "requests that do not name it are answered");
}
