//! What a run leaves behind: the schema of `results.json`, and the journal that it is made from.
//!
//! A run appends each turn to `turns.jsonl` as soon as it has ended, so that a run that was cut
//! short goes on where it stopped. Fields may be added to the schema; [`SCHEMA`] changes when one
//! goes or changes its meaning.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use afpa_generator::Measured;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::json;
use crate::whitebox::WhiteBox;

/// Before what failed, among what was left out.
pub const FAILED: &str = "FAILED ";

/// Number of the schema.
pub const SCHEMA: u32 = 1;

/// Everything about one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// What the figures depend on.
    pub environment: Environment,
    /// How it was measured.
    pub method: Method,
    /// The servers, in the order of the command line.
    pub servers: Vec<ServerRecord>,
    /// The workloads, by name.
    pub workloads: BTreeMap<String, WorkloadRecord>,
    /// The generators, by name: what they are, with their versions.
    pub generators: BTreeMap<String, String>,
    /// Black box: every measurement, in the order in which they were taken.
    pub turns: Vec<Turn>,
    /// White box: what one request is made of.
    pub white_box: Vec<WhiteBox>,
    /// What was asked for and not measured, and why.
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
    /// What it belongs to: `webstone`, `specweb96`.
    pub family: String,
    /// For people.
    pub title: String,
    /// Where it lies on its family's axis: a size in bytes, a rate.
    pub point: Option<f64>,
    /// What it is.
    pub about: String,
}

/// What is compared with its like: everything about a measurement but the server and the round.
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
}

/// One measurement of one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turn {
    /// What was measured.
    #[serde(flatten)]
    pub point: Point,
    /// Whom; with [`AGAIN`] behind the name when it is the round's second time.
    pub server: String,
    /// Counted from 1.
    pub round: u32,
    /// Black box: what the generator saw.
    pub measured: Measured,
    /// White box: the server core's time a request.
    pub cost: Cost,
    /// Shares of the time in which cores were busy.
    pub busy: Busy,
    /// Why the figures are not the server's alone; empty when they are.
    pub doubts: Vec<Doubt>,
    /// Why the turn does not count; its figures are kept, and used nowhere.
    pub failure: Option<String>,
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
    /// What the hypervisor took from the two cores.
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

impl Addition {
    /// For people.
    pub fn words(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("unknown");
        format!("Added at {}, commit {commit}, by `{}`", self.time, self.command)
    }
}

impl Point {
    /// The same load on the same bed, whoever makes it.
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

    /// What a command brought that went on with an `earlier`, finished run at the time of `begun`:
    /// these results have all turns, those of the earlier run included, and know otherwise only what
    /// the command itself was about.
    pub fn added_to(self, earlier: Self, begun: Environment) -> Self {
        let Environment { time, commit, load, .. } = begun;
        let mut method = earlier.method;
        method.additions.push(Addition { time, command: self.method.command, commit, load });
        method.beds.extend(self.method.beds);
        let mut left_out = self.left_out;
        // What was left out then is here now, or left out again; what failed then has failed.
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

/// Writes a file beside its place and moves it there: whoever reads it sees all of it.
///
/// # Errors
///
/// When the folder cannot be written to.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, bytes).with_context(|| format!("{}", unfinished.display()))?;
    fs::rename(&unfinished, path).with_context(|| format!("{}", path.display()))
}

/// The turns of an unfinished run, one JSON object a line.
pub struct Journal<T> {
    file: File,
    /// What the file had when it was opened.
    pub found: Vec<T>,
}

impl<T: Serialize + for<'de> Deserialize<'de>> Journal<T> {
    /// Opens or makes the file; a last line that was cut short is dropped.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written, or a whole line is no entry.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .with_context(|| format!("{}", path.display()))?;
        let text = fs::read_to_string(path)?;
        let found = entries(&text)?;
        file.set_len(whole_lines(&text).len() as u64)?;
        file.flush()?;
        Ok(Self { file, found })
    }

    /// What a file holds; nothing when there is none.
    ///
    /// # Errors
    ///
    /// When a whole line is no entry.
    pub fn read(path: &Path) -> Result<Vec<T>> {
        entries(&fs::read_to_string(path).unwrap_or_default())
    }

    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// When the disk is full.
    pub fn add(&mut self, entry: &T) -> Result<()> {
        let line = serde_json::to_string(entry)? + "\n";
        Ok(self.file.write_all(line.as_bytes())?)
    }
}

/// Without a last line that was cut short.
fn whole_lines(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |end| end + 1)]
}

fn entries<T: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<T>> {
    let lines = whole_lines(text).lines();
    lines.map(|line| serde_json::from_str(line).context("a line of the journal")).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn empty() -> Results {
        Results {
            schema: SCHEMA,
            environment: Environment::default(),
            method: Method {
                command: "afpa-lab compare".into(),
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
        later.method.command = "afpa-lab compare --within 9m".into();
        later.left_out = vec![format!("{FAILED}one"), "proxy: no time for it".into()];
        let begun = Environment { time: "second".into(), ..Environment::default() };
        let both = later.added_to(earlier, begun);
        assert_eq!((both.turns.len(), both.workloads.len()), (2, 2));
        assert_eq!(both.left_out, ["FAILED one", "proxy: no time for it"]);
        assert_eq!(both.environment.time, "first");
        assert_eq!(both.method.command, "afpa-lab compare");
        let [addition] = &both.method.additions[..] else { panic!("{:?}", both.method) };
        assert_eq!((addition.time.as_str(), &addition.command[17..]), ("second", "--within 9m"));
    }

    #[test]
    fn a_journal_goes_on_after_a_line_that_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turns.jsonl");
        let mut journal: Journal<Cost> = Journal::open(&path).unwrap();
        let cost = Cost { user: 1.0, system: 2.0, interrupts: 0.5 };
        journal.add(&cost).unwrap();
        drop(journal);
        let mut cut = OpenOptions::new().append(true).open(&path).unwrap();
        cut.write_all(b"{\"user\":1").unwrap();
        let mut journal: Journal<Cost> = Journal::open(&path).unwrap();
        assert_eq!(journal.found, [cost]);
        journal.add(&cost).unwrap();
        let again: Journal<Cost> = Journal::open(&path).unwrap();
        assert_eq!(again.found, [cost, cost]);
        fs::write(&path, "nonsense\n").unwrap();
        assert!(Journal::<Cost>::open(&path).is_err());
    }
}
