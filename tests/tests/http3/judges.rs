//! Faults of clients with the codes that RFC 9114 and RFC 9204 have for them, one by one, and priorities (RFC 9218).

use std::time::Duration;

use afpa_testkit::eventually;
use afpa_testkit::tree::patterned;
use afpa_tests::tls::Authority;
use afpa_tests::way::{Fate, Way};
use serde_json::{Value, json};

use crate::{both, site};

const STREAM_CREATION: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME: u64 = 0x106;
const ID: u64 = 0x108;
const SETTINGS: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const REQUEST_INCOMPLETE: u64 = 0x10d;
const MESSAGE: u64 = 0x10e;
const DECOMPRESSION: u64 = 0x200;
const ENCODER_STREAM: u64 = 0x201;
const DECODER_STREAM: u64 = 0x202;

/// Streams in one direction: how many with these bytes, whether they end, and the code by which the connection does.
const ONE_WAY: [(&str, u64, &str, bool, u64); 29] = [
    ("DATA before SETTINGS", 1, "000000", false, MISSING_SETTINGS),
    ("GOAWAY before SETTINGS", 1, "00070100", false, MISSING_SETTINGS),
    ("an unknown frame before SETTINGS", 1, "002100", false, MISSING_SETTINGS),
    ("DATA", 1, "000400000161", false, FRAME_UNEXPECTED),
    ("HEADERS", 1, "000400010161", false, FRAME_UNEXPECTED),
    ("PUSH_PROMISE", 1, "000400050161", false, FRAME_UNEXPECTED),
    ("SETTINGS twice", 1, "0004000400", false, FRAME_UNEXPECTED),
    ("PRIORITY of HTTP/2", 1, "0004000200", false, FRAME_UNEXPECTED),
    ("PING of HTTP/2", 1, "0004000600", false, FRAME_UNEXPECTED),
    ("a setting of HTTP/2", 1, "0004020205", false, SETTINGS),
    ("a setting twice", 1, "00040406050605", false, SETTINGS),
    ("extended CONNECT neither 0 nor 1", 1, "0004020802", false, SETTINGS),
    ("SETTINGS with half of one", 1, "00040106", false, FRAME),
    ("a push that was not promised is cancelled", 1, "000400030105", false, ID),
    ("CANCEL_PUSH with more than a number", 1, "00040003020505", false, FRAME),
    ("MAX_PUSH_ID becomes smaller", 1, "0004000d01050d0104", false, ID),
    ("GOAWAY becomes larger", 1, "000400070105070106", false, ID),
    ("GOAWAY with more than a number", 1, "00040007020506", false, FRAME),
    ("GOAWAY without a number", 1, "0004000700", false, FRAME),
    ("a priority of a push", 1, "000400800f07010100", false, ID),
    ("a priority of no request", 1, "000400800f07000102", false, ID),
    ("the control stream ends", 1, "000400", true, CLOSED_CRITICAL_STREAM),
    ("two control streams", 2, "000400", false, STREAM_CREATION),
    ("a push of a client", 1, "01", false, STREAM_CREATION),
    ("a table beyond its room", 1, "023fe11f", false, ENCODER_STREAM),
    ("an insert into no table", 1, "02c00161", false, ENCODER_STREAM),
    ("the encoder stream ends", 1, "02", true, CLOSED_CRITICAL_STREAM),
    ("an increment of 0", 1, "0300", false, DECODER_STREAM),
    ("an acknowledgement of nothing", 1, "0380", false, DECODER_STREAM),
];

