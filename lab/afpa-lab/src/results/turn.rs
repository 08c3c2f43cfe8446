//! One measurement: its point, its server, and its figures.

use afpa_generator::Measured;
use serde::{Deserialize, Serialize};

/// The key of a comparison: everything about a measurement but the server and the round.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Point {
    /// Name of the bed.
    pub bed: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the generator.
    pub generator: String,
    /// Many requests a connection, or one.
    pub persistent: bool,
    /// Connections at a time.
    pub connections: u32,
    /// Requests a second of an open loop; `None`: as many as the server answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

/// One measurement of one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turn {
    /// The point that was measured.
    #[serde(flatten)]
    pub point: Point,
    /// The server's name; with [`AGAIN`] behind it when it is the round's second time.
    pub server: String,
    /// Counted from 1.
    pub round: u32,
    /// Black box: the generator's figures.
    pub measured: Measured,
    /// White box: the server core's time a request.
    pub cost: Cost,
    /// Shares of the time in which cores were busy.
    pub busy: Busy,
    /// Why the figures are not the server's alone; empty when they are.
    pub doubts: Vec<Doubt>,
    /// Why the turn does not count; its figures are kept, and used nowhere.
    pub failure: Option<String>,
    /// The server's memory, and how soon it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// The memory of a server, and how soon it is there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Seconds from the server's start until it accepted connections; servers behind it included.
    pub start: f64,
    /// Bytes of its processes after the measurement; pages that processes share count once (PSS). Tables of programs in
    /// the kernel are no process's.
    pub memory: u64,
}

/// Behind the name of the server that is measured twice in each round, for the noise.
pub const AGAIN: &str = " (again)";

/// Microseconds of the server's core for each request, by /proc/stat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The server's processes in user mode.
    pub user: f64,
    /// Processes in the kernel.
    pub system: f64,
    /// Interrupts, soft ones included. On a bed without steering this holds some of the client's
    /// packet work, and misses some of the server's.
    pub interrupts: f64,
}

/// Shares of the measured time, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// The server's core.
    pub server_core: f64,
    /// The client's core.
    pub client_core: f64,
    /// User mode on the server's core that was not the server's.
    pub foreign: f64,
    /// Time that the hypervisor took from the two cores.
    pub stolen: f64,
}

/// Why a figure is not the server's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// The client's core was full, the server's was not: the generator was measured.
    ClientBound,
    /// The server's core had time left, and so had the client's: something else was waited for.
    NotSaturated,
    /// Others used the server's core.
    Disturbed,
    /// The hypervisor took time from a core.
    Stolen,
}

impl Point {
    /// Whether both are the same load on the same bed, perhaps by different generators.
    pub fn is_like(&self, other: &Self) -> bool {
        let generator = other.generator.clone();
        Self { generator, ..self.clone() } == *other
    }
}

impl Cost {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.user + self.system + self.interrupts
    }
}

impl Doubt {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientBound => "the generator was the bottleneck",
            Self::NotSaturated => "the server's core was not full",
            Self::Disturbed => "others used the server's core",
            Self::Stolen => "the hypervisor took time from a core",
        }
    }

    /// Whether the doubt is about the bottleneck, which says nothing of a load at a given rate.
    pub fn is_of_load(self) -> bool {
        matches!(self, Self::ClientBound | Self::NotSaturated)
    }

    /// A letter for tables.
    pub fn mark(self) -> char {
        match self {
            Self::ClientBound => 'g',
            Self::NotSaturated => 'n',
            Self::Disturbed => 'd',
            Self::Stolen => 's',
        }
    }
}

impl Turn {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.measured.requests as f64 / self.measured.seconds
    }

    /// Body bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.measured.body_bytes as f64 / self.measured.seconds
    }

    /// Why it does not count, for people; `None` when it does.
    pub fn failed(&self) -> Option<String> {
        let reason = self.failure.as_ref()?;
        let Point { workload, bed, .. } = &self.point;
        Some(format!("{}, {workload}, bed {bed}, round {}: {reason}", self.server, self.round))
    }

    /// Does the journal have this measurement, for better or for worse?
    pub fn is(&self, point: &Point, server: &str, round: u32) -> bool {
        self.point == *point && self.server == server && self.round == round
    }
}
