//! wrk, and what the proxy's namespace and core have to say of it.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use afpa_netlab::CoreTimes;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::super::network::Network;
use super::Point;
use crate::servers::rush;

/// The results of a case.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Seen {
    /// Answers of any status.
    pub(super) requests: u64,
    /// How long they took together.
    pub(super) seconds: f64,
    /// Answers that were not 200, and requests without any.
    pub(super) failures: u64,
    /// Connections that the proxy made.
    pub(super) connections: u64,
    /// Ports of the proxy towards servers that rest in TIME_WAIT at the end.
    pub(super) resting: usize,
    pub(super) p99_us: f64,
    /// Microseconds in which the proxy's core was busy.
    pub(super) core_us: u64,
}

impl Seen {
    pub(super) fn rate(&self) -> f64 {
        let good = self.requests.saturating_sub(self.failures);
        if self.seconds > 0.0 { good as f64 / self.seconds } else { 0.0 }
    }

    /// Connections for a request.
    pub(super) fn connects(&self) -> f64 {
        self.connections as f64 / self.requests.max(1) as f64
    }

    /// Microseconds of the proxy's core for a request.
    pub(super) fn busy_us(&self) -> f64 {
        self.core_us as f64 / self.requests.max(1) as f64
    }

    /// Share of requests.
    pub(super) fn failed(&self) -> f64 {
        self.failures as f64 / self.requests.max(1) as f64
    }

    pub(super) fn line(&self) -> String {
        format!(
            "{:.0} requests/s, {:.3} connects a request, {} ports rest, p99 {:.1} ms, {:.1} us, {} failed",
            self.rate(),
            self.connects(),
            self.resting,
            self.p99_us / 1000.0,
            self.busy_us(),
            self.failures
        )
    }
}

/// Asks as fast as it is answered. The caller is where the proxy is.
pub(super) fn ask(
    network: &Network,
    (server_core, client_core): (usize, usize),
    point: &Point,
    to: SocketAddr,
    seconds: f64,
) -> Result<Seen> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("script.lua");
    let header = if point.once { "wrk.headers[\"Connection\"] = \"close\"\n" } else { "" };
    fs::write(&script, format!("{header}{DONE}"))?;
    let before = (opened()?, CoreTimes::of_core(server_core)?);
    let output = network.at_clients(client_core, || {
        // One request a connection takes as many ports as there are requests in a minute.
        let range = "net.ipv4.ip_local_port_range=1024 65535";
        Command::new("sysctl").args(["-qw", range]).status()?;
        let mut wrk = Command::new("wrk");
        wrk.args(["--threads", "1", "--timeout", "10s", "--latency", "--script"]).arg(&script);
        wrk.args(["--connections", &point.clients.to_string()]);
        wrk.args(["--duration", &format!("{}s", seconds.round().max(1.0))]);
        let path = if point.longer { rush::LONGER } else { "" };
        Ok(wrk.arg(format!("http://{to}/{path}")).output()?)
    })?;
    let after = (opened()?, CoreTimes::of_core(server_core)?);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "wrk: {}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find_map(|line| line.strip_prefix(MARK));
    let line = line.with_context(|| format!("wrk printed no summary: {}", text.trim()))?;
    let told: Told = serde_json::from_str(line).with_context(|| format!("wrk's summary {line}"))?;
    let busy = after.1.busy().saturating_sub(before.1.busy());
    // Where the answer is the last one of its connection, wrk takes some of the ends for read errors.
    let ends = if point.once { 0 } else { told.read };
    Ok(Seen {
        requests: told.requests,
        seconds: told.duration_us / 1e6,
        failures: told.connect + told.write + told.status + told.timeout + ends,
        connections: after.0.saturating_sub(before.0),
        resting: resting()?,
        p99_us: told.p99,
        core_us: u64::try_from(busy.as_micros())?,
    })
}

const MARK: &str = "summary: ";

/// How wrk's script tells what was counted.
const DONE: &str = r#"
function done(s, l, _)
  local e = s.errors
  io.write(string.format('summary: {"requests": %d, "duration_us": %d, "p99": %f, ' ..
    '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\n',
    s.requests, s.duration, l:percentile(99), e.connect, e.read, e.write, e.status, e.timeout))
end
"#;

#[derive(Debug, Deserialize)]
struct Told {
    requests: u64,
    duration_us: f64,
    p99: f64,
    connect: u64,
    read: u64,
    write: u64,
    status: u64,
    timeout: u64,
}

/// Connections that this namespace has opened (`ActiveOpens` of RFC 4022).
fn opened() -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/snmp").context("counts of TCP")?;
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let (_, value) = pairs.find(|(name, _)| *name == "ActiveOpens").context("no ActiveOpens")?;
    Ok(value.parse()?)
}

/// Connections to servers in TIME_WAIT here.
fn resting() -> Result<usize> {
    let text = fs::read_to_string("/proc/thread-self/net/tcp").context("sockets")?;
    let (first, last) = rush::server_ports();
    Ok(text.lines().filter(|line| rests(line, first, last)).count())
}

/// Whether a line of `/proc/net/tcp` is a connection in TIME_WAIT to one of these ports.
fn rests(line: &str, first: u16, last: u16) -> bool {
    const TIME_WAIT: &str = "06";
    // "sl local_address rem_address st ..."
    let mut fields = line.split_whitespace().skip(2);
    let port = fields.next().and_then(|remote| remote.rsplit_once(':'));
    let port = port.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
    port.is_some_and(|port| (first..=last).contains(&port)) && fields.next() == Some(TIME_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_rest_are_told_from_others() {
        let line = |remote: &str, state: &str| {
            format!("   1: 01024E0A:8123 {remote} {state} 00000000:00000000 03:00000E7C 00000000")
        };
        assert!(rests(&line("02024E0A:2328", "06"), 9000, 9015));
        assert!(!rests(&line("02024E0A:2328", "01"), 9000, 9015), "established");
        assert!(!rests(&line("02024E0A:0050", "06"), 9000, 9015), "somebody else's");
        assert!(!rests("  sl  local_address rem_address   st", 9000, 9015));
    }

    #[test]
    fn failures_are_no_rate() {
        let seen = Seen {
            requests: 100,
            failures: 40,
            seconds: 2.0,
            connections: 5,
            core_us: 300,
            ..Seen::default()
        };
        assert_eq!((seen.rate(), seen.connects(), seen.busy_us()), (30.0, 0.05, 3.0));
    }
}
