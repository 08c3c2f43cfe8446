//! Requests whose end two readers could see in two places. Each is followed by a marker request: a
//! refused request must have closed the connection before the marker; any other must be answered by
//! exactly its own responses and then the marker's.

#[path = "../../../crates/afpa-http/corpus/reader.rs"]
mod corpus;

use std::{thread, time::Duration};

use afpa_testkit::{Asked, Client, ReceiveError, Response, Server, Tree, response::excerpt};

/// Follows every case.
const MARKER: &str = "GET /marker.txt HTTP/1.1\r\nHost: marker\r\nConnection: close\r\n\r\n";

/// Would be answered if the body around it were taken for requests.
const HIDDEN: &str = "GET /hidden.txt HTTP/1.1\r\nHost: h\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// One response of class 4xx or 5xx, then the connection closes.
    Refused,
    /// As `Refused`, with this status.
    RefusedWith(u16),
    /// The head is good, the body is not: one response, which may have left before that was seen,
    /// then the connection closes. A second one would be taken for the marker's.
    RefusedInBody,
    /// So many responses, and the connection goes on.
    Answered(usize),
    /// One response, of any status; whether the connection goes on is for the response to say, but
    /// it may not when the request did not want it.
    Understood { keep: bool },
    /// Not a whole request yet: no response at all.
    Incomplete,
}
use Fate::{Answered, Incomplete, Refused, RefusedInBody, RefusedWith, Understood};

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fate: Fate,
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    each_in_one_piece(&cases());
}

#[test]
fn the_verdict_does_not_depend_on_how_the_bytes_arrive() {
    each_cut_everywhere(&cases());
}

#[test]
fn the_server_gives_the_verdicts_of_the_request_corpus() {
    each_in_one_piece(&corpus_cases());
}

#[test]
fn the_verdicts_of_the_corpus_do_not_depend_on_how_the_bytes_arrive() {
    each_cut_everywhere(&corpus_cases());
}

fn each_in_one_piece(cases: &[Case]) {
    let (_tree, server) = site();
    for case in cases {
        let mut client = server.connect();
        // The server may close while this is being sent.
        let _ = client.try_send(wire(case));
        judge(case, &mut client, "in one piece");
    }
}

fn each_cut_everywhere(cases: &[Case]) {
    let (_tree, server) = site();
    let small = cases.iter().filter(|case| case.bytes.len() <= 160 && case.fate != Incomplete);
    let small: Vec<&Case> = small.collect();
    assert!(small.len() * 4 > cases.len() * 3, "most cases are small");
    thread::scope(|scope| {
        for worker in 0..4 {
            let (small, server) = (&small, &server);
            scope.spawn(move || {
                for case in small.iter().skip(worker).step_by(4) {
                    cut_everywhere(case, server);
                }
            });
        }
    });
}

/// Sends a case in two parts, cut at each byte, and once byte by byte.
fn cut_everywhere(case: &Case, server: &Server) {
    let bytes = wire(case);
    for at in 1..case.bytes.len() {
        let mut client = server.connect();
        if client.try_send(&bytes[..at]).is_ok() {
            thread::sleep(Duration::from_micros(200));
            let _ = client.try_send(&bytes[at..]);
        }
        judge(case, &mut client, &format!("cut at {at}"));
    }
    let mut client = server.connect();
    let _ = client.send_in_pieces(&bytes, 1, Duration::ZERO);
    judge(case, &mut client, "byte by byte");
}

/// The case and the marker behind it, which would complete what is to stay incomplete.
pub(crate) fn wire(case: &Case) -> Vec<u8> {
    match case.fate {
        Incomplete => case.bytes.clone(),
        _ => [&case.bytes, MARKER.as_bytes()].concat(),
    }
}

#[track_caller]
pub(crate) fn judge(case: &Case, client: &mut Client, how: &str) {
    let name = format!("{} {how}: {}", case.name, excerpt(&case.bytes));
    if case.fate == Incomplete {
        client.set_patience(Duration::from_millis(20)).expect("time-out");
        let received = client.try_receive(Asked::Body);
        let silent = matches!(&received, Err(ReceiveError::TimedOut(got)) if got.is_empty());
        assert!(silent, "{name}: {received:?}");
        return;
    }
    let responses = responses(case, client, &name);
    for response in &responses {
        assert!(!response.body.starts_with(b"hidden"), "{name}: smuggled: {responses:?}");
    }
    let marked = responses.iter().filter(|response| response.body == b"marker").count();
    let last = responses.last().unwrap_or_else(|| panic!("{name}: closed without a response"));
    match case.fate {
        Answered(own) => {
            assert_eq!(responses.len(), own + 1, "{name}: {responses:?}");
            assert_eq!(last.body, b"marker", "{name}: {responses:?}");
        }
        Understood { keep } => {
            let goes_on = !responses[0].says_close();
            assert!(keep || !goes_on, "{name}: goes on: {responses:?}");
            assert!(goes_on || !keep || responses[0].status >= 400, "{name}: {responses:?}");
            let expected = if goes_on { (2, 1) } else { (1, 0) };
            assert_eq!((responses.len(), marked), expected, "{name}: {responses:?}");
        }
        Refused | RefusedWith(_) | RefusedInBody | Incomplete => {
            assert_eq!(marked, 0, "{name}: the marker was answered: {responses:?}");
            assert_eq!(responses.len(), 1, "{name}: {responses:?}");
            let warned = last.says_close() || case.fate == RefusedInBody;
            assert!(last.status >= 400 && warned, "{name}: {responses:?}");
            if let RefusedWith(status) = case.fate {
                assert_eq!(last.status, status, "{name}: {responses:?}");
            }
        }
    }
}

