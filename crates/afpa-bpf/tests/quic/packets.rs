//! Packets in and packets out, by BPF_PROG_TEST_RUN: which go up, which are dropped, and the answers to others, byte by byte.

use std::hash::Hasher as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use afpa_bpf::quic::QuicPath;
use afpa_bpf::quic::abi::{QUIC_LEAST, QUIC_TOKEN_KEYS, QuicConfig, QuicTokenKey, Reason};
use afpa_bpf::{DryRun, TCX_DROP, TCX_NEXT, TCX_REDIRECT, monotonic_ns};
use afpa_police::{Prefix, Rule, Rules};
use afpa_testkit::Random;
use afpa_testkit::packet::checksum;
use afpa_tls::quic::{TOKEN_LIFE, make_token, period_of};
use siphasher::sip::SipHasher24;

use crate::tokens::tag_of;

/// The verifier's limit is a million.
const VERIFIER_BUDGET: u32 = 60_000;
const ID_KEY: [u8; 16] = *b"the key of ids..";
const KEY_BEFORE: [u8; 16] = *b"the one before..";
const RETRY_KEY: [u8; 16] = *b"of ids of Retry.";
const TOKEN_KEY: [u8; 16] = *b"a key of tokens.";
/// In the middle of a period.
const NOW: u64 = 28_000_000 * 64 + 32;
const MACS: [u8; 12] = [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 7];

/// The program, serving an address of each family by sockets that take whatever comes to their ports here.
struct Bench {
    path: QuicPath,
    config: QuicConfig,
    servers: [SocketAddr; 2],
    _sockets: [UdpSocket; 2],
}

