//! The program afpa: command line, configuration, logs, privileges, and the way to a running
//! process.
//!
//! The modules here know nothing of connections or caches; `commands::serve` joins them to the
//! engine.

pub mod access_log;
pub mod cli;
pub mod commands;
pub mod config;
pub mod control;
mod fast_path;
pub mod logging;
pub mod notify;
pub mod privileges;
pub mod serve;
pub mod summary;
