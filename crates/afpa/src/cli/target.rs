//! A running afpa, and times to wait for it.

use std::path::PathBuf;

use clap::Args;

/// A running afpa.
#[derive(Args, Clone, Debug, Default)]
pub struct Target {
    /// Ask the afpa with this process id, if several are running
    #[arg(short, long, value_name = "PID", conflicts_with = "control")]
    pub pid: Option<u32>,
    /// Ask through this control socket
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
}

/// Seconds from 0.1 to an hour.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let bare = |unit, length| Some((text.strip_suffix(unit)?, length));
    // The units of the configuration; a number alone has seconds.
    let (digits, length) = bare("ms", 0.001)
        .or_else(|| bare("s", 1.0))
        .or_else(|| bare("m", 60.0))
        .unwrap_or((text, 1.0));
    let number = digits.parse::<f64>().ok().map(|number| number * length);
    let number = number.filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "write seconds from 0.1 to 3600, as 2, 500ms or 1m".to_owned())
}
