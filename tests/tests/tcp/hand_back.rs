//! Connections come back to the kernel when user mode has answered all of its requests, and not before,
//! with any behaviour of the server. LIFECYCLE.md, "When a connection comes back".

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use afpa_bpf::Reason;
use afpa_netlab::Bed;
use afpa_testkit::Client;
use afpa_testkit::packet::Segment;
use afpa_testkit::until::with_patience;
use afpa_tests::tcp::{Lab, Plan, SITE, put};

const KERNEL: &str = "GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n";
const USER: &str = "GET /user.html HTTP/1.1\r\nHost: server\r\n\r\n";

fn lab() -> Option<Lab> {
    Lab::with_sample(Plan::default())
}

/// The next request is the kernel's again.
#[track_caller]
fn is_back(client: &mut Client, what: &str) {
    assert!(client.get("/kernel.html").is_from_kernel(), "{what}: the connection comes back");
}

#[test]
fn after_a_request_in_two_segments_cut_anywhere() {
    let Some(lab) = lab() else { return };
    for has_offset in [false, true] {
        for cut in 1..KERNEL.len() {
            let mut wire = lab.wired();
            if has_offset {
                wire.ask_kernel();
            }
            wire.push(&wire.data(&KERNEL[..cut]));
            let reply = wire.ask(&wire.data(&KERNEL[cut..])).text();
            assert!(reply.ends_with("from nginx, the pinned one"), "cut at {cut}: {reply}");
            wire.acknowledge();
            wire.ask_kernel();
            wire.ask_user();
            wire.ask_kernel();
        }
    }
}

#[test]
fn after_a_request_byte_by_byte() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    for byte in USER.as_bytes() {
        wire.push(&wire.data([*byte]));
    }
    assert!(wire.take_response().text().ends_with("from nginx"));
    wire.acknowledge();
    wire.ask_kernel();
}

#[test]
fn after_pipelined_requests_in_one_segment_and_in_several() {
    let Some(lab) = lab() else { return };
    for count in 2..=7 {
        for together in [true, false] {
            let mut client = lab.client();
            let requests: Vec<_> = (0..count).map(|number| [USER, KERNEL][number % 2]).collect();
            match together {
                true => client.send(requests.concat()),
                false => requests.iter().for_each(|request| client.send(request)),
            }
            for number in 0..count {
                let reply = client.receive();
                let expected = ["from nginx", "from nginx, the pinned one"][number % 2];
                let from_kernel = reply.is_from_kernel() && number % 2 == 1 && !together;
                assert!(reply.body == expected.as_bytes() || from_kernel, "{number}: {reply:?}");
            }
            is_back(&mut client, &format!("{count}, together: {together}"));
            client.end();
        }
    }
}

#[test]
fn after_one_request_and_a_half() {
    let Some(lab) = lab() else { return };
    for cut in 1..USER.len() {
        let mut wire = lab.wired();
        let reply = wire.ask(&wire.data([USER, &KERNEL[..cut]].concat())).text();
        assert!(reply.ends_with("from nginx"), "{reply}");
        wire.acknowledge();
        let reply = wire.ask(&wire.data(&KERNEL[cut..])).text();
        assert!(reply.ends_with("from nginx, the pinned one"), "cut at {cut}: {reply}");
        wire.acknowledge();
        wire.ask_kernel();
    }
}

#[test]
fn after_uploads_of_every_size() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    for length in [0, 1, 100, 1400, 5_000, 70_000, 3_000_000] {
        let content: Vec<u8> = (0..length).map(|at: usize| (at * 7 + at / 251) as u8).collect();
        client.send(put("sized", &content));
        assert!((200..300).contains(&client.receive().status));
        is_back(&mut client, &format!("{length} bytes"));
        assert!(std::fs::read(lab.file("upload/sized")).expect("stored") == content);
    }
    client.end();
}