/// Streams of requests that begin with these bytes.
const REQUESTS: [(&str, &str, u64); 15] = [
    ("CANCEL_PUSH", "030100", FRAME_UNEXPECTED),
    ("SETTINGS", "0400", FRAME_UNEXPECTED),
    ("PUSH_PROMISE", "050100", FRAME_UNEXPECTED),
    ("GOAWAY", "070100", FRAME_UNEXPECTED),
    ("MAX_PUSH_ID", "0d0100", FRAME_UNEXPECTED),
    ("PRIORITY_UPDATE", "800f07000100", FRAME_UNEXPECTED),
    ("PRIORITY of HTTP/2", "0200", FRAME_UNEXPECTED),
    ("WINDOW_UPDATE of HTTP/2", "0800", FRAME_UNEXPECTED),
    ("DATA before HEADERS", "0000", FRAME_UNEXPECTED),
    ("an index behind the static table", "01040000ff24", DECOMPRESSION),
    ("an index of the dynamic table", "0103000080", DECOMPRESSION),
    ("an index behind its base", "0103000010", DECOMPRESSION),
    ("entries of the dynamic table are required", "0103020080", DECOMPRESSION),
    ("a text behind the end", "010400005105", DECOMPRESSION),
    ("a Huffman code that is none", "0107000051848000ff", DECOMPRESSION),
];

#[test]
fn each_fault_of_a_stream_of_the_connection_has_its_code() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    for (at, (what, count, bytes, ends, code)) in ONE_WAY.into_iter().enumerate() {
        let got = client.one(&json!({
            "do": "uni", "on": format!("one-{at}"), "bare": true, "bytes": bytes, "ends": ends, "count": count,
            "wait": 60_000,
        }));
        assert_eq!(got["code"], code, "{what}: {got}");
    }
    eventually("each is counted", || {
        server.number("/connections/http3_faults") >= ONE_WAY.len() as u64
    });
}

