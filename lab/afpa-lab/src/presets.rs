//! The experiments of the two presets.

use afpa_generator::{Workload, family};
use anyhow::Result;

use crate::bed::JUMBO;
use crate::servers::FRONTS;

/// The servers of a quick run.
pub(crate) const FEW: &[&str] =
    &["afpa-kernel", "afpa-socketless", "afpa", "nginx", "h2o", "sped", "howl"];
/// The servers of experiments that do not compare architectures.
const NO_ARCHITECTURES: &[&str] = &[
    "afpa-kernel",
    "afpa-socketless",
    "afpa",
    "afpa-attach",
    "nginx",
    "h2o",
    "apache-prefork",
    "apache-event",
    "lighttpd",
    "caddy",
    "haproxy",
    "varnish",
    "nginx-debian13",
    "haproxy-debian13",
    "varnish-debian13",
];
/// JAWS's questions: the protocol optimisations, the size of the pool, threads for each request.
pub(crate) const JAWS: &[&str] = &[
    "thread-pool",
    "thread-pool:pool=1",
    "thread-pool:pool=6",
    "thread-pool:pool=42",
    "thread-pool:without=cached-headers",
    "thread-pool:without=lazy-date",
    "thread-pool:without=gather-write",
    "thread-pool:without=cached-headers:without=lazy-date:without=gather-write",
    "thread-per-request",
];
/// JAWS's question where a pool of threads is overtaken by a thread for each request.
const JAWS_SWEEP: &[&str] =
    &["thread-pool", "thread-pool:pool=1", "thread-pool:pool=6", "thread-per-request"];
/// The cache of files isolated: one event loop with it, and one that opens the file and looks at it for each request.
const FILE_CACHE: &[&str] = &["sped", UNCACHED];
pub(crate) const UNCACHED: &str = "sped:pin-threshold=0:recheck=0";
/// SPECweb96's files grow with the root of the rate: 1 GB for 2,000 operations a second, and 7 GB for the 100,000 that are
/// answered, more than small machines hold, and than can be asked once each before a measurement.
const SCALED: &[&str] = &["afpa-kernel", "afpa", "nginx", "h2o"];
const SCALED_RATE: u64 = 2000;
/// The kernel's half, and the fastest servers in user mode.
const LONG_FRAMES: &[&str] = &["afpa-kernel", "afpa", "nginx", "h2o"];
/// The papers' proxy: everything is distributed.
const PROXIES: &[&str] = &["afpa-proxy", "nginx-proxy", "haproxy-proxy"];
/// A server that no client of today saturates, and some that all clients do.
const CROSS_CHECKED: &[&str] = &["afpa-kernel", "nginx", "apache-event", "thread-pool"];
/// The papers' range of sizes, with the sizes that they discuss: 4, 32 and 128 KB.
const SIZES: &[u64] =
    &[64, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];
/// For the cost of a connection, as in the papers: the fewest, the most, and numbers between them.
const CONNECTIONS: [u32; 5] = [FEWEST_CONNECTIONS, 16, 256, 1024, MOST_CONNECTIONS];
/// The papers' fewest and most connections.
pub(crate) const FEWEST_CONNECTIONS: u32 = 4;
pub(crate) const MOST_CONNECTIONS: u32 = 2048;
/// JAWS's clients at a time.
const JAWS_CLIENTS: [u32; 6] = [1, 6, 12, 20, 30, MOST_JAWS_CLIENTS];
pub(crate) const MOST_JAWS_CLIENTS: u32 = 42;
/// All other loads have so many.
pub(crate) const USUAL_CONNECTIONS: u32 = 64;

/// A group before its tasks are known.
pub(crate) struct Experiment {
    pub(crate) title: &'static str,
    pub(crate) bed: &'static str,
    pub(crate) servers: Option<&'static [&'static str]>,
    pub(crate) parts: Vec<Part>,
}

/// Loads of one kind.
pub(crate) struct Part {
    pub(crate) workloads: Vec<Workload>,
    pub(crate) connections: Vec<u32>,
    pub(crate) persistent: bool,
    pub(crate) by: By,
}

/// The choice of generators for a load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The first generator that can make it.
    TheFirst,
    /// Each generator that can make it, for comparison.
    Each,
}

impl Part {
    fn persistent(workloads: Vec<Workload>) -> Self {
        let connections = vec![USUAL_CONNECTIONS];
        Self { workloads, connections, persistent: true, by: By::TheFirst }
    }

