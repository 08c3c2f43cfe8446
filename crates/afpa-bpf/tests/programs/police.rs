//! The police in the kernel decide as `afpa-police` does, and find the same buckets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afpa_bpf::{Hook, Place, Reason, Settings, TCX_DROP, TCX_NEXT};
use afpa_netlab::Bed;
use afpa_police::{
    Class, Limits, Police, PoliceKernel, PoliceSettings, Prefix, Rate, Rule, Rules, What,
};
use afpa_testkit::Random;
use afpa_testkit::packet::{ACK, SYN, Segment};

use crate::support::{
    LISTENER, Lent, PORT, SERVER_V4, SERVER_V6, SITE, World, counted, index, inside, kernel_answers,
};

/// A fast path that listens behind an interface, with police. No traffic reaches it.
struct Bench {
    world: World,
    /// Of the server's interface, and the client's.
    macs: [u8; 12],
    police: Police,
    fast_path: Lent,
}

impl Bench {
    fn new() -> Option<Self> {
        let world = World::new()?;
        let client = world.raw();
        let frame = client.frame(&client.next());
        let macs = *frame.first_chunk().expect("an Ethernet header");
        let fast_path = inside(world.server(), || match Lent::new(Settings::default()) {
            Ok(fast_path) => Some(fast_path),
            Err(error) if error.reason.contains("verifier") => panic!("{error}"),
            Err(error) => {
                println!("SKIP: {error}");
                None
            }
        })?;
        let any = SocketAddr::new("::".parse().expect("an address"), PORT);
        fast_path.listeners.listen(any, LISTENER, SITE).expect("listening");
        let police =
            Police::new(Some(Arc::clone(&fast_path.police) as Arc<dyn PoliceKernel>), 0, 0);
        Some(Self { world, macs, fast_path, police })
    }

    /// Whether the first segments of these clients go on, with these flags, to this port.
    fn pass(&self, clients: &[IpAddr], flags: u8, port: u16) -> Vec<bool> {
        let frames: Vec<_> = clients
            .iter()
            .map(|client| {
                let server = if client.is_ipv4() { SERVER_V4 } else { SERVER_V6 };
                let to = SocketAddr::new(server.parse().expect("an address"), port);
                let segment =
                    Segment { flags, ..Segment::new(SocketAddr::new(*client, 40_000), to) };
                segment.frame(&self.macs)
            })
            .collect();
        let fast_path = &self.fast_path;
        inside(self.world.server(), || {
            let place = Place { interface: index(Bed::DEVICE), gso_size: 0 };
            let run = |frame: &Vec<u8>| {
                let run =
                    fast_path.interfaces.dry_run_at(Hook::Ingress, frame, place).expect("run");
                assert!([TCX_NEXT, TCX_DROP].contains(&run.verdict), "{run:?}");
                run.verdict == TCX_NEXT
            };
            frames.iter().map(run).collect()
        })
    }

    fn syn(&self, clients: &[IpAddr]) -> Vec<bool> {
        self.pass(clients, SYN, PORT)
    }
}

fn address(random: &mut Random) -> IpAddr {
    let low = random.next() & random.next();
    match random.one_in(2) {
        true => Ipv4Addr::from(0x0a00_0000 | low as u32 & 0x0103_0307).into(),
        false => {
            Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(low & 0x8001_0003_0000_0307)).into()
        }
    }
}

fn prefixes(random: &mut Random) -> Vec<Prefix> {
    let mut one = || {
        let address = address(random);
        Prefix::of(address, random.below(if address.is_ipv4() { 33 } else { 129 }) as u8)
    };
    (0..20).map(|_| one()).collect()
}

/// However the lists replace each other.
#[test]
fn the_kernel_decides_by_the_longest_prefix_as_user_mode_does() {
    let Some(bench) = Bench::new() else { return };
    let seed = Random::seed_or(3);
    let mut random = Random::new(seed);
    let mut refused = 0;
    for round in 0..40 {
        let (allow, deny) = match round % 10 {
            9 => (Vec::new(), Vec::new()),
            _ => (prefixes(&mut random), prefixes(&mut random)),
        };
        let rules = Rules::of(allow.iter().copied(), deny.iter().copied());
        let settings = PoliceSettings { allow, deny, ..PoliceSettings::default() };
        bench.police.configure(&settings).expect("the kernel takes it");
        let clients: Vec<IpAddr> = (0..200).map(|_| address(&mut random)).collect();
        for (client, passed) in clients.iter().zip(bench.syn(&clients)) {
            let expected = rules.longest(*client) != Some(Rule::Deny);
            assert_eq!(passed, expected, "seed {seed}, round {round}: {client}");
            assert_eq!(bench.police.connection(*client, None, 0).is_ok(), expected, "{client}");
            refused += u64::from(!passed);
        }
    }
    assert!(refused > 1000, "{refused}");
    assert_eq!(counted(&bench.fast_path, Reason::DropDenied), refused);
}

