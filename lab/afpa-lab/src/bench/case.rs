//! The rows of a bench's table.

use std::time::Duration;

use afpa_generator::Object;
use afpa_netlab::load::{LoadOptions, Target, browser_headers, visitors};
use afpa_netlab::{Bed, BedOptions, Offloads, Path, Steering};

use super::Metric;

/// One experiment: its servers, its load and its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its name for `--only` and in `results.json`.
    pub name: String,
    /// A title, for people.
    pub title: String,
    /// The servers that are compared, in the order of the report.
    pub servers: Vec<String>,
    /// The files that are asked for, in proportion to weights. A path may have a query.
    pub objects: Vec<(u32, Object)>,
    /// Connections at a time.
    pub connections: u32,
    /// How the load is made.
    pub method: Method,
    /// The figures that are reported, the most important one first.
    pub metrics: &'static [Metric],
    /// Length of a measurement, times what the command line says.
    pub seconds: f64,
    /// Number of rounds, times what the command line says.
    pub rounds: f64,
    /// Seconds of load before each measurement, if that is more than the command line says.
    pub warm_up: f64,
    /// Whether `--quick` measures it.
    pub quick: bool,
}

/// How the load of a case is made.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// A closed loop in TC: each response becomes the next request in softirq.
    Tc(TcLoad),
    /// Sockets that ask at a given rate, whether or not the server keeps up: `share` of the slowest
    /// server's rate in the case `of`.
    Rate {
        /// The name of the case that decides the rate.
        of: String,
        /// 0.6: sixty per cent.
        share: f64,
    },
    /// wrk, over loopback.
    Wrk,
    /// So many requests of each connection are open at once: HTTP/2 and HTTP/3.
    Streams(u32),
}

/// The settings of a closed loop in TC.
#[derive(Debug, Clone, PartialEq)]
pub struct TcLoad {
    /// Where packets are processed.
    pub bed: CaseBed,
    /// Adds a kilobyte of header fields as a browser sends them.
    pub browser: bool,
    /// Number of different cookies among those header fields.
    pub visitors: u32,
    /// Requests outstanding at any time; 0: one on each connection. If it is not 0, an
    /// acknowledgement leaves with the next request of its connection.
    pub active: u32,
    /// Client addresses; each is good for some 64,000 connections.
    pub sources: u32,
    /// One request a connection, which asks for the connection's end.
    pub once: bool,
}

/// Where the packets of server and client are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseBed {
    /// Server and client have a core each, and each side's packets are processed on its own core.
    Steered,
    /// Server and client have a core each; a packet is processed on the core that sent it.
    Unsteered,
    /// Both sides and all packets share one core.
    Together,
}

impl Case {
    /// A case that is measured as long and as often as the command line says, and not by `--quick`.
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        servers: &[&str],
        objects: Vec<(u32, Object)>,
    ) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            servers: servers.iter().map(|name| (*name).to_owned()).collect(),
            objects,
            connections: 64,
            method: Method::Tc(TcLoad::default()),
            metrics: &[],
            seconds: 1.0,
            rounds: 1.0,
            warm_up: 0.0,
            quick: false,
        }
    }

    /// The load in TC, of cases that have one.
    pub fn tc(&self) -> Option<&TcLoad> {
        match &self.method {
            Method::Tc(load) => Some(load),
            Method::Rate { .. } | Method::Wrk | Method::Streams(_) => None,
        }
    }

    /// Mean length of the content of a response.
    pub fn mean_length(&self) -> f64 {
        let weights: u32 = self.objects.iter().map(|(weight, _)| weight).sum();
        let bytes =
            |(weight, object): &(u32, Object)| f64::from(*weight) * object.body.length() as f64;
        self.objects.iter().map(bytes).sum::<f64>() / f64::from(weights.max(1))
    }

    /// Length of a file of this case: the first one's.
    pub fn size(&self) -> u64 {
        self.objects.first().map_or(0, |(_, object)| object.body.length())
    }
}

impl Default for TcLoad {
    fn default() -> Self {
        Self {
            bed: CaseBed::Steered,
            browser: false,
            visitors: 1,
            active: 0,
            sources: 1,
            once: false,
        }
    }
}

impl TcLoad {
    /// The generator's options for one server.
    pub fn options(
        &self,
        to: std::net::SocketAddr,
        objects: &[(u32, Object)],
        connections: u32,
    ) -> LoadOptions {
        let mut headers = if self.browser { browser_headers() } else { Vec::new() };
        if self.once {
            headers.push(("Connection".into(), "close".into()));
        }
        let target = |(weight, object): &(u32, Object)| Target {
            path: object.path.clone(),
            method: "GET".into(),
            headers: headers.clone(),
            weight: *weight,
            status: 200,
        };
        let targets = objects.iter().map(target);
        let targets = match self.visitors {
            1 => targets.collect(),
            count => targets.flat_map(|target| visitors(&target, count)).collect(),
        };
        LoadOptions {
            connections,
            active: self.active,
            once: self.once,
            late_acks: self.active > 0,
            interface: Bed::DEVICE.into(),
            first_source: Some(Bed::client_address(to.ip(), 0)),
            sources: self.sources,
            ..LoadOptions::new(to, targets)
        }
    }

    /// The bed that the load is made on.
    pub fn bed_options(&self) -> BedOptions {
        let (server, client) = self.bed.cores();
        let steering = match self.bed {
            CaseBed::Unsteered => Steering::Unsteered,
            CaseBed::Steered | CaseBed::Together => Steering::Cores { server, client },
        };
        BedOptions {
            path: Path::Direct(Offloads::CARD),
            steering,
            sources: self.sources,
            ..BedOptions::default()
        }
    }
}

impl CaseBed {
    /// The server's core and the client's.
    pub fn cores(self) -> (usize, usize) {
        match self {
            Self::Steered | Self::Unsteered => (0, 1),
            Self::Together => (0, 0),
        }
    }

    /// Its name in results and in names of cases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steered => "cores",
            Self::Unsteered => "none",
            Self::Together => "together",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Steered => "a core for each side",
            Self::Unsteered => "packets wherever they are sent",
            Self::Together => "both sides on one core",
        }
    }
}

/// Seconds of the command line as a duration; a value that is no time becomes zero.
pub(super) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
