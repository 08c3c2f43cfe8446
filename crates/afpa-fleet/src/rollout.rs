//! A configuration on its way to all machines: the record at the servers, and what follows from it. Nothing here reads
//! a clock or a socket.
//!
//! ```text
//!          ┌────────── wider: One ─> Quarter ─> All ──────────┐
//!          ▼                                                  │
//! begin ─ Taking ── all that were chosen run it ──> Watching ─┴─ after All ──> Done
//!          │                                          │
//!          └─ refused, late, silent ── RolledBack ────┘ errors, slow, silent
//! ```
//!
//! Every machine reads the record and runs what [`Rollout::wanted`] says. One of them drives it, by a lease: driver.rs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::load::Load;
use crate::members::MemberLook;
use crate::message::Refused;

/// A machine that was chosen may take so long.
const TAKE: Duration = Duration::from_secs(30);

/// Fewer answers say nothing.
const LEAST: u64 = 20;

/// Revisions that the record lists.
const MOST_REVISIONS: usize = 32;

/// The share of the machines that are to run a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// One machine.
    One,
    /// A quarter of them.
    Quarter,
    /// All of them, and those that come.
    All,
}

/// The event that a stage waits for, or its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum Phase {
    /// The machines that were chosen take it.
    Taking,
    /// They run it, and their errors and times are watched.
    Watching,
    /// All run it.
    Done,
    /// All run the one before.
    Back {
        /// The reason.
        why: String,
    },
}

/// The bounds beyond which a revision is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Each stage is watched for so long.
    pub wait_ms: u64,
    /// Errors may be so many percent of the answers more than before.
    pub errors: u64,
    /// The 99th percentile of servers' times may be so much longer than before.
    pub p99_us: u64,
}

/// A revision in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its number.
    pub revision: u64,
    /// The machine at which it was pushed.
    pub by: String,
    /// When, in seconds since the Unix epoch.
    pub at: u64,
    /// The names of its files, the first ones of many.
    pub files: Vec<String>,
    /// Bytes of them.
    pub bytes: u64,
}

/// The record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// The revision that is to run.
    pub target: u64,
    /// The one that ran before; `None`: none did.
    pub base: Option<u64>,
    /// How many machines are to run it.
    pub stage: Stage,
    /// How far that is.
    #[serde(flatten)]
    pub phase: Phase,
    /// Their names.
    pub chosen: Vec<String>,
    /// The machine at which it was pushed.
    pub at: String,
    /// The process that drives it.
    pub driver: String,
    /// It counts up while it does.
    pub beats: u64,
    /// Beyond these it is rolled back.
    pub bounds: Bounds,
    /// Errors and times of all machines before.
    pub before: Load,
    /// The revisions, the last one first.
    pub revisions: Vec<Listed>,
}

/// A machine that takes configurations of the fleet, as a driver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taker {
    /// Its name.
    pub name: String,
    /// Whether it was heard.
    pub is_live: bool,
    /// The revision that it runs.
    pub runs: Option<u64>,
    /// The one that it could not take.
    pub refused: Option<Refused>,
    /// Its answers since then.
    pub load: Load,
}

/// An order that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Another one is on its way.
    #[error(
        "revision {0} is being rolled out: wait until it has arrived, or say `afpa fleet rollback`"
    )]
    UnderWay(u64),
    /// Nothing was pushed yet.
    #[error("nothing was pushed to this fleet yet: say `afpa fleet push FILE`")]
    Nothing,
    /// No revision ran before.
    #[error("no revision ran before this one: say which, `afpa fleet revisions` lists them")]
    NoneBefore,
    /// There is no such revision.
    #[error("there is no revision {0}: `afpa fleet revisions` lists those that there are")]
    Unknown(u64),
    /// It runs already.
    #[error("revision {0} runs already")]
    Runs(u64),
}

impl Taker {
    /// Those of all members that take configurations. A process that ends for its next one is none.
    pub fn of(members: &[MemberLook]) -> Vec<Self> {
        let takes = |member: &&MemberLook| member.beat.takes && !member.beat.hands_over;
        let taker = |member: &MemberLook| Self {
            name: member.beat.name.clone(),
            is_live: member.silent.is_none(),
            runs: member.beat.revision,
            refused: member.beat.refused.clone(),
            load: member.beat.load,
        };
        members.iter().filter(takes).map(taker).collect()
    }
}

impl Rollout {
    /// A revision that has just been pushed begins with one machine. It is not the one at which it was pushed, if
    /// there is another: that one drives, and a configuration that ends a process must not end its driver.
    ///
    /// # Errors
    /// When another one is under way.
    pub fn begin(
        before: Option<&Self>,
        pushed: Listed,
        (driver, bounds): (&str, Bounds),
        takers: &[Taker],
    ) -> Result<Self, Unfit> {
        if let Some(Self { target, .. }) = before.filter(|before| !before.is_over()) {
            return Err(Unfit::UnderWay(*target));
        }
        let known = before.map(|before| before.revisions.clone()).unwrap_or_default();
        let mut rollout = Self {
            target: pushed.revision,
            base: before.and_then(Self::running),
            stage: Stage::One,
            phase: Phase::Taking,
            chosen: Vec::new(),
            at: pushed.by.clone(),
            driver: driver.to_owned(),
            beats: 0,
            bounds,
            before: takers.iter().map(|taker| taker.load).fold(Load::default(), Load::and),
            revisions: std::iter::once(pushed).chain(known).take(MOST_REVISIONS).collect(),
        };
        rollout.choose(takers);
        Ok(rollout)
    }

