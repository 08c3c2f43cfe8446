//! The proxy over a network that is not loopback, with few local ports: it needs few connections, leaves no ports behind,
//! and says when it has none left (docs/rules/upstream.md).
//!
//! Two namespaces and a veth pair: the proxy in one, clients and servers in the other. Without the right to make them, each
//! test says SKIP.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use afpa_netlab::{Namespace, connect, missing_privilege};
use afpa_testkit::{Client, Endpoint, Server, eventually};
use afpa_tests::proxy::{Raw, answer, configuration, read_head, server_row};

const PROXY: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const OTHERS: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(PROXY), 80);
const BACKEND: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(OTHERS), 8080);

/// The two sides.
struct Net {
    proxy: Namespace,
    others: Namespace,
}

impl Net {
    /// With so many local ports for the proxy's connections.
    fn with_ports(ports: u16) -> Option<Self> {
        if let Some(reason) = missing_privilege() {
            afpa_testkit::aloud::say("SKIP", &reason);
            return None;
        }
        let create = |role| Namespace::create(role).expect("a namespace");
        let net = Self { proxy: create("proxy"), others: create("others") };
        connect((&net.proxy, "eth0"), (&net.others, "eth0")).expect("a pair of interfaces");
        for (side, addresses) in
            [(&net.proxy, &["10.79.0.1/24", "10.79.0.3/24"][..]), (&net.others, &["10.79.0.2/24"])]
        {
            let interface = side.interface("eth0");
            interface.add_addresses(addresses.iter().copied()).expect("addresses");
        }
        let range = format!("net.ipv4.ip_local_port_range=20000 {}", 20_000 + ports - 1);
        let set = net.proxy.command("sysctl").args(["-qw", &range]).status().expect("it runs");
        assert!(set.success(), "{range}");
        Some(net)
    }

    /// Runs where clients and servers are.
    fn outside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.others.run(work).expect("the other side")
    }

    /// A server outside that does with its connections what `serve` does.
    fn server(&self, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Outside<'_> {
        Outside { net: self, server: Some(self.outside(move || Raw::start_at(BACKEND, serve))) }
    }

    /// A proxy before the servers outside.
    fn proxy(&self, workers: u32, settings: &str) -> Server {
        self.outside(|| {
            Server::start("/", |launch| {
                let servers = [BACKEND.to_string()];
                launch.inside(self.proxy.name(), Endpoint::Tcp(LISTEN));
                launch.written(|listen| {
                    format!("workers = {workers}\n{}", configuration(listen, &servers, settings))
                });
            })
        })
    }

    /// The proxy's ports that rest in TIME_WAIT.
    fn resting_ports(&self) -> usize {
        let output = self.proxy.command("cat").arg("/proc/net/tcp").output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let server = format!(":{:04X}", BACKEND.port());
        let rests = |line: &&str| {
            // "sl local_address rem_address st ..."
            let mut fields = line.split_whitespace().skip(2);
            fields.next().is_some_and(|remote| remote.ends_with(&server))
                && fields.next() == Some("06")
        };
        text.lines().filter(rests).count()
    }
}

/// A server that has to be ended where it is.
struct Outside<'n> {
    net: &'n Net,
    server: Option<Raw>,
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        let server = self.server.take();
        let _ended = self.net.others.run(move || drop(server));
    }
}

fn count(row: &serde_json::Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

/// All clients ask, then all read: as ready sockets are served in batches, the connections in use swing between none and
/// as many as there are clients. Returns how many answers were not 200.
fn rushes(clients: usize, rounds: usize) -> usize {
    let mut clients: Vec<Client> = (0..clients).map(|_| Client::to(LISTEN)).collect();
    let mut failed = 0;
    for _ in 0..rounds {
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        failed += clients
            .iter_mut()
            .filter_map(|one| (one.receive().status != 200).then_some(()))
            .count();
    }
    failed
}

#[test]
fn many_clients_need_few_connections_and_leave_no_ports_behind() {
    let Some(net) = Net::with_ports(600) else { return };
    let _server = net.server(|mut stream| {
        while read_head(&mut stream).is_some() {
            if !answer(&mut stream, 200, "ok") {
                return;
            }
        }
    });
    let proxy = net.proxy(2, "");
    let failed = net.outside(|| rushes(256, 12));
    let row = server_row(&proxy, "10.79.0.2");
    assert_eq!(failed, 0, "{row}\n{}", proxy.log());
    let (requests, made) = (count(&row, "requests"), count(&row, "connections_made"));
    assert_eq!(requests, 256 * 12);
    assert!(made <= 300, "{made} connections for {requests} requests");
    assert!(net.resting_ports() <= 64, "{} ports rest", net.resting_ports());
}

/// More requests than there are ports, each on a connection that the server ends.
#[test]
fn a_server_that_closes_takes_no_ports_from_the_proxy() {
    let Some(net) = Net::with_ports(600) else { return };
    let _server = net.server(|mut stream| {
        if read_head(&mut stream).is_some() {
            let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
            let _client_left = stream.write_all(last);
        }
    });
    let proxy = net.proxy(2, "");
    let failed = net.outside(|| rushes(64, 20));
    let row = server_row(&proxy, "10.79.0.2");
    assert_eq!(failed, 0, "{row}\n{}", proxy.log());
    assert_eq!(count(&row, "connections_made"), 64 * 20);
    eventually("the server has closed them", || {
        count(&server_row(&proxy, "10.79.0.2"), "connections") == 0
    });
    let row = server_row(&proxy, "10.79.0.2");
    assert!(count(&row, "closed_by_server") >= 64 * 20 - 64, "{row}");
    assert!(net.resting_ports() <= 64, "{} ports rest", net.resting_ports());
}

/// More clients than there are ports go before they are answered. Their requests end with them, and so do the connections.
#[test]
fn clients_that_leave_take_no_ports_with_them() {
    let Some(net) = Net::with_ports(150) else { return };
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let _server = net.server(move |mut stream| {
        if read_head(&mut stream).is_some_and(|head| head.starts_with("GET /never")) {
            seen.fetch_add(1, Ordering::Relaxed);
            // Until the proxy gives up.
            let _over = stream.read(&mut [0]);
        } else {
            answer(&mut stream, 200, "ok");
        }
    });
    let proxy = net.proxy(2, "");
    for round in 1..=6 {
        let clients: Vec<Client> = net.outside(|| {
            let ask = |_| {
                let mut client = Client::to(LISTEN);
                client.send("GET /never HTTP/1.1\r\nHost: h\r\n\r\n");
                client
            };
            (0..40).map(ask).collect()
        });
        eventually("all were asked for", || asked.load(Ordering::Relaxed) == 40 * round);
        clients.into_iter().for_each(|client| client.abort().expect("reset"));
        eventually("their requests have ended", || {
            count(&server_row(&proxy, "10.79.0.2"), "in_flight") == 0
        });
    }
    assert!(net.resting_ports() <= 64, "{} ports rest", net.resting_ports());
    assert_eq!(net.outside(|| Client::to(LISTEN).get("/").status), 200);
}

/// Holds a server's answer until the test opens the gate.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().expect("no panic") = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        let closed = self.0.lock().expect("no panic");
        drop(self.1.wait_while(closed, |open| !*open).expect("no panic"));
    }
}