#[test]
fn each_broken_frame_of_a_request_has_its_code() {
    let (tree, authority) = (site(), Authority::new());
    let Some((_server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    for (at, (what, bytes, code)) in REQUESTS.into_iter().enumerate() {
        let on = format!("request-{at}");
        let order = json!({"do": "raw", "on": on, "bytes": bytes, "ends": true, "wait": 60_000});
        let got = client.one(&order);
        assert_eq!(got["code"], code, "{what}: {got}");
        // The connection has ended with it.
        let got = client.one(&json!({"do": "ask", "on": on, "path": "/hello.txt"}));
        assert_ne!(got["error"], "", "{what}: {got}");
    }
}

/// A GET without these pseudo-fields, and with more lines.
fn get(without: &str, more: &[(&str, &str)]) -> Value {
    let whole = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/hello.txt"),
    ];
    let kept = whole.into_iter().filter(|(name, _)| *name != without);
    kept.chain(more.iter().copied()).map(|(name, value)| json!([name, value])).collect()
}

/// Section 4.1.2: the stream ends with H3_MESSAGE_ERROR, and the connection goes on.
#[test]
fn each_malformed_request_ends_its_stream_alone() {
    let (tree, authority) = (site(), Authority::new());
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    let lines = [
        ("no method", get(":method", &[])),
        ("no scheme", get(":scheme", &[])),
        ("no path", get(":path", &[])),
        ("an empty path", get(":path", &[(":path", "")])),
        ("two methods", get("", &[(":method", "GET")])),
        ("a status", get("", &[(":status", "200")])),
        ("an unknown pseudo-field", get("", &[(":colour", "red")])),
        ("a pseudo-field behind a field", get(":path", &[("x", "y"), (":path", "/hello.txt")])),
        ("upper case", get("", &[("X-Upper", "y")])),
        ("a field of a connection", get("", &[("connection", "close")])),
        ("another one", get("", &[("transfer-encoding", "chunked")])),
        ("TE that says more", get("", &[("te", "gzip")])),
        ("a line in a value", get("", &[("x", "y\r\nz: 1")])),
        ("a zero in a value", get("", &[("x", "y\0")])),
        ("a space around a value", get("", &[("x", " y")])),
        ("a space in a name", get("", &[("x y", "z")])),
        ("an empty name", get("", &[("", "z")])),
        (":protocol without CONNECT", get("", &[(":protocol", "websocket")])),
    ];
    for (what, lines) in &lines {
        let got = client
            .one(&json!({"do": "raw", "on": "a", "lines": lines, "ends": true, "wait": 60_000}));
        assert_eq!(got["code"], MESSAGE, "{what}: {got}");
    }
    // Content of another length than that which is announced; `abc`, or none.
    for (length, content) in [("5", "0003616263"), ("2", "0003616263"), ("1", "")] {
        let lines = get("", &[("content-length", length)]);
        let got = client.one(&json!({
            "do": "raw", "on": "a", "lines": lines, "bytes": content, "ends": true, "wait": 60_000,
        }));
        assert_eq!(got["code"], MESSAGE, "{length}: {got}");
    }
    let got = client.one(&json!({"do": "raw", "on": "a", "ends": true, "wait": 60_000}));
    assert_eq!(got["code"], REQUEST_INCOMPLETE, "a stream without a request: {got}");
    // Frames and streams of unknown types say nothing (section 9).
    let got = client.one(&json!({
        "do": "raw", "on": "a", "lines": get("", &[]), "bytes": "2103616263", "ends": true, "wait": 60_000,
    }));
    assert_eq!(got["error"], "", "{got}");
    client.one(&json!({"do": "uni", "on": "a", "bytes": "21616263", "count": 1, "wait": 200}));
    let got = client.get("/hello.txt");
    assert_eq!((&got["status"], &got["text"]), (&json!(200), &json!("hello")), "{got}");
    assert_eq!(server.number("/connections/http3"), 1);
}

/// A tunnel of a protocol that we do not know, as WebTransport is one: refused, and nothing that came before or comes later
/// suffers.
#[test]
fn webtransport_is_refused_and_the_connection_goes_on() {
    let (tree, authority) = (site(), Authority::new());
    let Some((_server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    for protocol in ["webtransport", "connect-udp", "connect-ip"] {
        let got =
            client.one(&json!({"do": "tunnel", "on": "a", "path": "/", "protocol": protocol}));
        let status = got["status"].as_u64();
        assert!(status >= Some(400) && status < Some(600), "{protocol}: {got}");
    }
    assert_eq!(client.get("/hello.txt")["status"], 200);
}

/// PRIORITY_UPDATE on the control stream, before the requests and against what these say; and the field of the request.
#[test]
fn the_more_urgent_answer_comes_first() {
    let (tree, authority) = (site(), Authority::new());
    tree.file("a.bin", patterned(200_000));
    let Some((server, mut client)) = both(&authority, &tree, "", "", |_| {}) else { return };
    // Some time passes until the first windows are acknowledged.
    let way = Way::to(server.tls, |passing| match passing.to_server {
        true => Fate::Pass,
        false => Fate::Late(Duration::from_millis(10)),
    });
    let to = way.address().to_string();
    client.get("/a.bin");
    assert_eq!(client.get("/a.bin")["length"], 200_000);
    let urgency = |value: &str| {
        let more: &[(&str, &str)] = if value.is_empty() { &[] } else { &[("priority", value)] };
        let lines = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "localhost"),
            (":path", "/a.bin"),
        ];
        lines.iter().chain(more).map(|(name, value)| json!([name, value])).collect::<Value>()
    };
    // The first stream's urgency by a frame, and those of both by their fields.
    for (round, (control, fields, is_first)) in [
        ("000400", ["u=7", "u=0"], false),
        ("000400", ["u=0", "u=7"], true),
        ("000400", ["", "u=6"], true),
        ("000400800f07000400753d37", ["", ""], false),
        ("000400800f07000400753d30800f07000404753d37", ["u=7", "u=0"], true),
    ]
    .into_iter()
    .enumerate()
    {
        let races = fields.map(urgency);
        let order = json!({
            "do": "race", "on": format!("race-{round}"), "to": to, "bare": true, "control": control, "races": races,
        });
        let got = client.all(&order);
        assert!(
            got.iter().all(|got| got["error"] == "" && got["length"].as_u64() > Some(200_000)),
            "{got:?}"
        );
        let [first, second] = [&got[0]["rank"], &got[1]["rank"]].map(|rank| rank.as_u64());
        assert_eq!(first < second, is_first, "{control}, {fields:?}: {got:?}");
    }
}
