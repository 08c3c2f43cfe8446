//! Connections to servers by readiness and by completion: misbehaving servers, and changes between the two.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use afpa_testkit::tree::patterned;
use afpa_testkit::{Client, Server, eventually, skip};
use afpa_tests::proxy::{Raw, answer, configuration, end, read_head};
use rustix::process::Signal;
use serde_json::Value;

const WAYS: [&str; 2] = ["readiness", "completion"];

/// A proxy of one worker that waits in this way. The setting is in its file, so that a reload can change it.
fn waiting(io: &str, server: &Raw) -> Server {
    Server::start("/", |launch| {
        let servers = [server.to()];
        launch.written(|listen| {
            format!("workers = 1\nengine.io = \"{io}\"\n{}", configuration(listen, &servers, ""))
        });
    })
}

/// The same; a test of completion ends where the system forbids it.
macro_rules! proxy {
    ($io:expr, $server:expr) => {{
        let proxy = waiting($io, $server);
        if proxy.summary("waiting").contains("refuses io_uring") {
            skip!("the system refuses io_uring");
        }
        proxy
    }};
}

fn stats(proxy: &Server) -> Value {
    let stats = Client::connect(&proxy.control()).expect("the control socket").get("/stats");
    serde_json::from_slice::<Value>(&stats.body).expect("JSON")["waiting"].clone()
}

fn by_completion(proxy: &Server) -> u64 {
    stats(proxy)["workers"][0]["by_completion"].as_u64().expect("a count")
}

fn reload(proxy: &Server, from: &str, to: &str) {
    let file = proxy.configuration();
    let text = fs::read_to_string(&file).expect("the configuration");
    let changed = text.replace(&format!("\"{from}\""), &format!("\"{to}\""));
    assert_ne!(text, changed);
    fs::write(&file, changed).expect("written");
    proxy.signal(Signal::HUP);
    eventually("it is reloaded", || stats(proxy)["workers"][0]["strategy"] == to);
}

#[test]
fn short_exchanges_stay_in_the_ring() {
    let server = Raw::named("short");
    let proxy = proxy!("completion", &server);
    let mut client = proxy.connect();
    for _ in 0..50 {
        assert_eq!(client.get("/").text(), "short");
    }
    assert_eq!(by_completion(&proxy), 1);
    let left = stats(&proxy)["left_ring"].clone();
    let left: u64 = left.as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!((left, server.connections()), (0, 1));
}

#[test]
fn kept_connections_outlive_a_change_of_strategy() {
    let server = Raw::named("kept");
    let proxy = proxy!("completion", &server);
    let mut client = proxy.connect();
    let mut ask = || (0..20).for_each(|_| assert_eq!(client.get("/").text(), "kept"));
    ask();
    for (from, to) in [("completion", "readiness"), ("readiness", "completion")].repeat(3) {
        reload(&proxy, from, to);
        ask();
    }
    assert_eq!(server.connections(), 1, "one connection carries them all");
    assert_eq!(by_completion(&proxy), 1);
}

/// A client that sends more behind its last request, while the response is on its way: it must not go with a reset.
#[test]
fn what_follows_a_last_request_does_not_destroy_its_response() {
    let content = patterned(30_000);
    let (sent, length) = (content.clone(), content.len());
    let server = Raw::start(move |mut stream| {
        while read_head(&mut stream).is_some() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let answer = [head.as_bytes(), &sent].concat();
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    });
    for io in WAYS {
        let proxy = proxy!(io, &server);
        let mut client = Client::connect_narrow(proxy.address(), 4096).unwrap();
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        std::thread::sleep(Duration::from_millis(100));
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(client.receive().body == content, "{io}");
        assert!(client.take_all().is_empty(), "an orderly end");
    }
}