/// Large lists replace each other within the time that an operator waits.
#[test]
fn a_hundred_thousand_prefixes_are_taken() {
    let Some(bench) = Bench::new() else { return };
    let deny: Vec<Prefix> = (0..100_000_u32)
        .map(|number| Prefix::of(Ipv4Addr::from(0x0b00_0000 + number * 16).into(), 28))
        .collect();
    let begun = std::time::Instant::now();
    bench.police.configure(&PoliceSettings { deny, ..Default::default() }).expect("taken");
    println!("100,000 prefixes in {:?}", begun.elapsed());
    let last = IpAddr::from(Ipv4Addr::from(0x0b00_0000 + 99_999 * 16 + 7));
    let outside = IpAddr::from(Ipv4Addr::from(0x0b00_0000 + 100_000 * 16));
    assert_eq!(bench.syn(&[last, outside]), [false, true]);
    let begun = std::time::Instant::now();
    bench.police.configure(&PoliceSettings::default()).expect("taken");
    println!("and gone in {:?}", begun.elapsed());
    assert_eq!(bench.syn(&[last]), [true]);
}

#[test]
fn only_what_begins_a_connection_to_a_served_address_is_dropped() {
    let Some(bench) = Bench::new() else { return };
    let deny = vec!["0.0.0.0/0".parse().expect("a prefix")];
    bench.police.configure(&PoliceSettings { deny, ..Default::default() }).expect("taken");
    let client = [IpAddr::from([192, 0, 2, 1])];
    assert_eq!(bench.pass(&client, SYN, PORT), [false]);
    assert_eq!(bench.pass(&client, SYN, PORT + 1), [true], "nobody serves that port");
    assert_eq!(bench.pass(&client, SYN | ACK, PORT), [true], "the server is the client here");
    assert_eq!(bench.pass(&client, ACK, PORT), [true]);
    assert_eq!(bench.pass(&["2001:db8::1".parse().expect("an address")], SYN, PORT), [true]);
    let any = SocketAddr::new("::".parse().expect("an address"), PORT);
    bench.fast_path.listeners.unlisten(any).expect("not listening");
    assert_eq!(bench.pass(&client, SYN, PORT), [true]);
}

/// The rate is so low that no token comes back during the test.
#[test]
fn each_client_has_the_bucket_that_user_mode_has_for_it() {
    let Some(bench) = Bench::new() else { return };
    let client_connections = Rate { per_second: 1, burst: 3 };
    let limits = Limits { client_connections, ipv4_bits: 24, ipv6_bits: 56, ..Limits::default() };
    bench.police.configure(&PoliceSettings { limits, ..Default::default() }).expect("taken");
    let clients = |count: u8| -> Vec<IpAddr> {
        let v4 = (0..count).map(|i| IpAddr::from([10, 1, i, i]));
        v4.chain(
            (0..count)
                .map(|i| Ipv6Addr::new(0x2001, 0xdb8, 0, u16::from(i) << 8 | 7, 0, 0, 0, 1).into()),
        )
        .collect()
    };
    let mut beside = clients(50);
    for beside in &mut beside {
        match beside {
            IpAddr::V4(v4) => *v4 = Ipv4Addr::from(u32::from(*v4) ^ 0x80),
            IpAddr::V6(v6) => *v6 = Ipv6Addr::from(u128::from(*v6) ^ 0x80 << 64),
        }
    }
    for (client, beside) in clients(50).into_iter().zip(beside) {
        let seen = bench.syn(&[client, client, beside, client, beside]);
        assert_eq!(seen, [true, true, true, false, false], "{client} {beside}");
        let (set, tag) = bench.police.locate(What::Connection, client);
        let words = &bench.fast_path.police.words()[set * 4..set * 4 + 4];
        let tags: Vec<u64> = words.iter().map(|word| word.load(Ordering::Relaxed) >> 44).collect();
        assert!(tags.contains(&tag), "{client}: {tag} in {tags:?}");
    }
    assert_eq!(counted(&bench.fast_path, Reason::DropClientRate), 200);
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(bench.syn(&clients(1)), [true, true], "a second later there is one more");
}

#[test]
fn all_clients_together_have_one_bucket_and_allowed_ones_none() {
    let Some(bench) = Bench::new() else { return };
    let limits = Limits { connections: Rate { per_second: 1, burst: 10 }, ..Limits::default() };
    let allow = vec!["10.9.0.0/16".parse().expect("a prefix")];
    bench.police.configure(&PoliceSettings { limits, allow, ..Default::default() }).expect("taken");
    let many = |third: u8| -> Vec<IpAddr> {
        (0..40).map(|last| IpAddr::from([10, third, 0, last])).collect()
    };
    assert!(bench.syn(&many(9)).iter().all(|passed| *passed), "they are allowed");
    let passed = bench.syn(&many(1)).iter().filter(|passed| **passed).count();
    assert_eq!(passed, 10);
    assert_eq!(counted(&bench.fast_path, Reason::DropTotalRate), 30);
    assert!(bench.syn(&many(9)).iter().all(|passed| *passed), "they are still");
}

