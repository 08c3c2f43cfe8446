//! Odd answers of servers: each client gets the whole of what is certain, or an error; nothing else is kept, and no byte of
//! one answer becomes a part of another.

use afpa_testkit::{Asked as Expect, Client, ReceiveError, Server};
use afpa_tests::h2::{H2Client, request};

use crate::origin::{Asked, Origin, Reply, ok};

/// The client's view of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is no answer: 502.
    Refused,
    /// It has begun, and the client can tell that it has not ended.
    BrokenOff,
    /// It is an answer: this status, with this content.
    Passes(u16, &'static str),
}
use Fate::{BrokenOff, Passes, Refused};

/// The answer to whatever comes next, which nobody has asked for. It must reach nobody.
const MORE: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\npoison";

/// Answers up to the field lines that would have them kept, and the rest.
#[rustfmt::skip]
const STATUS_LINES: [(&str, Fate); 16] = [
    ("garbage", Refused),
    ("HTTP/2.0 200 OK", Refused),
    ("HTTP/0.9 200 OK", Refused),
    ("HTTP/1.10 200 OK", Refused),
    ("http/1.1 200 OK", Refused),
    ("ICY 200 OK", Refused),
    (" HTTP/1.1 200 OK", Refused),
    ("HTTP/1.1  200 OK", Refused),
    ("HTTP/1.1\t200 OK", Refused),
    ("HTTP/1.1 20 OK", Refused),
    ("HTTP/1.1 2000 OK", Refused),
    ("HTTP/1.1 2x0 OK", Refused),
    ("HTTP/1.1 +20 OK", Refused),
    ("HTTP/1.1 099 OK", Refused),
    ("HTTP/1.1 101 Switching Protocols", Refused),
    ("HTTP/1.1 200 \u{e9}trange", Passes(200, "ok")),
];

/// The framing of an answer, and its content.
#[rustfmt::skip]
const FRAMINGS: [(&str, Fate); 34] = [
    ("Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", Refused),
    ("Content-Length: 2, 3\r\n\r\nok", Refused),
    ("Content-Length: +2\r\n\r\nok", Refused),
    ("Content-Length: -2\r\n\r\nok", Refused),
    ("Content-Length: 0x2\r\n\r\nok", Refused),
    ("Content-Length: 2 2\r\n\r\nok", Refused),
    ("Content-Length:\r\n\r\nok", Refused),
    ("Content-Length: 18446744073709551618\r\n\r\nok", Refused),
    ("Content-Length : 2\r\n\r\nok", Refused),
    ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused),
    ("Transfer-Encoding: gzip\r\n\r\nok", Refused),
    ("Transfer-Encoding: identity\r\n\r\nok", Refused),
    ("Transfer-Encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Refused),
    ("Transfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Refused),
    ("Transfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n", Refused),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", Refused),
    ("Transfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Refused),
    (" Content-Length: 2\r\n\r\nok", Refused),
    ("X: a\r\n Content-Length: 2\r\n\r\nok", Refused),
    ("X\r\nContent-Length: 2\r\n\r\nok", Refused),
    (": a\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("X: a\0b\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("X: a\rContent-Length: 9\r\nContent-Length: 2\r\n\r\nok", Refused),
    ("Content-Length: 10\r\n\r\nok", BrokenOff),
    ("Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", BrokenOff),
    ("Transfer-Encoding: chunked\r\n\r\n2\r\nokk\r\n0\r\n\r\n", BrokenOff),
    ("Transfer-Encoding: chunked\r\n\r\n0x2\r\nok\r\n0\r\n\r\n", BrokenOff),
    ("Transfer-Encoding: chunked\r\n\r\n-2\r\nok\r\n0\r\n\r\n", BrokenOff),
    ("Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nok\r\n0\r\n\r\n", BrokenOff),
    ("Transfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n", BrokenOff),
    ("Content-Length: 2\r\n\r\nok", Passes(200, "ok")),
    ("Transfer-Encoding: chunked\r\n\r\n2;a=\"b\"\r\nok\r\n0\r\nX: y\r\n\r\n", Passes(200, "ok")),
    ("Transfer-Encoding: CHUNKED\r\n\r\n02\r\nok\r\n000\r\n\r\n", Passes(200, "ok")),
    ("content-length:2\t\r\n\r\nok", Passes(200, "ok")),
];

/// All answers, with the bytes that follow them at once.
fn answers() -> Vec<(Vec<u8>, Fate)> {
    let kept = "Cache-Control: max-age=60\r\n";
    let lines = STATUS_LINES.map(|(line, fate)| {
        (format!("{line}\r\n{kept}Content-Length: 2\r\n\r\nok{MORE}").into_bytes(), fate)
    });
    let framings = FRAMINGS.map(|(rest, fate)| {
        let more = if fate == BrokenOff { "" } else { MORE };
        (format!("HTTP/1.1 200 OK\r\n{kept}{rest}{more}").into_bytes(), fate)
    });
    let whole = [
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Refused),
        ("HTTP/1.1 100 Continue\r\n\r\n", Refused),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\npoison", Passes(204, "")),
        (
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            Passes(200, "ok"),
        ),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", Passes(200, "until the end")),
        ("HTTP/1.1 599 Odd\r\nContent-Length: 3\r\n\r\nodd", Passes(599, "odd")),
        ("HTTP/1.1 200", Refused),
        ("", Refused),
    ];
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200_000));
    let interims = "HTTP/1.1 102 Processing\r\n\r\n".repeat(100_000);
    let large = [(long.into_bytes(), Refused), (interims.into_bytes(), Refused)];
    let whole = whole.map(|(text, fate)| (text.as_bytes().to_vec(), fate));
    lines.into_iter().chain(framings).chain(whole).chain(large).collect()
}