fn words(key: [u8; 16]) -> [u64; 2] {
    [0, 8].map(|at| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight")))
}

/// So that it is this time now.
fn wall(ns: u64) -> u64 {
    ns.wrapping_sub(monotonic_ns())
}

impl Bench {
    /// In a flood from the first Initial on; `None`, said aloud: the kernel does not load it.
    fn new() -> Option<Self> {
        let path = match QuicPath::load() {
            Ok(path) => path,
            Err(error) if error.reason.contains("verifier") => panic!("{error}"),
            Err(error) => {
                println!("SKIP: {error}");
                return None;
            }
        };
        // One processor counts all.
        let mut one = rustix::thread::CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(None, &one).expect("pinned");
        let sockets = ["0.0.0.0:0", "[::]:0"].map(|any| UdpSocket::bind(any).expect("bound"));
        let servers = [("192.0.2.1", &sockets[0]), ("2001:db8::1", &sockets[1])];
        let servers = servers.map(|(ip, socket)| {
            path.own(socket).expect("marked");
            let port = socket.local_addr().expect("bound").port();
            SocketAddr::new(ip.parse().expect("an address"), port)
        });
        path.serve(servers).expect("served");
        let (own, before) = (words(ID_KEY), words(KEY_BEFORE));
        let mut token_keys = [QuicTokenKey::ZERO; QUIC_TOKEN_KEYS];
        for (further, key) in [(0, TOKEN_KEY), (1, KEY_BEFORE)] {
            let period = period_of(NOW) - further;
            token_keys[period as usize % QUIC_TOKEN_KEYS] =
                QuicTokenKey { period, words: words(key) };
        }
        let config = QuicConfig {
            until: u64::MAX,
            wall: wall(NOW * 1_000_000_000),
            id_keys: [own[0], own[1], before[0], before[1]],
            retry_key: words(RETRY_KEY),
            token_keys,
            flood: 1,
            known: u32::MAX,
            early: u32::MAX,
            rules: 0,
        };
        path.configure(&config).expect("told");
        Some(Self { path, config, servers, _sockets: sockets })
    }

    fn configure(&mut self, change: impl FnOnce(&mut QuicConfig)) {
        change(&mut self.config);
        self.path.configure(&self.config).expect("told");
    }

    fn server(&self, client: SocketAddr) -> SocketAddr {
        self.servers[usize::from(client.is_ipv6())]
    }

    fn run(&self, client: SocketAddr, datagram: &[u8]) -> (i32, Vec<u8>) {
        self.run_merged(client, datagram, 0)
    }

    fn run_merged(&self, client: SocketAddr, datagram: &[u8], size: u32) -> (i32, Vec<u8>) {
        let frame = frame(client, self.server(client), datagram);
        let DryRun { verdict, packet, .. } = self.path.dry_run(&frame, size, 1).expect("it runs");
        if verdict != TCX_REDIRECT {
            assert_eq!(packet, frame, "what is not answered is as it was");
        }
        (verdict, packet)
    }

    fn verdict(&self, client: SocketAddr, datagram: &[u8]) -> i32 {
        self.run(client, datagram).0
    }

    /// The Retry that the datagram gets.
    fn retry(&self, client: SocketAddr, datagram: &[u8]) -> Retry {
        let (verdict, packet) = self.run(client, datagram);
        assert_eq!(verdict, TCX_REDIRECT, "{datagram:02x?}");
        Retry::read(self.turned(client, &packet), datagram)
    }

    /// The content of an answer, with right headers.
    fn turned<'p>(&self, client: SocketAddr, packet: &'p [u8]) -> &'p [u8] {
        let server = self.server(client);
        assert_eq!(packet[..12], [&MACS[6..], &MACS[..6]].concat());
        let (ip, udp) = packet[14..].split_at(if client.is_ipv4() { 20 } else { 40 });
        let length = u16::from_be_bytes([udp[4], udp[5]]);
        assert_eq!(usize::from(length), udp.len());
        let addresses = match (client.ip(), server.ip()) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                assert_eq!(checksum::sum(&[ip]), 0xffff);
                assert_eq!(u16::from_be_bytes([ip[2], ip[3]]), 20 + length);
                [server.octets(), client.octets()].concat()
            }
            (IpAddr::V6(client), IpAddr::V6(server)) => {
                assert_eq!(u16::from_be_bytes([ip[4], ip[5]]), length);
                [server.octets(), client.octets()].concat()
            }
            _ => unreachable!("both are of a family"),
        };
        assert_eq!(ip[ip.len() - addresses.len()..], addresses);
        let pseudo = [&addresses[..], &[0, 17], &length.to_be_bytes()].concat();
        assert_eq!(checksum::sum(&[&pseudo, udp]), 0xffff);
        assert_eq!(udp[..4], [server.port().to_be_bytes(), client.port().to_be_bytes()].concat());
        &udp[8..]
    }

    fn count(&self, wanted: Reason) -> u64 {
        let all = self.path.counters().expect("counted");
        all.into_iter().find(|(reason, _)| *reason == wanted).map_or(0, |(_, count)| count)
    }
}

fn frame(client: SocketAddr, server: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let length = (8 + datagram.len()) as u16;
    let mut udp = [client.port().to_be_bytes(), server.port().to_be_bytes()].concat();
    udp.extend(length.to_be_bytes());
    udp.extend([0xbe, 0xef]);
    udp.extend(datagram);
    let ip = match (client.ip(), server.ip()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            let mut ip = vec![0x45, 3];
            ip.extend((20 + length).to_be_bytes());
            ip.extend([0, 7, 0, 0, 64, 17, 0, 0]);
            ip.extend([client.octets(), server.octets()].concat());
            let sum = !checksum::sum(&[&ip]);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            [&[8, 0][..], &ip].concat()
        }
        (IpAddr::V6(client), IpAddr::V6(server)) => {
            let mut ip = vec![0x86, 0xdd, 0x60, 0, 0, 0];
            ip.extend(length.to_be_bytes());
            ip.extend([17, 64]);
            ip.extend([client.octets(), server.octets()].concat());
            ip
        }
        _ => unreachable!("both are of a family"),
    };
    [&MACS[..], &ip, &udp].concat()
}

