//! Requests in every shape, and responses whose end nobody knows beforehand.

use afpa_bpf::Reason;
use afpa_netlab::{Bed, Offloads, Path};
use afpa_testkit::packet::Segment;
use afpa_tests::tcp::{Lab, Plan, Sample, large};

fn lab() -> Option<Lab> {
    Lab::with_sample(Plan::default())
}

const KERNEL: &str = "GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n";
const USER: &str = "GET /user.html HTTP/1.1\r\nHost: server\r\n\r\n";

#[test]
fn request_split_at_every_byte_of_a_fresh_connection() {
    let Some(lab) = lab() else { return };
    for cut in 1..KERNEL.len() {
        let mut wire = lab.wired();
        wire.push(&wire.data(&KERNEL[..cut]));
        let reply = wire.ask(&wire.data(&KERNEL[cut..])).text();
        assert!(reply.ends_with("from nginx, the pinned one"), "cut at {cut}: {reply}");
        wire.acknowledge();
    }
    assert_eq!(lab.count(Reason::Answered), 0);
}

#[test]
fn request_split_at_every_byte_of_a_connection_with_an_offset() {
    let Some(lab) = lab() else { return };
    for cut in 1..KERNEL.len() {
        let mut wire = lab.wired();
        wire.ask_kernel();
        wire.ask_user();
        wire.ask_kernel();
        wire.push(&wire.data(&KERNEL[..cut]));
        let reply = wire.ask(&wire.data(&KERNEL[cut..])).text();
        assert!(reply.ends_with("from nginx, the pinned one"), "cut at {cut}: {reply}");
        wire.acknowledge();
    }
}

#[test]
fn request_byte_by_byte() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    for byte in KERNEL.as_bytes() {
        wire.push(&wire.data([*byte]));
    }
    assert!(wire.take_response().text().ends_with("from nginx, the pinned one"));
}

#[test]
fn split_request_with_its_second_half_first() {
    let Some(lab) = lab() else { return };
    for cut in [1, 4, 20, KERNEL.len() - 1] {
        let mut wire = lab.wired();
        wire.ask_kernel();
        let (head, tail) = KERNEL.split_at(cut);
        let first = wire.data(head);
        let second = Segment { seq: first.seq.wrapping_add(cut as u32), ..wire.data(tail) };
        wire.send(&second);
        wire.send(&first);
        wire.seq = second.seq.wrapping_add(tail.len() as u32);
        assert!(
            wire.take_response().text().ends_with("from nginx, the pinned one"),
            "cut at {cut}"
        );
    }
}

#[test]
fn pipelined_requests() {
    let Some(lab) = lab() else { return };
    for (count, has_offset) in [(2, false), (2, true), (10, false), (10, true)] {
        let mut client = lab.client();
        if has_offset {
            lab.converse(&mut client);
        }
        let text: String = (0..count).map(|number| [USER, KERNEL][number % 2]).collect();
        client.send(&text);
        for number in 0..count {
            let expected = ["from nginx", "from nginx, the pinned one"][number % 2];
            assert_eq!(client.receive().body, expected.as_bytes(), "{number} of {count}");
        }
        client.end();
    }
}

#[test]
fn one_request_and_a_half() {
    let Some(lab) = lab() else { return };
    for cut in [1, 10, KERNEL.len() - 1] {
        for (first, has_offset) in [(KERNEL, false), (USER, true), (KERNEL, true)] {
            let mut wire = lab.wired();
            if has_offset {
                wire.ask_kernel();
            }
            let reply = wire.ask(&wire.data([first, &KERNEL[..cut]].concat())).text();
            assert!(reply.contains("from nginx"), "{reply}");
            wire.acknowledge();
            let reply = wire.ask(&wire.data(&KERNEL[cut..])).text();
            assert!(reply.ends_with("from nginx, the pinned one"), "cut at {cut}: {reply}");
        }
    }
}

/// A segment that repeats an answered request and brings the next one along.
#[test]
fn repetition_merged_with_the_next_request() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    let reply = wire.ask(&wire.get("/kernel.html")).text();
    assert!(reply.contains("afpa-kernel"));
    wire.acknowledge();
    let begin = wire.seq.wrapping_sub(KERNEL.len() as u32);
    let merged = Segment { seq: begin, ..wire.data([KERNEL, USER].concat()) };
    wire.send(&merged);
    wire.seq = wire.seq.wrapping_add(USER.len() as u32);
    assert!(wire.take_response().text().ends_with("from nginx"));
}

