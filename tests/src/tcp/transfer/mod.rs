//! The transfer: many connections ask for all kinds of things, in all kinds of ways, and compare
//! every response with the one that nginx gave before the fast path was there.

mod connection;
mod menu;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use afpa_bpf::FlowKey;
use afpa_netlab::Bed;
use afpa_testkit::Random;
use socket2::{Domain, Socket, Type};

use self::connection::Connection;
use super::{Lab, PORT, Trace};

pub use self::menu::{Exchange, Menu, files, long_files, matches};

/// The failure of one connection.
#[derive(Debug)]
pub struct Failure {
    client: SocketAddr,
    server: SocketAddr,
    what: String,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Done {
    /// Responses compared.
    pub responses: u64,
    /// Connections made.
    pub connections: u64,
    /// Responses by the way their requests were sent.
    pub by_way: BTreeMap<&'static str, u64>,
    /// From request to response, of those that were asked for one by one.
    pub times: Vec<Duration>,
}

/// The size, the width and the seed of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Responses in all.
    pub requests: u64,
    /// Connections at a time.
    pub connections: usize,
    /// The same seed: the same requests on each connection.
    pub seed: u64,
    /// No response may take longer.
    pub deadline: Duration,
}

/// Runs the load. The failure of any connection ends all of them; the test panics with the failure and its trace.
pub fn run(lab: &Lab, menu: &Menu, load: Load) -> Done {
    let trace = Trace::start(&lab.bed);
    let shared = TransferRun {
        menu,
        load,
        left: AtomicU64::new(load.requests),
        failed: AtomicBool::new(false),
        done: Mutex::default(),
    };
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..load.connections {
            let (shared, failures) = (&shared, &failures);
            let work = move || {
                lab.bed.client().enter().expect("inside");
                if let Err(failure) = shared.connections(number as u64) {
                    shared.failed.store(true, Ordering::Relaxed);
                    failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                }
            };
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    for failure in failures.iter().take(3) {
        tell(lab, &trace, failure);
    }
    assert!(failures.is_empty(), "{} connections failed; seed {}", failures.len(), load.seed);
    shared.done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn tell(lab: &Lab, trace: &Trace, failure: &Failure) {
    let Failure { client, server, what } = failure;
    eprintln!("--- {client} -> {server}: {what}");
    eprintln!("{}", trace.tell(*client));
    let flow = lab.fast_path().flows.flow(&FlowKey::new(*client, *server));
    eprintln!("flow: {flow:?}\ncounters:\n{}", lab.tally());
    for state in ["established", "syn-recv", "close-wait", "listening", "time-wait"] {
        eprintln!("server's sockets, {state}: {}", lab.sockets(state));
    }
    eprintln!("injector: {:?}", lab.bed.injector().map(|injector| injector.counts()));
}

struct TransferRun<'m> {
    menu: &'m Menu,
    load: Load,
    left: AtomicU64,
    failed: AtomicBool,
    done: Mutex<Done>,
}

/// A socket whose port is known before it connects, for the trace of one that does not.
fn bound(server: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(Bed::client_address(server.ip(), 0), 0).into())?;
    Ok(socket)
}

impl TransferRun<'_> {
    /// One connection after the other until all requests are made.
    fn connections(&self, number: u64) -> Result<(), Failure> {
        let mut random =
            Random::new(self.load.seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        while self.left.load(Ordering::Relaxed) > 0 && !self.failed.load(Ordering::Relaxed) {
            let server: IpAddr = match random.below(2) {
                0 => Bed::SERVER_V4.into(),
                _ => Bed::SERVER_V6.into(),
            };
            let server = SocketAddr::new(server, PORT);
            let socket = bound(server).expect("a socket");
            let client =
                socket.local_addr().ok().and_then(|bound| bound.as_socket()).expect("bound");
            let made = socket.connect_timeout(&server.into(), self.load.deadline);
            made.map_err(|error| {
                let what = format!("no connection: {error}");
                Failure { client, server, what }
            })?;
            let mut connection = Connection::new(self, socket.into());
            let result = connection.live(&mut random);
            self.account(&connection.by_way, &connection.times);
            result.map_err(|what| Failure { client, server, what })?;
        }
        Ok(())
    }

    fn account(&self, by_way: &BTreeMap<&'static str, u64>, times: &[Duration]) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.connections += 1;
        done.times.extend(times);
        for (way, count) in by_way {
            *done.by_way.entry(way).or_default() += count;
            done.responses += count;
        }
    }
}