#[test]
fn after_an_upload_whose_middle_was_lost_and_came_late() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    let whole = put("late", &[b'x'; 300]);
    let cut = whole.len() - 200;
    let first = wire.data(&whole[..cut]);
    let (middle, last) = (&whole[cut..cut + 100], &whole[cut + 100..]);
    let at = |more: usize| first.seq.wrapping_add((cut + more) as u32);
    wire.send(&first);
    wire.send(&Segment { seq: at(100), ..wire.data(last) });
    // The kernel has a gap: a request here must not be answered, its answer would acknowledge the gap.
    let begins = at(200);
    wire.send(&Segment { seq: begins, ..wire.data(KERNEL) });
    wire.send(&Segment { seq: at(0), ..wire.data(middle) });
    wire.seq = begins.wrapping_add(KERNEL.len() as u32);
    let upload = wire.take_response().text();
    assert!(upload.starts_with("HTTP/1.1 20"), "{upload}");
    let next = wire.take_response().text();
    assert!(next.ends_with("from nginx, the pinned one"), "{next}");
    wire.acknowledge();
    wire.ask_kernel();
    assert_eq!(lab.count(Reason::Answered), 2, "{}", lab.tally());
}

#[test]
fn after_chunked_responses() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    for _ in 0..5 {
        let reply = client.get("/ssi/page.html");
        assert_eq!(reply.field("Transfer-Encoding"), Some("chunked"), "{reply:?}");
        assert_eq!(reply.body, b"from nginx, in chunks");
        is_back(&mut client, "chunks");
    }
    client.end();
}

/// A server of one connection that does what a test says.
struct Scripted {
    address: SocketAddr,
    done: Receiver<()>,
}

impl Scripted {
    fn start(lab: &Lab, script: impl FnOnce(&mut TcpStream) + Send + 'static) -> Self {
        let listener = lab.bed.server().run(|| TcpListener::bind((Bed::SERVER_V4, 0)));
        let listener = listener.expect("inside").expect("bound");
        let address = listener.local_addr().expect("an address");
        lab.fast_path().listeners.listen(address, 9, SITE).expect("listening");
        let served = lab.bed.server().run(|| lab.fast_path().sockets.serve_server(address));
        assert!(!served.expect("inside").expect("marked").served.is_empty());
        let (tell, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accepted");
            stream.set_nodelay(true).expect("no delay");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            script(&mut stream);
            tell.send(()).expect("somebody waits");
            let _until_the_client_closes = stream.read_to_end(&mut Vec::new());
        });
        Self { address, done }
    }

    fn connect(&self, lab: &Lab) -> Client {
        let address = self.address;
        lab.bed.client().run(move || Client::to(address)).expect("inside")
    }

    /// The script has run to its end.
    fn end(self) {
        self.done.recv_timeout(Duration::from_secs(15)).expect("the server did as it was told");
    }
}

/// Reads until so many requests without content are there.
fn take_requests(stream: &mut TcpStream, count: usize) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while seen.windows(4).filter(|end| *end == b"\r\n\r\n").count() < count {
        let read = stream.read(&mut buffer).expect("a request");
        assert!(read > 0, "the client is gone");
        seen.extend_from_slice(&buffer[..read]);
    }
}

const SHORT: Duration = Duration::from_millis(15);

/// To TCP, a server that has read a request and not answered it looks like one that has nothing to do.
#[test]
fn not_while_a_server_that_has_read_everything_owes_a_response() {
    let Some(lab) = lab() else { return };
    let (read, is_read) = std::sync::mpsc::channel();
    let server = Scripted::start(&lab, move |stream| {
        take_requests(stream, 1);
        read.send(()).expect("the client waits");
        std::thread::sleep(Duration::from_millis(200)); // everything is acknowledged on both sides
        take_requests(stream, 1);
        for name in ["first", "other"] {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{name}").expect("sent");
            std::thread::sleep(SHORT);
        }
        take_requests(stream, 1);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("sent");
    });
    let mut client = server.connect(&lab);
    is_back(&mut client, "at first");
    client.send(USER);
    is_read.recv_timeout(with_patience(Duration::from_secs(60))).expect("the server takes it");
    std::thread::sleep(Duration::from_millis(100));
    client.send(KERNEL);
    assert_eq!(client.receive().body, b"first");
    assert_eq!(client.receive().body, b"other", "in its turn, from the server");
    is_back(&mut client, "after both");
    assert!(!client.get("/user.html").is_from_kernel());
    is_back(&mut client, "after the third");
    server.end();
    assert_eq!(lab.count(Reason::Answered), 3);
}

