//! Paths that become narrower under a connection, behind a real router. The router reports packets that are too long, or
//! drops them in silence; all content arrives in the end, whether user mode or the kernel sends it.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use afpa_bpf::{Reason, Settings};
use afpa_netlab::{Bed, Namespace, Offloads, Path, connect};
use afpa_testkit::Client;
use afpa_testkit::packet::PacketSocket;
use afpa_tests::tcp::{Lab, PORT, Plan, Sample, large};

const SERVERS: [IpAddr; 2] = [IpAddr::V4(Bed::SERVER_V4), IpAddr::V6(Bed::SERVER_V6)];
const LONG: usize = 60_000;
/// One segment on a wide path, of either family; two on the narrow one.
const WIDE: usize = 1200;
const NARROW: u32 = 1300;

/// A lab whose client's namespace is a router, with a client behind it.
struct Street {
    far: Namespace,
    lab: Lab,
}

fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

fn ip(namespace: &Namespace, words: &str) {
    let done = namespace.command("ip").args(words.split_whitespace()).status().expect("ip runs");
    assert!(done.success(), "ip {words}");
}

fn sysctl(namespace: &Namespace, setting: &str) {
    let done = namespace.command("sysctl").args(["-qw", setting]).status().expect("sysctl runs");
    assert!(done.success(), "sysctl {setting}");
}

impl Street {
    /// None: SKIP was said.
    fn new() -> Option<Self> {
        let settings =
            Settings { answer_max: 65_536, pages: 64, transfers: 64, ..Settings::default() };
        let path = Path::Direct(Offloads::NONE);
        let plan = Plan { path, settings, ..Plan::default() };
        let lab = Lab::new(
            plan,
            &[
                ("user.html", b"from nginx"),
                ("kernel.html", b"from nginx, the pinned one"),
                ("wide.html", &content(WIDE)),
                ("large.html", &large()),
                ("long.html", &content(LONG)),
            ],
        )?;
        Sample::new("from the kernel").pin(lab.fast_path(), "/kernel.html");
        Sample::new(content(WIDE)).pin(lab.fast_path(), "/wide.html");
        Sample::new(content(LONG)).pin(lab.fast_path(), "/big.html");
        let far = Namespace::create("far").expect("a namespace");
        let (router, server) = (lab.bed.client(), lab.bed.server());
        connect((router, "south"), (&far, Bed::DEVICE)).expect("a cable");
        let near = |like| Bed::client_address(like, 0);
        let both = [("10.88.0.", "24", near(SERVERS[0])), ("fd88::", "64", near(SERVERS[1]))];
        for (network, bits, router_address) in both {
            for (namespace, device, last) in [(router, "south", 1), (&far, Bed::DEVICE, 2)] {
                let interface = namespace.interface(device);
                interface.add_addresses([&*format!("{network}{last}/{bits}")]).expect("an address");
            }
            ip(&far, &format!("route add default via {network}1"));
            let net = if network.contains(':') { "fd88::/64" } else { "10.88.0.0/24" };
            ip(server, &format!("route add {net} via {router_address}"));
        }
        // A router asks for its neighbours from such an address.
        for device in [Bed::DEVICE, "south"] {
            router.interface(device).add_addresses(["fe80::1/64"]).expect("an address");
        }
        sysctl(router, "net.ipv4.ip_forward=1");
        sysctl(router, "net.ipv6.conf.all.forwarding=1");
        Some(Self { far, lab })
    }

    fn connect(&self, server: IpAddr) -> Client {
        let address = SocketAddr::new(server, PORT);
        self.far.run(|| Client::to(address)).expect("inside")
    }

    /// From now on, and nobody has heard of it yet.
    fn set_mtu(&self, mtu: u32) {
        ip(self.lab.bed.client(), &format!("link set south mtu {mtu}"));
        for family in ["-4", "-6"] {
            ip(self.lab.bed.server(), &format!("{family} route flush cache"));
        }
    }

