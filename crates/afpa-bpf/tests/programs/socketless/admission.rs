//! Everyone is admitted: clients that the kernel has never spoken to, behind a gateway to which it has.

use std::net::SocketAddr;
use std::time::Duration;

use afpa_bpf::{Admission, Reason, Settings};
use afpa_netlab::{Bed, Namespace};
use afpa_testkit::packet::{PacketSocket, SYN, Segment, SynOptions};
use afpa_testkit::{Client, eventually};

use crate::support::socketless::Bench;
use crate::support::{PORT, SERVER_V4, inside};
use crate::unsound::{NO_CLIENT, spoilt, syn};

const GATEWAY: &str = "10.77.64.1";
const OTHER_GATEWAY: &str = "10.77.64.9";

/// A server that reaches two networks, each by a gateway of its own, and clients in them: both are the client's side.
pub(super) fn bench(admission: Admission) -> Option<Bench> {
    let bench = Bench::with(Settings { admission, ..Settings::default() })?;
    let mut addresses = vec![format!("{OTHER_GATEWAY}/16")];
    addresses.extend((1..40).map(|n| format!("198.51.100.{n}/32")));
    addresses.extend((1..10).map(|n| format!("203.0.113.{n}/32")));
    let interface = bench.world.bed.client().interface(Bed::DEVICE);
    interface.add_addresses(addresses.iter().map(String::as_str)).expect("addresses");
    let server = bench.world.server();
    ip(server, &["route", "add", "198.51.100.0/24", "via", GATEWAY]);
    ip(server, &["route", "add", "203.0.113.0/24", "via", OTHER_GATEWAY]);
    look(&bench);
    Some(bench)
}

#[track_caller]
pub(super) fn ip(namespace: &Namespace, arguments: &[&str]) {
    let done = namespace.command("ip").args(arguments).status().expect("ip");
    assert!(done.success(), "{arguments:?}");
}

pub(super) fn look(bench: &Bench) {
    inside(bench.world.server(), || bench.fast_path.socketless.look_at_tcp()).expect("on");
}

/// A connection from this address, and whether its SYN was answered without the kernel.
#[track_caller]
pub(super) fn connect(bench: &Bench, from: &str) -> (Client, bool) {
    let before = bench.count(Reason::SocketlessSyn);
    let (from, to) = (from.parse().expect("an address"), server());
    let client = inside(bench.world.bed.client(), || {
        Client::connect_within(Duration::from_secs(3), from, to)
    });
    (client.expect("connected"), bench.count(Reason::SocketlessSyn) > before)
}

pub(super) fn server() -> SocketAddr {
    SocketAddr::new(SERVER_V4.parse().expect("an address"), PORT)
}

/// The first clients behind a gateway are the kernel's; then comes one that is not. None of them was there before.
#[track_caller]
fn stranger(bench: &Bench, network: &str, first: u8) -> Client {
    for last in first..first + 8 {
        let (client, without) = connect(bench, &format!("{network}.{last}"));
        if without {
            return client;
        }
    }
    panic!("all were the kernel's: {:?}", bench.counts());
}

#[track_caller]
fn is_right(client: &mut Client) {
    assert_eq!(client.get("/kernel.html").text(), "from the kernel");
    assert_eq!(client.get("/user.html").text(), "from nginx");
    assert!(client.get("/kernel.html").text().ends_with("from the kernel"));
}

#[test]
fn a_client_that_was_never_seen_is_answered_behind_a_gateway_that_was() {
    let Some(bench) = bench(Admission::Everyone) else { return };
    assert!(!connect(&bench, "198.51.100.1").1, "nothing is known of its gateway");
    let mut client = stranger(&bench, "198.51.100", 2);
    is_right(&mut client);
    assert!(bench.count(Reason::SocketlessToKernel) >= 1, "{:?}", bench.counts());
    assert!(!connect(&bench, "203.0.113.1").1, "the other gateway has not been seen");
    is_right(&mut stranger(&bench, "203.0.113", 2));
}

#[test]
fn by_default_each_client_has_to_be_known_itself() {
    let Some(bench) = bench(Admission::Recent) else { return };
    for last in 1..10 {
        assert!(!connect(&bench, &format!("198.51.100.{last}")).1, "{last}");
    }
}