/// A server that closes each connection after some answers, without having said so.
#[test]
fn a_server_may_close_what_is_idle() {
    for io in WAYS {
        let (tell, told) = mpsc::channel();
        let server = Raw::start(move |mut stream| {
            for _ in 0..3 {
                if read_head(&mut stream).is_none() || !answer(&mut stream, 200, "here") {
                    return;
                }
            }
            end(&stream);
            drop(stream);
            let _ = tell.send(());
        });
        let proxy = proxy!(io, &server);
        let mut client = proxy.connect();
        for _ in 0..4 {
            for _ in 0..3 {
                // Not to be sent twice: it meets no connection that has ended.
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
                assert_eq!(client.receive().text(), "here", "{io}");
            }
            told.recv_timeout(Duration::from_secs(30)).expect("it is closed");
        }
        assert_eq!(server.connections(), 4, "{io}");
    }
}

/// A response that no request asked for is not given to the next client.
#[test]
fn what_comes_unasked_ends_a_connection() {
    for io in WAYS {
        let (say, said) = mpsc::channel();
        let server = Raw::start(move |mut stream| {
            for n in 0.. {
                if read_head(&mut stream).is_none() || !answer(&mut stream, 200, "asked") {
                    return;
                }
                if n == 2 {
                    std::thread::sleep(Duration::from_millis(50));
                    answer(&mut stream, 200, "unasked");
                    // On a busy machine a request on another connection could overtake it.
                    std::thread::sleep(Duration::from_millis(100));
                    let _ = say.send(());
                }
            }
        });
        let proxy = proxy!(io, &server);
        let mut client = proxy.connect();
        for _ in 0..3 {
            for _ in 0..3 {
                assert_eq!(client.get("/").text(), "asked", "{io}");
            }
            said.recv_timeout(Duration::from_secs(30)).expect("it is said");
        }
        assert_eq!(client.get("/").text(), "asked", "{io}");
        assert_eq!(server.connections(), 4, "{io}");
    }
}

const LARGE: usize = 8_000_003;

/// A server that answers with as many bytes as the path says.
fn sized() -> Raw {
    Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let size = head.split(['/', ' ']).nth(2).and_then(|size| size.parse().ok());
            let body = patterned(size.expect("a size"));
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            // In two writes: the second may come when the first has gone on.
            if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).is_err() {
                return;
            }
        }
    })
}

#[test]
fn responses_of_every_size_arrive_whole_and_in_order() {
    for io in WAYS {
        let server = sized();
        let proxy = proxy!(io, &server);
        let mut client = proxy.connect();
        for round in 0..3 {
            for size in [0, 1, 102, 4_000, 10_240, 16_384, 32_768, 33_000, 65_536, 200_000, LARGE] {
                let body = client.get(&format!("/{size}")).body;
                assert!(body == patterned(size), "{io}, {round}: {size}");
                (0..9).for_each(|_| assert_eq!(client.get("/10").body.len(), 10));
            }
        }
        assert_eq!(server.connections(), 1, "{io}");
    }
}

#[test]
fn a_slow_client_gets_all_of_a_large_response() {
    for io in WAYS {
        let server = sized();
        let proxy = proxy!(io, &server);
        let mut client = Client::connect_narrow(proxy.address(), 4096).expect("connects");
        (0..3).for_each(|_| assert_eq!(client.get("/10").body.len(), 10));
        client.send(format!("GET /{LARGE} HTTP/1.1\r\nHost: h\r\n\r\n"));
        std::thread::sleep(Duration::from_millis(300));
        // Others are served meanwhile.
        let mut other = proxy.connect();
        (0..50).for_each(|_| assert_eq!(other.get("/1000").body.len(), 1000));
        assert!(client.receive().body == patterned(LARGE), "{io}");
        assert_eq!(client.get("/10").body.len(), 10);
    }
}

