//! How long an old version of a file is given after a new one was written and closed, while the server is busy.
//!
//! The generator asks for the file as fast as it can. Beside it a reader asks over one ordinary connection, and
//! writes down which version it was given, and when. The file is overwritten in place, in one piece, with versions
//! of the same length.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_generator::Object;
use afpa_netlab::load::Interval;
use afpa_netlab::pin;
use anyhow::{Context, Result, anyhow, ensure};
use rustix::thread::gettid;
use serde::Serialize;

use super::cases::{CHANGING, CHANGING_LENGTH, KERNEL};
use super::turn::{Lengths, OnBed, Turns, ask};
use crate::bench::{Case, fetch};
use crate::servers::control;

/// Time between two changes; many times as long as a change takes to become visible.
const PAUSE: Duration = Duration::from_millis(20);
/// Load before the first change, and reading after the last one.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_millis(300);
const CLIENT_CORE: usize = 1;

/// The staleness of the answers after changes of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changes {
    /// Versions that were written.
    pub changes: usize,
    /// Answers that the reader was given.
    pub answers: usize,
    /// Answers older than one given before.
    pub backwards: usize,
    /// The last version that the reader was given.
    pub last_seen: u64,
    /// Median time from the close to the last stale answer, in seconds.
    pub p50: f64,
    /// Its 99th percentile.
    pub p99: f64,
    /// The longest.
    pub most: f64,
    /// Requests per second of the generator.
    pub rate: f64,
    /// Requests that the kernel answered meanwhile.
    pub from_kernel: u64,
}

/// An answer of the reader's: when it was asked for, when it was there, and which version it was.
type Read = (f64, f64, u64);

/// Overwrites the file so many times.
pub(super) fn measure(turns: &Turns<'_>, changes: usize) -> Result<(Changes, String)> {
    let path = format!("/{CHANGING}");
    let objects = vec![(1, Object::new(&path, CHANGING_LENGTH as u64))];
    let case = Case::new("coherence", "a file that changes", &[KERNEL], objects);
    let load = case.tc().context("the load is made in TC")?;
    let file = turns.root().join(CHANGING);
    turns.on_bed(&case, load, KERNEL, |on_bed| {
        write(&file, 0)?;
        on_bed.bed.client().run(|| wait_for_kernel(on_bed, &path))??;
        let before = control::kernel_answers(&on_bed.control);
        let lengths = Lengths {
            warm_up: Duration::from_millis(300),
            measured: PAUSE * changes as u32 + Duration::from_secs(2),
        };
        let (closed, reads, interval) = std::thread::scope(|scope| {
            let loading = scope.spawn(|| ask(on_bed, &case, load, lengths));
            let found = on_bed.bed.client().run(|| change_and_read(on_bed, &path, &file, changes));
            let loaded = loading.join().map_err(|_| anyhow!("the load panicked"))?;
            let (closed, reads) = found??;
            anyhow::Ok((closed, reads, loaded?.0))
        })?;
        ensure!(interval.errors == 0, "{} wrong answers", interval.errors);
        let from_kernel = control::kernel_answers(&on_bed.control).saturating_sub(before);
        let found = judge(&closed, &reads);
        Ok((told(found, &interval, from_kernel), on_bed.running.command()))
    })
}

fn told(found: Changes, interval: &Interval, from_kernel: u64) -> Changes {
    Changes { rate: interval.requests_per_second, from_kernel, ..found }
}

/// When each version was complete, and what the reader was given.
fn change_and_read(
    on_bed: &OnBed<'_>,
    path: &str,
    file: &Path,
    changes: usize,
) -> Result<(Vec<f64>, Vec<Read>)> {
    go_first()?;
    let (stop, epoch) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(on_bed.address, path, &stop, epoch));
        std::thread::sleep(BEFORE);
        let closed = change(file, changes, epoch);
        std::thread::sleep(AFTER);
        stop.store(true, Ordering::Relaxed);
        let reads = reading.join().map_err(|_| anyhow!("the reader panicked"))??;
        Ok((closed?, reads))
    })
}