    /// Routers say no word any more.
    fn silence(&self) {
        ip(self.lab.bed.client(), "rule add ipproto icmp blackhole");
        ip(self.lab.bed.client(), "-6 rule add ipproto ipv6-icmp blackhole");
    }

    fn get(&self, client: &mut Client, path: &str, body: &[u8], from_kernel: bool) -> Duration {
        let begin = Instant::now();
        let reply = client.get(path);
        let time = begin.elapsed();
        assert!(reply.body == body, "{path}\n{}", self.lab.tally());
        assert_eq!(reply.is_from_kernel(), from_kernel, "{path}\n{}", self.lab.tally());
        time
    }

    /// Each context once, so that the numbers of the connection have an offset.
    fn converse(&self, client: &mut Client) {
        self.get(client, "/kernel.html", b"from the kernel", true);
        self.get(client, "/user.html", b"from nginx", false);
        self.get(client, "/kernel.html", b"from the kernel", true);
    }
}

#[test]
fn a_router_is_heard_about_a_long_answer() {
    let Some(street) = Street::new() else { return };
    for server in SERVERS {
        street.set_mtu(1500);
        let mut client = street.connect(server);
        street.get(&mut client, "/big.html", &content(LONG), true);
        let (again, timed) = (
            street.lab.count(Reason::TransferRetransmitted),
            street.lab.count(Reason::PmtuReduced),
        );
        street.set_mtu(NARROW);
        let time = street.get(&mut client, "/big.html", &content(LONG), true);
        assert_eq!(street.lab.count(Reason::PmtuReduced), timed + 1, "{}", street.lab.tally());
        let again = street.lab.count(Reason::TransferRetransmitted) - again;
        println!("{server}: {time:?}, {again} pieces again");
        // A window is 46 of them. Where acknowledgements overtake each other between two cores, some leave twice.
        assert!((1..=3 * 46).contains(&again), "{again} pieces, of one window and no more");
        // The connection has learnt it, and so has the kernel's TCP.
        for _ in 0..3 {
            street.get(&mut client, "/big.html", &content(LONG), true);
            street.get(&mut client, "/large.html", &large(), false);
            street.get(&mut client, "/wide.html", &content(WIDE), false);
            street.converse(&mut client);
        }
        assert_eq!(street.lab.count(Reason::PmtuReduced), timed + 1);
        client.end();
        // And the next connection begins with it.
        let mut client = street.connect(server);
        street.get(&mut client, "/big.html", &content(LONG), true);
        assert_eq!(street.lab.count(Reason::PmtuReduced), timed + 1);
        client.end();
    }
    assert_eq!(street.lab.count(Reason::TranslateFailed), 0);
}

/// The quoted number is one of the wire, and the kernel's TCP knows only its own.
#[test]
fn a_router_is_heard_about_a_response_of_user_mode_on_a_connection_with_an_offset() {
    let Some(street) = Street::new() else { return };
    for server in SERVERS {
        street.set_mtu(1500);
        let mut client = street.connect(server);
        street.converse(&mut client);
        street.set_mtu(NARROW);
        let time = street.get(&mut client, "/large.html", &large(), false);
        println!("{server}: {time:?}");
        street.converse(&mut client);
        client.end();
    }
}

#[test]
fn an_answer_of_one_segment_that_is_too_long_now_comes_in_pieces() {
    let Some(street) = Street::new() else { return };
    for (round, server) in SERVERS.into_iter().enumerate() {
        street.set_mtu(1500);
        let mut client = street.connect(server);
        street.get(&mut client, "/wide.html", &content(WIDE), true);
        street.set_mtu(NARROW);
        street.get(&mut client, "/wide.html", &content(WIDE), true);
        let again = street.lab.count(Reason::AnsweredRetransmission)
            + street.lab.count(Reason::RtxRetransmitted);
        assert!(again > round as u64, "{}", street.lab.tally());
        street.get(&mut client, "/wide.html", &content(WIDE), false);
        street.converse(&mut client);
        client.end();
    }
}

