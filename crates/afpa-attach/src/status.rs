//! Messages for the operator while the attachment runs.

use std::io::IsTerminal;
use std::time::Instant;

use afpa_cache::watch::Watcher;

use crate::filler::Filler;
use crate::say::say;

/// The operator's view: a line when everything was asked for, and on a terminal one every second.
pub(crate) struct Status {
    terminal: bool,
    said: bool,
    answered: u64,
    since: Instant,
}

impl Status {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self { terminal, said: false, answered: 0, since: Instant::now() }
    }

    pub(crate) fn show(&mut self, filler: &Filler, watcher: &Watcher) {
        let standing = filler.standing();
        if !self.said && !standing.busy {
            self.said = true;
            let known = standing.known;
            if standing.pinned == 0 {
                let why = standing.unfit.first().map(|(why, _)| why.as_str());
                let none =
                    "no file below --root has an extension of --ext, or its folder may not be read";
                say(&format!("! the kernel answers nothing: {}", why.unwrap_or(none)));
            }
            say(&format!("{}; {} of {known} objects pinned", watcher.summary(), standing.pinned));
            for (why, count) in &standing.unfit {
                let urls = if *count == 1 { "URL" } else { "URLs" };
                say(&format!("  {count} {urls} not: {why}"));
            }
        }
        if !self.terminal {
            return;
        }
        let answered = filler.fast_path.stats.counters().map_or(self.answered, |c| c.answered());
        let seconds = self.since.elapsed().as_secs_f64().max(0.001);
        let rate = answered.saturating_sub(self.answered) as f64 / seconds;
        (self.answered, self.since) = (answered, Instant::now());
        let work = if standing.busy { ", asking" } else { "" };
        let line =
            format!("{rate:.0} answers/s, {answered} in all, {} pinned{work}", standing.pinned);
        afpa_say::status(&format!("\r\x1b[K{line}"));
    }
}