fn held_back(gate: &Arc<Gate>) -> impl Fn(TcpStream) + Send + Sync + 'static {
    let gate = Arc::clone(gate);
    move |mut stream| {
        while read_head(&mut stream).is_some() {
            gate.wait();
            if !answer(&mut stream, 200, "ok") {
                return;
            }
        }
    }
}

#[test]
fn without_ports_there_is_a_503_with_its_reason_and_then_all_is_well_again() {
    let Some(net) = Net::with_ports(32) else { return };
    let gate = Arc::new(Gate::default());
    let _server = net.server(held_back(&gate));
    let proxy = net.proxy(1, "");
    let mut clients = net.outside(|| {
        let ask = |_| {
            let mut client = Client::to(LISTEN);
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            client
        };
        (0..48).map(ask).collect::<Vec<Client>>()
    });
    eventually("sixteen have no port", || {
        let row = server_row(&proxy, "10.79.0.2");
        count(&row, "in_flight") == 32 && count(&row, "not_made") >= 16
    });
    gate.open();
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.receive().status).collect();
    let with = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((with(200), with(503)), (32, 16), "{statuses:?}");
    let log = proxy.log();
    for part in ["no local port is left", "ip_local_port_range", "source_addresses", "no-port"] {
        assert!(log.contains(part), "no {part} in {log}");
    }
    let metrics = Client::connect(&proxy.control()).expect("connect").get("/metrics");
    let line = metrics.text().lines().find(|line| {
        line.starts_with("afpa_server_connections_not_made_total") && line.contains("\"ports\"")
    });
    assert!(line.is_some_and(|line| !line.ends_with(" 0")), "{line:?}");
    assert_eq!(server_row(&proxy, "10.79.0.2")["state"], "up", "the server is not to blame");
    // The ports are there again, and nobody has to wait long.
    drop(clients);
    assert_eq!(net.outside(|| rushes(30, 3)), 0);
}

#[test]
fn several_source_addresses_have_as_many_times_the_ports() {
    let Some(net) = Net::with_ports(32) else { return };
    let gate = Arc::new(Gate::default());
    let _server = net.server(held_back(&gate));
    let sources = "[server_group.connections]\nsource_addresses = [\"10.79.0.1\", \"10.79.0.3\"]\n";
    let proxy = net.proxy(2, sources);
    let mut clients = net.outside(|| {
        let ask = |_| {
            let mut client = Client::to(LISTEN);
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            client
        };
        (0..48).map(ask).collect::<Vec<Client>>()
    });
    eventually("all are asked", || count(&server_row(&proxy, "10.79.0.2"), "in_flight") == 48);
    gate.open();
    assert!(clients.iter_mut().all(|client| client.receive().status == 200));
}

/// While descriptors are short, idle connections to servers give way, and nothing turns in circles.
#[test]
fn without_descriptors_there_is_a_503_with_its_reason_and_then_all_is_well_again() {
    const MOST: u64 = 96;
    let gate = Arc::new(Gate::default());
    let server = Raw::start(held_back(&gate));
    let proxy = Server::start("/", |launch| {
        let servers = [server.to()];
        launch.limit('n', MOST);
        launch.written(|listen| format!("workers = 1\n{}", configuration(listen, &servers, "")));
    });
    // Each takes one, and wants another for its server.
    let mut clients = Vec::new();
    eventually("some have no descriptor", || {
        if clients.len() < MOST as usize {
            let mut client = proxy.connect();
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            clients.push(client);
        }
        proxy.log().contains("no-descriptor")
    });
    assert!(proxy.log().contains("no file descriptor is left"), "{}", proxy.log());
    gate.open();
    // Some may still wait to be accepted: each goes when it has its answer.
    let answered = clients.into_iter().map(|mut client| client.receive().status);
    let statuses: Vec<u16> = answered.collect();
    assert!(statuses.contains(&200) && statuses.contains(&503), "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    assert_eq!(proxy.get("/").status, 200);
}
