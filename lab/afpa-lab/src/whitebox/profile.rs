//! Where the time of a request goes: samples of the server's core by the clock, with the functions that lead there.
//!
//! Virtual machines show no cycles, so a timer takes the samples. It waits while interrupts are off, and finds the
//! function behind then: a short function that does so is counted for its neighbour.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_generator::Measured;
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::layer::Layer;
use super::perf::Perf;
use super::stacks::{Sample, samples};
use super::task::Task;

/// Samples a second: a prime, so that they do not fall into step with timers.
const HERTZ: u32 = 3989;
/// How long a profile lasts.
pub const SECONDS: Duration = Duration::from_millis(2000);

/// The time of a request in its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Requests a second while it was taken.
    pub rate: f64,
    /// By layer, from the top down; those without a sample are left out.
    pub layers: Vec<(Layer, Time)>,
    /// By task.
    pub tasks: Vec<(Task, Time)>,
}

/// A part of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// Samples behind it: a part of few is not known well.
    pub samples: u32,
    /// Microseconds a request.
    pub micros: f64,
}

impl Time {
    /// So far it may be off, by its samples.
    pub fn error(self) -> f64 {
        self.micros / f64::from(self.samples.max(1)).sqrt()
    }

    fn and(self, other: Self) -> Self {
        Self { samples: self.samples + other.samples, micros: self.micros + other.micros }
    }
}

impl Profile {
    /// A layer's part.
    pub fn layer(&self, layer: Layer) -> Time {
        self.layers.iter().find(|(one, _)| *one == layer).map_or(Time::default(), |(_, time)| *time)
    }

    /// All layers that `counts`.
    pub fn layers_that(&self, counts: impl Fn(Layer) -> bool) -> Time {
        let parts = self.layers.iter().filter(|(layer, _)| counts(*layer));
        parts.fold(Time::default(), |sum, (_, time)| sum.and(*time))
    }

    /// All tasks that `counts`.
    pub fn tasks_that(&self, counts: impl Fn(Task) -> bool) -> Time {
        let parts = self.tasks.iter().filter(|(task, _)| counts(*task));
        parts.fold(Time::default(), |sum, (_, time)| sum.and(*time))
    }

    /// From the text of `perf script`. A sample stands for the time between two of them. Of processes that are not the
    /// server's, packets count alone: interrupts come to whoever has the core.
    fn of(text: &str, measured: &Measured, server: &[i32]) -> Self {
        let rate = measured.requests as f64 / measured.seconds;
        let each = if rate > 0.0 { 1e6 / f64::from(HERTZ) / measured.seconds / rate } else { 0.0 };
        let (mut layers, mut tasks) = ([0_u32; Layer::ALL.len()], [0_u32; Task::ALL.len()]);
        for Sample { process, frames } in samples(text) {
            // An idle core belongs to no request.
            let Some(layer) = Layer::of(&frames) else { continue };
            let task = Task::of(&frames);
            if task != Task::Packets && !server.contains(&process) {
                continue;
            }
            count(&mut layers, Layer::ALL.iter().position(|one| *one == layer));
            count(&mut tasks, Task::ALL.iter().position(|one| *one == task));
        }
        let time = |samples: u32| Time { samples, micros: f64::from(samples) * each };
        let layers = Layer::ALL.into_iter().zip(layers.map(time));
        let tasks = Task::ALL.into_iter().zip(tasks.map(time));
        Self {
            rate,
            layers: layers.filter(|(_, time)| time.samples > 0).collect(),
            tasks: tasks.filter(|(_, time)| time.samples > 0).collect(),
        }
    }
}

fn count(counts: &mut [u32], place: Option<usize>) {
    if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
        *count += 1;
    }
}

/// Samples of one core, between [`Sampling::begin`] and [`Sampling::pause`].
pub struct Sampling {
    perf: Perf,
    file: PathBuf,
}

impl Sampling {
    /// Starts perf, which takes no samples yet; `folder` is for its pipes and its file.
    ///
    /// # Errors
    ///
    /// Without perf, or when the pipes cannot be made.
    pub fn prepare(core: usize, folder: &Path) -> Result<Self> {
        let file = folder.join("perf-samples");
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-e", "cpu-clock", "-F", &HERTZ.to_string()]);
        command.args(["--call-graph", "fp", "--no-buildid"]);
        command.args(["-D", "-1", "-C", &core.to_string(), "-o"]).arg(&file);
        Ok(Self { perf: Perf::start(command, folder)?, file })
    }

    /// Samples from now on.
    ///
    /// # Errors
    ///
    /// When perf has ended or does not obey.
    pub fn begin(&mut self) -> Result<()> {
        self.perf.tell("enable")
    }

    /// No more samples.
    ///
    /// # Errors
    ///
    /// When perf has ended or does not obey.
    pub fn pause(&mut self) -> Result<()> {
        self.perf.tell("disable")
    }

    /// Ends perf and gives back where the time of the measured requests went, in the server's processes and in interrupts.
    ///
    /// # Errors
    ///
    /// When perf fails, or has no samples.
    pub fn end(mut self, measured: &Measured, server: &[i32]) -> Result<Profile> {
        self.perf.end()?;
        // Functions that the compiler put into others are asked of another program, for minutes.
        let output = Command::new("perf")
            .args(["script", "-F", "pid,ip,sym", "--no-inline", "-i"])
            .arg(&self.file)
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "perf script: {}", said.trim());
        let profile = Profile::of(&String::from_utf8_lossy(&output.stdout), measured, server);
        ensure!(!profile.layers.is_empty(), "perf took no samples: {}", said.trim());
        Ok(profile)
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_the_time_of_a_request() {
        let text = "99\n\tffffffff81000001 tcp_ack\n\tffffffff81000002 net_rx_action\n\n\
                    7\n\tffffffff81000003 tcp_sendmsg\n\tffffffff81000004 __x64_sys_sendto\n\n\
                    7\n\t5555 main\n\n0\n\tffffffff81000005 default_idle\n\n99\n\t5555 main\n";
        let measured = Measured { requests: 10, seconds: 1.0, ..Measured::default() };
        let profile = Profile::of(text, &measured, &[7]);
        let each = 1e6 / f64::from(HERTZ) / 10.0;
        let tcp = profile.layer(Layer::Tcp);
        assert_eq!(tcp.samples, 2);
        assert!((tcp.micros - 2.0 * each).abs() < 1e-9, "{tcp:?}");
        assert_eq!(profile.layer(Layer::User).samples, 1);
        assert_eq!(
            profile.layers_that(|_| true).samples,
            3,
            "neither an idle core nor others are counted"
        );
        assert_eq!(profile.tasks_that(Task::is_network).samples, 2);
        assert_eq!(profile.tasks_that(|task| task == Task::Packets).samples, 1);
    }

    #[test]
    fn perf_samples_a_busy_core() {
        if let Some(reason) = crate::whitebox::missing() {
            eprintln!("SKIP: {reason}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut sampling = Sampling::prepare(0, folder.path()).unwrap();
        sampling.begin().unwrap();
        let busy = std::thread::spawn(|| {
            afpa_netlab::pin(0).unwrap();
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_millis(400) {
                std::hint::black_box(std::fs::metadata("/").unwrap());
            }
        });
        busy.join().unwrap();
        sampling.pause().unwrap();
        let measured = Measured { requests: 1, seconds: 0.4, ..Measured::default() };
        let profile = sampling.end(&measured, &[std::process::id() as i32]).unwrap();
        assert!(profile.layer(Layer::SystemCall).samples > 10, "{profile:?}");
        assert!(!folder.path().join("perf-samples").exists());
    }
}
