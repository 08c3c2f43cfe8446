//! The experiments that the user wants.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The experiments that the user wants. The wish is kept beside the results: a run that was cut short
/// goes on only with the same wish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// Which experiments.
    pub preset: Preset,
    /// Server names; empty: the preset's, as far as they are here.
    pub servers: Vec<String>,
    /// Families of workloads, for [`Preset::Named`].
    pub workloads: Vec<String>,
    /// Sizes or rates of these; empty: the family's own.
    pub sizes: Vec<u64>,
    /// Numbers of connections.
    pub connections: Vec<u32>,
    /// Kinds of connections: persistent, and not.
    pub persistent: Vec<bool>,
    /// Beds, by name.
    pub beds: Vec<String>,
    /// Generator, by name.
    pub generator: Option<String>,
    /// Every generator that can make a load does.
    pub every_generator: bool,
    /// Requests a second: an open loop.
    pub rate: Option<f64>,
    /// Interleaved rounds.
    pub rounds: u32,
    /// Load before each measurement.
    pub warm_up: Duration,
    /// Each measurement.
    pub seconds: Duration,
    /// Delay of the way between the two sides.
    pub delay: Duration,
    /// Share of packets lost on it.
    pub loss: f64,
    /// Bits a second that it carries.
    pub bandwidth: Option<u64>,
    /// Cores of the server and of the client.
    pub cores: (usize, usize),
    /// White-box turns follow.
    pub look_inside: bool,
    /// The plan is made to fit.
    pub within: Option<Duration>,
}

/// A set of experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The experiments that the command line names.
    Named,
    /// A look at everything, within ten minutes.
    Quick,
    /// The papers' experiments, with all servers.
    Full,
}

impl Wish {
    /// Whether the other wish is the same, apart from the time that each may take.
    pub fn is_but_for_time(&self, other: &Self) -> bool {
        Self { within: other.within, ..self.clone() } == *other
    }
}
