//! Loss, repetition and disorder, on connections that kernel and nginx share.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use afpa_bpf::Reason;
use afpa_netlab::inject::{DropRule, Impairment};
use afpa_netlab::{Bed, Offloads, Path};
use afpa_testkit::packet::{ACK, Segment, TcpView};
use afpa_testkit::tcp::RawClient;
use afpa_tests::tcp::{Lab, PORT, Plan, Sample, large};

const QUIET: Duration = Duration::from_millis(150);

/// A bed with a network that can be made bad.
fn through() -> Option<Lab> {
    Lab::with_sample(Plan { path: Path::Through(Box::default()), ..Plan::default() })
}

/// A bed on which every packet is what would be on the wire.
fn direct() -> Option<Lab> {
    Lab::with_sample(Plan { path: Path::Direct(Offloads::NONE), ..Plan::default() })
}

fn dropping(rule: DropRule) -> Impairment {
    Impairment { drop_rules: vec![rule], ..Impairment::default() }
}

fn contains(segment: &TcpView<'_>, text: &str) -> bool {
    segment.payload.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Answers that left again, because their clients asked again or their time was over.
fn given_again(lab: &Lab) -> u64 {
    lab.count(Reason::AnsweredRetransmission) + lab.count(Reason::RtxRetransmitted)
}

#[test]
fn a_lost_answer_comes_again() {
    let Some(lab) = through() else { return };
    for address in [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()] {
        let mut client = lab.connect(address);
        let (answered, again) = (lab.count(Reason::Answered), given_again(&lab));
        let rule = DropRule::when(|segment| contains(segment, "from the kernel")).nth(1);
        lab.impair(Impairment::default(), dropping(rule));
        assert!(client.get("/kernel.html").is_from_kernel());
        assert_eq!(lab.count(Reason::Answered), answered + 1);
        assert!(given_again(&lab) > again, "{}", lab.tally());
        lab.converse(&mut client);
        client.end();
    }
}

/// Nothing the client says gets through until it has its answer.
#[test]
fn a_lost_answer_comes_again_without_a_word_of_the_client() {
    let Some(lab) = through() else { return };
    for address in [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()] {
        let mut client = lab.connect(address);
        lab.converse(&mut client);
        let asked = AtomicBool::new(false);
        let again = move |segment: &TcpView<'_>| {
            let asks = contains(segment, "GET /kernel.html");
            asked.fetch_or(asks, Ordering::Relaxed)
        };
        let lost = DropRule::when(|segment| contains(segment, "from the kernel")).nth(1);
        let before = lab.count(Reason::RtxRetransmitted);
        lab.impair(dropping(DropRule::when(again)), dropping(lost));
        assert!(client.get("/kernel.html").is_from_kernel());
        assert!(lab.count(Reason::RtxRetransmitted) > before, "{}", lab.tally());
        lab.impair(Impairment::default(), Impairment::default());
        lab.converse(&mut client);
        client.end();
    }
    assert_eq!(lab.count(Reason::AnsweredRetransmission), 0);
}

#[test]
fn lost_request_is_answered_when_it_comes_again() {
    let Some(lab) = through() else { return };
    let mut client = lab.client();
    let rule = DropRule::when(|segment| contains(segment, "GET /kernel.html")).nth(2);
    lab.impair(dropping(rule), Impairment::default());
    lab.converse(&mut client);
    assert_eq!((lab.count(Reason::Answered), lab.count(Reason::AnsweredRetransmission)), (2, 0));
    client.end();
}

#[test]
fn lost_response_of_user_mode_is_repaired_before_the_kernel_answers() {
    let Some(lab) = through() else { return };
    let mut client = lab.client();
    let rule = DropRule::when(|segment| contains(segment, "from nginx")).every(2);
    lab.impair(Impairment::default(), dropping(rule));
    for _ in 0..5 {
        lab.converse(&mut client);
    }
    client.end();
}

/// The kernel's TCP acknowledges every segment that is sent up. In wire numbers this must not acknowledge a
/// request whose answer was lost: the client would never repeat it.
#[test]
fn lost_answer_is_not_acknowledged_by_the_server_tcp() {
    let Some(lab) = direct() else { return };
    let mut wire = lab.wired();
    wire.ask_user();
    let probe = Segment { seq: wire.seq.wrapping_sub(1), ..wire.next() };
    let request = wire.get("/kernel.html");
    wire.send(&request);
    let answer = wire.await_segment("an answer", Segment::is_from_kernel); // lost, says the client
    wire.send(&probe);
    let echo = wire.await_segment("an acknowledgement", |segment| segment.payload.is_empty());
    assert_eq!(echo.ack, request.seq, "the request is not acknowledged without its answer");
    wire.push(&request);
    let again = wire.take();
    assert_eq!((again.seq, &again.payload), (answer.seq, &answer.payload));
    wire.acknowledge();
    wire.ask_user();
}

