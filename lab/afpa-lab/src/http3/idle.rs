//! Memory of idle connections: each server afresh, its processes' memory before the first connection, and when all have had
//! one answer and are at rest.

use std::time::Duration;

use afpa_generator::{Http3, Workload};
use anyhow::{Context, Result};

use super::{Run, cases};
use crate::bench::Bench;
use crate::memory;
use crate::servers::Server;
use crate::servers::http3::Secure;
use crate::stats::Spread;

/// Fresh starts of each server.
const ROUNDS: usize = 2;
/// Time without a request, before memory is looked at.
const SETTLED: Duration = Duration::from_secs(1);
/// All connections are made within this, or the server is left out.
const WITHIN: Duration = Duration::from_secs(40);

/// Memory of one start.
#[derive(Debug, Clone)]
pub(super) struct Held {
    server: String,
    connections: u32,
    /// Bytes without a connection, and with all of them.
    before: u64,
    after: u64,
}

/// Looks at all servers, in turns. A server that does not hold as many connections is left out, with the reason.
pub(super) fn measure(
    run: &Run<'_>,
    bench: &Bench,
    servers: &[Secure],
    connections: u32,
) -> Result<Vec<Held>> {
    let mut found = Vec::new();
    let mut left_out: Vec<&str> = Vec::new();
    for round in 0..ROUNDS {
        for server in servers {
            bench.check()?;
            if left_out.contains(&server.name()) {
                continue;
            }
            match hold(run, server, connections).with_context(|| server.name().to_owned()) {
                Ok(held) => {
                    bench.say(&format!("round {}  {}", round + 1, held.line()));
                    found.push(held);
                }
                Err(error) => {
                    bench.say(&format!("idle connections: left out: {error:#}"));
                    left_out.push(server.name());
                }
            }
        }
    }
    Ok(found)
}

fn hold(run: &Run<'_>, server: &Secure, connections: u32) -> Result<Held> {
    let folder = run.setup.folder_of(&format!("idle-{}", server.name()))?;
    let peer = run.setup.start(server, run.network.server(), &folder)?;
    let workload = Workload::given(vec![(1, cases::small())]);
    let client = run.client(&peer);
    let generator = Http3 {
        certificate: run.certificate.der.clone(),
        name: run.certificate.name.clone(),
        streams: 1,
        post_quantum: false,
    };
    let processes = peer.running.processes();
    let connections = connections.min(server.most_connections());
    let mut samples = Vec::new();
    run.network.at_client(run.setup.client_core, || {
        generator.check(&client, &workload)?;
        generator.hold(&client, &workload, (connections, SETTLED, WITHIN), &mut || {
            samples.push(processes.iter().map(|process| memory::of(*process)).sum::<Result<u64>>());
        })
    })?;
    let samples = samples.into_iter().collect::<Result<Vec<u64>>>()?;
    let [before, after] = samples[..] else { anyhow::bail!("two samples are taken") };
    peer.running.stop()?;
    Ok(Held { server: server.name().to_owned(), connections, before, after })
}

impl Held {
    /// Bytes for one connection.
    fn each(&self) -> f64 {
        self.after.saturating_sub(self.before) as f64 / f64::from(self.connections)
    }

    fn line(&self) -> String {
        let kib = self.each() / 1024.0;
        let (before, after) = (mib(self.before), mib(self.after));
        format!(
            "{}: {} idle connections, {before:.1} to {after:.1} MiB, {kib:.1} KiB each",
            self.server, self.connections
        )
    }
}

/// A line for each server, and the verdict: AFPA may take what nginx takes.
pub(super) fn lines(all: &[Held]) -> Vec<String> {
    let mut names: Vec<&str> = all.iter().map(|held| held.server.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let spread = |name: &str, of: &dyn Fn(&Held) -> f64| {
        Spread::of(all.iter().filter(|held| held.server == name).map(of))
    };
    let whole = |name: &str| spread(name, &|held: &Held| mib(held.after));
    let mut lines: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let held = all.iter().find(|held| held.server == *name)?;
            let (whole, each) = (whole(name)?, spread(name, &|held: &Held| held.each() / 1024.0)?);
            Some(format!(
                "{} idle connections of HTTP/3, {name}: {:.1} MiB ({:.1} to {:.1}) in all, {:.1} KiB for each",
                held.connections, whole.median, whole.min, whole.max, each.median
            ))
        })
        .collect();
    if let (Some(own), Some(nginx)) = (whole("afpa"), whole("nginx")) {
        let reached = if own.median <= nginx.median { "reached" } else { "**not reached**" };
        lines.push(format!(
            "Memory of idle connections: AFPA {:.2}x of nginx; the goal is 1 or less: {reached}",
            own.median / nginx.median
        ));
    }
    lines
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(server: &str, before: u64, after: u64) -> Held {
        let (before, after) = (before << 20, after << 20);
        Held { server: server.into(), connections: 1024, before, after }
    }

    #[test]
    fn memory_is_told_for_all_and_for_each() {
        let all = [held("afpa", 10, 20), held("nginx", 4, 34), held("afpa", 10, 22)];
        let lines = lines(&all);
        assert_eq!(
            lines,
            [
                "1024 idle connections of HTTP/3, afpa: 21.0 MiB (20.0 to 22.0) in all, 11.0 KiB for each",
                "1024 idle connections of HTTP/3, nginx: 34.0 MiB (34.0 to 34.0) in all, 30.0 KiB for each",
                "Memory of idle connections: AFPA 0.62x of nginx; the goal is 1 or less: reached",
            ]
        );
        assert!(super::lines(&all[..1]).len() == 1);
    }
}