/// The server answers while it still reads, and the client sends while it is answered.
#[test]
fn an_upload_goes_on_when_its_response_has_begun() {
    const PIECE: usize = 100_000;
    for io in WAYS {
        let server = Raw::start(|mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                if head.starts_with("GET") {
                    answer(&mut stream, 200, "small");
                    continue;
                }
                let length = 10 * PIECE;
                let begin = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                stream.write_all(begin.as_bytes()).expect("sent");
                let mut room = vec![0; PIECE];
                for _ in 0..10 {
                    stream.read_exact(&mut room).expect("content");
                    stream.write_all(&room).expect("sent");
                }
            }
        });
        let proxy = proxy!(io, &server);
        let content = patterned(10 * PIECE);
        for _ in 0..3 {
            // The answer comes before the end of the content: the connection ends with it.
            let mut client = proxy.connect();
            (0..12).for_each(|_| assert_eq!(client.get("/").text(), "small"));
            let length = content.len();
            client.send(format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"));
            let mut writer = Client::of(client.tcp().try_clone().expect("a descriptor"));
            let sent = content.clone();
            let sending = std::thread::spawn(move || {
                for piece in sent.chunks(PIECE / 3) {
                    writer.send(piece);
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            assert!(client.receive().body == content, "{io}");
            sending.join().expect("all was sent");
        }
    }
}

/// Many responses come at a time, more than the buffers of a ring hold, and their clients do not read.
#[test]
fn without_buffers_every_response_arrives_whole() {
    const CLIENTS: usize = 60;
    const SIZE: usize = 600_000;
    let server = sized();
    let proxy = proxy!("completion", &server);
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|_| Client::connect_narrow(proxy.address(), 4096).expect("connects"))
        .collect();
    let ask = |clients: &mut [Client], size: usize| {
        // All are there when the proxy looks.
        proxy.signal(Signal::STOP);
        for client in &mut *clients {
            client.send(format!("GET /{size} HTTP/1.1\r\nHost: h\r\n\r\n"));
        }
        proxy.signal(Signal::CONT);
    };
    for size in [10, 10, SIZE, 10, SIZE] {
        ask(&mut clients, size);
        std::thread::sleep(Duration::from_millis(50));
        // The answers that arrive while the proxy is stopped lie in its sockets when it looks again.
        proxy.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(50));
        proxy.signal(Signal::CONT);
        for client in &mut clients {
            assert!(client.receive().body == patterned(size), "{size}");
        }
    }
}

#[test]
fn no_descriptor_is_left_behind() {
    for io in WAYS {
        let server = sized();
        let proxy = proxy!(io, &server);
        let process = proxy.process();
        let descriptors = || process.descriptors().expect("descriptors");
        // The first rounds open the descriptors that the proxy keeps for reuse.
        let mut ask = |round: usize| {
            let mut client = proxy.connect();
            for _ in 0..3 {
                assert_eq!(client.get("/100").body.len(), 100);
            }
            match round % 3 {
                0 => assert_eq!(client.get("/100000").body.len(), 100_000),
                // It goes away in the middle of its response.
                1 => {
                    client.send(format!("GET /{LARGE} HTTP/1.1\r\nHost: h\r\n\r\n"));
                    assert!(client.read_raw(&mut [0; 1000]).expect("it begins") > 0);
                }
                _ => {}
            }
        };
        (0..6).for_each(&mut ask);
        proxy.settle();
        let before = descriptors();
        (0..60).for_each(&mut ask);
        eventually("all that has ended is closed", || descriptors() <= before + 3);
    }
}

/// Short exchanges count as answers from memory do: a busy core takes completion for them.
#[test]
fn a_busy_core_of_short_exchanges_takes_completion() {
    let server = Raw::named("short");
    let proxy = proxy!("auto", &server);
    assert_eq!(stats(&proxy)["workers"][0]["strategy"], "readiness");
    let mut clients: Vec<Client> = (0..40).map(|_| proxy.connect()).collect();
    eventually("it takes completion for many requests at a time", || {
        for _ in 0..20 {
            proxy.signal(Signal::STOP);
            for client in &mut clients {
                client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            }
            proxy.signal(Signal::CONT);
            // The answers of the server are there when the proxy looks.
            std::thread::sleep(Duration::from_millis(1));
            clients.iter_mut().for_each(|client| assert_eq!(client.receive().text(), "short"));
        }
        stats(&proxy)["workers"][0]["strategy"] == "completion"
    });
    assert_eq!(stats(&proxy)["workers"][0]["because"], "busy_kept");
}