    fn one_each(workloads: Vec<Workload>) -> Self {
        Self { persistent: false, ..Self::persistent(workloads) }
    }
}

/// A look at everything.
pub(crate) fn quick() -> Result<Vec<Experiment>> {
    let specweb = family("specweb96", &[20], true)?;
    Ok(vec![
        Experiment {
            title: "sizes, mixes, one request a connection",
            bed: "steered",
            servers: None,
            parts: vec![
                Part::persistent(webstone(&[64, 1 << 10, 16 << 10, 1 << 20])?),
                Part::persistent([specweb, family("jaws", &[], true)?].concat()),
                Part::one_each(webstone(&[64, 16 << 10])?),
            ],
        },
        Experiment {
            title: "the second bed",
            bed: "unsteered",
            servers: None,
            parts: vec![Part::persistent(webstone(&[64, 1 << 10, 16 << 10])?)],
        },
    ])
}

/// The papers' experiments.
pub(crate) fn full() -> Result<Vec<Experiment>> {
    let experiment = |title, servers, parts| Experiment { title, bed: "steered", servers, parts };
    let specweb = || family("specweb96", &[20], false);
    let jaws = || family("jaws", &[], false);
    let protocol = ["browser", "conditional", "absent"];
    let protocol: Result<Vec<_>> = protocol.iter().map(|name| family(name, &[], true)).collect();
    let one_each = [webstone(&[64, 1 << 10, 16 << 10])?, specweb()?].concat();
    let connections =
        Part { connections: CONNECTIONS.to_vec(), ..Part::persistent(webstone(&[1 << 10])?) };
    let clients = Part { connections: JAWS_CLIENTS.to_vec(), ..Part::one_each(jaws()?) };
    let proxy = || family("proxy", &[], true);
    let proxy = vec![Part::persistent(proxy()?), Part::one_each(proxy()?)];
    let every = Part { by: By::Each, ..Part::persistent(webstone(&[1 << 10])?) };
    let sizes = vec![
        Part::persistent(webstone(SIZES)?),
        Part::persistent([specweb()?, jaws()?].concat()),
        Part::one_each(one_each),
    ];
    let others = Some(NO_ARCHITECTURES);
    Ok(vec![
        experiment("sizes, mixes, one request a connection", None, sizes),
        Experiment {
            bed: "unsteered",
            ..experiment(
                "the second bed",
                others,
                vec![Part::persistent(webstone(&[64, 1 << 10, 16 << 10])?)],
            )
        },
        Experiment {
            bed: JUMBO,
            ..experiment(
                "frames of 9,000 bytes",
                Some(LONG_FRAMES),
                vec![Part::persistent(webstone(&[64, 4 << 10, 16 << 10, 64 << 10])?)],
            )
        },
        experiment("JAWS's strategies", Some(JAWS), vec![Part::one_each(jaws()?)]),
        experiment("JAWS's clients", Some(JAWS_SWEEP), vec![clients]),
        experiment("connections", others, vec![connections]),
        experiment("HttpArena's profiles", others, vec![arena(false)?, arena(true)?]),
        experiment(
            "SPECweb96's files for 2,000 operations a second",
            Some(SCALED),
            vec![Part::persistent(family("specweb96", &[SCALED_RATE], false)?)],
        ),
        experiment(
            "files without a cache",
            Some(FILE_CACHE),
            vec![Part::persistent(webstone(&[1 << 10, 16 << 10])?)],
        ),
        experiment(
            "SPECweb99's mix, a part of it by an application",
            Some(FRONTS),
            vec![Part::persistent(family("specweb99", &[], false)?)],
        ),
        experiment("the generators beside each other", Some(CROSS_CHECKED), vec![every]),
        experiment("the proxy", Some(PROXIES), proxy),
        experiment(
            "browsers, conditional, absent",
            others,
            vec![Part::persistent(protocol?.concat())],
        ),
    ])
}

/// The board's fewest connections: 512, and 1,024 for the page of files.
fn arena(page: bool) -> Result<Part> {
    let mut workloads = family("arena", &[], false)?;
    workloads.retain(|one| (one.name == "arena-static") == page);
    let connections = vec![if page { 1024 } else { 512 }];
    Ok(Part { connections, ..Part::persistent(workloads) })
}

fn webstone(sizes: &[u64]) -> Result<Vec<Workload>> {
    family("webstone", sizes, false)
}
