//! Whole segments in every shape through both hooks, before a judge that knows the bytes each side must have received.
//!
//! A seeded generator plays a client, a server's kernel and the network between them (`oracle/connection.rs`). The
//! programs run on each frame (`BPF_PROG_TEST_RUN`), and packets that go on reach the models of both ends
//! (`oracle/peers.rs`). These panic when a byte is another one than before at its place, when a response is not the one
//! to its request, when the server gets a request twice or a part of one, or when something is acknowledged that was
//! not sent. In the end the network is good, and everything must have arrived.
//!
//! `AFPA_SEGMENTS=1000000` runs so many segments; `AFPA_SEED` begins with a connection that failed.

#[path = "oracle/connection.rs"]
mod connection;
#[path = "oracle/peers.rs"]
mod peers;
#[path = "oracle/wire.rs"]
mod wire;

use std::net::SocketAddr;
use std::time::Duration;

use afpa_bpf::Settings;
use afpa_netlab::Namespace;
use afpa_testkit::Random;
use afpa_testkit::packet::PacketSocket;

use crate::support::{LISTENER, Lent, PORT, SITE, Sample, World, index, inside};
use connection::Connection;
use peers::Page;

/// Segments of one run, unless the environment says how many.
const SEGMENTS: usize = 4000;

#[test]
fn segments_of_every_shape_arrive_once_and_in_their_place() {
    let Some(bench) = Bench::new() else { return };
    let wanted = std::env::var("AFPA_SEGMENTS").map_or(SEGMENTS, |n| n.parse().expect("a number"));
    let first = Random::seed_or(1);
    let mut segments = 0;
    for seed in first.. {
        let told = Told(seed);
        segments += inside(bench.world.server(), || Connection::new(&bench, seed).run());
        std::mem::forget(told);
        if segments >= wanted {
            afpa_testkit::figure!("{segments} segments of {} connections", seed + 1 - first);
            break;
        }
    }
}

/// Says which connection failed.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("AFPA_SEED={} begins with this connection", self.0);
    }
}

/// An interface at which frames come in and leave.
struct Side {
    index: u32,
    mac: [u8; 6],
    /// The other end of the pair, which receives the segments that the programs send by themselves.
    far: PacketSocket,
}

/// The programs, and two interfaces of a namespace without traffic.
struct Bench {
    fast_path: Lent,
    sides: Vec<Side>,
    world: World,
}

impl Bench {
    fn new() -> Option<Self> {
        let world = World::new()?;
        let fast_path = inside(world.server(), || {
            let settings = Settings { answer_max: 65_536, pages: 64, ..Settings::default() };
            match Lent::new(settings) {
                Ok(fast_path) => Some(fast_path),
                Err(error) if error.reason.contains("verifier") => panic!("{error}"),
                Err(error) => {
                    println!("SKIP: {error}");
                    None
                }
            }
        })?;
        let any = SocketAddr::new("::".parse().expect("an address"), PORT);
        fast_path.listeners.listen(any, LISTENER, SITE).expect("listening");
        fast_path.clients.set_firewall_interval(Duration::ZERO);
        Sample::new(Page::Pinned.body()).pin(&fast_path, "/kernel.html");
        Sample::new(Page::Long.body()).pin(&fast_path, "/long.html");
        let sides = ["a", "b"].map(|name| side(world.server(), name)).into();
        Some(Self { fast_path, sides, world })
    }
}

fn side(namespace: &Namespace, name: &str) -> Side {
    let (near, far) = (format!("near-{name}"), format!("far-{name}"));
    afpa_netlab::connect((namespace, &near), (namespace, &far)).expect("a pair of interfaces");
    let mac = namespace.interface(&near).mac().expect("an address");
    inside(namespace, || Side {
        index: index(&near),
        mac,
        far: PacketSocket::open(&far).expect("a packet socket"),
    })
}