/// On the link, each client has a MAC address of its own.
#[test]
fn clients_on_the_link_have_to_be_known() {
    let Some(bench) = bench(Admission::Everyone) else { return };
    stranger(&bench, "198.51.100", 1);
    assert!(!connect(&bench, OTHER_GATEWAY).1);
}

#[test]
fn a_syn_that_does_not_come_from_the_gateway_is_the_kernel_s() {
    let Some(bench) = bench(Admission::Everyone) else { return };
    let raw = bench.world.raw();
    let macs = *raw.frame(&raw.next()).first_chunk::<12>().expect("an Ethernet header");
    let mut foreign = macs;
    foreign[6..].copy_from_slice(&[2, 0, 0, 0, 9, 9]);
    let wire =
        inside(bench.world.bed.client(), || PacketSocket::open(Bed::DEVICE)).expect("a socket");
    let syn = |macs: &[u8; 12], last: u8, port: u16| {
        let from = SocketAddr::new([198, 51, 100, last].into(), port);
        let syn = SynOptions { mss: Some(1460), ..SynOptions::default() };
        let syn = Segment { flags: SYN, syn, ..Segment::new(from, server()) };
        let before =
            (bench.count(Reason::SocketlessSyn), bench.count(Reason::SocketlessUnknownClient));
        assert!(wire.send(&syn.frame(macs)).expect("sent"));
        let now =
            || (bench.count(Reason::SocketlessSyn), bench.count(Reason::SocketlessUnknownClient));
        eventually("it is decided", || now() != before);
        now().0 > before.0
    };
    stranger(&bench, "198.51.100", 1);
    assert!(!syn(&foreign, 30, 1024));
    let answered = (0..5).any(|turn| {
        stranger(&bench, "198.51.100", 10);
        syn(&macs, 31, 1025 + turn)
    });
    assert!(answered, "{:?}", bench.counts());
}

/// The kernel's own SYN-ACK left to another client behind the gateway, so nothing is known yet of this client and
/// this server.
#[test]
fn a_syn_from_nowhere_or_to_another_machine_is_the_kernel_s() {
    let Some(bench) = bench(Admission::Everyone) else { return };
    let mut client = bench.world.raw();
    client.disguise(SocketAddr::new([198, 51, 100, 30].into(), client.address().port()));
    let decided = [Reason::SocketlessSyn, Reason::SocketlessUnknownClient, Reason::SocketlessUnfit];
    let is_answered = |frame: &[u8]| {
        let counts = || decided.map(|reason| bench.count(reason));
        stranger(&bench, "198.51.100", 1);
        let before = counts();
        client.send_frame(frame);
        eventually("it is decided", || counts() != before);
        counts()[0] > before[0]
    };
    for (what, spoil) in &NO_CLIENT {
        assert!(!is_answered(&spoilt(syn(&client), *spoil)), "{what}: {:?}", bench.counts());
    }
    assert!((0..5).any(|_| is_answered(&syn(&client))), "{:?}", bench.counts());
}

#[test]
fn rules_and_routes_that_change_are_seen() {
    let Some(bench) = bench(Admission::Everyone) else { return };
    let bed = bench.world.server();
    stranger(&bench, "198.51.100", 1);
    ip(bed, &["rule", "add", "from", "10.77.0.77", "lookup", "77"]);
    look(&bench);
    assert!(bench.fast_path.socketless.admission_refusal().is_some(), "IPv6 has no gateway here");
    for last in 10..14 {
        assert!(
            !connect(&bench, &format!("198.51.100.{last}")).1,
            "a rule may choose another route"
        );
    }
    ip(bed, &["rule", "del", "from", "10.77.0.77", "lookup", "77"]);
    look(&bench);
    assert_eq!(bench.fast_path.socketless.admission_refusal(), None);
    stranger(&bench, "198.51.100", 14);
    // A route of its own, beside that of its network.
    ip(bed, &["route", "add", "198.51.100.30", "via", OTHER_GATEWAY]);
    look(&bench);
    stranger(&bench, "198.51.100", 22);
    assert!(!connect(&bench, "198.51.100.30").1);
    // Several next hops.
    let both = [
        "route",
        "replace",
        "198.51.100.0/24",
        "nexthop",
        "via",
        GATEWAY,
        "nexthop",
        "via",
        OTHER_GATEWAY,
    ];
    ip(bed, &both);
    look(&bench);
    for last in 31..35 {
        assert!(!connect(&bench, &format!("198.51.100.{last}")).1, "either of two");
    }
}