/// Gives the calling thread, and those that it starts, priority over the generator's packet work on the client's
/// core: otherwise their own waiting would be measured.
fn go_first() -> Result<()> {
    pin(CLIENT_CORE)?;
    let thread = gettid().as_raw_nonzero().to_string();
    let changed = Command::new("chrt")
        .args(["--fifo", "--pid", "1", &thread])
        .stdin(Stdio::null())
        .status()
        .context("chrt (Debian package util-linux)")?;
    ensure!(changed.success(), "chrt: {changed}");
    Ok(())
}

fn change(file: &Path, changes: usize, epoch: Instant) -> Result<Vec<f64>> {
    let mut closed = vec![epoch.elapsed().as_secs_f64()];
    for version in 1..=changes {
        std::thread::sleep(PAUSE);
        write(file, version)?;
        closed.push(epoch.elapsed().as_secs_f64());
    }
    Ok(closed)
}

/// In place and in one piece: no reader can see a part of it.
fn write(file: &Path, version: usize) -> Result<()> {
    let mut open = OpenOptions::new().write(true).open(file).context("the file that changes")?;
    open.write_all(format!("{version:0width$}", width = CHANGING_LENGTH).as_bytes())?;
    Ok(())
}

fn read(to: SocketAddr, path: &str, stop: &AtomicBool, epoch: Instant) -> Result<Vec<Read>> {
    let mut stream = TcpStream::connect(to).context("the reader's connection")?;
    stream.set_nodelay(true)?;
    let (mut reads, host) = (Vec::new(), to.to_string());
    while !stop.load(Ordering::Relaxed) {
        let asked = epoch.elapsed().as_secs_f64();
        let content = crate::bench::ask(&mut stream, &host, path).context("the reader")?;
        let version = String::from_utf8_lossy(&content).parse().context("a version")?;
        reads.push((asked, epoch.elapsed().as_secs_f64(), version));
    }
    Ok(reads)
}

fn wait_for_kernel(on_bed: &OnBed<'_>, path: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        let before = control::kernel_answers(&on_bed.control);
        if fetch(on_bed.address, path).is_ok() && control::kernel_answers(&on_bed.control) > before
        {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(anyhow!("the kernel does not answer {path}"))
}

/// `closed[n]`: when version n was complete. An answer is stale when a newer version was complete before it was
/// asked for. Reads are in order.
fn judge(closed: &[f64], reads: &[Read]) -> Changes {
    let longest = |(version, since): (u64, f64)| {
        let stale = reads.iter().filter(|(asked, _, seen)| *asked > since && *seen < version);
        stale.map(|(_, arrived, _)| arrived - since).fold(0.0, f64::max)
    };
    let mut delays: Vec<f64> = (1..).zip(closed.iter().skip(1).copied()).map(longest).collect();
    delays.sort_by(f64::total_cmp);
    let (mut newest, mut backwards) = (0, 0);
    for (_, _, version) in reads {
        backwards += usize::from(*version < newest);
        newest = newest.max(*version);
    }
    let at = |share: f64| {
        let index = (delays.len() as f64 * share) as usize;
        delays.get(index.min(delays.len().saturating_sub(1))).copied().unwrap_or(0.0)
    };
    Changes {
        changes: delays.len(),
        answers: reads.len(),
        backwards,
        last_seen: newest,
        p50: at(0.5),
        p99: at(0.99),
        most: delays.last().copied().unwrap_or(0.0),
        rate: 0.0,
        from_kernel: 0,
    }
}

impl Changes {
    /// A line of progress.
    pub(super) fn line(&self) -> String {
        format!(
            "{} changes under {:.0} k/s: last stale answer p50 {:.2} ms, p99 {:.2} ms",
            self.changes,
            self.rate / 1e3,
            self.p50 * 1e3,
            self.p99 * 1e3
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_asked_for_after_the_close_are_stale() {
        let closed = [0.0, 10.0, 20.0];
        let reads = [(9.0, 10.5, 0), (10.1, 10.2, 0), (10.3, 10.4, 1), (20.1, 20.2, 2)];
        let found = judge(&closed, &reads);
        assert_eq!((found.changes, found.backwards, found.last_seen), (2, 0, 2));
        assert!((found.most - 0.2).abs() < 1e-9);
        assert_eq!(found.p50, found.most);
    }

    #[test]
    fn an_old_version_after_a_newer_one_is_counted() {
        let found = judge(&[0.0, 1.0], &[(1.1, 1.2, 1), (1.3, 1.4, 0)]);
        assert_eq!(found.backwards, 1);
    }
}
