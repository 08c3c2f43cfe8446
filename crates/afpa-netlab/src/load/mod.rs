//! A closed-loop HTTP/1.1 client that lives in TC ingress.
//!
//! [`Generator::start`] opens real connections through the kernel, fetches one response on each
//! and hands them over to an eBPF program on the client's interface. From then on each complete
//! response is turned into the next request in softirq, so that one client core saturates any
//! server. User mode only watches: it re-sends requests that have been outstanding for too long,
//! and opens connections again that the server has closed.
//!
//! With [`LoadOptions::once`] the program opens and closes the connections as well, one for each
//! request, and user mode only begins and goes on where something got lost.
//!
//! Every response is checked in the program: its status, and its length to the byte, which has to
//! be the one that the kernel's own TCP received at the start; [`LoadOptions::ages`] lets the digits of an
//! Age differ, and nothing else. One address and port at a time.

mod exchange;
mod flows;
mod histogram;
mod once;
mod options;
mod ports;
mod program;
mod request;
mod wire;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

pub use exchange::response_length;
pub use histogram::Latency;
pub use options::LoadOptions;
pub use request::{Target, browser_headers, visitors};

use flows::{Flows, LookedAfter};
use once::Slots;
use program::{Counted, Program};

/// How often user mode looks after the flows.
const WATCH: Duration = Duration::from_millis(50);
/// A running load. It must be started and used inside the client's namespace.
pub struct Generator {
    program: Program,
    driver: Driver,
}

/// The part of user mode that drives the connections.
enum Driver {
    /// Opens them, and looks after them.
    Kept(Flows),
    /// Begins, and looks after slots.
    Once(Slots),
}

impl Driver {
    fn looked_after(&self) -> LookedAfter {
        match self {
            Self::Kept(flows) => flows.looked_after(),
            Self::Once(slots) => slots.looked_after(),
        }
    }

    fn look_after(&mut self, program: &Program) -> Result<()> {
        match self {
            Self::Kept(flows) => flows.look_after(program),
            Self::Once(slots) => slots.look_after(program),
        }
    }

    fn close(&mut self, program: &Program) -> Result<()> {
        match self {
            Self::Kept(flows) => flows.close(program),
            Self::Once(slots) => slots.close(program),
        }
    }
}

/// The measurement of an interval.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Interval {
    /// Its length.
    pub seconds: f64,
    /// Complete responses per second.
    pub requests_per_second: f64,
    /// Payload received per second, heads included.
    pub bytes_per_second: f64,
    /// From a request's sending to its response's last byte.
    pub latency: Latency,
    /// Everything counted, by name.
    pub counts: std::collections::BTreeMap<String, u64>,
    /// Wrong status, wrong length, flows that did not move: zero in a valid measurement.
    pub errors: u64,
}

impl Generator {
    /// Opens the connections and starts to ask.
    ///
    /// # Errors
    ///
    /// When the server does not answer a target as expected, a connection fails, or the program
    /// cannot be loaded and attached.
    pub fn start(options: &LoadOptions) -> Result<Self> {
        ensure!(options.connections > 0 && !options.targets.is_empty(), "nothing to do");
        let targets = exchange::learn(options)?;
        let first_source = source(options)?;
        let program = Program::load(options, first_source, &targets)?;
        let driver = if options.once {
            let mut slots = Slots::new(options, first_source, targets)?;
            slots.open(&program)?;
            Driver::Once(slots)
        } else {
            let mut flows = Flows::new(options, first_source, targets)?;
            flows.open(&program)?;
            Driver::Kept(flows)
        };
        Ok(Self { program, driver })
    }

    /// Lets it run for `duration` and tells what happened meanwhile.
    ///
    /// # Errors
    ///
    /// When the interface or the server goes away.
    pub fn measure(&mut self, duration: Duration) -> Result<Interval> {
        self.measure_with(duration, || Ok(())).map(|(interval, _)| interval)
    }

