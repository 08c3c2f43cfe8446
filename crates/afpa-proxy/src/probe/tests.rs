//! The prober with servers and a name server of its own on loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::*;
use crate::health::{CheckSettings, HealthSettings};
use crate::select::{AttemptOutcome, Chosen, GroupSettings, Pick, ServerSettings};

fn group(to: &str, health: HealthSettings) -> Arc<Group> {
    let servers = vec![ServerSettings::at(to.parse().unwrap())];
    Group::new(GroupSettings { servers, health, ..GroupSettings::default() }, None, steady_ms())
}

fn eventually(what: &str, test: impl Fn() -> bool) {
    let start = Instant::now();
    while !test() {
        assert!(start.elapsed() < Duration::from_secs(10), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_up(group: &Arc<Group>) -> bool {
    group.report(steady_ms()).servers.iter().any(|server| server.available)
}

/// Answers every connection with the status in `status`, behind two interim ones, until it is 0.
fn serve(listener: TcpListener, status: Arc<AtomicU32>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let code = status.load(Ordering::Relaxed);
            if code == 0 {
                return;
            }
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap_or(0);
            if length > 0 {
                assert!(request[..length].starts_with(b"GET /healthz HTTP/1.1\r\nHost: app\r\n"));
                let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 \r\n\r\n";
                let _ = write!(
                    stream,
                    "{interim}HTTP/1.1 {code} Whatever\r\nContent-Length: 0\r\n\r\n"
                );
            }
        }
    })
}

#[test]
fn a_probe_restores_a_server_that_listens_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let every = Duration::from_millis(150);
    let group = group(
        &address.to_string(),
        HealthSettings { probe_every: every, ..HealthSettings::default() },
    );
    let Pick::Server(lease) = group.pick(steady_ms(), &Chosen::default(), &[]) else { panic!() };
    lease.finish(steady_ms(), AttemptOutcome::ConnectRefused);
    let _prober =
        HealthProber::start(vec![Arc::clone(&group)], ResolveSettings::default()).unwrap();
    eventually("a probe fails", || group.report(0).servers[0].counts.probes[0] > 0);
    assert!(!is_up(&group));
    let _listener = TcpListener::bind(address).unwrap();
    eventually("a probe restores it", || is_up(&group));
}

#[test]
fn checks_ask_and_look_at_the_status() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let status = Arc::new(AtomicU32::new(200));
    let server = serve(listener, Arc::clone(&status));
    let check = CheckSettings {
        path: "/healthz".to_owned(),
        host: "app".to_owned(),
        every: Duration::from_millis(100),
        fall: 2,
        rise: 2,
        ..CheckSettings::default()
    };
    let health = HealthSettings { check: Some(check), ..HealthSettings::default() };
    let group = group(&address.to_string(), health);
    let prober = HealthProber::start(vec![Arc::clone(&group)], ResolveSettings::default()).unwrap();
    eventually("a check succeeds", || group.report(0).servers[0].counts.probes[1] > 0);
    status.store(503, Ordering::Relaxed);
    eventually("it is unavailable", || !is_up(&group));
    status.store(200, Ordering::Relaxed);
    eventually("it is available", || is_up(&group));
    drop(prober);
    status.store(0, Ordering::Relaxed);
    drop(std::net::TcpStream::connect(address));
    server.join().unwrap();
}

/// A name server for `app.test`, whose only address ends with `last`; with 0 it ends.
fn name_server(socket: UdpSocket, last: Arc<AtomicU32>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((_, client)) = socket.recv_from(&mut message) {
            let last = last.load(Ordering::Relaxed) as u8;
            if last == 0 {
                return;
            }
            // Header, then the name app.test, then type and class.
            let mut answer = message[..12 + 10 + 4].to_vec();
            answer[2] |= 0x80;
            answer[8..12].fill(0);
            if answer[23] == 1 {
                answer[7] = 1;
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, last]);
            }
            let forged = [&[!answer[0]], &answer[1..]].concat();
            let _ = socket.send_to(&forged, client);
            let _ = socket.send_to(&answer, client);
        }
    })
}

#[test]
fn names_are_looked_up_again_when_they_expire() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let last = Arc::new(AtomicU32::new(1));
    let server = name_server(socket, Arc::clone(&last));
    let group = group("app.test:8080", HealthSettings::default());
    let settings = ResolveSettings {
        name_servers: vec![address],
        least_ttl: Duration::from_millis(150),
        ..ResolveSettings::default()
    };
    let prober = HealthProber::start(vec![Arc::clone(&group)], settings).unwrap();
    let name = || group.report(0).servers.first().map(|server| server.name.clone());
    assert_eq!(name().as_deref(), Some("app.test:8080 127.0.0.1:8080"), "at the start");
    last.store(2, Ordering::Relaxed);
    eventually("it moved", || name().as_deref() == Some("app.test:8080 127.0.0.2:8080"));
    drop(prober);
    last.store(0, Ordering::Relaxed);
    let waker = UdpSocket::bind("127.0.0.1:0").unwrap();
    waker.send_to(&[0; 12], address).unwrap();
    server.join().unwrap();
}

#[test]
fn a_name_without_answer_is_no_server_and_is_asked_for_again() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let settings = ResolveSettings {
        name_servers: vec![silent.local_addr().unwrap()],
        timeout: Duration::from_millis(50),
        retry: Duration::from_millis(100),
        attempts: 1,
        ..ResolveSettings::default()
    };
    let group = group("app.test:8080", HealthSettings::default());
    let _prober = HealthProber::start(vec![Arc::clone(&group)], settings).unwrap();
    assert!(group.report(0).servers.is_empty());
    silent.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut message = [0; 512];
    for _ in 0..4 {
        silent.recv_from(&mut message).unwrap();
    }
    assert_eq!(&message[12..22], b"\x03app\x04test\0");
}