#[test]
fn a_router_that_says_nothing() {
    let Some(street) = Street::new() else { return };
    street.silence();
    for server in SERVERS {
        street.set_mtu(1500);
        let mut client = street.connect(server);
        street.get(&mut client, "/wide.html", &content(WIDE), true);
        street.get(&mut client, "/big.html", &content(LONG), true);
        street.set_mtu(NARROW);
        let time = street.get(&mut client, "/big.html", &content(LONG), true);
        println!("{server}: {time:?}");
        let again = street.lab.count(Reason::TransferRetransmitted);
        street.get(&mut client, "/big.html", &content(LONG), true);
        let more = street.lab.count(Reason::TransferRetransmitted) - again;
        assert!(more < 5, "the connection has learnt it: {more}");
        street.converse(&mut client);
        client.end();
        let mut client = street.connect(server);
        street.get(&mut client, "/wide.html", &content(WIDE), true);
        street.converse(&mut client);
        client.end();
    }
    assert_eq!(street.lab.count(Reason::PmtuReduced), 0, "nothing was heard");
    assert_eq!(street.lab.count(Reason::TransferGivenUp), 0);
}

/// "Too long", from a router between us and an IPv4 client, quoting this number.
fn quote(street: &Street, client: SocketAddr, seq: u32) -> Vec<u8> {
    let SocketAddr::V4(client) = client else { panic!("an IPv4 client") };
    let (server, client_bytes) = (Bed::SERVER_V4.octets(), client.ip().octets());
    let ip = |protocol: u8, length: u8, from: [u8; 4], to: [u8; 4]| {
        [&[0x45, 0, 0, length, 0, 1, 0x40, 0, 64, protocol, 0, 0][..], &from, &to].concat()
    };
    let ports = [PORT.to_be_bytes(), client.port().to_be_bytes()].concat();
    [
        &street.lab.bed.macs().expect("link addresses")[..],
        &[8, 0],
        &ip(1, 56, [10, 88, 0, 1], server),
        &[3, 4, 0, 0, 0, 0, 2, 88], // 600 bytes
        &ip(6, 200, server, client_bytes),
        &ports,
        &seq.to_be_bytes(),
    ]
    .concat()
}

#[test]
fn a_forger_who_does_not_know_the_numbers_changes_nothing() {
    let Some(street) = Street::new() else { return };
    let mut client = street.connect(SERVERS[0]);
    street.converse(&mut client);
    let here = client.tcp().local_addr().expect("an address");
    let router = street.lab.bed.client();
    let socket = router.run(|| PacketSocket::open(Bed::DEVICE)).expect("inside").expect("a socket");
    for guess in 0..256 {
        let frame = quote(&street, here, guess << 24 | 0x55_aa55);
        assert!(socket.send(&frame).expect("sent"), "room");
    }
    // Nor do frames that end too early.
    let whole = quote(&street, here, 0);
    for length in 34..whole.len() {
        assert!(socket.send(&whole[..length]).expect("sent"), "room");
    }
    street.get(&mut client, "/wide.html", &content(WIDE), true);
    assert_eq!(street.lab.count(Reason::PmtuReduced), 0);
    street.converse(&mut client);
    client.end();
}

/// Not a test: how long the first long answer takes after the path has become narrower.
#[test]
#[ignore = "figures"]
fn completion_times() {
    let Some(street) = Street::new() else { return };
    for server in SERVERS {
        let measure = |path: &str, from_kernel: bool| {
            let once = || {
                street.set_mtu(1500);
                let mut client = street.connect(server);
                street.get(&mut client, path, &content(LONG), from_kernel);
                street.set_mtu(NARROW);
                let time = street.get(&mut client, path, &content(LONG), from_kernel);
                client.end();
                time
            };
            let mut times: Vec<_> = (0..15).map(|_| once()).collect();
            times.sort();
            (times[7], times[14])
        };
        let (kernel, nginx) = (measure("/big.html", true), measure("/long.html", false));
        println!("{server}: median and most, the kernel's answers {kernel:?}, nginx {nginx:?}");
    }
}