    /// As [`measure`](Self::measure); `sample` is called at both ends of the interval, at the
    /// moment when the responses are counted.
    ///
    /// # Errors
    ///
    /// When the interface or the server goes away, or those of `sample`.
    pub fn measure_with<S>(
        &mut self,
        duration: Duration,
        mut sample: impl FnMut() -> Result<S>,
    ) -> Result<(Interval, [S; 2])> {
        let looked_after = self.driver.looked_after();
        let latency = self.program.latency()?;
        let (before, begin) = (self.program.count()?, sample()?);
        while let Some(left) = (before.taken + duration).checked_duration_since(Instant::now()) {
            std::thread::sleep(left.min(WATCH));
            self.driver.look_after(&self.program)?;
        }
        let (after, end) = (self.program.count()?, sample()?);
        let latency = Latency::between(&latency, &self.program.latency()?);
        let looked_after = self.driver.looked_after() - looked_after;
        Ok((Interval::between(&before, &after, latency, looked_after), [begin, end]))
    }

    /// Ends the load: outstanding responses are awaited for a moment, then every connection that
    /// is open is reset, with the numbers that the server expects.
    ///
    /// # Errors
    ///
    /// When the interface is gone.
    pub fn finish(mut self) -> Result<()> {
        self.driver.close(&self.program)
    }
}

/// The first client address: that of the options, or the one that the kernel takes towards the server.
fn source(options: &LoadOptions) -> Result<IpAddr> {
    if let Some(address) = options.first_source {
        return Ok(address);
    }
    ensure!(options.sources == 1, "several client addresses need the first one");
    let any: IpAddr = match options.to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect(options.to)?;
    Ok(probe.local_addr()?.ip())
}

impl Interval {
    fn between(
        before: &Counted,
        after: &Counted,
        latency: Latency,
        looked_after: LookedAfter,
    ) -> Self {
        let seconds = (after.taken - before.taken).as_secs_f64();
        let mut counts = after.counts.clone();
        for (name, count) in &mut counts {
            *count -= before.counts.get(name).copied().unwrap_or(0);
        }
        counts.insert("resent_by_watchdog".into(), looked_after.resent);
        counts.insert("reopened".into(), looked_after.reopened);
        counts.insert("stalled".into(), looked_after.stalled);
        let of = |name: &str| counts.get(name).copied().unwrap_or(0);
        let errors = ["wrong_status", "too_long", "unasked", "no_packet", "stalled", "cut_short"];
        let errors = errors.map(of).iter().sum();
        Self {
            seconds,
            requests_per_second: of("responses") as f64 / seconds,
            bytes_per_second: of("response_bytes") as f64 / seconds,
            latency,
            errors,
            counts,
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let Latency { p50, p99, p999, .. } = self.latency;
        format!(
            "{:.0} requests/s, {:.1} MB/s, latency p50 {p50:.1} us, p99 {p99:.1} us, \
             p99.9 {p999:.1} us, {} errors, {} re-sent, {} reopened",
            self.requests_per_second,
            self.bytes_per_second / 1e6,
            self.errors,
            self.counts["resent_by_watchdog"] + self.counts["resent"],
            self.counts["reopened"],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_acknowledgements_fit_the_queue() {
        let rings = |connections, active| {
            let to = (Ipv4Addr::LOCALHOST, 80).into();
            LoadOptions { connections, active, ..LoadOptions::new(to, Vec::new()) }.rings()
        };
        assert_eq!([rings(64, 0), rings(512, 0), rings(513, 0)], [64, 512, 256]);
        assert_eq!([rings(0, 0), rings(40_000, 700), rings(10, 700)], [1, 700, 10]);
        let late = LoadOptions::new((Ipv4Addr::LOCALHOST, 80).into(), Vec::new());
        assert_eq!(LoadOptions { connections: 1024, late_acks: true, ..late }.rings(), 512);
    }
}
