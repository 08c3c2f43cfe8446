//! Interleaved rounds: in each round every case is measured once for each of its servers, and the order
//! of the servers rotates. A machine that grows slower is then not held against the last in line.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde::Serialize;

use super::case::duration;
use super::{Case, Sample, Samples};
use crate::stats::rotated;

/// How often a measurement that failed is tried.
const TRIES: u32 = 3;

/// The options of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// Interleaved rounds.
    pub rounds: u32,
    /// Length of a measurement.
    pub seconds: f64,
    /// Load before each measurement, in seconds.
    pub warm_up: f64,
    /// Only the cases of a quick look.
    pub quick: bool,
    /// Cases whose names contain one of these; empty: all.
    pub only: Vec<String>,
}

/// A run, and its results so far.
pub struct Bench {
    /// The options of the command line.
    pub settings: Settings,
    /// Every measurement.
    pub samples: Samples,
    /// How each was started, by case and server.
    pub commands: BTreeMap<String, String>,
    /// Measurements that failed and were taken again, and why.
    pub repeated: Vec<String>,
    /// Measurements that failed for good, and why.
    pub failed: Vec<String>,
    /// Set by a signal: the run ends after the measurement at hand.
    interrupted: &'static AtomicBool,
    /// Prints a line of progress.
    say: fn(&str),
    begun: Instant,
}

impl Settings {
    /// Whether a name was asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word.as_str()))
    }

    /// The cases that were asked for.
    pub fn chosen(&self, cases: Vec<Case>) -> Vec<Case> {
        let wanted = |case: &Case| (case.quick || !self.quick) && self.wants(&case.name);
        cases.into_iter().filter(wanted).collect()
    }

    /// Rounds of a case: its share of all rounds, and at least one.
    pub fn rounds_of(&self, case: &Case) -> u32 {
        ((f64::from(self.rounds) * case.rounds).round() as u32).max(1)
    }

    /// Length of a measurement of a case.
    pub fn length_of(&self, case: &Case) -> Duration {
        duration(self.seconds * case.seconds)
    }

    /// Load before each measurement of a case.
    pub fn warm_up_of(&self, case: &Case) -> Duration {
        duration(self.warm_up.max(case.warm_up))
    }
}

impl Bench {
    /// A run that begins now.
    pub fn new(settings: Settings, interrupted: &'static AtomicBool, say: fn(&str)) -> Self {
        Self {
            settings,
            samples: Samples::default(),
            commands: BTreeMap::new(),
            repeated: Vec::new(),
            failed: Vec::new(),
            interrupted,
            say,
            begun: Instant::now(),
        }
    }

    /// Measures all rounds of some cases. `turn` takes one measurement of one server.
    ///
    /// # Errors
    ///
    /// When a measurement failed as often as it is tried, or had wrong answers, or a signal came.
    pub fn rounds(
        &mut self,
        cases: &[Case],
        mut turn: impl FnMut(&mut Self, &Case, &str) -> Result<Sample>,
    ) -> Result<()> {
        for round in 1..=self.settings.rounds {
            let due = cases.iter().filter(|case| round <= self.settings.rounds_of(case));
            for case in due.cloned().collect::<Vec<_>>() {
                for server in rotated(&case.servers, round as usize - 1) {
                    let sample = self.take(&case, &server, &mut turn)?;
                    let sample = Sample { round, ..sample };
                    self.say(&format!("round {round}  {:<44} {}", case.title, sample.line()));
                    self.samples.0.push(sample);
                }
            }
        }
        Ok(())
    }