/// The target of an answer begins with the protocol of the client, so that each answer is fetched for both.
fn origin() -> Origin {
    let answers = answers();
    Origin::start(move |asked: &Asked| {
        let number = asked.target.rsplit('/').next().and_then(|number| number.parse().ok());
        let Some((bytes, _)) = number.and_then(|number: usize| answers.get(number)) else {
            return ok("Cache-Control: no-store\r\n", "plain");
        };
        match bytes.ends_with(MORE.as_bytes()) {
            true => Reply::Bytes(bytes.clone()),
            false => Reply::Last(bytes.clone()),
        }
    })
}

fn proxy(origin: &Origin) -> Server {
    let to = origin.to();
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "workers = 1\n[http2]\ncleartext = true\n[[server_group]]\nname = \"odd\"\nservers = [\"{to}\"]\n\
                 [server_group.errors]\npercent = 0\n[[site]]\nlisten = [\"{listen}\"]\nto = \"odd\"\n\
                 [site.cache]\n"
            )
        });
    })
}

/// The final answer: its status and content. `None`: it has not come as a whole.
type Final = Option<(u16, Vec<u8>)>;

fn by_http1(client: &mut Client, target: &str) -> Final {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    loop {
        match client.try_receive(Expect::Body) {
            Ok(interim) if interim.status < 200 => {}
            Ok(answer) => return Some((answer.status, answer.body)),
            Err(ReceiveError::Truncated(_) | ReceiveError::Closed) => return None,
            Err(error) => panic!("{target}: {error}"),
        }
    }
}

fn by_http2(client: &mut H2Client, target: &str) -> Final {
    let id = client.request(&request("GET", target), b"");
    let answer = client.whole(id);
    let status = answer.fields.first().map(|(_, status)| status.parse().expect("a status"));
    status.filter(|_| answer.reset.is_none()).map(|status| (status, answer.body))
}

#[track_caller]
fn judge(what: &str, fate: Fate, got: &Final) {
    let got = got.as_ref().map(|(status, content)| (*status, String::from_utf8_lossy(content)));
    let is_right = match (fate, &got) {
        (Refused, Some((502, _))) | (BrokenOff, None | Some((502, _))) => true,
        (Passes(status, content), Some(got)) => (status, content) == (got.0, &*got.1),
        _ => false,
    };
    assert!(is_right, "{what}: {fate:?}, but the client got {got:?}");
}

#[test]
fn odd_answers_are_passed_on_as_a_whole_or_refused_and_spoil_no_other() {
    let origin = origin();
    let proxy = proxy(&origin);
    let mut streams = H2Client::connect(&proxy);
    for (number, (bytes, fate)) in answers().into_iter().enumerate() {
        let what = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
        for protocol in ["h1", "h2"] {
            let target = format!("/{protocol}/{number}");
            for turn in 1..=2 {
                let asked = origin.count(&target);
                let (got, plain) = match protocol {
                    "h1" => {
                        let mut client = proxy.connect();
                        let got = by_http1(&mut client, &target);
                        if got.is_none() {
                            client = proxy.connect();
                        }
                        (got, by_http1(&mut client, "/plain"))
                    }
                    _ => (by_http2(&mut streams, &target), by_http2(&mut streams, "/plain")),
                };
                judge(&format!("{what:?} by {protocol}, turn {turn}"), fate, &got);
                assert_eq!(plain, Some((200, b"plain".to_vec())), "behind {what:?} by {protocol}");
                let is_kept = origin.count(&target) == asked;
                assert!(!is_kept || matches!(fate, Passes(..)), "{what:?} by {protocol} is kept");
            }
        }
    }
}
