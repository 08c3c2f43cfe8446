//! h2load in HTTP/2 over TLS.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::h2load::read_report;
use super::{Generator, tool};
use crate::measure::{ClientSetup, Load, Measured};
use crate::workload::Workload;

/// h2load with one thread, in HTTP/2 over TLS. It compares no content and no length.
#[derive(Debug, Clone, Copy)]
pub struct Http2 {
    /// Requests that a connection has open at once.
    pub streams: u32,
}

/// h2load begins to measure so long after the warm-up, at most: it has to start, and to connect.
const LATE: Duration = Duration::from_millis(100);

impl Generator for Http2 {
    fn name(&self) -> &str {
        "h2load-tls"
    }

    fn about(&self) -> &str {
        "h2load with one thread, in HTTP/2 over TLS: a closed loop by other people's code; checks no \
         content and no length"
    }

    fn lacks(&self) -> Option<String> {
        (!tool::is_there("h2load")).then(|| "needs the Debian package nghttp2-client".into())
    }

    fn version(&self) -> String {
        tool::version("h2load")
    }

    fn can(&self, workload: &Workload, load: &Load) -> Result<(), String> {
        if load.rate.is_some() || !load.persistent {
            return Err("it is used for closed loops on kept connections only".into());
        }
        match workload.all_requests() {
            [request] if request.headers.is_empty() => Ok(()),
            _ => Err("it asks for one file, without further fields".into()),
        }
    }

    /// `sample` is called inside the interval that h2load measures, and the requests are those of the time between: neither
    /// its start nor the handshakes count.
    fn run(
        &self,
        client: &ClientSetup,
        workload: &Workload,
        load: &Load,
        sample: &mut dyn FnMut(),
    ) -> Result<Measured> {
        self.can(workload, load).map_err(anyhow::Error::msg)?;
        let request = workload.all_requests().first().context("a load needs a request")?;
        let warm_up = load.warm_up + LATE;
        let measured = load.duration + 2 * LATE;
        let mut command = Command::new("h2load");
        command.args(["--threads=1", "--connection-inactivity-timeout=5s"]);
        command.arg(format!("--clients={}", load.connections));
        command.arg(format!("--max-concurrent-streams={}", self.streams));
        // An answer of a megabyte is not held up by windows.
        command.args(["--window-bits=22", "--connection-window-bits=24"]);
        command.arg(format!("--warm-up-time={}ms", warm_up.as_millis()));
        command.arg(format!("--duration={}ms", measured.as_millis()));
        command.arg(format!("https://{}{}", client.to, request.path));
        std::thread::scope(|scope| {
            let report = scope.spawn(|| tool::run(&mut command, warm_up + measured));
            std::thread::sleep(warm_up + LATE);
            sample();
            let began = Instant::now();
            std::thread::sleep(load.duration);
            sample();
            let window = began.elapsed().as_secs_f64();
            let report = report.join().map_err(|_| anyhow!("h2load's thread panicked"))?;
            let whole = read_report(&report?, measured)?;
            let requests = (whole.requests_per_second() * window).round() as u64;
            let length = request.body.map_or(0, |body| body.length());
            Ok(Measured {
                seconds: window,
                requests,
                bytes: requests * length,
                body_bytes: requests * length,
                ..whole
            })
        })
    }
}
