//! The programs on frames that were made by hand (`BPF_PROG_TEST_RUN`): answers with their checksums, and reports to user mode.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_attach::dns::answer::{Exchange, ServerCookie, Tail};
use afpa_attach::dns::key::{Case, Hash, Key, key, query, read, reported};
use afpa_bpf::dns::abi::{DNS_PATCHED, DnsAddress, DnsConfig, DnsSeed};
use afpa_bpf::dns::{DnsPath, address_bytes};
use afpa_bpf::{Hook, TCX_NEXT, TCX_REDIRECT};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 64, 1);
const PORTS: [u16; 2] = [20_000, 53];
const UDP_AT: usize = 34;
const MESSAGE_AT: usize = 42;
const EDITION: u32 = 7;
/// A second sighting within this counts as the first.
const MOMENT: Duration = Duration::from_millis(140);

/// The programs with a server and a seed; None: not on this machine, which has been said.
fn programs() -> Option<(DnsPath, DnsSeed)> {
    let path = match DnsPath::load() {
        Ok(path) => path,
        Err(why) => {
            println!("SKIP: {why}");
            return None;
        }
    };
    let mut number = 1u64;
    let mut random = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        number ^ number >> 31
    };
    let seed = DnsSeed {
        begin: std::array::from_fn(|_| random()),
        factors: std::array::from_fn(|_| random()),
    };
    let none = DnsAddress::ZERO;
    let config = DnsConfig {
        until: u64::MAX / 2,
        way_life: u64::MAX / 4,
        port: 53,
        first: [DnsAddress { address: address_bytes(IpAddr::V4(SERVER)) }, none],
        ..DnsConfig::ZERO
    };
    path.configure(&config).expect("configured");
    path.plant(&seed).expect("planted");
    path.lease(EDITION, u64::MAX / 2).expect("leased");
    Some((path, seed))
}

/// The sum of 16-bit words in network order, folded.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of a datagram with its pseudo-header.
fn datagram_sum(from: Ipv4Addr, to: Ipv4Addr, datagram: &[u8]) -> u16 {
    let length = datagram.len() as u16;
    let pseudo = [&from.octets()[..], &to.octets(), &[0, 17], &length.to_be_bytes()].concat();
    sum(&[&pseudo, datagram].concat())
}

/// A frame of a message, from the client to the server or back.
fn frame(message: &[u8], is_answer: bool) -> Vec<u8> {
    let ((from, to), mut ports) = ((CLIENT, SERVER), PORTS);
    let (from, to) = if is_answer { (to, from) } else { (from, to) };
    if is_answer {
        ports.reverse();
    }
    let length = 8 + message.len() as u16;
    let mut datagram = ports.map(u16::to_be_bytes).concat();
    datagram.extend(length.to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(message);
    let check = !datagram_sum(from, to, &datagram);
    datagram[6..8].copy_from_slice(&check.to_be_bytes());
    let mut frame = [&[0; 12][..], &[8, 0, 0x45, 0]].concat();
    frame.extend((20 + length).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    frame.extend(datagram);
    frame
}

fn question(name: &str) -> Key {
    key(&read(name).expect("a name"), 1, 0, 0).expect("a key")
}

/// The answer to a query: an address, and these bytes.
fn answer(query: &[u8], address: [u8; 4], behind: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    (answer[2], answer[7]) = (answer[2] | 0x84, 1);
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4]);
    answer.extend(address);
    answer.extend(behind);
    answer
}

#[test]
fn an_answer_is_the_servers_whether_its_tail_has_the_address_or_not() {
    let Some((path, seed)) = programs() else { return };
    show_way(&path);
    for letters in 1..=10 {
        let key = question(&format!("{}.example", "a".repeat(letters)));
        let hash = Hash::of(&key, &seed);
        let place = hash.places().start as u32;
        for behind in 0..=5 {
            let asked = query(&key, 0x1234 + letters as u16, 512, Case::Mixed(0b1010), 0);
            let told = answer(&asked, [192, 0, 2, 200 + letters as u8], &vec![0xf7; behind]);
            let exchange =
                Exchange { query: asked.clone(), answer: told.clone(), cookie: ServerCookie::None };
            let tail = Tail::of(&key, &exchange).expect("a tail");
            let (rest, patch) = tail.without_address().expect("an address");
            for (stored, number) in [(&tail, 3), (&rest, 4 | DNS_PATCHED as u32)] {
                path.put_tail(number & !(DNS_PATCHED as u32), &stored.to_abi()).expect("written");
                if number & DNS_PATCHED as u32 != 0 {
                    path.put_patch(place, patch).expect("written");
                }
                path.pin(place, hash.check, hash.word(number, EDITION, 0)).expect("pinned");
                let ran = path.dry_run(Hook::Ingress, &frame(&asked, false), 1).expect("a run");
                assert_eq!(ran.verdict, TCX_REDIRECT, "{letters}, {behind}, {number:x}");
                assert_eq!(ran.packet[MESSAGE_AT..], told, "{letters}, {behind}, {number:x}");
                let sum = datagram_sum(SERVER, CLIENT, &ran.packet[UDP_AT..]);
                assert_eq!(sum, 0xffff, "{letters}, {behind}, {number:x}");
                path.unpin(place);
            }
        }
    }
}