#[test]
fn reordered_content_and_acknowledgements() {
    let Some(lab) = direct() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    let old = wire.next();
    wire.ask_user();
    wire.ask_kernel();
    wire.send(&old); // an acknowledgement that was overtaken
    let head = "POST /post HTTP/1.1\r\nHost: server\r\nContent-Length: 2000\r\n\r\n";
    let pieces = [head.as_bytes(), &[b'a'; 1000], &[b'b'; 1000]];
    let mut seq = wire.seq;
    let segments = pieces.map(|piece| {
        let segment = Segment { seq, ..wire.data(piece) };
        seq = seq.wrapping_add(piece.len() as u32);
        segment
    });
    for number in [2, 0, 1] {
        wire.send(&segments[number]);
    }
    wire.seq = seq;
    let reply = wire.take_response().text();
    assert!(reply.ends_with("posted\n"), "{reply}");
    wire.acknowledge();
    assert_eq!(lab.count(Reason::Answered), 2);
}

/// The second request overtakes the first: its bytes wait in the server's TCP, which is "fresh" but for
/// them. An answer to the first would move the numbers under them.
#[test]
fn bytes_that_overtook_the_first_request() {
    let Some(lab) = direct() else { return };
    let mut wire = lab.wired();
    let first = wire.get("/kernel.html");
    let second = Segment {
        seq: first.seq.wrapping_add(first.payload.len() as u32),
        ..wire.get("/user.html")
    };
    wire.send(&second);
    wire.await_segment("a duplicate acknowledgement", |segment| segment.ack == first.seq);
    wire.send(&first);
    wire.seq = second.seq.wrapping_add(second.payload.len() as u32);
    let reply = wire.take_response().text();
    assert!(reply.ends_with("from nginx, the pinned one"), "{reply}");
    let reply = wire.take_response().text();
    assert!(reply.ends_with("from nginx"), "{reply}");
    wire.acknowledge();
    let beyond = wire.collect(QUIET);
    assert!(beyond.iter().all(|segment| segment.ack == wire.seq), "{beyond:?}");
    assert_eq!(
        lab.count(Reason::FlowOpened),
        0,
        "user mode has seen this connection's first bytes"
    );
}

#[test]
fn every_packet_twice() {
    let Some(lab) = through() else { return };
    let twice = Impairment { duplicate: 1.0, ..Impairment::default() };
    lab.impair(twice.clone(), twice);
    let mut client = lab.client();
    for _ in 0..10 {
        lab.converse(&mut client);
        assert_eq!(client.get("/large.html").body, large());
    }
    client.end();
    assert_eq!(lab.count(Reason::Answered), 20);
}

#[test]
fn delayed_acknowledgements() {
    let Some(lab) = direct() else { return };
    let mut wire = lab.wired();
    for _ in 0..3 {
        // Nothing is acknowledged but by the next request.
        assert!(wire.ask(&wire.get("/user.html")).text().ends_with("from nginx"));
        assert!(wire.ask(&wire.get("/kernel.html")).text().ends_with("from the kernel"));
        assert!(wire.ask(&wire.get("/kernel.html")).text().ends_with("from the kernel"));
    }
    // A request that does not acknowledge the response before it must wait for its turn.
    let before = wire.ack;
    assert!(wire.ask(&wire.get("/user.html")).text().ends_with("from nginx"));
    let early = Segment { ack: before, ..wire.get("/kernel.html") };
    assert!(wire.ask(&early).text().ends_with("from nginx, the pinned one"));
    assert_eq!(lab.count(Reason::Answered), 6);
}

#[test]
fn lost_acknowledgements() {
    let Some(lab) = through() else { return };
    let mut client = lab.client();
    assert!(client.get("/kernel.html").is_from_kernel());
    let pure = |segment: &TcpView<'_>| segment.payload.is_empty() && segment.flags == ACK;
    lab.impair(dropping(DropRule::when(pure)), Impairment::default());
    for _ in 0..10 {
        lab.converse(&mut client);
    }
    let (up, _) = lab.bed.injector().expect("an injector").counts();
    assert!(up.rule_dropped > 0, "{up:?}");
    client.end();
}

#[test]
fn sack_blocks_of_the_client_on_a_connection_with_an_offset() {
    let Some(lab) = direct() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.push(&wire.get("/large.html"));
    let segments: Vec<Segment> =
        (0..6).map(|_| wire.await_segment("content", |s| !s.payload.is_empty())).collect();
    // The second and the fourth are lost.
    wire.accept(&segments[0]);
    let block = |number: usize| (segments[number].seq, segments[number].end());
    let blocks = [(segments[4].seq, segments[5].end()), block(2)];
    for newest in [1, 2] {
        wire.send(&wire.sack(&blocks[2 - newest..]));
    }
    wire.send(&wire.sack(&blocks));
    let repeated = |number: usize, wire: &mut RawClient| {
        let again = wire.await_segment("a repetition", |segment| {
            let which = segments.iter().position(|before| before.seq == segment.seq);
            assert!(which.is_none_or(|which| [1, 3].contains(&which)), "{which:?} has arrived");
            which == Some(number) && !segment.payload.is_empty()
        });
        assert_eq!(again.payload, segments[number].payload);
        wire.ack = segments[number + 1].end();
    };
    repeated(1, &mut wire);
    wire.send(&wire.sack(&blocks[..1]));
    repeated(3, &mut wire);
    wire.ack = segments[5].end();
    wire.acknowledge();
}