/// All final responses until the server closes.
fn responses(case: &Case, client: &mut Client, name: &str) -> Vec<Response> {
    let start = case.bytes.trim_ascii_start();
    let mut asked = if start.starts_with(b"HEAD ") { Asked::Head } else { Asked::Body };
    let mut responses = Vec::new();
    loop {
        match client.try_receive(asked) {
            Ok(response) if response.status == 100 => {}
            Ok(response) => {
                responses.push(response);
                asked = Asked::Body;
            }
            Err(ReceiveError::Closed) => return responses,
            Err(error) => panic!("{name}: {error}, after {responses:?}"),
        }
    }
}

fn site() -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("marker.txt", "marker");
    tree.file("hidden.txt", "hidden");
    tree.file("index.html", "index");
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.connections(5000).connections_per_client(5000);
        });
    });
    (tree, server)
}

/// The corpus that the parser's own tests read, as the server has to answer it.
pub(crate) fn corpus_cases() -> Vec<Case> {
    let fate = |verdict: &corpus::Verdict| match verdict {
        corpus::Verdict::Refuse(status, _) => RefusedWith(*status),
        corpus::Verdict::RefuseBody(_) => RefusedInBody,
        corpus::Verdict::More => Incomplete,
        corpus::Verdict::Accept { keep, .. } => Understood { keep: *keep },
    };
    let cases = corpus::all().into_iter().map(|case| {
        let fate = fate(&case.verdict);
        let bytes = match fate {
            // The rest of the case is another request; the marker takes its place.
            Understood { .. } => [case.head, case.body].concat(),
            _ => case.wire(),
        };
        Case { name: case.name, bytes, fate }
    });
    cases.collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let own = heads().into_iter().chain(bodies()).chain(good());
    own.map(|(name, text, fate)| Case { name: name.to_owned(), bytes: text.into_bytes(), fate })
        .collect()
}

