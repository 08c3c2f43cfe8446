//! Very many networks at once: their steps go to the worker in batches.

use crate::client::Broken;
use crate::network::{Conditions, Network, NetworkResult, Next};
use crate::random::Random;
use crate::step::{Path, SenderState, Step};
use crate::worker::{SENDERS, Worker};

/// One network of many.
struct Running {
    seed: u64,
    sender: usize,
    network: Network,
}

/// A seed whose network broke a rule, with its conditions.
#[derive(Debug)]
pub struct Failure {
    /// `AFPA_SEED=...` replays it.
    pub seed: u64,
    /// The rule, and the states around it.
    pub broken: Broken,
}

/// The number of networks that ran, and their cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    /// Networks.
    pub networks: u64,
    /// Steps of all senders.
    pub steps: u64,
    /// Clients that were given up.
    pub given_up: u64,
    /// Segments and retransmissions.
    pub segments: u64,
    /// Retransmissions.
    pub retransmissions: u64,
}

/// One network alone.
pub fn run(
    worker: &mut Worker,
    conditions: &Conditions,
    random: Random,
    path: Path,
) -> Result<NetworkResult, Broken> {
    let (mut network, mut step) = Network::begin(conditions, random, path);
    loop {
        let state = worker.step(0, network.now(), &step);
        match network.advance(&state)? {
            Next::Step(next) => step = next,
            Next::Over(outcome) => return Ok(outcome),
        }
    }
}

/// The wild networks of these seeds, many at a time. The same seed is the same network, alone or among others.
pub fn run_seeds(
    worker: &mut Worker,
    seeds: std::ops::Range<u64>,
    slots: usize,
) -> Result<Total, Failure> {
    let mut seeds = seeds.map(|seed| {
        let mut random = Random::new(seed);
        let conditions = Conditions::wild(&mut random);
        (seed, conditions, Network::begin(&conditions, random, Path::default()))
    });
    let mut total = Total::default();
    let mut running: Vec<Running> = Vec::new();
    let mut free: Vec<usize> = (0..slots.min(SENDERS)).collect();
    let mut states: Vec<SenderState> = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    loop {
        while let Some(&sender) = free.last() {
            let Some((seed, _, (network, step))) = seeds.next() else { break };
            free.pop();
            running.push(Running { seed, sender, network });
            steps.push(step);
        }
        if running.is_empty() {
            return Ok(total);
        }
        for (one, step) in running.iter().zip(&steps) {
            worker.push(one.sender, one.network.now(), step);
        }
        worker.run(&mut states);
        steps.clear();
        let mut ended = Vec::new();
        for (index, (one, state)) in running.iter_mut().zip(&states).enumerate() {
            match one.network.advance(state) {
                Ok(Next::Step(step)) => steps.push(step),
                Ok(Next::Over(outcome)) => {
                    let ok = total.add(one.seed, &outcome);
                    ok.map_err(|broken| Failure { seed: one.seed, broken })?;
                    ended.push(index);
                }
                Err(broken) => return Err(Failure { seed: one.seed, broken }),
            }
        }
        for index in ended.into_iter().rev() {
            free.push(running.remove(index).sender);
        }
    }
}

impl Total {
    fn add(&mut self, seed: u64, outcome: &NetworkResult) -> Result<(), Broken> {
        self.networks += 1;
        self.steps += outcome.steps;
        self.segments += u64::from(outcome.segments);
        self.retransmissions += u64::from(outcome.retransmissions);
        self.given_up += u64::from(outcome.given_up);
        let loss = Conditions::wild(&mut Random::new(seed)).loss;
        if outcome.given_up && loss < 20.0 {
            // A minute without a byte, after six timeouts in a row, needs a network that loses one packet in five.
            return Err(format!("given up although it loses only {loss} %: {outcome:?}"));
        }
        Ok(())
    }
}