/// A packet with a long header of this first byte and version, in a datagram of this length.
fn long(first: u8, version: u32, ids: [&[u8]; 2], token: &[u8], length: usize) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    for id in ids {
        packet.push(id.len() as u8);
        packet.extend(id);
    }
    if token.len() < 64 {
        packet.push(token.len() as u8);
    } else {
        packet.extend((0x4000 | token.len() as u16).to_be_bytes());
    }
    packet.extend(token);
    packet.resize(length, 0xa5);
    packet
}

fn initial(ids: [&[u8]; 2], token: &[u8]) -> Vec<u8> {
    long(0xc3, 1, ids, token, QUIC_LEAST)
}

/// An id of ours.
fn own_id(key: [u8; 16], random: u32, place: u32) -> [u8; 8] {
    let mut hasher = SipHasher24::new_with_key(&key);
    hasher.write(&random.to_le_bytes());
    let masked = hasher.finish() as u32 ^ place;
    (u64::from(random) << 32 | u64::from(masked)).to_be_bytes()
}

/// The random number in an id.
fn random_of(id: [u8; 8]) -> u32 {
    (u64::from_be_bytes(id) >> 32) as u32
}

/// An id with these bits of its lower half changed, where the place is.
fn changed(id: [u8; 8], bits: u32) -> [u8; 8] {
    (u64::from_be_bytes(id) ^ u64::from(bits)).to_be_bytes()
}

/// A short header, Handshake and 0-RTT.
fn going_on(id: [u8; 8]) -> [Vec<u8>; 3] {
    let mut short = [&[0x41][..], &id].concat();
    short.resize(40, 0);
    [short, long(0xe0, 1, [&id, &[]], &[], 60), long(0xd0, 1, [&id, &[]], &[], 500)]
}

