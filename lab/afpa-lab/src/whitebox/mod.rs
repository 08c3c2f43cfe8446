//! The costs of a request, seen from inside: system calls by JAWS's categories, context
//! switches and, where the machine can count them, instructions.
//!
//! `perf stat` counts tracepoints in the kernel, on the server's core alone and without a record
//! for each event: every call costs a few filters more, which changes rates but not the number of
//! calls. So these are turns of their own, whose rates are used nowhere. Samples of the core ([`Profile`]) say where the time
//! goes.

mod calls;
mod counting;
mod layer;
mod perf;
mod profile;
mod stacks;
mod symbols;
mod task;

use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_generator::Measured;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::results::Point;

pub use calls::Category;
pub use counting::Counting;
pub use layer::Layer;
pub use profile::{Profile, SECONDS as PROFILE, Sampling, Time};
pub use task::Task;

/// The average costs of one request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WhiteBox {
    /// The load.
    #[serde(flatten)]
    pub point: Point,
    /// The server.
    pub server: String,
    /// System calls a request, by [`Category`]; those of everything on the server's core.
    pub calls: Vec<(Category, f64)>,
    /// Context switches a request.
    pub switches: f64,
    /// Instructions a request, user and kernel; `None` where they cannot be counted.
    pub instructions: Option<f64>,
    /// Where the time goes, by a turn of its own; `None` where no samples were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

impl WhiteBox {
    /// A look by samples alone.
    pub fn profiled(point: &Point, server: &str, profile: Profile) -> Self {
        Self {
            point: point.clone(),
            server: server.to_owned(),
            calls: Vec::new(),
            switches: 0.0,
            instructions: None,
            profile: Some(profile),
        }
    }
}

/// Why system calls cannot be counted here; `None` when they can.
pub fn missing() -> Option<String> {
    let tried = Command::new("perf")
        .args(["stat", "-x", ",", "-C", "0", "-e", "raw_syscalls:sys_enter", "true"])
        .stdin(Stdio::null())
        .output();
    match tried {
        Err(_) => Some("system calls are not counted: no perf here (package linux-perf)".into()),
        Ok(output) if !output.status.success() => {
            let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("system calls are not counted: perf says: {words}"))
        }
        Ok(_) => None,
    }
}

/// Can this machine count instructions?
pub fn hardware_counters() -> bool {
    let tried = Command::new("perf")
        .args(["stat", "-x", ",", "-e", "instructions", "true"])
        .stdin(Stdio::null())
        .output();
    tried.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        count_of(&text, "instructions").is_some_and(|count| count > 0.0)
    })
}

/// The counts of a core.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    seconds: f64,
    calls: [f64; 7],
    switches: f64,
    instructions: Option<f64>,
}

impl Counted {
    fn parse(text: &str) -> Result<Self> {
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let is_call = |fields: &&Vec<&str>| fields.get(2) == Some(&"raw_syscalls:sys_enter");
        let calls: Vec<&Vec<&str>> = lines.iter().filter(is_call).collect();
        let mut counts = [0.0; 7];
        let [.., all] = &calls[..] else { bail!("perf counted no system calls: {text}") };
        ensure!(calls.len() == counts.len(), "perf counted something else: {text}");
        for (count, fields) in counts.iter_mut().zip(&calls) {
            *count = fields[0].parse().with_context(|| format!("perf: {text}"))?;
        }
        // The last event has no filter: it counts the calls of the categories as well.
        counts[6] = (counts[6] - counts[..6].iter().sum::<f64>()).max(0.0);
        let nanoseconds: f64 = all.get(3).and_then(|field| field.parse().ok()).unwrap_or(0.0);
        ensure!(nanoseconds > 0.0, "perf counted for no time: {text}");
        Ok(Self {
            seconds: nanoseconds / 1e9,
            calls: counts,
            switches: count_of(text, "context-switches").unwrap_or(0.0),
            instructions: count_of(text, "instructions"),
        })
    }

    /// The costs of one request. `measured` spans the time between the two orders to perf, to begin and to end,
    /// give or take a millisecond; so rates are divided, and not counts.
    pub fn each(&self, point: &Point, server: &str, measured: &Measured) -> WhiteBox {
        let rate = measured.requests as f64 / measured.seconds;
        let each = |count: f64| if rate > 0.0 { count / self.seconds / rate } else { 0.0 };
        WhiteBox {
            point: point.clone(),
            server: server.to_owned(),
            calls: Category::ALL.into_iter().zip(self.calls.map(each)).collect(),
            switches: each(self.switches),
            instructions: self.instructions.map(each),
            profile: None,
        }
    }
}

/// How long a white-box turn lasts.
pub const SECONDS: Duration = Duration::from_millis(800);

/// The count of an event in `perf stat -x,`'s output; `None` when it is not supported.
fn count_of(text: &str, event: &str) -> Option<f64> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let found = lines.find(|fields| fields.get(2).is_some_and(|name| name.starts_with(event)));
    found?.first()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
        10,,raw_syscalls:sys_enter,500000000,100.00,,\n\
        500,,raw_syscalls:sys_enter,500000000,100.00,,\n\
        1000,,raw_syscalls:sys_enter,500000000,100.00,,\n\
        0,,raw_syscalls:sys_enter,500000000,100.00,,\n\
        2,,raw_syscalls:sys_enter,500000000,100.00,,\n\
        3,,raw_syscalls:sys_enter,500000000,100.00,,\n\
        1520,,raw_syscalls:sys_enter,500000000,100.00,,\n\
        250,,context-switches,500000000,100.00,,\n\
        <not supported>,,instructions,0,100.00,,\n";

    #[test]
    fn what_perf_prints_is_read() {
        let counted = Counted::parse(PRINTED).unwrap();
        assert_eq!(counted.calls, [10.0, 500.0, 1000.0, 0.0, 2.0, 3.0, 5.0]);
        assert_eq!((counted.seconds, counted.switches), (0.5, 250.0));
        assert_eq!(counted.instructions, None);
        assert!(Counted::parse("").is_err());
        assert!(Counted::parse("Error: no permission").is_err());
    }
}
