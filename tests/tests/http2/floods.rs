//! Clients that make work for nothing. Their cost is bounded, and an ordinary client is served meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use afpa_h2::frame::{flag, kind, put, setting};
use afpa_testkit::{Server, figure};
use afpa_tests::h2::{H2Client, block, request};

use crate::{server, site};

/// Bytes of a flood that are sent at most: far beyond each budget, and beyond what sockets hold.
const MOST: usize = 32 << 20;

/// The greatest cost of a flood: memory, and processor time in ticks of 10 ms (on a busy machine, in a debug build).
const MEMORY: u64 = 24 << 20;
const TICKS: u64 = 300;

/// Sends a flood until the server ends the connection. `make` appends the frames of a round. The server names the reason
/// (`code`), stays within the bounds, and answers another client all the time.
#[track_caller]
fn flood(
    name: &str,
    server: &Server,
    mut client: H2Client,
    code: u32,
    make: impl Fn(u32, &mut Vec<u8>),
) {
    let process = server.process();
    let mut other = H2Client::connect(server);
    assert_eq!(other.get("/hello.txt").text(), "hello");
    let memory = process.resident().expect("memory");
    let ticks = process.processor_ticks().expect("time");
    let over = AtomicBool::new(false);
    let (sent, answered) = thread::scope(|scope| {
        let ordinary = scope.spawn(|| {
            let mut answered = 0;
            while !over.load(Ordering::Acquire) || answered < 3 {
                assert_eq!(other.get("/hello.txt").text(), "hello", "beside {name}");
                answered += 1;
            }
            answered
        });
        let (mut sent, mut bytes) = (0, Vec::new());
        for round in 0.. {
            make(round, &mut bytes);
            if bytes.len() > 8_000 {
                sent += bytes.len();
                if client.try_send(&bytes).is_err() || sent > MOST {
                    break;
                }
                bytes.clear();
            }
        }
        over.store(true, Ordering::Release);
        (sent, ordinary.join().expect("the ordinary client"))
    });
    client.is_silent = true;
    let said = client.end();
    let grown = process.resident().expect("memory").saturating_sub(memory);
    let time = process.processor_ticks().expect("time") - ticks;
    figure!(
        "{name}: over after {sent} bytes at most, {grown} bytes, {time} ticks; {answered} answers beside it"
    );
    // The reset that follows unread bytes may destroy GOAWAY on its way.
    assert!(said.is_none_or(|(_, said)| said == code), "{name}: {said:?}");
    assert!(sent <= MOST, "{name} is not stopped");
    assert!(grown < MEMORY, "{name}: {grown} bytes");
    assert!(time < TICKS, "{name}: {time} ticks");
}

fn head(out: &mut Vec<u8>, id: u32, end: bool) {
    let end = if end { flag::END_STREAM } else { 0 };
    put(out, kind::HEADERS, flag::END_HEADERS | end, id, &block(&request("GET", "/large.bin")));
}

const CALM: u32 = 11;

#[test]
fn rapid_reset() {
    let tree = site();
    let server = server(&tree);
    let client = H2Client::connect(&server);
    flood("rapid reset", &server, client, CALM, |round, out| {
        head(out, 2 * round + 1, true);
        put(out, kind::RST_STREAM, 0, 2 * round + 1, &8_u32.to_be_bytes());
    });
}

#[test]
fn made_you_reset() {
    let tree = site();
    let server = server(&tree);
    let client = H2Client::connect(&server);
    flood("MadeYouReset", &server, client, CALM, |round, out| {
        head(out, 2 * round + 1, true);
        put(out, kind::WINDOW_UPDATE, 0, 2 * round + 1, &[0; 4]);
    });
}

#[test]
fn too_many_streams() {
    let tree = site();
    let server = server(&tree);
    // With windows of nothing, none of them ends.
    let client = H2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    flood("streams", &server, client, CALM, |round, out| head(out, 2 * round + 1, true));
}

#[test]
fn continuations() {
    let tree = site();
    let server = server(&tree);
    let client = H2Client::connect(&server);
    flood("CONTINUATION", &server, client, CALM, |round, out| match round {
        0 => put(out, kind::HEADERS, 0, 1, &[0x82]),
        _ => put(out, kind::CONTINUATION, 0, 1, &[]),
    });
}

