//! While SYNs come in a flood, those of clients that are not known are answered as well, and no more than that (N12).

use std::cell::Cell;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;

use afpa_bpf::{Admission, Reason};
use afpa_netlab::Bed;
use afpa_police::{Police, PoliceKernel, PoliceSettings};
use afpa_testkit::aloud::say;
use afpa_testkit::eventually;
use afpa_testkit::packet::{ACK, PacketSocket, SYN, Segment, SynOptions};
use afpa_testkit::tcp::RawClient;

use super::admission::{self, connect, server};
use crate::support::inside;
use crate::support::socketless::{Bench, SOON, data, learn, syn_ack};

/// A second: five in the time for which they are counted.
const RATE: u32 = 40;
const MANY: u32 = 8;
const PATIENCE: u32 = 10;
/// The possible fates of a SYN of the flood: each counts one of these when all else of it is done.
const DECISIONS: [Reason; 6] = [
    Reason::SocketlessSyn,
    Reason::SocketlessUnknownClient,
    Reason::SocketlessUnfit,
    Reason::SocketlessTooMany,
    Reason::PassUnconfirmed,
    Reason::PassNoHeartbeat,
];

/// Where one processor counts all SYNs.
fn bench() -> Option<Bench> {
    let bench = admission::bench(Admission::Flood)?;
    bench.world.server().interface(Bed::DEVICE).steer(Some(0)).expect("steered");
    Some(bench)
}

/// SYNs with source addresses behind the gateway, real or spoofed.
struct Flood<'a> {
    bench: &'a Bench,
    wire: PacketSocket,
    macs: [u8; 12],
    sent: Cell<u32>,
}

impl<'a> Flood<'a> {
    fn begin(bench: &'a Bench) -> Self {
        let raw = bench.world.raw();
        let macs = *raw.frame(&raw.next()).first_chunk::<12>().expect("an Ethernet header");
        let client = bench.world.bed.client();
        let wire = inside(client, || PacketSocket::open(Bed::DEVICE)).expect("a socket");
        let flood = Self { bench, wire, macs, sent: Cell::new(0) };
        bench.fast_path.clients.set_flood_syns(RATE);
        flood.goes_on();
        flood
    }

    /// Until one of its SYNs is answered: then the gateway was seen lately, too.
    #[track_caller]
    fn goes_on(&self) {
        let before = self.bench.count(Reason::SocketlessFlood);
        eventually("SYNs of the flood are answered", || {
            self.come(MANY);
            self.bench.count(Reason::SocketlessFlood) > before
        });
    }

    /// So many SYNs, and all of them are decided.
    #[track_caller]
    fn come(&self, many: u32) {
        let decided = || DECISIONS.map(|reason| self.bench.count(reason)).iter().sum::<u64>();
        let before = decided();
        for _ in 0..many {
            let number = self.sent.replace(self.sent.get() + 1);
            let from = SocketAddr::new([198, 51, 100, 200].into(), 1024 + (number % 50_000) as u16);
            self.send(from, number, &self.macs);
        }
        eventually("all of them are decided", || decided() >= before + u64::from(many));
    }

    fn send(&self, from: SocketAddr, seq: u32, macs: &[u8; 12]) {
        let syn = SynOptions { mss: Some(1460), ..SynOptions::default() };
        let syn = Segment { flags: SYN, seq, syn, ..Segment::new(from, server()) };
        assert!(self.wire.send(&syn.frame(macs)).expect("sent"));
    }

    /// One SYN that is not answered without the kernel, for this reason.
    #[track_caller]
    fn is_left(&self, from: SocketAddr, macs: &[u8; 12], reason: Reason) {
        self.goes_on();
        let count = |reason| self.bench.count(reason);
        let (before, answered) = (count(reason), count(Reason::SocketlessSyn));
        self.send(from, 7, macs);
        eventually("it is decided", || {
            count(reason) > before || count(Reason::SocketlessSyn) > answered
        });
        assert_eq!((count(reason), count(Reason::SocketlessSyn)), (before + 1, answered));
    }

    /// An unknown client, whose SYN was answered as those of the flood are, and that answer.
    #[track_caller]
    fn answers(&self, last: u8) -> (RawClient, Segment) {
        for _ in 0..PATIENCE {
            let mut client = stranger(self.bench, last);
            self.goes_on();
            let before = self.bench.count(Reason::SocketlessFlood);
            let answer = syn_ack(&mut client, |_| ());
            if self.bench.count(Reason::SocketlessFlood) > before {
                return (client, answer);
            }
        }
        panic!("its SYNs are the kernel's: {:?}", self.bench.counts());
    }

    /// Its whole handshake.
    #[track_caller]
    fn open(&self, last: u8) -> RawClient {
        let (mut client, answer) = self.answers(last);
        learn(&mut client, &answer);
        client.acknowledge();
        client
    }
}

/// A client behind the gateway that no connection was made with.
fn stranger(bench: &Bench, last: u8) -> RawClient {
    let mut client = bench.world.raw();
    client.disguise(SocketAddr::new([198, 51, 100, last].into(), client.address().port()));
    client
}

#[test]
fn without_a_flood_each_client_has_to_be_known_itself() {
    let Some(bench) = bench() else { return };
    for last in 1..10 {
        assert!(!connect(&bench, &format!("198.51.100.{last}")).1, "{last}");
    }
    assert_eq!(bench.count(Reason::SocketlessFlood), 0);
}

