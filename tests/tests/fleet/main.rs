//! Several machines with real servers of NATS between them.

mod bans;
mod bed;
mod certificates;
mod config;
mod configuration;
mod faults;
mod figures;
mod keys;
mod members;
#[path = "../shared_cache/origin.rs"]
#[allow(dead_code)] // each program uses its part
mod origin;
mod peers;
mod purges;
mod reports;
mod storm;
