//! The closed-loop generator in TC of `afpa-netlab`.

use anyhow::Result;

use afpa_netlab::load::{Generator as Flows, Interval, LoadOptions, Target};

use super::fetch_all;
use super::generator::{Generator, warm_up};
use crate::measure::{ClientSetup, Load, Measured};
use crate::workload::{Request, Workload};

/// A response is acknowledged in softirq, but its request must fit a segment.
const LONGEST_REQUEST: usize = 1408;
/// A core's queue for packets of virtual interfaces holds 1,000. Kept connections take turns, but
/// new ones are all busy.
const MOST_OPENED: u32 = 512;
/// Connections that take turns. With no more than these, the turn of a connection comes round before the
/// server's TCP takes its answer for lost, which only the next request acknowledges. With more,
/// acknowledgements are packets of their own, which the server pays for.
const MOST_IN_TIME: u32 = 2048;
/// Each request takes a kilobyte and a half of kernel memory.
const MOST_REQUESTS: usize = 8_192;

/// Closed loop in softirq on the client's interface.
#[derive(Debug)]
pub(super) struct Tc;

impl Generator for Tc {
    fn name(&self) -> &str {
        "tc"
    }

    fn about(&self) -> &str {
        "closed loop in eBPF on the client's interface, with and without keep-alive: one core \
         saturates any server; status and length of each response are checked, content once at \
         the start"
    }

    fn lacks(&self) -> Option<String> {
        afpa_netlab::missing_privilege()
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn can(&self, workload: &Workload, load: &Load) -> Result<(), String> {
        if load.rate.is_some() {
            return Err("it has a closed loop only".into());
        }
        if !load.persistent && load.connections > MOST_OPENED {
            return Err(format!("it opens {MOST_OPENED} connections at once at most"));
        }
        if !workload.is_mix() {
            return Err("it draws requests at random, and keeps no order".into());
        }
        let requests = workload.all_requests();
        if requests.len() > MOST_REQUESTS {
            return Err(format!("it takes {MOST_REQUESTS} different requests at most"));
        }
        // The longest possible address, so that the limit holds for any server.
        let host = "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535";
        let longest = requests.iter().map(|request| request.bytes(host, false).len()).max();
        match longest {
            Some(longest) if longest > LONGEST_REQUEST => {
                Err(format!("a request has more than {LONGEST_REQUEST} bytes"))
            }
            _ => Ok(()),
        }
    }

    fn run(
        &self,
        client: &ClientSetup,
        workload: &Workload,
        load: &Load,
        sample: &mut dyn FnMut(),
    ) -> Result<Measured> {
        fetch_all(client.to, workload, load.persistent)?;
        let options = options(client, workload, load);
        let mut flows = Flows::start(&options)?;
        warm_up(load, |time| {
            let interval = flows.measure(time)?;
            Ok(interval.counts.get("responses").is_some_and(|responses| *responses > 0))
        })?;
        let (interval, _) = flows.measure_with(load.duration, || {
            sample();
            Ok(())
        })?;
        flows.finish()?;
        Ok(measured(interval, workload, load))
    }
}

fn options(client: &ClientSetup, workload: &Workload, load: &Load) -> LoadOptions {
    let target = |request: &Request| Target {
        path: request.path.clone(),
        method: "GET".into(),
        headers: request.all_headers(load.persistent),
        weight: request.weight,
        status: request.status,
    };
    LoadOptions {
        connections: load.connections,
        once: !load.persistent,
        active: outstanding(client, load),
        ages: client.ages,
        late_acks: load.connections <= MOST_IN_TIME,
        interface: client.interface.clone(),
        first_source: Some(client.first_source),
        sources: client.sources,
        ..LoadOptions::new(client.to, workload.all_requests().iter().map(target).collect())
    }
}

/// Requests at a time; 0: as many as there are connections and the queue holds. Where answers arrive
/// at once, the next request goes to another connection: a server that reads until there is nothing more
/// would otherwise serve one connection for as long as it likes, which no client elsewhere makes it do.
fn outstanding(client: &ClientSetup, load: &Load) -> u32 {
    let taking_turns = client.answers_at_once && load.persistent && load.connections > 1;
    if taking_turns { (load.connections / 2).min(MOST_OPENED) } else { 0 }
}

fn measured(interval: Interval, workload: &Workload, load: &Load) -> Measured {
    let of = |name: &str| interval.counts.get(name).copied().unwrap_or(0);
    let requests = of("responses");
    let mut measured = Measured {
        seconds: interval.seconds,
        requests,
        connections_opened: if load.persistent { of("reopened") } else { of("connections") },
        bytes: of("response_bytes"),
        // Mixes are drawn in proportion to weights; one size is exact.
        body_bytes: (requests as f64 * workload.mean_length()).round() as u64,
        latency: interval.latency,
        errors: interval.errors,
        ..Measured::default()
    };
    if interval.errors > 0 {
        let wrong = ["wrong_status", "too_long", "unasked", "no_packet", "stalled", "cut_short"];
        let words = wrong.iter().map(|name| (name, of(name))).filter(|(_, count)| *count > 0);
        measured.complaints = words.map(|(name, count)| format!("{count} {name}")).collect();
    }
    measured.counts = interval.counts;
    measured
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workload::family;

    #[test]
    fn no_connection_answers_itself_at_once() {
        let client = |answers_at_once| ClientSetup {
            to: (std::net::Ipv4Addr::LOCALHOST, 80).into(),
            interface: "lo".into(),
            first_source: std::net::Ipv4Addr::LOCALHOST.into(),
            sources: 1,
            core: 0,
            answers_at_once,
            ages: false,
        };
        let load = |connections, persistent| Load {
            connections,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(1),
            persistent,
            rate: None,
        };
        let turns = |connections| outstanding(&client(true), &load(connections, true));
        assert_eq!([turns(1), turns(64), turns(5000)], [0, 32, 512]);
        assert_eq!(outstanding(&client(true), &load(64, false)), 0);
        assert_eq!(outstanding(&client(false), &load(64, true)), 0);
    }

    #[test]
    fn it_says_what_it_cannot_do() {
        let load = Load {
            connections: 1000,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(1),
            persistent: true,
            rate: None,
        };
        let point = |name: &str| family(name, &[], true).unwrap().remove(0);
        assert_eq!(Tc.can(&point("specweb96"), &load), Ok(()));
        assert_eq!(Tc.can(&point("browser"), &load), Ok(()));
        for name in ["cold", "replay"] {
            assert!(Tc.can(&point(name), &load).is_err(), "{name}");
        }
        let other =
            [Load { rate: Some(1.0), ..load.clone() }, Load { persistent: false, ..load.clone() }];
        assert!(other.iter().all(|load| Tc.can(&point("webstone"), load).is_err()));
        let few = Load { persistent: false, connections: 512, ..load };
        assert_eq!(Tc.can(&point("webstone"), &few), Ok(()));
    }
}