#[test]
fn in_a_flood_a_stranger_gets_a_cookie_and_its_first_request_is_the_kernel_s() {
    let Some(bench) = bench() else { return };
    let flood = Flood::begin(&bench);
    let mut client = flood.open(77);
    assert_eq!(bench.count(Reason::SocketlessToKernel), 0);
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(reply.text().ends_with("the pinned one, from nginx"), "{reply:?}");
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1, "{:?}", bench.counts());
    client.acknowledge();
    bench.goes_on(&mut client);
}

/// A flood leaves nothing behind: no flow, no socket, no second SYN-ACK.
#[test]
fn a_flood_that_is_answered_leaves_nothing_behind() {
    let Some(bench) = bench() else { return };
    let flood = Flood::begin(&bench);
    let flows = bench.sweep().flows;
    let client = stranger(&bench, 77);
    let syn = SynOptions { mss: Some(1460), ..SynOptions::default() };
    flood.goes_on();
    client.send(&Segment { flags: SYN, ack: 0, syn, ts_echo: 0, ..client.next() });
    client.await_segment("SYN-ACK", |answer| answer.flags & (SYN | ACK) == SYN | ACK);
    let again = client.collect(SOON);
    assert!(again.is_empty(), "{again:?}");
    flood.come(200);
    flood.goes_on();
    assert_eq!(bench.sweep().flows, flows, "{:?}", bench.counts());
}

/// It gets a SYN-ACK, which it would not get without the flood, and not a byte more.
#[test]
fn in_a_flood_the_firewall_has_its_say_before_any_answer() {
    let Some(bench) = bench() else { return };
    let rules = "add table inet t; add chain inet t in { type filter hook input priority 0; }; \
                 add rule inet t in ip saddr 198.51.100.77 drop";
    if !nft(&bench, rules) {
        return say("SKIP", "no nft here, or a kernel without nf_tables");
    }
    let banned = stranger(&bench, 77);
    let syn = SynOptions { mss: Some(1460), ..SynOptions::default() };
    banned.send(&Segment { flags: SYN, ack: 0, syn, ts_echo: 0, ..banned.next() });
    assert!(banned.collect(SOON).is_empty(), "without a flood it is asked first");

    let flood = Flood::begin(&bench);
    let mut client = flood.open(77);
    let request = client.get("/kernel.html");
    client.send(&request);
    bench.await_count(Reason::SocketlessToKernel, 1);
    client.send(&request);
    bench.await_count(Reason::SocketlessToKernelAgain, 1);
    let said = client.collect(SOON);
    assert!(said.iter().all(|segment| segment.flags & SYN != 0), "{said:?}");
    assert!(data(said).is_empty());
    assert_eq!(bench.count(Reason::Answered), 0, "{:?}", bench.counts());

    assert!(nft(&bench, "delete table inet t"));
    let reply = client.ask(&request);
    assert!(reply.text().ends_with("the pinned one, from nginx"), "{reply:?}");
}

fn nft(bench: &Bench, rules: &str) -> bool {
    let mut nft = bench.world.server().command("nft");
    let status = nft.arg(rules).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn in_a_flood_a_syn_is_answered_only_by_a_way_that_was_seen() {
    let Some(bench) = bench() else { return };
    let flood = Flood::begin(&bench);
    let mut foreign = flood.macs;
    foreign[6..].copy_from_slice(&[2, 0, 0, 0, 9, 9]);
    let unknown = Reason::SocketlessUnknownClient;
    flood.is_left(SocketAddr::new([198, 51, 100, 78].into(), 1024), &foreign, unknown);
    flood.is_left(SocketAddr::new([203, 0, 113, 78].into(), 1024), &flood.macs, unknown);
    flood.is_left(SocketAddr::new([10, 77, 64, 78].into(), 1024), &flood.macs, unknown);
}

#[test]
fn in_a_flood_the_police_are_asked_first() {
    let Some(bench) = bench() else { return };
    let kernel = Arc::clone(&bench.fast_path.police) as Arc<dyn PoliceKernel>;
    let police = Police::new(Some(kernel), 0, 0);
    let deny = vec!["198.51.100.77/32".parse().expect("a prefix")];
    police.configure(&PoliceSettings { deny, ..PoliceSettings::default() }).expect("taken");
    let flood = Flood::begin(&bench);
    let from = SocketAddr::new([198, 51, 100, 77].into(), 1024);
    flood.is_left(from, &flood.macs, Reason::DropDenied);
}

/// A client that sends its SYN again after the flood gets the same number as before: another one would end in a reset.
#[test]
fn a_syn_that_was_answered_in_a_flood_is_answered_again_behind_it() {
    let Some(bench) = bench() else { return };
    let flood = Flood::begin(&bench);
    let (mut client, first) = flood.answers(77);
    bench.fast_path.clients.set_flood_syns(u32::MAX);
    let (answered, floods) =
        (bench.count(Reason::SocketlessSyn), bench.count(Reason::SocketlessFlood));
    let again = syn_ack(&mut client, |_| ());
    assert_eq!(bench.count(Reason::SocketlessSyn), answered + 1, "{first:?} {again:?}");
    assert_eq!(bench.count(Reason::SocketlessFlood), floods);
}

#[test]
fn syns_of_clients_that_are_known_are_no_flood() {
    let Some(bench) = bench() else { return };
    bench.fast_path.clients.set_flood_syns(RATE);
    let mut client = bench.raw();
    let before = bench.count(Reason::SocketlessSyn);
    for _ in 0..2 * MANY {
        client.seq = client.seq.wrapping_add(1000);
        syn_ack(&mut client, |_| ());
    }
    assert!(bench.count(Reason::SocketlessSyn) > before + u64::from(MANY), "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::SocketlessFlood), 0);
}