#[test]
fn sack_blocks_of_the_server_on_a_connection_with_an_offset() {
    let Some(lab) = direct() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.ask_kernel();
    let request = wire.data("POST /post HTTP/1.1\r\nHost: server\r\nContent-Length: 3000\r\n\r\n");
    wire.push(&request);
    let hole = wire.data([b'x'; 1000]);
    let far = Segment { seq: hole.seq.wrapping_add(1000), ..wire.data([b'y'; 1000]) };
    wire.send(&far);
    let told = wire.await_segment("a SACK block", |segment| !segment.sack.is_empty());
    assert_eq!(told.ack, hole.seq);
    assert_eq!(told.sack, [(far.seq, far.seq.wrapping_add(1000))]);
    wire.push(&hole);
    wire.seq = wire.seq.wrapping_add(1000);
    wire.push(&wire.data([b'z'; 1000]));
    let reply = wire.take_response().text();
    assert!(reply.ends_with("posted\n"), "{reply}");
}

#[test]
fn large_response_with_loss_on_a_connection_with_an_offset() {
    let Some(lab) = through() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    let lossy = Impairment { loss: 0.1, reorder: 0.1, ..Impairment::default() };
    lab.impair(lossy.clone(), lossy);
    for _ in 0..5 {
        assert_eq!(client.get("/large.html").body, large());
    }
    lab.impair(Impairment::default(), Impairment::default());
    lab.converse(&mut client);
    client.end();
}

/// Versions of other content and length replace each other while a tenth of the packets is lost: a
/// response is of one version from its first byte to its last, or the connection ends.
#[test]
fn object_replaced_during_retransmissions_is_never_a_mixture() {
    let settings = afpa_bpf::Settings {
        objects: 8,
        retire_after: Duration::ZERO,
        ..afpa_bpf::Settings::default()
    };
    let path = Path::Through(Box::default());
    let Some(lab) = Lab::with_sample(Plan { path, settings, ..Plan::default() }) else { return };
    let lossy = Impairment { loss: 0.1, duplicate: 0.1, reorder: 0.1, ..Impairment::default() };
    lab.impair(lossy.clone(), lossy);
    let (over, whole, ended) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..60 {
            scope.spawn(|| {
                lab.bed.client().enter().expect("inside");
                while !over.load(Ordering::Relaxed) {
                    match ask_while_replaced() {
                        Ok(responses) => whole.fetch_add(responses, Ordering::Relaxed),
                        Err(_) => ended.fetch_add(1, Ordering::Relaxed),
                    };
                }
            });
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut version = 0;
        let enough = || whole.load(Ordering::Relaxed) > 500 && given_again(&lab) >= 20;
        while !enough() && Instant::now() < deadline {
            version += 1;
            let body = vec![b'a' + (version % 26) as u8; 100 + version * 37 % 900];
            Sample::new(body).pin(lab.fast_path(), "/kernel.html");
            std::thread::sleep(Duration::from_millis(2));
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("{whole:?} whole, {ended:?} ended\n{}", lab.tally());
    assert!(whole.load(Ordering::Relaxed) > 500, "{whole:?} whole, {ended:?} ended");
    assert!(given_again(&lab) >= 20, "{}", lab.tally());
}

/// A few requests on one connection; Err: it was ended. Panics on a mixture.
fn ask_while_replaced() -> std::io::Result<u64> {
    use std::io::{BufRead, BufReader, Read, Write};
    let stream = TcpStream::connect((Bed::SERVER_V4, PORT))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    for _ in 0..10 {
        reader.get_mut().write_all(b"GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n")?;
        let (mut length, mut kernel, mut line) = (None, false, String::new());
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::ConnectionReset.into());
            }
            kernel |= line == "Server: afpa-kernel\r\n";
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let mut body = vec![0; length.expect("a length")];
        reader.read_exact(&mut body)?;
        if kernel && body != b"from the kernel" {
            let number = usize::from(body[0].checked_sub(b'a').expect("a letter"));
            let uniform = body.iter().all(|byte| *byte == body[0]);
            let fits = (0..50_000).any(|v| v % 26 == number && 100 + v * 37 % 900 == body.len());
            assert!(uniform && fits, "a mixture: {}", body.escape_ascii());
        } else if !kernel {
            assert_eq!(body, b"from nginx, the pinned one");
        }
    }
    Ok(10)
}

#[test]
fn quiet_connections_stay_quiet() {
    let Some(lab) = direct() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.ask_user();
    wire.ask_kernel();
    let stray = wire.collect(QUIET * 4); // longer than the first retransmission would take
    assert!(stray.is_empty(), "{stray:?}");
}