#[test]
fn a_question_is_told_when_it_comes_again_and_a_flood_hides_none() {
    let Some((path, _)) = programs() else { return };
    let reports = path.reports().expect("reports");
    let ask = |name: &str| {
        let query = query(&question(name), 1, 512, Case::Lower, 0);
        let ran = path.dry_run(Hook::Ingress, &frame(&query, false), 1).expect("a run");
        assert_eq!(ran.verdict, TCX_NEXT);
    };
    let told = || {
        let told = reports.drain().expect("reports");
        told.iter().map(|report| reported(report).expect("a key")).collect::<Vec<_>>()
    };
    ask("www.example");
    ask("www.example");
    assert_eq!(told(), [], "once, and at the same moment");
    std::thread::sleep(MOMENT);
    ask("www.example");
    assert_eq!(told(), [question("www.example")], "again");
    // As many as are remembered, and as many again.
    for number in 0..131_072 {
        ask(&format!("n{number}.example"));
    }
    assert_eq!(told(), [], "each of them came once");
    let begun = Instant::now();
    let mut number = 131_072;
    loop {
        ask("hot.example");
        for _ in 0..50 {
            number += 1;
            ask(&format!("n{number}.example"));
        }
        let told = told();
        if !told.is_empty() {
            break assert_eq!(told, [question("hot.example")]);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody was told");
    }
}

/// The server answers the client, so its way is known.
fn show_way(path: &DnsPath) {
    let query = query(&question("w.example"), 1, 512, Case::Lower, 0);
    let frame = frame(&answer(&query, [0; 4], &[]), true);
    assert_eq!(path.dry_run(Hook::Egress, &frame, 1).expect("a run").verdict, TCX_NEXT);
}

#[test]
fn a_packet_that_is_not_plain_is_the_servers() {
    let Some((path, seed)) = programs() else { return };
    show_way(&path);
    let key = question("www.example");
    let query = query(&key, 1, 512, Case::Lower, 0);
    let told = answer(&query, [192, 0, 2, 1], &[]);
    let exchange = Exchange { query: query.clone(), answer: told, cookie: ServerCookie::None };
    let hash = Hash::of(&key, &seed);
    let tail = Tail::of(&key, &exchange).expect("a tail").to_abi();
    path.put_tail(0, &tail).expect("written");
    path.pin(hash.places().start as u32, hash.check, hash.word(0, EDITION, 0)).expect("pinned");
    let plain = frame(&query, false);
    let verdict = |frame: &[u8]| path.dry_run(Hook::Ingress, frame, 1).expect("a run").verdict;
    assert_eq!(verdict(&plain), TCX_REDIRECT);
    // Offset of a byte, and its new value.
    let changes = [
        ("a first fragment", 20, 0x20),
        ("a later fragment", 21, 1),
        ("options of IP", 14, 0x46),
        ("a longer datagram of IP", 17, plain[17] + 1),
        ("a shorter datagram of UDP", 39, plain[39] - 1),
        ("another address of the server", 33, 2),
        ("a client that the server has not answered", 29, 9),
        ("a port of those that servers have", 34, 0),
        ("another port of the server", 37, 54),
    ];
    for (what, at, value) in changes {
        let mut frame = plain.clone();
        frame[at] = value;
        assert_eq!(verdict(&frame), TCX_NEXT, "{what}");
    }
    let mut unsummed = plain.clone();
    unsummed[40..42].fill(0);
    assert_eq!(verdict(&unsummed), TCX_NEXT, "no checksum");
    let mut for_another = plain.clone();
    for_another[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    assert_eq!(verdict(&for_another), TCX_NEXT, "for another device");
    assert_eq!(verdict(&plain), TCX_REDIRECT);
}

/// Two readers of one key, while its place goes from answer to answer and from key to key.
#[test]
fn an_answer_is_never_made_of_two() {
    let Some((path, seed)) = programs() else { return };
    show_way(&path);
    let asked = question("www.example");
    let hash = Hash::of(&asked, &seed);
    let other = (0..).map(|number| question(&format!("n{number}.example")));
    let mut other = other.map(|key| Hash::of(&key, &seed));
    let other = other.find(|other| other.places() == hash.places());
    let other = other.expect("a name for the same places");
    let query = query(&asked, 1, 512, Case::Lower, 0);
    let place = hash.places().start as u32;
    let told = |last| answer(&query, [192, 0, 2, last], &[last; 3]);
    let tail = |last| {
        let exchange =
            Exchange { query: query.clone(), answer: told(last), cookie: ServerCookie::None };
        Tail::of(&asked, &exchange).expect("a tail").without_address().expect("an address")
    };
    for last in 0..3 {
        path.put_tail(last, &tail(last as u8).0.to_abi()).expect("written");
    }
    let is_over = AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        let read = || {
            let (frame, mut answered) = (frame(&query, false), 0);
            while !is_over.load(Ordering::Relaxed) {
                let ran = path.dry_run(Hook::Ingress, &frame, 1).expect("a run");
                if ran.verdict == TCX_REDIRECT {
                    let message = &ran.packet[MESSAGE_AT..];
                    assert!((0..2).any(|last| told(last) == message), "{message:02x?}");
                    answered += 1;
                }
            }
            answered
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for turn in 0..10_000 {
            // The third one is the other key's.
            let last = turn % 3;
            let hash = if last == 2 { other } else { hash };
            path.put_patch(place, tail(last as u8).1).expect("written");
            let word = hash.word(last | DNS_PATCHED as u32, EDITION, 0);
            path.pin(place, hash.check, word).expect("pinned");
            path.unpin(place);
        }
        is_over.store(true, Ordering::Relaxed);
        readers.map(|reader| reader.join().expect("right answers"))
    });
    println!("{answered:?} answers");
}
