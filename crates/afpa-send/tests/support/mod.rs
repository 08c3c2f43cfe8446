//! A client and a network in virtual time.

mod client;
mod network;
mod random;

pub(crate) use client::Client;
pub(crate) use network::{Conditions, Outcome, run};
pub(crate) use random::Random;