fn client(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn by_chance(random: &mut Random) -> SocketAddr {
    let ip: IpAddr = match random.one_in(2) {
        true => [10, random.next() as u8, random.next() as u8, random.next() as u8].into(),
        false => {
            let mut octets: [u8; 16] = random.bytes(16).try_into().expect("sixteen");
            octets[0] = 0x20;
            octets.into()
        }
    };
    SocketAddr::new(ip, 1 + random.below(65_535) as u16)
}

/// A Retry whose tag is right.
struct Retry {
    /// The id that the client is to go on with.
    id: [u8; 8],
    token: Vec<u8>,
}

impl Retry {
    /// `first` is the packet that it answers.
    fn read(content: &[u8], first: &[u8]) -> Self {
        assert!(content.len() < first.len(), "{} bytes for {}", content.len(), first.len());
        let first_id = &first[5..][..1 + usize::from(first[5])];
        let client_id = &first[5 + first_id.len()..];
        let client_id = &client_id[..1 + usize::from(client_id[0])];
        assert_eq!((content[0] & 0xf0, &content[1..5]), (0xf0, &[0, 0, 0, 1][..]));
        let (said, rest) = content[5..].split_at(client_id.len());
        assert_eq!((said, rest[0]), (client_id, 8));
        let (before, tag) = content.split_at(content.len() - 16);
        assert_eq!(tag, tag_of(&[first_id, before].concat()));
        let token = rest[9..rest.len() - 16].to_vec();
        Self { id: rest[1..9].try_into().expect("eight"), token }
    }
}

#[test]
fn the_verifier_does_not_take_long() {
    let Some(bench) = Bench::new() else { return };
    let count = bench.path.verified_instructions().expect("asked");
    println!("{count} instructions");
    assert!(count < VERIFIER_BUDGET, "{count}");
}

#[test]
fn in_a_flood_a_first_packet_is_answered_by_a_retry_whose_token_holds() {
    let Some(mut bench) = Bench::new() else { return };
    let mut random = Random::new(Random::seed_or(17));
    for turn in 0..1_000 {
        bench.configure(|config| config.wall = wall(NOW * 1_000_000_000));
        let client = by_chance(&mut random);
        let (first, own) = (8 + random.below(13), random.below(21));
        let (first, own) = (random.bytes(first), random.bytes(own));
        let length = QUIC_LEAST + random.below(250);
        let asked = long(0xc0 | random.next() as u8 & 15, 1, [&first, &own], &[], length);
        let Retry { id, token } = bench.retry(client, &asked);
        assert_eq!(token, make_token(&TOKEN_KEY, client, &first, said(&token), id));
        assert!(said(&token).abs_diff(NOW) < 20);
        assert_eq!(id, own_id(RETRY_KEY, random_of(id), 0));
        // The client comes back with it: to that id, and later to one of the server's.
        for to in [id, own_id(ID_KEY, turn, 3)] {
            assert_eq!(bench.verdict(client, &initial([&to, &own], &token)), TCX_NEXT);
        }
        // A token that does not hold is answered like none.
        let mut wrong = token.clone();
        wrong[random.below(token.len())] ^= 1 << random.below(8);
        bench.retry(client, &initial([&id, &own], &wrong));
        let mut another = client;
        another.set_port(client.port() ^ 1);
        if another.port() != 0 {
            bench.retry(another, &initial([&id, &own], &token));
        }
        let length = random.below(200);
        bench.retry(client, &initial([&first, &own], &random.bytes(length)));
        // Without a token, the id alone is worth nothing.
        bench.retry(client, &initial([&id, &own], &[]));
    }
    assert_eq!(bench.count(Reason::PassToken), 2_000);
    assert_eq!(bench.count(Reason::Flood), 1);
    assert_eq!(bench.count(Reason::DropSend), 0);
}

/// The second of a token.
fn said(token: &[u8]) -> u64 {
    u64::from_be_bytes(token[token.len() - 24..][..8].try_into().expect("eight"))
}

#[test]
fn tokens_hold_for_their_time_by_two_keys() {
    let Some(mut bench) = Bench::new() else { return };
    let client = client("10.1.2.3:4567");
    // The period has just begun.
    let begun = period_of(NOW) << 6;
    bench.configure(|config| {
        config.wall = wall((begun + 5) * 1_000_000_000 + 500_000_000);
    });
    bench.retry(client, &initial([&[1; 8], &[]], &[]));
    let token = |key, second| make_token(key, client, &[1; 8], second, [2; 8]);
    for (key, second, holds) in [
        (&TOKEN_KEY, begun + 1, true),
        (&KEY_BEFORE, begun - 1, true),
        (&KEY_BEFORE, begun + 1, false),
        (&TOKEN_KEY, begun - 1, false),
        (&KEY_BEFORE, begun + 5 - TOKEN_LIFE, false),
        (&TOKEN_KEY, begun + 20, false),
    ] {
        let verdict = bench.verdict(client, &initial([&[2; 8], &[]], &token(key, second)));
        assert_eq!(verdict == TCX_NEXT, holds, "{second}");
    }
}

#[test]
fn without_a_flood_all_goes_up_but_initials_that_no_server_takes() {
    let Some(mut bench) = Bench::new() else { return };
    bench.configure(|config| config.flood = 1_000_000);
    for client in ["10.1.2.3:4567", "[2001:db8::9]:4567"].map(client) {
        for up in strangers() {
            assert_eq!(bench.verdict(client, &up), TCX_NEXT, "{:02x?}", &up[..16]);
        }
        assert_eq!(bench.verdict(client, &initial([&[1; 8], &[]], &[])), TCX_NEXT);
        for length in [21, 100, QUIC_LEAST - 1] {
            let little = long(0xc0, 1, [&[1; 8], &[]], &[], length);
            assert_eq!(bench.verdict(client, &little), TCX_DROP, "{length}");
        }
    }
    assert_eq!(bench.count(Reason::DropLittleInitial), 6);
}

/// Packets that begin no connection, to ids that are not ours, and what no client sends.
fn strangers() -> Vec<Vec<u8>> {
    let ids: [&[u8]; 2] = [&[1; 8], &[]];
    let mut short = [&[0x41][..], &[1; 8]].concat();
    short.resize(60, 0);
    let mut little = short.clone();
    little.truncate(20);
    vec![
        short,
        little,
        long(0xd0, 1, ids, &[], 100),
        long(0xe0, 1, ids, &[], 1200),
        long(0xe0, 1, [&[1; 20], &[]], &[], 1200),
        long(0xf0, 1, ids, &[], 1200),
        long(0xc0, 0, ids, &[], 1200),
        long(0xc0, 0x6b33_43cf, ids, &[], 1199),
    ]
}

#[test]
fn in_a_flood_only_packets_to_ids_of_ours_go_up() {
    let Some(bench) = Bench::new() else { return };
    for client in ["10.1.2.3:4567", "[2001:db8::9]:4567"].map(client) {
        bench.retry(client, &initial([&[1; 8], &[]], &[]));
        for dropped in strangers() {
            assert_eq!(bench.verdict(client, &dropped), TCX_DROP, "{:02x?}", &dropped[..16]);
        }
        // An id that is too short for a first packet, and ones that are too long.
        for ids in [[&[1; 7][..], &[]], [&[1; 21], &[]], [&[1; 8], &[1; 21]]] {
            assert_eq!(bench.verdict(client, &initial(ids, &[])), TCX_DROP, "{ids:?}");
        }
        for id in [own_id(ID_KEY, 77, 5 << 10 | 2), own_id(KEY_BEFORE, 78, 4 << 10)] {
            let mut short = [&[0x41][..], &id].concat();
            short.resize(40, 0);
            for known in [
                short,
                long(0xe0, 1, [&id, &[]], &[], 60),
                long(0xa0, 1, [&id, &[]], &[], 60),
                long(0xd0, 1, [&id, &[]], &[], 1200),
                initial([&id, &[]], &[]),
            ] {
                assert_eq!(bench.verdict(client, &known), TCX_NEXT, "{:02x?}", &known[..16]);
            }
        }
        // 0-RTT follows its Initial to the id that a Retry gave; all others go to one of the server's.
        let [short, handshake, early] = going_on(own_id(RETRY_KEY, 79, 0));
        assert_eq!(bench.verdict(client, &early), TCX_NEXT);
        assert_eq!(bench.verdict(client, &handshake), TCX_DROP);
        assert_eq!(bench.verdict(client, &short), TCX_DROP);
    }
    assert_eq!(bench.count(Reason::Retry), 2);
}

#[test]
fn initials_to_ids_of_ours_have_a_rate() {
    let Some(mut bench) = Bench::new() else { return };
    let client = client("10.1.2.3:4567");
    bench.configure(|config| config.known = 3);
    // Within a window, the fourth one at the latest; windows last longer than these few runs.
    let asked = initial([&own_id(ID_KEY, 77, 0), &[9; 4]], &[]);
    let answered = (0..2_000).filter(|_| bench.verdict(client, &asked) == TCX_REDIRECT).count();
    assert!((1_000..2_000).contains(&answered), "{answered}");
    assert!(bench.count(Reason::PassKnown) >= 3);
}

#[test]
fn early_data_to_ids_of_a_retry_has_a_rate_of_its_own() {
    let Some(mut bench) = Bench::new() else { return };
    let client = client("10.1.2.3:4567");
    bench.configure(|config| (config.known, config.early) = (1, 3));
    let Retry { id, .. } = bench.retry(client, &initial([&[1; 8], &[]], &[]));
    let [.., early] = going_on(id);
    // Windows begin with Initials, and none comes.
    let passed = (0..100).filter(|_| bench.verdict(client, &early) == TCX_NEXT).count();
    assert_eq!(passed, 3);
    assert_eq!(bench.count(Reason::DropEarly), 97);
    // Connections of before have their own part.
    let own = own_id(ID_KEY, 77, 0);
    for known in going_on(own).iter().chain([&initial([&own, &[]], &[])]) {
        assert_eq!(bench.verdict(client, known), TCX_NEXT);
    }
}

#[test]
fn what_is_made_of_a_retrys_id_is_no_id_of_ours() {
    let Some(mut bench) = Bench::new() else { return };
    let client = client("10.1.2.3:4567");
    bench.configure(|config| config.known = 1);
    // One in 262,144 passes for an id of ours, like anything else.
    let ids: Vec<[u8; 8]> =
        (0..3).map(|_| bench.retry(client, &initial([&[1; 8], &[]], &[])).id).collect();
    for id in ids {
        // The workers of this process and others, by what was once the place in such an id.
        for bits in (0..1024).step_by(5).map(|worker| 1023 ^ worker).chain([1 << 10, 0x3fff]) {
            let made = changed(id, bits);
            if made == id {
                continue;
            }
            for dropped in going_on(made) {
                assert_eq!(bench.verdict(client, &dropped), TCX_DROP, "{bits:x}");
            }
            bench.retry(client, &initial([&made, &[]], &[]));
        }
    }
    assert_eq!(bench.count(Reason::PassKnown), 0, "no honest handshake has lost its part");
    let honest = initial([&own_id(ID_KEY, 77, 0), &[]], &[]);
    assert_eq!(bench.verdict(client, &honest), TCX_NEXT);
}

#[test]
fn in_a_flood_an_unknown_version_is_answered_with_ours() {
    let Some(bench) = Bench::new() else { return };
    let mut random = Random::new(Random::seed_or(18));
    bench.retry(client("10.1.2.3:4567"), &initial([&[1; 8], &[]], &[]));
    for _ in 0..500 {
        let client = by_chance(&mut random);
        let (first, own) = (random.below(21), random.below(21));
        let (first, own) = (random.bytes(first), random.bytes(own));
        let version = 2 + random.next() as u32 % 0xffff_fff0;
        let asked = long(0x80 | random.next() as u8, version, [&first, &own], &[], QUIC_LEAST);
        let (verdict, packet) = bench.run(client, &asked);
        assert_eq!(verdict, TCX_REDIRECT);
        let content = bench.turned(client, &packet);
        let ids = [&[own.len() as u8][..], &own, &[first.len() as u8], &first].concat();
        assert_eq!(content[0] & 0x80, 0x80);
        assert_eq!(content[1..], [&[0; 4][..], &ids, &[0, 0, 0, 1]].concat());
    }
    let long_id = long(0xc0, 9, [&[1; 21], &[]], &[], QUIC_LEAST);
    assert_eq!(bench.verdict(client("10.1.2.3:4567"), &long_id), TCX_DROP);
}

#[test]
fn clients_of_denied_prefixes_begin_no_connection() {
    let Some(mut bench) = Bench::new() else { return };
    bench.configure(|config| {
        config.flood = 1_000_000;
        config.rules = 1;
    });
    let prefix = |text: &str| text.parse::<Prefix>().expect("a prefix");
    let rules =
        Rules::of([prefix("10.9.1.0/24")], [prefix("10.9.0.0/16"), prefix("2001:db8:9::/48")]);
    assert!(bench.path.rule(&rules).expect("told"));
    let first = initial([&[1; 8], &[]], &[]);
    let known = initial([&own_id(ID_KEY, 7, 0), &[]], &[]);
    let of_retry = own_id(RETRY_KEY, 8, 0);
    let made = [of_retry, changed(of_retry, 1023), changed(of_retry, 1)];
    for (from, verdict) in [
        ("10.9.2.1:5", TCX_DROP),
        ("10.9.1.1:5", TCX_NEXT),
        ("10.8.1.1:5", TCX_NEXT),
        ("[2001:db8:9::1]:5", TCX_DROP),
        ("[2001:db8:8::1]:5", TCX_NEXT),
    ] {
        assert_eq!(bench.verdict(client(from), &first), verdict, "{from}");
        assert_eq!(bench.verdict(client(from), &known), TCX_NEXT, "{from} goes on");
        for id in made {
            assert_eq!(bench.verdict(client(from), &initial([&id, &[]], &[])), verdict, "{from}");
        }
    }
    assert_eq!(bench.count(Reason::DropDenied), 8);
    assert_eq!(rules.longest("10.9.2.1".parse().expect("an address")), Some(Rule::Deny));
    assert!(!bench.path.rule(&Rules::default()).expect("told"));
    assert_eq!(bench.verdict(client("10.9.2.1:5"), &first), TCX_NEXT);
}

#[test]
fn nothing_is_done_to_what_is_not_ours() {
    let Some(mut bench) = Bench::new() else { return };
    let client = client("10.1.2.3:4567");
    let first = initial([&[1; 8], &[]], &[]);
    bench.retry(client, &first);
    let run = |server: SocketAddr, first: &[u8]| {
        bench.path.dry_run(&frame(client, server, first), 0, 1).expect("it runs").verdict
    };
    // An address of another host, which may be forwarded; another port.
    let mut other = bench.servers[0];
    other.set_ip([192, 0, 2, 2].into());
    assert_eq!(run(other, &first), TCX_NEXT);
    other = bench.servers[0];
    other.set_port(other.port() ^ 1);
    assert_eq!(run(other, &first), TCX_NEXT);
    // A socket of somebody else at an address that is served.
    let stranger = UdpSocket::bind("0.0.0.0:0").expect("bound");
    other.set_port(stranger.local_addr().expect("bound").port());
    bench.path.serve(bench.servers.into_iter().chain([other])).expect("served");
    assert_eq!(run(other, &first), TCX_NEXT);
    assert_eq!(run(other, &strangers()[3]), TCX_NEXT);
    assert_eq!(bench.count(Reason::PassOtherSocket), 2);
    // A fragment, options, other protocols.
    let whole = frame(client, bench.servers[0], &first);
    for (at, to) in [(20, 0x20), (14, 0x46), (23, 6), (12, 0x81)] {
        let mut odd = whole.clone();
        odd[at] = to;
        assert_eq!(bench.path.dry_run(&odd, 0, 1).expect("it runs").verdict, TCX_NEXT, "{at}");
    }
    for cut in [34, 41, 42] {
        let verdict = bench.path.dry_run(&whole[..cut], 0, 1).expect("it runs").verdict;
        assert_eq!(verdict, TCX_NEXT, "{cut}");
    }
    // User mode has not beaten.
    bench.configure(|config| config.until = 1);
    assert_eq!(bench.verdict(client, &first), TCX_NEXT);
    assert!(bench.count(Reason::PassNoHeartbeat) >= 1);
}

#[test]
fn sources_that_no_client_has_get_no_answer() {
    let Some(bench) = Bench::new() else { return };
    let first = initial([&[1; 8], &[]], &[]);
    for from in [
        "0.0.0.1:5",
        "127.0.0.1:5",
        "224.0.0.1:5",
        "255.255.255.255:5",
        "10.1.1.1:0",
        "[ff02::1]:5",
    ] {
        assert_eq!(bench.verdict(client(from), &first), TCX_DROP, "{from}");
    }
    assert_eq!(bench.verdict(SocketAddr::new(bench.servers[0].ip(), 5), &first), TCX_DROP);
    // Of its link alone: a token could not say of which.
    assert_eq!(bench.verdict(client("[fe80::7]:5"), &first), TCX_NEXT);
}

#[test]
fn datagrams_that_were_merged_get_one_answer() {
    let Some(bench) = Bench::new() else { return };
    let first = initial([&[1; 8], &[3; 5]], &[]);
    let train = [&first[..], &first, &first[..700]].concat();
    for client in ["10.1.2.3:4567", "[2001:db8::9]:4567"].map(client) {
        let (verdict, packet) = bench.run_merged(client, &train, QUIC_LEAST as u32);
        assert_eq!(verdict, TCX_REDIRECT);
        Retry::read(bench.turned(client, &packet), &first);
        let little = long(0xc0, 1, [&[1; 8], &[]], &[], 2400);
        assert_eq!(bench.run_merged(client, &little, 1199).0, TCX_DROP);
    }
}