#[test]
fn after_chunked_responses_cut_anywhere() {
    let Some(lab) = lab() else { return };
    let response = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n\
                    5\r\nhello\r\n1a;name=\"value\"\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\r\n1\r\n!\r\n\
                    0\r\nTrailer: a\r\nOther: b\r\n\r\n";
    let head = response.find("\r\n\r\n").expect("a head") + 4;
    let cuts = head..response.len();
    let server = Scripted::start(&lab, move |stream| {
        for cut in cuts.clone() {
            take_requests(stream, 1);
            stream.write_all(&response.as_bytes()[..cut]).expect("sent");
            std::thread::sleep(Duration::from_millis(2));
            stream.write_all(&response.as_bytes()[cut..]).expect("sent");
        }
    });
    let mut client = server.connect(&lab);
    for cut in head..response.len() {
        client.send(USER);
        assert_eq!(client.take(response.len()), response.as_bytes(), "cut at {cut}");
        is_back(&mut client, &format!("cut at {cut}"));
    }
    server.end();
    assert_eq!(lab.count(Reason::ResponseUnsure), 0, "{}", lab.tally());
}

#[test]
fn never_after_chunks_that_are_none() {
    let Some(lab) = lab() else { return };
    let broken = [
        "x\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "0\r\n\r\nmore",
        "\r\n",
    ];
    for content in broken {
        let response = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{content}");
        let sent = response.clone();
        let server = Scripted::start(&lab, move |stream| {
            take_requests(stream, 1);
            stream.write_all(sent.as_bytes()).expect("sent");
            take_requests(stream, 1);
        });
        let mut client = server.connect(&lab);
        is_back(&mut client, "at first");
        client.send(USER);
        assert_eq!(client.take(response.len()), response.as_bytes());
        client.send(KERNEL);
        server.end(); // it got the request: the kernel did not answer
    }
    assert_eq!(lab.count(Reason::Answered), broken.len() as u64);
}

#[test]
fn after_interim_responses_and_several_in_one_segment() {
    let Some(lab) = lab() else { return };
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let responses = [
        format!("{hints}{hints}{whole}hello"),
        format!("{whole}hello{whole}{whole}other"),
        format!("{hints}HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
    ];
    let requests =
        [USER.to_owned(), [USER, &USER.replace("GET", "HEAD"), USER].concat(), USER.to_owned()];
    let (answers, counts) = (responses.clone(), [1, 3, 1]);
    let server = Scripted::start(&lab, move |stream| {
        for (answer, count) in answers.iter().zip(counts) {
            take_requests(stream, count);
            stream.write_all(answer.as_bytes()).expect("sent");
        }
    });
    let mut client = server.connect(&lab);
    for (request, response) in requests.iter().zip(&responses) {
        client.send(request);
        assert_eq!(client.take(response.len()), response.as_bytes());
        is_back(&mut client, response);
    }
    server.end();
}

#[test]
fn never_after_a_response_nobody_asked_for() {
    let Some(lab) = lab() else { return };
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let server = Scripted::start(&lab, move |stream| {
        take_requests(stream, 1);
        stream.write_all(twice.as_bytes()).expect("sent");
        take_requests(stream, 1);
    });
    let mut client = server.connect(&lab);
    client.send(USER);
    assert_eq!(client.take(twice.len()), twice.as_bytes());
    client.send(KERNEL);
    server.end();
    assert_eq!(lab.count(Reason::Answered), 0);
}

/// A server may answer before it has read the content. Bytes that it reads later are still its own.
#[test]
fn after_a_response_that_came_before_the_content() {
    let Some(lab) = lab() else { return };
    let content = vec![b'c'; 20_000];
    let upload = put("ignored", &content);
    let length = upload.len();
    let server = Scripted::start(&lab, move |stream| {
        let mut head = [0; 64];
        stream.read_exact(&mut head).expect("a beginning");
        stream.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno").expect("sent");
        std::thread::sleep(Duration::from_millis(100));
        let mut rest = vec![0; length - 64];
        stream.read_exact(&mut rest).expect("the rest");
        assert!(rest.ends_with(&[b'c'; 20_000]), "nothing of what the kernel answered came here");
        take_requests(stream, 1);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes").expect("sent");
    });
    let mut client = server.connect(&lab);
    let (first, second) = upload.split_at(10_000);
    client.send(first);
    assert_eq!(client.receive().body, b"no");
    client.send(second);
    std::thread::sleep(Duration::from_millis(60)); // for the server's TCP to acknowledge it
    let early = client.get("/kernel.html");
    assert!(early.is_from_kernel() || early.body == b"yes", "{early:?}");
    if early.is_from_kernel() {
        assert_eq!(client.get("/user.html").body, b"yes");
    }
    server.end();
}
