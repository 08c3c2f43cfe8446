//! Bad networks, for long answers: the impairments of each, and how much of a load it can carry.

use std::time::Duration;

use afpa_netlab::inject::{Burst, DropRule, Impairment, Rules};

/// A network, and the part of a load that it can do in the time.
#[derive(Clone, Debug)]
pub struct Network {
    /// As it is called in tables.
    pub name: &'static str,
    /// Of the responses, relative to the other networks.
    pub share: u64,
    /// Connections at a time that leave the machine idle most of the time.
    pub connections: usize,
    /// The impairments of its packets.
    pub rules: Rules,
}

/// Networks in which an answer seldom takes more than a second.
pub fn near(seed: u64) -> Vec<Network> {
    let both = |name, share, connections, impairment| Network {
        name,
        share,
        connections,
        rules: Rules::both(impairment, seed),
    };
    let lossy = Impairment { loss: 0.2, ..plain() };
    let mixed = Impairment {
        loss: 0.05,
        duplicate: 0.05,
        delay: MILLISECOND * 5,
        ..reordering(MILLISECOND * 3)
    };
    vec![
        both("perfect", 2, 6, plain()),
        both("1 % lost", 2, 12, Impairment { loss: 0.01, ..plain() }),
        both("5 % lost", 1, 30, Impairment { loss: 0.05, ..plain() }),
        // With acknowledgements lost, too, some answers take minutes, from the kernel and from nginx: see `far`.
        Network {
            name: "20 % lost to the client",
            share: 1,
            connections: 120,
            rules: Rules { to_server: plain(), to_client: lossy, seed },
        },
        both("reordered", 1, 12, reordering(MILLISECOND * 3)),
        both("repeated", 1, 6, Impairment { duplicate: 0.1, ..plain() }),
        both("bursts", 1, 30, Impairment { burst: Some(BURST), ..plain() }),
        both(
            "tails",
            1,
            20,
            Impairment { drop_rules: vec![DropRule::tails().every(5)], ..plain() },
        ),
        both("50 ms away", 1, 120, Impairment { delay: MILLISECOND * 50, loss: 0.01, ..plain() }),
        both("all of it", 1, 60, mixed),
    ]
}

/// Networks that take patience, and many connections at a time.
pub fn far(seed: u64) -> Vec<Network> {
    let both = |name, share, connections, impairment| Network {
        name,
        share,
        connections,
        rules: Rules::both(impairment, seed),
    };
    let away = |delay| Impairment { delay: MILLISECOND * delay, ..plain() };
    vec![
        both("20 % lost each way", 1, 400, Impairment { loss: 0.2, ..plain() }),
        both("20 ms, 5 % lost", 1, 120, Impairment { loss: 0.05, ..away(20) }),
        both("20 ms, bursts", 1, 120, Impairment { burst: Some(BURST), ..away(20) }),
        both(
            "20 ms, reordered",
            1,
            80,
            Impairment { delay: MILLISECOND * 20, ..reordering(MILLISECOND * 10) },
        ),
        both("200 ms, 1 % lost", 1, 400, Impairment { loss: 0.01, ..away(200) }),
    ]
}

const MILLISECOND: Duration = Duration::from_millis(1);
const BURST: Burst = Burst { start: 0.01, length: 4 };

fn plain() -> Impairment {
    Impairment::default()
}

fn reordering(hold: Duration) -> Impairment {
    Impairment { reorder: 0.05, hold, jitter: MILLISECOND, ..plain() }
}
