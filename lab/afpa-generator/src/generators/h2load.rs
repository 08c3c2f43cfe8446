//! h2load in HTTP/1.1, for another independent opinion.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

use super::{Generator, fetch_all, tool};
use crate::measure::{ClientSetup, Latency, Load, Measured, latency_of};
use crate::workload::Workload;

/// Requests that it goes through on each connection.
const SCHEDULE: usize = 16_384;
const SEED: u64 = 1;

/// h2load with one thread.
#[derive(Debug)]
pub(super) struct H2load;

impl Generator for H2load {
    fn name(&self) -> &str {
        "h2load"
    }

    fn about(&self) -> &str {
        "h2load with one thread, in HTTP/1.1: a closed loop by other people's code; checks no \
         content and no length"
    }

    fn lacks(&self) -> Option<String> {
        (!tool::is_there("h2load")).then(|| "needs the Debian package nghttp2-client".into())
    }

    fn version(&self) -> String {
        tool::version("h2load")
    }

    fn can(&self, workload: &Workload, load: &Load) -> Result<(), String> {
        let all = workload.all_requests();
        if load.rate.is_some() {
            return Err("it is used for closed loops only".into());
        }
        if !load.persistent {
            return Err("h2load keeps its connections".into());
        }
        if !workload.is_mix() {
            return Err("h2load's requests are the same on each connection".into());
        }
        if all.iter().any(|request| request.status >= 400) {
            return Err("h2load takes each answer of 400 and more for an error".into());
        }
        if all.windows(2).any(|pair| matches!(pair, [one, other] if one.headers != other.headers)) {
            return Err("h2load sends the same header fields with all requests".into());
        }
        Ok(())
    }

    fn run(
        &self,
        client: &ClientSetup,
        workload: &Workload,
        load: &Load,
        sample: &mut dyn FnMut(),
    ) -> Result<Measured> {
        fetch_all(client.to, workload, load.persistent)?;
        let folder = tempfile::tempdir()?;
        let (list, log) = (folder.path().join("requests"), folder.path().join("log"));
        fs::write(&list, requests(client, workload))?;
        if !load.warm_up.is_zero() {
            run(workload, load, load.warm_up, &list, &log)?;
        }
        fs::write(&log, "")?;
        sample();
        let report = run(workload, load, load.duration, &list, &log);
        sample();
        let mut measured = read_report(&report?, load.duration)?;
        measured.latency = read_log(&log)?;
        measured.body_bytes = (measured.requests as f64 * workload.mean_length()).round() as u64;
        Ok(measured)
    }
}

fn requests(client: &ClientSetup, workload: &Workload) -> String {
    let all = workload.all_requests();
    let count = if all.len() == 1 { 1 } else { SCHEDULE };
    let steps = workload.requests(SEED).take(count).filter_map(|step| all.get(step.request));
    steps.map(|request| format!("http://{}{}\n", client.to, request.path)).collect()
}

fn run(
    workload: &Workload,
    load: &Load,
    lasts: Duration,
    list: &Path,
    log: &Path,
) -> Result<String> {
    let mut command = Command::new("h2load");
    command.args(["--h1", "--threads=1", "--connection-inactivity-timeout=5s"]);
    command.arg(format!("--clients={}", load.connections));
    command.arg(format!("--duration={}ms", lasts.as_millis().max(1)));
    command.arg("--input-file").arg(list).arg("--log-file").arg(log);
    for (name, value) in workload.all_requests().first().into_iter().flat_map(|r| &r.headers) {
        command.arg(format!("--header={name}: {value}"));
    }
    tool::run(&mut command, lasts)
}

/// `requests: 10 total, ... 9 succeeded, 1 failed, 0 errored, 0 timeout` and
/// `traffic: 1.2MB (1234567) total, ...`.
pub(super) fn read_report(report: &str, lasts: Duration) -> Result<Measured> {
    let line = |begin: &str| report.lines().find_map(|line| line.strip_prefix(begin));
    let requests = line("requests: ").context("h2load reported no requests")?;
    let of = |word: &str| -> Result<u64> {
        let field = requests.split(", ").find_map(|field| field.strip_suffix(word));
        let field = field.with_context(|| format!("h2load reported no{word}: {requests}"))?;
        Ok(field.trim().parse()?)
    };
    let traffic = line("traffic: ").and_then(|line| line.split(['(', ')']).nth(1));
    let bytes = traffic.context("h2load reported no traffic")?.trim().parse()?;
    let mut measured = Measured {
        seconds: lasts.as_secs_f64(),
        requests: of(" succeeded")?,
        bytes,
        ..Measured::default()
    };
    for word in [" failed", " errored", " timeout"] {
        let count = of(word)?;
        if count > 0 {
            measured.errors += count;
            measured.complaints.push(format!("h2load: {count}{word}"));
        }
    }
    Ok(measured)
}

/// Lines of: start, status, microseconds.
fn read_log(log: &Path) -> Result<Latency> {
    // An hour at most.
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3)?;
    for line in BufReader::new(File::open(log)?).lines() {
        let line = line?;
        let microseconds = line.split('\t').nth(2).and_then(|text| text.parse::<u64>().ok());
        histogram.saturating_record(microseconds.unwrap_or(0).saturating_mul(1000).max(1));
    }
    Ok(latency_of(&histogram))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
finished in 1.00s, 9.00 req/s, 1.2MB/s
requests: 10 total, 12 started, 10 done, 9 succeeded, 1 failed, 0 errored, 0 timeout
status codes: 9 2xx, 0 3xx, 1 4xx, 0 5xx
traffic: 1.18MB (1234567) total, 1.00KB (1024) headers (space savings 0.00%), 1.10MB (1200000) data
";

    #[test]
    fn reports_become_measurements() {
        let measured = read_report(REPORT, Duration::from_secs(3)).unwrap();
        assert_eq!((measured.requests, measured.bytes, measured.errors), (9, 1_234_567, 1));
        assert!((measured.requests_per_second() - 3.0).abs() < 1e-9);
        assert!(read_report("nothing", Duration::from_secs(1)).is_err());
    }
}