    /// Back to a revision, by an order: at once, and everywhere. Without a number, to the one before.
    ///
    /// # Errors
    /// When there is none.
    pub fn roll_back(&self, wanted: Option<u64>, by: &str) -> Result<Self, Unfit> {
        let is_back = wanted.is_none() || wanted == self.base;
        if !self.is_over() && is_back {
            return Ok(self.back(format!("by an order at {by}")));
        }
        let before = match &self.phase {
            Phase::Back { .. } => None,
            _ => self.base,
        };
        let target = wanted.or(before).ok_or(Unfit::NoneBefore)?;
        if !self.revisions.iter().any(|listed| listed.revision == target) {
            return Err(Unfit::Unknown(target));
        }
        if self.is_over() && self.running() == Some(target) {
            return Err(Unfit::Runs(target));
        }
        let (stage, phase) = (Stage::All, Phase::Done);
        Ok(Self { target, base: self.running(), stage, phase, ..self.clone() })
    }

    /// Whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Back { .. })
    }

    /// The revision of machines that were not chosen.
    pub fn running(&self) -> Option<u64> {
        if self.phase == Phase::Done { Some(self.target) } else { self.base }
    }

    /// The revision that a machine is to run; `None`: none.
    pub fn wanted(&self, name: &str) -> Option<u64> {
        let is_chosen = self.stage == Stage::All || self.chosen.iter().any(|one| one == name);
        if !self.is_over() && is_chosen { Some(self.target) } else { self.running() }
    }

    /// The record after this one, `elapsed` after its phase has begun; `None`: it stays.
    pub fn next(&self, takers: &[Taker], elapsed: Duration) -> Option<Self> {
        if self.is_over() {
            return None;
        }
        let is_chosen = |taker: &&Taker| self.chosen.contains(&taker.name);
        let chosen: Vec<&Taker> = takers.iter().filter(is_chosen).collect();
        if let Some(why) = self.objection(&chosen, elapsed) {
            return Some(self.back(why));
        }
        let wait = Duration::from_millis(self.bounds.wait_ms);
        match self.phase {
            Phase::Taking if chosen.iter().all(|taker| taker.runs == Some(self.target)) => {
                Some(Self { phase: Phase::Watching, ..self.clone() })
            }
            Phase::Watching if elapsed >= wait => Some(self.wider(takers)),
            _ => None,
        }
    }

    /// The reason for which it has to go back.
    fn objection(&self, chosen: &[&Taker], elapsed: Duration) -> Option<String> {
        for taker in chosen {
            let name = &taker.name;
            let refused = taker.refused.as_ref().filter(|refused| refused.revision == self.target);
            if let Some(Refused { why, .. }) = refused {
                return Some(format!("{name} cannot take it: {why}"));
            }
            if !taker.is_live {
                return Some(format!("{name} was to run it, and is silent"));
            }
            if self.phase == Phase::Taking && elapsed >= TAKE && taker.runs != Some(self.target) {
                return Some(format!("{name} has not taken it within {} s", TAKE.as_secs()));
            }
        }
        if chosen.is_empty() {
            return Some("no machine that was to run it is there".to_owned());
        }
        let runs = chosen.iter().filter(|taker| taker.runs == Some(self.target));
        self.excess(runs.map(|taker| taker.load).fold(Load::default(), Load::and))
    }

    /// How errors or times have risen beyond the bounds.
    fn excess(&self, load: Load) -> Option<String> {
        // Of few answers before, none of which says much, nothing is excused.
        let enough = |count: u64, value: u64| if count >= LEAST { value } else { 0 };
        let now = load.errors();
        let before = enough(self.before.answers, self.before.errors());
        let p99_us = enough(self.before.timed, self.before.p99_us);
        if load.answers >= LEAST && now > before.saturating_add(self.bounds.errors * 10) {
            return Some(format!(
                "{} % of {} answers are errors, before {} %",
                tenths(now),
                load.answers,
                tenths(before)
            ));
        }
        let most = p99_us.saturating_add(self.bounds.p99_us);
        (load.timed >= LEAST && load.p99_us > most).then(|| {
            format!(
                "99 of 100 answers of servers took up to {} ms, before {} ms",
                load.p99_us / 1000,
                p99_us / 1000
            )
        })
    }

    fn back(&self, why: String) -> Self {
        Self { phase: Phase::Back { why }, ..self.clone() }
    }

    /// The next stage that has more machines.
    fn wider(&self, takers: &[Taker]) -> Self {
        let mut wider = self.clone();
        let before = self.chosen.len();
        loop {
            wider.stage = match wider.stage {
                Stage::One => Stage::Quarter,
                Stage::Quarter => Stage::All,
                Stage::All => return Self { phase: Phase::Done, ..wider },
            };
            wider.choose(takers);
            if wider.chosen.len() > before {
                return Self { phase: Phase::Taking, ..wider };
            }
        }
    }

    /// As many machines as the stage has, those that were chosen first.
    fn choose(&mut self, takers: &[Taker]) {
        let live = takers.iter().filter(|taker| taker.is_live);
        let mut names: Vec<&str> = live.map(|taker| taker.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let most = match self.stage {
            Stage::One => 1,
            Stage::Quarter => names.len().div_ceil(4),
            Stage::All => names.len(),
        };
        names.sort_by_key(|name| *name == self.at);
        for name in names {
            if self.chosen.len() >= most {
                break;
            }
            if !self.chosen.iter().any(|one| one == name) {
                self.chosen.push(name.to_owned());
            }
        }
    }
}

fn tenths(thousandths: u64) -> String {
    format!("{}.{}", thousandths / 10, thousandths % 10)
}