    /// Takes one measurement. After a failure it is tried again, and the result says how often: the
    /// machine may have stood still for a moment.
    fn take(
        &mut self,
        case: &Case,
        server: &str,
        turn: &mut impl FnMut(&mut Self, &Case, &str) -> Result<Sample>,
    ) -> Result<Sample> {
        for left in (0..TRIES).rev() {
            self.check()?;
            match turn(self, case, server) {
                Ok(Sample { errors: Some(errors), .. }) => {
                    bail!("{}, {server}: {errors}", case.title)
                }
                Ok(sample) => return Ok(sample),
                Err(error) => {
                    let line = format!("{}, {server}: {error:#}", case.title);
                    if left == 0 {
                        return Err(anyhow!(line));
                    }
                    self.say(&format!("again: {line}"));
                    self.repeated.push(line);
                }
            }
        }
        bail!("{}, {server}: not measured", case.title)
    }

    /// Does a part of the run. The other parts are worth having when it fails; only a signal ends all.
    ///
    /// # Errors
    ///
    /// When a signal came.
    pub fn part(&mut self, part: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Err(error) = part(self) {
            self.check()?;
            self.say(&format!("{error:#}"));
            self.failed.push(format!("{error:#}"));
        }
        self.check()
    }

    /// Whether the run may go on.
    ///
    /// # Errors
    ///
    /// When a signal came.
    pub fn check(&self) -> Result<()> {
        if self.is_interrupted() { bail!("interrupted") } else { Ok(()) }
    }

    /// A signal came.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// A line of progress, with the time since the run began.
    pub fn say(&self, line: &str) {
        (self.say)(&format!("[{:4.0} s] {line}", self.elapsed().as_secs_f64()));
    }

    /// Since the run began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample::tests::sample;

    static CALM: AtomicBool = AtomicBool::new(false);

    fn bench(rounds: u32) -> Bench {
        let settings =
            Settings { rounds, seconds: 0.5, warm_up: 0.2, quick: false, only: Vec::new() };
        Bench::new(settings, &CALM, |_| ())
    }

    fn case(name: &str) -> Case {
        Case::new(name, name, &["a", "b", "c"], Vec::new())
    }

    #[test]
    fn every_server_takes_every_place() {
        let mut bench = bench(4);
        bench.rounds(&[case("x")], |_, case, server| Ok(sample(&case.name, server, 0, 1))).unwrap();
        let order: String = bench.samples.0.iter().map(|sample| sample.server.as_str()).collect();
        assert_eq!(order, "abcbcacababc");
        assert_eq!(bench.samples.0[11].round, 4);
    }

    #[test]
    fn a_measurement_that_fails_is_taken_again_and_wrong_answers_are_not() {
        let mut bench = bench(1);
        let mut tries = 0;
        bench
            .rounds(&[case("x")], |_, case, server| {
                tries += 1;
                anyhow::ensure!(tries != 1, "it stood still");
                Ok(sample(&case.name, server, 0, 1))
            })
            .unwrap();
        assert_eq!((bench.samples.0.len(), bench.repeated.len()), (3, 1));
        let wrong = bench.rounds(&[case("x")], |_, case, server| {
            Ok(Sample { errors: Some("2 wrong".into()), ..sample(&case.name, server, 0, 1) })
        });
        assert!(wrong.unwrap_err().to_string().contains("x, a: 2 wrong"));
        let never = bench.rounds(&[case("x")], |_, _, _| bail!("gone"));
        assert!(never.is_err() && bench.repeated.len() == 3);
    }

    #[test]
    fn a_case_has_its_share_of_rounds_and_is_chosen_by_a_part_of_its_name() {
        let mut settings = bench(5).settings;
        let few = Case { rounds: 0.6, seconds: 3.0, ..case("512-64") };
        assert_eq!(settings.rounds_of(&few), 3);
        assert_eq!(settings.length_of(&few), Duration::from_millis(1500));
        assert_eq!(settings.warm_up_of(&few), Duration::from_millis(200));
        settings.only = vec!["512".into(), "pass".into()];
        let chosen = settings.chosen(vec![few.clone(), case("pass-afpa"), case("64-64")]);
        assert_eq!(chosen.len(), 2);
        settings.quick = true;
        assert!(settings.chosen(vec![few]).is_empty());
    }
}