/// Four thousand SYNs of others take the remaining tokens; no token comes back during the test.
#[test]
fn a_class_gets_its_share_whatever_others_take_and_user_mode_counts_alike() {
    let Some(bench) = Bench::new() else { return };
    let limits = Limits { connections: Rate { per_second: 1, burst: 200 }, ..Limits::default() };
    let class = |name: &str, share, prefixes: &[&str]| {
        let prefixes = prefixes.iter().map(|prefix| prefix.parse().expect("a prefix")).collect();
        Class { name: name.to_owned(), share, prefixes, listeners: Vec::new() }
    };
    let classes = vec![
        class("paying", 30, &["10.1.0.0/16", "2001:db8:1::/48"]),
        class("lab", 10, &["10.1.9.0/24"]),
    ];
    let settings = PoliceSettings { limits, classes, ..Default::default() };
    bench.police.configure(&settings).expect("taken");
    let many = |second: u8, third: u8, count: u16| -> Vec<IpAddr> {
        let v4 = (0..count).map(|n| IpAddr::from([10, second, third + (n / 256) as u8, n as u8]));
        v4.collect()
    };
    let passed = |clients: &[IpAddr]| bench.syn(clients).iter().filter(|passed| **passed).count();
    let others = passed(&many(77, 0, 4000));
    assert!(
        (200..=210).contains(&others),
        "their share, and all that the others have not asked for: {others}"
    );
    let paying = passed(&many(1, 0, 500));
    assert!((60..=64).contains(&paying), "30 per cent of 200: {paying}");
    let lab = passed(&many(1, 9, 200));
    assert!((20..=22).contains(&lab), "the longest prefix decides: {lab}");
    let v6: IpAddr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1).into();
    let before = bench.police.classes()[1].2;
    assert!(passed(&[v6; 8]) <= 2, "its class has nothing left");
    assert!(bench.police.classes()[1].2 >= before + 6);
    let of = |name: &str| {
        let all = bench.police.classes();
        all.into_iter().find(|(found, ..)| found == name).map(|(.., count)| count as usize)
    };
    assert_eq!(of("others"), Some(4000 - others));
    assert_eq!(of("lab"), Some(200 - lab));

    // The class of a listener, where no prefix says one.
    let mut settings = settings;
    let listener = SocketAddr::new("::".parse().expect("an address"), PORT);
    let front = Class {
        name: "front".to_owned(),
        share: 20,
        listeners: vec![listener],
        ..Class::default()
    };
    settings.classes.push(front);
    bench.police.configure(&settings).expect("taken");
    let front = passed(&many(88, 0, 400));
    assert!((40..=42).contains(&front), "20 per cent of 200: {front}");
    settings.classes.clear();
    bench.police.configure(&settings).expect("taken");
    assert!(passed(&many(99, 0, 50)) <= 1, "the bucket of all has not forgotten");
}

fn in_front_of_nginx() -> Option<(World, Lent, Police)> {
    let (world, fast_path) = World::with_one_pinned(Settings::default())?;
    let police = Police::new(Some(Arc::clone(&fast_path.police) as Arc<dyn PoliceKernel>), 0, 0);
    Some((world, fast_path, police))
}

/// Requests that the kernel answers and those that user mode does come out of the same bucket.
#[test]
fn a_request_takes_one_token_wherever_it_is_answered() {
    let Some((world, fast_path, police)) = in_front_of_nginx() else { return };
    let mut client = world.connected();
    let client_requests = Rate { per_second: 1, burst: 6 };
    let limits = Limits { client_requests, ..Limits::default() };
    police.configure(&PoliceSettings { limits, ..Default::default() }).expect("taken");
    let now = afpa_bpf::boot_ns;
    let address = client.address().ip();
    for _ in 0..4 {
        kernel_answers(&fast_path, &mut client);
        client.acknowledge();
    }
    assert_eq!([police.request(address, now()), police.request(address, now())], [Ok(()); 2]);
    assert!(police.request(address, now()).is_err(), "six are taken");
    fast_path.clock.beat();
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(!reply.is_from_kernel(), "{reply:?}");
    assert_eq!(counted(&fast_path, Reason::PassClientRate), 1);
    // It is user mode's to refuse; here the server knows nothing of rates, and the connection goes on.
    client.acknowledge();
    std::thread::sleep(Duration::from_millis(1100));
    kernel_answers(&fast_path, &mut client);
}

#[test]
fn a_client_that_is_denied_is_not_answered_on_its_open_connection() {
    let Some((world, fast_path, police)) = in_front_of_nginx() else { return };
    let mut client = world.connected();
    kernel_answers(&fast_path, &mut client);
    client.acknowledge();
    let address = client.address().ip().to_string();
    police.deny(&address).expect("denied");
    fast_path.clock.beat();
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(!reply.is_from_kernel(), "{reply:?}");
    client.acknowledge();
    assert_eq!(counted(&fast_path, Reason::PassDenied), 1);
    police.undeny(&address).expect("denied no more");
    kernel_answers(&fast_path, &mut client);
}
