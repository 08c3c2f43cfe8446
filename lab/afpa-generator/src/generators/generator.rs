//! A generator, and its warm-up.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measure::{ClientSetup, Load, Measured};
use crate::workload::Workload;

/// A way to ask a server for a workload.
pub trait Generator: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &str;

    /// A line for `afpa-lab list`.
    fn about(&self) -> &str;

    /// Why it cannot be used on this machine, with the package that would help.
    fn lacks(&self) -> Option<String>;

    /// The version, for the environment's record.
    fn version(&self) -> String;

    /// Checks that the generator can make this workload with this load.
    ///
    /// # Errors
    ///
    /// Why not, in words.
    fn can(&self, workload: &Workload, load: &Load) -> Result<(), String>;

    /// Asks, on the calling thread, which is inside the client's namespace and on the client's core.
    /// `sample` is called at both ends of the measured interval. Wrong answers are counted, not
    /// returned as errors.
    ///
    /// # Errors
    ///
    /// When it cannot begin: no connection, no privilege, a first answer that is wrong.
    fn run(
        &self,
        client: &ClientSetup,
        workload: &Workload,
        load: &Load,
        sample: &mut dyn FnMut(),
    ) -> Result<Measured>;
}

/// A warm-up goes on for so long until something was answered: on a machine that is busy elsewhere
/// a server may sleep through a short one.
const LONGEST_WARM_UP: Duration = Duration::from_secs(3);
/// How often that is looked at.
const MOMENT: Duration = Duration::from_millis(50);

/// Warms up: `run` is called with a time, and tells whether there was an answer.
pub(super) fn warm_up(load: &Load, mut run: impl FnMut(Duration) -> Result<bool>) -> Result<()> {
    let mut answered = run(load.warm_up)?;
    let began = Instant::now();
    while !answered && began.elapsed() < LONGEST_WARM_UP {
        answered = run(MOMENT)?;
    }
    Ok(())
}