#[test]
fn settings_pings_and_others() {
    let tree = site();
    let server = server(&tree);
    type Make = fn(u32, &mut Vec<u8>);
    let floods: [(&str, Make); 5] = [
        ("SETTINGS", |_, out| put(out, kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff])),
        ("PING", |_, out| put(out, kind::PING, 0, 0, &[0; 8])),
        ("PRIORITY", |_, out| put(out, kind::PRIORITY, 0, 1, &[0; 5])),
        ("unknown frames", |_, out| put(out, 0x77, 0, 0, &[])),
        ("WINDOW_UPDATE", |_, out| put(out, kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
    ];
    for (name, make) in floods {
        flood(name, &server, H2Client::connect(&server), CALM, make);
    }
}

#[test]
fn empty_data() {
    let tree = site();
    let server = server(&tree);
    let client = H2Client::connect(&server);
    flood("empty DATA", &server, client, CALM, |round, out| match round {
        0 => head(out, 1, false),
        _ => put(out, kind::DATA, 0, 1, &[]),
    });
}

#[test]
fn malformed_requests() {
    let tree = site();
    let server = server(&tree);
    let client = H2Client::connect(&server);
    flood("malformed requests", &server, client, CALM, |round, out| {
        put(out, kind::HEADERS, 5, 2 * round + 1, &[0x82]);
    });
}

#[test]
fn tiny_windows() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    client.opens_windows = false;
    let id = client.request(&request("GET", "/large.bin"), b"");
    assert_eq!(id, 1);
    flood("tiny windows", &server, client, CALM, |_, out| {
        put(out, kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
    });
}

#[test]
fn a_field_block_that_means_much_more_than_it_is() {
    let tree = site();
    let server = server(&tree);
    for name in ["x", "cookie"] {
        bomb(&server, name);
    }
}

/// One entry of the table of 4 KB, and blocks that name it 16,000 times.
fn bomb(server: &Server, name: &str) {
    let mut client = H2Client::connect(server);
    let process = server.process();
    let value = "v".repeat(4_000);
    let mut first = block(&request("GET", "/hello.txt"));
    first.extend([0x40, name.len() as u8]);
    first.extend(name.as_bytes());
    first.extend([0x7f, 0xa1, 0x1e]);
    first.extend(value.as_bytes());
    client.frame(kind::HEADERS, 5, 1, &first);
    assert_eq!(client.response(1).status, 200);
    let memory = process.resident().expect("memory");
    let ticks = process.processor_ticks().expect("time");
    let mut bomb = block(&request("GET", "/hello.txt"));
    bomb.resize(16_000, 0xbe);
    for at in 0..100 {
        let id = 2 * at + 3;
        client.frame(kind::HEADERS, 5, id, &bomb);
        assert_eq!(client.response(id).status, 431);
    }
    let grown = process.resident().expect("memory").saturating_sub(memory);
    let time = process.processor_ticks().expect("time") - ticks;
    figure!("HPACK bomb of {name}: {grown} bytes, {time} ticks");
    assert!(grown < MEMORY && time < TICKS, "{grown} bytes, {time} ticks");
}

#[test]
fn a_client_that_asks_and_never_reads_holds_little() {
    let tree = site();
    let server = server(&tree);
    let process = server.process();
    H2Client::connect(&server).get("/large.bin");
    let memory = process.resident().expect("memory");
    let mut clients: Vec<H2Client> = (0..20).map(|_| H2Client::connect(&server)).collect();
    for client in &mut clients {
        client.open_wide();
        for _ in 0..100 {
            client.request(&request("GET", "/large.bin"), b"");
        }
    }
    // All of them have been answered as far as the sockets take it; another client is served.
    assert_eq!(H2Client::connect(&server).get("/hello.txt").text(), "hello");
    let grown = process.resident().expect("memory").saturating_sub(memory);
    figure!("20 clients that do not read 2000 responses of 3 MB hold {grown} bytes");
    assert!(grown < MEMORY, "{grown} bytes");
}
