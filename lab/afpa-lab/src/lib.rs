//! The lab: AFPA and its peers on the papers' workloads, side by side.
//!
//! A [`choice::Wish`] becomes a [`plan::Plan`], which a [`run::Run`] carries out: a fresh bed and a
//! fresh server for each session, rounds interleaved, every turn kept in a journal.
//! [`results::Results`] is what is left: [`summary::Summary`] does the arithmetic, [`report`] the
//! tables and the page, [`figures`] the pictures.

pub mod adaptive;
mod along;
mod answers;
mod axes;
pub mod bed;
pub mod bench;
pub mod choice;
pub mod cores;
pub mod debian13;
pub mod diff;
pub mod dns;
pub mod environment;
pub mod fast_path;
pub mod figures;
pub mod http3;
mod json;
mod loopback;
mod memory;
pub mod peers;
pub mod plan;
mod presets;
pub mod proxy;
pub mod report;
pub mod results;
pub mod results_folder;
pub mod run;
pub mod servers;
pub mod sites;
pub mod stats;
pub mod summary;
pub mod units;
mod usage;
pub mod user_mode;
pub mod whitebox;
mod wish;
pub mod work;
