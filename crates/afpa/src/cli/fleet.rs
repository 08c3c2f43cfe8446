//! `afpa fleet`: its members, and the configuration of all of them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::target::{Target, seconds};

/// `afpa fleet`.
#[derive(Args, Debug)]
#[command(after_help = FLEET_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Fleet {
    /// The order; without one, the members are shown.
    #[command(subcommand)]
    pub order: Option<FleetOrder>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// Orders about the configuration of a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetOrder {
    /// Check a configuration, and roll it out to all machines
    ///
    /// One machine takes it, then a quarter, then all. It is rolled back by itself when one cannot take it or falls
    /// silent, and when errors or times rise (`rollout_errors`, `rollout_p99`). The exit status is 0 when all machines run
    /// it. The roll-out goes on when this command is interrupted.
    Push(FleetPush),
    /// Go back to a revision, at once and on all machines
    Rollback(FleetRollback),
    /// List the revisions that were pushed
    Revisions(FleetRevisions),
}

/// `afpa fleet push`.
#[derive(Args, Debug)]
pub struct FleetPush {
    /// File, with all that it includes, or a folder with files *.toml
    #[arg(value_name = "FILE|DIR")]
    pub path: PathBuf,
    /// Return when the servers have it
    #[arg(long)]
    pub no_wait: bool,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa fleet rollback`.
#[derive(Args, Debug)]
pub struct FleetRollback {
    /// Revision [default: the one before]
    #[arg(value_name = "REVISION")]
    pub revision: Option<u64>,
    /// How long to wait for the machines
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub wait: f64,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa fleet revisions`.
#[derive(Args, Debug)]
pub struct FleetRevisions {
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

const FLEET_EXAMPLES: &str = "\
Examples:
  afpa fleet
  afpa fleet --json | jq '.members[].name'
  afpa fleet push /etc/afpa/shared.toml
  afpa fleet revisions
  afpa fleet rollback 3";
