//! wrk, for an independent opinion.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Generator, fetch_all, tool};
use crate::measure::{ClientSetup, Latency, Load, Measured};
use crate::workload::Workload;

/// Requests that the script goes through, again and again, when there is more than one.
const SCHEDULE: usize = 16_384;
const SEED: u64 = 1;
const MARK: &str = "summary: ";

/// wrk with one thread.
#[derive(Debug)]
pub(super) struct Wrk;

impl Generator for Wrk {
    fn name(&self) -> &str {
        "wrk"
    }

    fn about(&self) -> &str {
        "wrk with one thread: a closed loop by other people's code; checks no content and no length"
    }

    fn lacks(&self) -> Option<String> {
        (!tool::is_there("wrk")).then(|| "needs the Debian package wrk".into())
    }

    fn version(&self) -> String {
        tool::version("wrk")
    }

    fn can(&self, workload: &Workload, load: &Load) -> Result<(), String> {
        if load.rate.is_some() {
            return Err("wrk has a closed loop only".into());
        }
        if !workload.is_mix() {
            return Err("wrk's requests are the same on each connection".into());
        }
        // wrk counts each such answer as an error.
        if workload.all_requests().iter().any(|request| request.status >= 400) {
            return Err("wrk takes each answer of 400 and more for an error".into());
        }
        if load.duration < Duration::from_secs(1) {
            return Err("wrk counts in seconds".into());
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
        let script = folder.path().join("script.lua");
        fs::write(&script, self::script(client, workload, load))?;
        if !load.warm_up.is_zero() {
            run(client, load, load.warm_up.max(Duration::from_secs(1)), &script)?;
        }
        sample();
        let summary = run(client, load, load.duration, &script);
        sample();
        Ok(measured(summary?, workload, load))
    }
}

fn run(client: &ClientSetup, load: &Load, lasts: Duration, script: &Path) -> Result<Summary> {
    let seconds = lasts.as_secs_f64().round().max(1.0);
    let text = tool::run(
        Command::new("wrk")
            .args(["--threads", "1", "--timeout", "5s", "--latency", "--duration"])
            .arg(format!("{seconds}s"))
            .args(["--connections", &load.connections.to_string(), "--script"])
            .arg(script)
            .arg(format!("http://{}/", client.to)),
        Duration::from_secs_f64(seconds),
    )?;
    let line = text.lines().find_map(|line| line.strip_prefix(MARK));
    let line = line.with_context(|| format!("wrk printed no summary: {}", text.trim()))?;
    serde_json::from_str(line).with_context(|| format!("wrk's summary {line}"))
}

/// The exact figures, as the script prints them: wrk's own report rounds to three digits.
#[derive(Debug, Deserialize)]
struct Summary {
    requests: u64,
    duration_us: f64,
    bytes: u64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
    connect: u64,
    read: u64,
    write: u64,
    status: u64,
    timeout: u64,
}

fn measured(summary: Summary, workload: &Workload, load: &Load) -> Measured {
    let Summary { connect, read, write, status, timeout, .. } = summary;
    let errors = [
        ("connect", connect),
        // Where the server closes after each response, wrk takes some of the ends for read errors.
        ("read", if load.persistent { read } else { 0 }),
        ("write", write),
        ("status", status),
        ("timeout", timeout),
    ];
    let mut measured = Measured {
        seconds: summary.duration_us / 1e6,
        requests: summary.requests,
        connections_opened: if load.persistent { 0 } else { summary.requests },
        bytes: summary.bytes,
        body_bytes: (summary.requests as f64 * workload.mean_length()).round() as u64,
        latency: Latency {
            mean: summary.mean,
            p50: summary.p50,
            p90: summary.p90,
            p99: summary.p99,
            p999: summary.p999,
            max: summary.max,
        },
        ..Measured::default()
    };
    for (name, count) in errors.into_iter().filter(|(_, count)| *count > 0) {
        measured.errors += count;
        measured.complaints.push(format!("wrk: {count} {name} errors"));
    }
    measured.counts.insert("read_errors".into(), read);
    measured
}

/// The part of the script that prints the counts.
const DONE: &str = r#"
function done(s, l, _)
  local e = s.errors
  io.write(string.format('summary: {"requests": %d, "duration_us": %d, "bytes": %.0f, ' ..
    '"mean": %f, "p50": %f, "p90": %f, "p99": %f, "p999": %f, "max": %f, ' ..
    '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\n',
    s.requests, s.duration, s.bytes,
    l.mean, l:percentile(50), l:percentile(90), l:percentile(99), l:percentile(99.9), l.max,
    e.connect, e.read, e.write, e.status, e.timeout))
end
"#;

/// A single request is described and not scripted: then wrk calls no Lua while it runs.
fn script(client: &ClientSetup, workload: &Workload, load: &Load) -> String {
    let all = workload.all_requests();
    let mut script = String::new();
    if let [request] = all {
        script.push_str(&format!("wrk.path = {}\n", quote(&request.path)));
        for (name, value) in request.all_headers(load.persistent) {
            script.push_str(&format!("wrk.headers[{}] = {}\n", quote(&name), quote(&value)));
        }
        return script + DONE;
    }
    let host = client.to.to_string();
    script.push_str("local all = {}\n");
    for (number, request) in all.iter().enumerate() {
        let bytes = request.bytes(&host, load.persistent);
        let text = quote(&String::from_utf8_lossy(&bytes));
        script.push_str(&format!("all[{number}] = {text}\n"));
    }
    let order: Vec<usize> =
        workload.requests(SEED).take(SCHEDULE).map(|step| step.request).collect();
    script.push_str(&format!("local order, at = {{{}}}, 0\n", join(&order)));
    script.push_str("function request() at = at % #order + 1; return all[order[at]] end\n");
    script + DONE
}

fn join(order: &[usize]) -> String {
    order.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// As a Lua string.
fn quote(text: &str) -> String {
    let escape = |c: char| match c {
        '\r' => "\\r".to_owned(),
        '\n' => "\\n".to_owned(),
        '"' | '\\' => format!("\\{c}"),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive_lua() {
        assert_eq!(quote("a\"b\\c\r\n"), r#""a\"b\\c\r\n""#);
    }

    #[test]
    fn summaries_become_measurements() {
        let line = r#"{"requests": 10, "duration_us": 2000000, "bytes": 5, "mean": 1.5,
            "p50": 1, "p90": 1, "p99": 1, "p999": 1, "max": 9, "connect": 0, "read": 2,
            "write": 0, "status": 0, "timeout": 1}"#;
        let workload = &crate::workload::family("webstone", &[512], true).unwrap()[0];
        let load = |persistent| Load {
            connections: 1,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(2),
            persistent,
            rate: None,
        };
        let keep = measured(serde_json::from_str(line).unwrap(), workload, &load(true));
        assert_eq!((keep.errors, keep.body_bytes), (3, 5120));
        assert!((keep.requests_per_second() - 5.0).abs() < 1e-9);
        let close = measured(serde_json::from_str(line).unwrap(), workload, &load(false));
        assert_eq!((close.errors, close.connections_opened), (1, 10));
    }
}
