//! Limits of a site and of its clients. Beyond them requests for servers are refused; requests for
//! cached objects never are.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use afpa_testkit::response::ReceiveError;
use afpa_testkit::{Asked, Client, Endpoint, Response, Server, Tree, eventually};
use afpa_tests::proxy::{Raw, answer, read_head};

/// A site with a cached page and a server for the rest, and these limits.
fn site(to: &str, limits: &str) -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("page.html", "page");
    let root = tree.path().display().to_string();
    let server = Server::start("/", |launch| {
        launch.written(|listen: &Endpoint| {
            format!(
                "[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\nto = \"{to}\"\n\
                 cached = [\"html\"]\n\n[site.limits]\n{limits}\n"
            )
        });
    });
    (tree, server)
}

/// A client at another address.
fn from(address: &str, server: &Server) -> Client {
    let address: IpAddr = address.parse().expect("an address");
    Client::connect_from(address, server.address()).expect("connect")
}

#[track_caller]
fn assert_refused(response: &Response, status: u16) {
    assert_eq!(response.status, status, "{response:?}");
    let after = response.field("Retry-After").and_then(|value| value.parse::<u32>().ok());
    assert!(after.is_some_and(|seconds| (1..=60).contains(&seconds)), "{response:?}");
}

/// Asks until it is refused: how often it was answered before, and the refusal.
#[track_caller]
fn until_refused(client: &mut Client) -> (usize, Response) {
    for answered in 0..100 {
        let response = client.get("/app");
        if response.status != 200 {
            return (answered, response);
        }
    }
    panic!("never refused");
}

#[track_caller]
fn assert_pages(client: &mut Client) {
    for _ in 0..50 {
        let page = client.get("/page.html");
        assert_eq!((page.status, page.text()), (200, "page"));
    }
}

#[test]
fn a_client_that_asks_too_often_is_told_so_and_others_are_not() {
    let app = Raw::named("app");
    let (_tree, server) = site(&app.to(), "client_requests_per_second = 1\nclient_burst = 5");
    let mut client = from("127.0.0.8", &server);
    let (answered, refusal) = until_refused(&mut client);
    // A slow machine may take seconds for them, in each of which one more may pass.
    assert!((5..20).contains(&answered), "{answered}");
    assert_refused(&refusal, 429);
    assert_pages(&mut client);
    assert_eq!(from("127.0.0.9", &server).get("/app").text(), "app");
    // The rate is of the client and not of its connection.
    let mut again = from("127.0.0.8", &server);
    assert!(until_refused(&mut again).0 < 5);
    eventually("its time has come", || again.get("/app").status == 200);
}

#[test]
fn a_site_that_is_asked_too_often_refuses_what_costs() {
    let app = Raw::named("app");
    let (_tree, server) = site(&app.to(), "requests_per_second = 1\nburst = 5");
    let (answered, refusal) = until_refused(&mut from("127.0.0.8", &server));
    assert!((5..20).contains(&answered), "{answered}");
    assert_refused(&refusal, 503);
    let mut other = from("127.0.0.9", &server);
    assert!(until_refused(&mut other).0 < 5, "all clients together");
    assert_pages(&mut other);
    eventually("its time has come", || other.get("/app").status == 200);
}

/// A server that holds requests until `go` lets it answer.
struct Slow {
    server: Raw,
    has: Arc<AtomicUsize>,
    go: Arc<AtomicBool>,
}

impl Slow {
    fn start() -> Self {
        let (has, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, may) = (Arc::clone(&has), Arc::clone(&go));
        let server = Raw::start(move |mut stream: TcpStream| {
            while read_head(&mut stream).is_some() {
                count.fetch_add(1, Ordering::SeqCst);
                eventually("it may answer", || may.load(Ordering::SeqCst));
                answer(&mut stream, 200, "late");
            }
        });
        Self { server, has, go }
    }

    /// Sends a request that comes to the server, and stays there.
    #[track_caller]
    fn keep(&self, client: Client) -> Client {
        self.try_keep(client).expect("the server has it")
    }

    /// The same; `None` when it is refused.
    fn try_keep(&self, mut client: Client) -> Option<Client> {
        let before = self.has.load(Ordering::SeqCst);
        client.send("GET /app HTTP/1.1\r\nHost: test\r\n\r\n");
        client.set_patience(Duration::from_millis(20)).expect("a time-out");
        while self.has.load(Ordering::SeqCst) == before {
            match client.try_receive(Asked::Body) {
                Err(ReceiveError::TimedOut(_)) => {}
                refused => {
                    assert_refused(&refused.expect("a whole answer"), 503);
                    return None;
                }
            }
        }
        client.set_patience(Duration::from_secs(10)).expect("a time-out");
        Some(client)
    }
}

#[test]
fn a_site_has_so_many_requests_at_a_time() {
    let slow = Slow::start();
    let (_tree, server) = site(&slow.server.to(), "in_flight = 2");
    let kept = ["127.0.0.7", "127.0.0.8"].map(|address| slow.keep(from(address, &server)));
    let mut third = from("127.0.0.9", &server);
    assert_refused(&third.get("/app"), 503);
    assert_pages(&mut third);
    // A client that goes away makes room.
    let [mut first, second] = kept;
    second.abort().expect("reset");
    let mut held = None;
    eventually("there is room", || {
        held = slow.try_keep(from("127.0.0.9", &server));
        held.is_some()
    });
    assert_refused(&third.get("/app"), 503);
    slow.go.store(true, Ordering::SeqCst);
    assert_eq!(first.receive().text(), "late");
    assert_eq!(held.map(|mut client| client.receive().text().to_owned()).as_deref(), Some("late"));
    eventually("it is answered", || third.get("/app").status == 200);
}

#[test]
fn a_client_has_so_many_requests_at_a_time() {
    let slow = Slow::start();
    let (_tree, server) = site(&slow.server.to(), "client_in_flight = 1");
    let mut kept = slow.keep(from("127.0.0.8", &server));
    let mut same = from("127.0.0.8", &server);
    assert_refused(&same.get("/app"), 429);
    assert_pages(&mut same);
    let mut other = slow.keep(from("127.0.0.9", &server));
    slow.go.store(true, Ordering::SeqCst);
    assert_eq!((kept.receive().text(), other.receive().text()), ("late", "late"));
    eventually("it may ask again", || same.get("/app").status == 200);
}

#[test]
fn connections_of_a_client_and_of_a_site_are_limited() {
    let app = Raw::named("app");
    let (_tree, server) = site(&app.to(), "connections = 3\nclient_connections = 2");
    let mut idle: Vec<_> = (0..4).map(|_| from("127.0.0.8", &server)).collect();
    for client in &mut idle {
        assert_pages(client);
    }
    // A connection counts from its first distributed request on, for as long as it is open.
    let mut held = vec![from("127.0.0.8", &server), from("127.0.0.8", &server)];
    for client in &mut held {
        assert_eq!(client.get("/app").text(), "app");
        assert_eq!(client.get("/app").text(), "app");
    }
    let mut third = idle.pop().expect("a connection");
    let refusal = third.get("/app");
    assert_refused(&refusal, 429);
    assert!(refusal.says_close());
    third.assert_closed();
    held.push(from("127.0.0.9", &server));
    assert_eq!(held[2].get("/app").text(), "app");
    let mut other = from("127.0.0.10", &server);
    assert_refused(&other.get("/app"), 503);
    other.assert_closed();
    assert_pages(&mut idle[0]);
    drop(held.swap_remove(0));
    eventually("its place is free", || from("127.0.0.10", &server).get("/app").status == 200);
}