/// A client, or somebody on its way, sends other bytes under the numbers of a request that was taken. The bytes that came
/// first count, whether the kernel or user mode took them, and their answer is the only one.
#[test]
fn a_request_that_comes_again_with_other_bytes_is_the_one_that_came_first() {
    let Some(lab) = lab() else { return };
    let padded = |text: &str, length: usize| {
        let fill = length.saturating_sub(text.len() + "X-Fill: \r\n".len());
        text.replacen("\r\n\r\n", &format!("\r\nX-Fill: {}\r\n\r\n", "y".repeat(fill)), 1)
    };
    let post = "POST /upload/x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned();
    for (first, other) in [
        (KERNEL.to_owned(), USER.to_owned()),
        (KERNEL.to_owned(), post),
        (padded(KERNEL, 120), padded(USER, 120)),
        (USER.to_owned(), KERNEL[..USER.len()].to_owned()),
        (padded(USER, 120), padded(KERNEL, 120)),
    ] {
        for has_offset in [false, true] {
            let mut wire = lab.wired();
            if has_offset {
                wire.ask_kernel();
                wire.acknowledge();
            }
            let request = wire.data(&first);
            let answer = wire.ask(&request); // not acknowledged yet
            let answered = lab.count(Reason::Answered);
            for _ in 0..3 {
                wire.send(&Segment { payload: other.clone().into_bytes(), ..request.clone() });
            }
            for segment in wire.collect(std::time::Duration::from_millis(150)) {
                let at = segment.seq.wrapping_sub(answer.seq) as usize;
                let said = answer.payload.get(at..).unwrap_or_default();
                assert!(said.starts_with(&segment.payload), "{first:?} {other:?}: {segment:?}");
            }
            assert_eq!(lab.count(Reason::Answered), answered, "{}", lab.tally());
            wire.acknowledge();
            assert!(wire.ask(&wire.data(USER)).text().ends_with("from nginx"));
        }
    }
}

#[test]
fn large_upload_before_and_after_answers() {
    let Some(lab) = lab() else { return };
    let upload = |name: &str, content: &[u8]| {
        let length = content.len();
        let head = format!(
            "PUT /upload/{name} HTTP/1.1\r\nHost: server\r\nContent-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), content].concat()
    };
    let content: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).step_by(3).collect();
    let mut first = lab.client();
    first.send(upload("before", &content));
    assert_eq!(first.receive().status, 201);
    assert!(first.get("/kernel.html").is_from_kernel());

    let mut client = lab.client();
    lab.converse(&mut client);
    client.send(upload("after", &content));
    assert_eq!(client.receive().status, 201);
    assert_eq!(client.get("/user.html").body, b"from nginx");
    assert!(client.get("/upload/after").body == content, "read back over the same connection");
    for name in ["before", "after"] {
        let stored = std::fs::read(lab.file(&format!("upload/{name}"))).expect("stored");
        assert!(stored == content, "{name} has other bytes");
    }
    first.end();
    client.end();
}

#[test]
fn expect_100_continue() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    client.send(
        "PUT /upload/expected HTTP/1.1\r\nHost: server\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    );
    assert_eq!(client.receive().status, 100);
    client.send("hello");
    assert_eq!(client.receive().status, 201);
    assert_eq!(client.get("/kernel.html").status, 200);
    assert_eq!(client.get("/user.html").body, b"from nginx");
    client.end();
}

#[test]
fn chunked_responses_of_user_mode() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    for _ in 0..3 {
        let reply = client.get("/ssi/page.html");
        assert_eq!(reply.field("Transfer-Encoding"), Some("chunked"), "{reply:?}");
        assert_eq!(reply.body, b"from nginx, in chunks");
        assert_eq!(client.get("/kernel.html").status, 200);
        assert_eq!(client.get("/user.html").body, b"from nginx");
    }
    client.end();
}

#[test]
fn responses_until_the_end_of_the_connection() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    let reply = client.get("/until-close/page.html");
    assert_eq!((reply.field("Content-Length"), reply.field("Transfer-Encoding")), (None, None));
    assert_eq!(reply.body, b"from nginx, until the end");
}

#[test]
fn http_1_0() {
    let Some(lab) = lab() else { return };
    for fields in ["", "Connection: keep-alive\r\n"] {
        let mut client = lab.client();
        lab.converse(&mut client);
        client.send(format!("GET /kernel.html HTTP/1.0\r\nHost: server\r\n{fields}\r\n"));
        let reply = client.receive();
        assert_eq!(reply.body, b"from nginx, the pinned one");
        if fields.is_empty() {
            assert!(client.take_all().is_empty(), "it closes");
        } else {
            assert_eq!(client.get("/user.html").body, b"from nginx");
            client.end();
        }
    }
}

/// Lengths odd and even, all byte values, runs that make checksums carry: the client's TCP checks.
#[test]
fn bytes_of_many_kinds() {
    let path = Path::Direct(Offloads::NONE);
    let Some(lab) = Lab::with_sample(Plan { path, ..Plan::default() }) else { return };
    let mut clients =
        [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()].map(|address| lab.connect(address));
    for length in (0..64).chain((64..1200).step_by(37)).chain([1199, 1200]) {
        for kind in 0..5_u8 {
            let byte = |at: usize| match kind {
                0 => 0,
                1 => 0xff,
                2 => at as u8,
                3 => (at * at * 31 + 7) as u8,
                _ => [0xff, 0x00, 0xfe, 0x01][at % 4],
            };
            let body: Vec<u8> = (0..length).map(byte).collect();
            Sample::new(body.clone()).pin(lab.fast_path(), "/kernel.html");
            for client in &mut clients {
                let reply = client.get("/kernel.html");
                assert!(reply.is_from_kernel() && reply.body == body, "{length} of kind {kind}");
            }
        }
    }
    assert_eq!(lab.count(Reason::AnsweredRetransmission), 0, "no checksum was wrong");
    for mut client in clients {
        assert_eq!(client.get("/large.html").body, large());
        client.end();
    }
}