type Row = (&'static str, String, Fate);

/// Heads that no two readers are sure to read alike.
fn heads() -> Vec<Row> {
    let fields = |lines: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n");
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked";
    let mut rows: Vec<Row> = vec![
        ("length and chunked", fields(both) + "0\r\n\r\n" + HIDDEN, Refused),
        (
            "chunked and length",
            fields("Transfer-Encoding: chunked\r\nContent-Length: 3") + "0\r\n\r\n",
            Refused,
        ),
        ("folded chunked", fields("X: a\r\n Transfer-Encoding: chunked") + HIDDEN, Refused),
        ("folded length", fields("Content-Length:\r\n 5") + "abcde", Refused),
        (
            "tab before the first field",
            format!("GET / HTTP/1.1\r\n\tHost: h\r\n\r\n{HIDDEN}"),
            Refused,
        ),
        ("bare LF after the line", format!("GET / HTTP/1.1\nHost: h\r\n\r\n{HIDDEN}"), Refused),
        ("bare LF between fields", fields("A: b\nContent-Length: 5") + "abcde", Refused),
        ("bare LF at the end", "GET / HTTP/1.1\r\nHost: h\r\n\n".to_owned() + HIDDEN, Refused),
        ("bare CR in a value", fields("A: b\rContent-Length: 5") + HIDDEN, Refused),
        ("CR CR LF", fields("A: b\r") + HIDDEN, Refused),
        ("NUL in a value", fields("A: b\0c") + HIDDEN, Refused),
        ("empty field name", fields(": b") + HIDDEN, Refused),
        ("no colon", fields("Transfer-Encoding chunked") + HIDDEN, Refused),
        ("space before the colon", fields("Content-Length : 5") + "abcde", Refused),
        ("tab before the colon", fields("Transfer-Encoding\t: chunked") + "0\r\n\r\n", Refused),
        (
            "chunked in HTTP/1.0",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            Refused,
        ),
        ("no Host", format!("GET / HTTP/1.1\r\n\r\n{HIDDEN}"), Refused),
        ("two Hosts", fields("Host: other") + HIDDEN, Refused),
        ("two versions", format!("GET / HTTP/1.1 HTTP/1.1\r\nHost: h\r\n\r\n{HIDDEN}"), Refused),
        (
            "tabs in the request line",
            format!("GET\t/\tHTTP/1.1\r\nHost: h\r\n\r\n{HIDDEN}"),
            Refused,
        ),
        ("space before the method", format!(" GET / HTTP/1.1\r\nHost: h\r\n\r\n{HIDDEN}"), Refused),
        ("no version", format!("GET /\r\nHost: h\r\n\r\n{HIDDEN}"), Refused),
        ("lower-case version", format!("GET / http/1.1\r\nHost: h\r\n\r\n{HIDDEN}"), Refused),
        ("space in the target", format!("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n{HIDDEN}"), Refused),
        ("preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), Refused),
    ];
    for value in [
        "5, 5",
        "5,6",
        "+5",
        "-5",
        "5 5",
        "0x5",
        "5;",
        "",
        "5.0",
        "٥",
        "5\u{b}",
        "99999999999999999999999",
        "18446744073709551621",
    ] {
        rows.push(("odd length", fields(&format!("Content-Length: {value}")) + "abcde", Refused));
    }
    for lines in [
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 0\r\nContent-Length: 44",
        "content-length: 5\r\nCONTENT-LENGTH: 6",
    ] {
        rows.push(("two lengths", fields(lines) + "abcde", Refused));
    }
    for value in [
        "xchunked",
        "chunked, identity",
        "identity",
        "chunked, chunked",
        "gzip, chunked",
        "chunked, gzip",
        "\u{b}chunked",
        "chunked\0",
        "\"chunked\"",
        "chunked;q=1",
        "",
        ",",
        "chunk",
    ] {
        let line = format!("Transfer-Encoding: {value}");
        rows.push(("odd coding", fields(&line) + "0\r\n\r\n", Refused));
    }
    let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity";
    rows.push(("two codings", fields(twice) + "0\r\n\r\n", Refused));
    rows
}

/// Chunked bodies with something wrong.
fn bodies() -> Vec<Row> {
    let chunked = |body: &str| {
        format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
    };
    let wrong = [
        "0x3\r\nabc\r\n0\r\n\r\n",
        "+3\r\nabc\r\n0\r\n\r\n",
        "-3\r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nab\r\n0\r\n\r\n",
        "\r\nabc\r\n0\r\n\r\n",
        "g\r\n\r\n0\r\n\r\n",
        "3;\nabc\r\n0\r\n\r\n",
        "3\rabc\r\n0\r\n\r\n",
        "0\n\n",
        "0\r\n\n",
        "0\r\nTrailer: a\nb: c\r\n\r\n",
        "10000000000000003\r\nabc\r\n0\r\n\r\n",
        "00000000000000000000003\r\nabc\r\n0\r\n\r\n",
        "3;a=\"\n\"\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc0\r\n\r\n",
    ];
    wrong.iter().map(|body| ("odd chunk", chunked(body), RefusedInBody)).collect()
}

/// Unusual and right: refusing these would break clients, misreading them would open the door.
fn good() -> Vec<Row> {
    let post =
        |lines: &str, body: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n{body}");
    let length = format!("Content-Length: {}", HIDDEN.len());
    let hidden_chunk = format!("{:X}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    vec![
        ("request in a body", post(&length, HIDDEN), Answered(1)),
        ("request in a body of GET", post(&length, HIDDEN).replacen("POST", "GET", 1), Answered(1)),
        ("request in a chunk", post("Transfer-Encoding: chunked", &hidden_chunk), Answered(1)),
        ("chunked in capitals", post("TRANSFER-ENCODING: CHUNKED", &hidden_chunk), Answered(1)),
        ("tab before the value", post("Transfer-Encoding:\tchunked", &hidden_chunk), Answered(1)),
        ("space after the value", post("Content-Length: 3 \t", "abc"), Answered(1)),
        ("zeros before the length", post("Content-Length: 0003", "abc"), Answered(1)),
        (
            "zeros before a chunk size",
            post("Transfer-Encoding: chunked", "0003\r\nabc\r\n00\r\n\r\n"),
            Answered(1),
        ),
        (
            "chunk extension",
            post("Transfer-Encoding: chunked", "3;a=b;c=\"d\"\r\nabc\r\n0;e\r\n\r\n"),
            Answered(1),
        ),
        (
            "trailers",
            post("Transfer-Encoding: chunked", "0\r\nContent-Length: 50\r\nHost: x\r\n\r\n"),
            Answered(1),
        ),
        ("a name that only looks alike", post("Content_Length: 44", ""), Answered(1)),
        ("no body at all", post("A: b", ""), Answered(1)),
        ("empty line before", "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), Answered(1)),
        ("two in a row", post("Content-Length: 3", "abc") + &post(&length, HIDDEN), Answered(2)),
    ]
}
