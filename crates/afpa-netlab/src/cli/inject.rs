//! `afpa-netlab inject`, and the words that describe an impairment.

use std::time::Duration;

use afpa_netlab::inject::{Burst, Counts, DropRule, Forwarder, Impairment, Rules};
use anyhow::Result;
use clap::{Args, ValueEnum};

use super::ending::Ending;
use super::units;

/// Forward packets between two interfaces and treat them badly on the way. Both must be up and
/// without addresses, and the interfaces at the other ends without offloads. Runs in the
/// namespace it is started in, until it is interrupted; then it prints what it did as JSON.
#[derive(Debug, Args)]
pub(super) struct Inject {
    /// Interface on the client's side.
    #[arg(long)]
    left: String,
    /// Interface on the server's side.
    #[arg(long)]
    right: String,
    #[command(flatten)]
    impairment: ImpairmentWords,
}

impl Inject {
    pub(super) fn run(self) -> Result<()> {
        let ending = Ending::watch()?;
        let forwarder = Forwarder::start(&self.left, &self.right, &self.impairment.rules())?;
        ending.wait(|| forwarder.has_ended())?;
        print_counts(forwarder.counts())?;
        if forwarder.has_ended() { forwarder.wait() } else { Ok(()) }
    }
}

/// Prints what was done as one line of JSON.
pub(super) fn print_counts((to_server, to_client): (Counts, Counts)) -> Result<()> {
    let counts = serde_json::json!({ "to_server": to_server, "to_client": to_client });
    println!("{}", serde_json::to_string(&counts)?);
    Ok(())
}

/// The impairments of packets.
#[derive(Debug, Clone, Args)]
pub(super) struct ImpairmentWords {
    /// Share of packets lost, for example 5%.
    #[arg(long, value_parser = units::probability, default_value = "0%")]
    loss: f64,
    /// Probability that a burst of losses begins at a packet.
    #[arg(long, value_parser = units::probability)]
    burst: Option<f64>,
    /// Packets lost in a burst.
    #[arg(long, default_value_t = 5)]
    burst_length: u32,
    /// Share of packets marked as congested; lost, where the sender does not take marks (ECN).
    #[arg(long, value_parser = units::probability, default_value = "0%")]
    mark: f64,
    /// Share of packets sent twice.
    #[arg(long, value_parser = units::probability, default_value = "0%")]
    dup: f64,
    /// Share of packets held back, so that later ones overtake them.
    #[arg(long, value_parser = units::probability, default_value = "0%")]
    reorder: f64,
    /// How long they are held back.
    #[arg(long, value_parser = units::duration, default_value = "2ms")]
    hold: Duration,
    /// Added to every packet.
    #[arg(long, value_parser = units::duration, default_value = "0ms")]
    delay: Duration,
    /// Uniform, on top of the delay.
    #[arg(long, value_parser = units::duration, default_value = "0ms")]
    jitter: Duration,
    /// Limit, for example 100mbit.
    #[arg(long, value_parser = units::rate)]
    rate: Option<u64>,
    /// Packets that may wait for the rate limit.
    #[arg(long, default_value_t = 1000)]
    queue: usize,
    /// Lose the last segment of every Nth write.
    #[arg(long, value_name = "N")]
    drop_tail: Option<u64>,
    /// Lose every Nth segment with payload.
    #[arg(long, value_name = "N")]
    drop_data: Option<u64>,
    /// Which packets all this happens to.
    #[arg(long, value_enum, default_value = "both")]
    direction: Direction,
    /// The same seed deals the same fates.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Direction {
    Both,
    ToServer,
    ToClient,
}

impl ImpairmentWords {
    pub(super) fn rules(&self) -> Rules {
        let (impairment, none) = (self.impairment(), Impairment::default());
        match self.direction {
            Direction::Both => Rules::both(impairment, self.seed),
            Direction::ToServer => {
                Rules { to_server: impairment, to_client: none, seed: self.seed }
            }
            Direction::ToClient => {
                Rules { to_server: none, to_client: impairment, seed: self.seed }
            }
        }
    }

    fn impairment(&self) -> Impairment {
        let tail = self.drop_tail.map(|n| DropRule::tails().every(n));
        let data = self.drop_data.map(|n| DropRule::when(|s| !s.payload.is_empty()).every(n));
        Impairment {
            loss: self.loss,
            burst: self.burst.map(|start| Burst { start, length: self.burst_length }),
            mark: self.mark,
            duplicate: self.dup,
            reorder: self.reorder,
            hold: self.hold,
            delay: self.delay,
            jitter: self.jitter,
            rate: self.rate,
            queue: self.queue,
            drop_rules: tail.into_iter().chain(data).collect(),
        }
    }
}
