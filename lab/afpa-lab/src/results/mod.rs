//! The results of a run: the schema of `results.json`, and the journal from which it is made.
//!
//! A run appends each turn to `turns.jsonl` as soon as it has ended, so that a run that was cut
//! short goes on where it stopped. Fields may be added to the schema; [`SCHEMA`] changes when one
//! goes or changes its meaning.

mod journal;
mod turn;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::json;
use crate::whitebox::WhiteBox;

pub use self::journal::{Journal, write_whole};
pub use self::turn::{AGAIN, Busy, Cost, Doubt, Held, Point, Turn};

/// Before what failed, among what was left out.
pub const FAILED: &str = "FAILED ";

/// Number of the schema.
pub const SCHEMA: u32 = 1;

/// Everything about one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// The machine and the software.
    pub environment: Environment,
    /// How it was measured.
    pub method: Method,
    /// The servers, in the order of the command line.
    pub servers: Vec<ServerRecord>,
    /// The workloads, by name.
    pub workloads: BTreeMap<String, WorkloadRecord>,
    /// The generators, by name, with descriptions and versions.
    pub generators: BTreeMap<String, String>,
    /// Black box: every measurement, in the order in which they were taken.
    pub turns: Vec<Turn>,
    /// White box: system calls and other costs of one request.
    pub white_box: Vec<WhiteBox>,
    /// Measurements that were asked for and not taken, and why.
    pub left_out: Vec<String>,
}

/// How a run measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The command line.
    pub command: String,
    /// The beds, by name.
    pub beds: BTreeMap<String, BedRecord>,
    /// Interleaved rounds.
    pub rounds: u32,
    /// Seconds of load before each measurement.
    pub warm_up: f64,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// Later commands that measured what there had been no time for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additions: Vec<Addition>,
}

/// A command that added to results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Addition {
    /// Local time with offset from UTC.
    pub time: String,
    /// The command line.
    pub command: String,
    /// Commit of the sources, when they are there.
    pub commit: Option<String>,
    /// Load averages when it began.
    pub load: String,
}

/// A bed as it was set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BedRecord {
    /// In words.
    pub about: String,
    /// Core of the servers.
    pub server_core: usize,
    /// Core of the generators.
    pub client_core: usize,
    /// Congestion control of both sides.
    pub congestion: String,
    /// Offloads of both sides, in words.
    pub offloads: String,
}

/// A server that took part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Its name in the turns.
    pub name: String,
    /// One line.
    pub about: String,
    /// As it says itself.
    pub version: String,
    /// As it was started.
    pub command: String,
    /// Its configuration, relative to the folder of results.
    pub configuration: Option<PathBuf>,
}

/// A workload that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Its family: `webstone`, `specweb96`.
    pub family: String,
    /// For people.
    pub title: String,
    /// Where it lies on its family's axis: a size in bytes, a rate.
    pub point: Option<f64>,
    /// A description.
    pub about: String,
}

impl Addition {
    /// For people.
    pub fn words(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("unknown");
        format!("Added at {}, commit {commit}, by `{}`", self.time, self.command)
    }
}

impl Results {
    /// Reads `results.json` of a folder.
    ///
    /// # Errors
    ///
    /// When there is none, or it has another schema.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("results.json");
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        let results: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is no result of this program", path.display()))?;
        ensure!(results.schema == SCHEMA, "{}: schema {}", path.display(), results.schema);
        Ok(results)
    }

    /// Writes `results.json`.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written to.
    pub fn write(&self, folder: &Path) -> Result<()> {
        write_whole(&folder.join("results.json"), json::lines(self)?.as_bytes())
    }

    /// Merges the results of a command that went on with an `earlier`, finished run at the time of
    /// `begun`. These results have the turns of both already; the earlier run's method, workloads,
    /// generators and failures are added.
    pub fn added_to(self, earlier: Self, begun: Environment) -> Self {
        let Environment { time, commit, load, .. } = begun;
        let mut method = earlier.method;
        method.additions.push(Addition { time, command: self.method.command, commit, load });
        method.beds.extend(self.method.beds);
        let mut left_out = self.left_out;
        // Measurements that the earlier run left out are here now, or left out again. Its failures remain.
        let failed = earlier.left_out.into_iter().filter(|line| line.starts_with(FAILED));
        for line in failed {
            if !left_out.contains(&line) {
                left_out.push(line);
            }
        }
        Self {
            method,
            left_out,
            workloads: earlier.workloads.into_iter().chain(self.workloads).collect(),
            generators: earlier.generators.into_iter().chain(self.generators).collect(),
            ..self
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn empty() -> Results {
        Results {
            schema: SCHEMA,
            environment: Environment::default(),
            method: Method {
                command: "afpa-lab papers".into(),
                beds: BTreeMap::new(),
                rounds: 3,
                warm_up: 0.5,
                seconds: 1.0,
                additions: Vec::new(),
            },
            servers: Vec::new(),
            workloads: BTreeMap::new(),
            generators: BTreeMap::new(),
            turns: Vec::new(),
            white_box: Vec::new(),
            left_out: Vec::new(),
        }
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = crate::summary::tests::results(&[("afpa", &[10.0, 11.0])]);
        results.turns[1].doubts.push(Doubt::ClientBound);
        results.write(folder.path()).unwrap();
        let read = Results::read(folder.path()).unwrap();
        assert_eq!(read.turns[1].point, results.turns[1].point);
        assert_eq!(read.turns[1].doubts, [Doubt::ClientBound]);
        assert_eq!(read.servers, results.servers);
        let text = fs::read_to_string(folder.path().join("results.json")).unwrap();
        fs::write(
            folder.path().join("results.json"),
            text.replace("\"schema\": 1", "\"schema\": 9"),
        )
        .unwrap();
        assert!(Results::read(folder.path()).is_err());
    }

    #[test]
    fn what_is_added_later_says_so() {
        let mut earlier = crate::summary::tests::results(&[("afpa", &[10.0])]);
        let about = |family: &str| WorkloadRecord {
            family: family.into(),
            title: family.into(),
            point: None,
            about: family.into(),
        };
        earlier.workloads.insert("jaws".into(), about("jaws"));
        earlier.left_out = vec!["connections: no time for it".into(), format!("{FAILED}one")];
        earlier.environment.time = "first".into();
        let mut later = crate::summary::tests::results(&[("afpa", &[10.0, 11.0])]);
        later.environment = earlier.environment.clone();
        later.workloads.insert("absent".into(), about("absent"));
        later.method.command = "afpa-lab papers --within 9m".into();
        later.left_out = vec![format!("{FAILED}one"), "proxy: no time for it".into()];
        let begun = Environment { time: "second".into(), ..Environment::default() };
        let both = later.added_to(earlier, begun);
        assert_eq!((both.turns.len(), both.workloads.len()), (2, 2));
        assert_eq!(both.left_out, ["FAILED one", "proxy: no time for it"]);
        assert_eq!(both.environment.time, "first");
        assert_eq!(both.method.command, "afpa-lab papers");
        let [addition] = &both.method.additions[..] else { panic!("{:?}", both.method) };
        assert_eq!((addition.time.as_str(), &addition.command[16..]), ("second", "--within 9m"));
    }
}
