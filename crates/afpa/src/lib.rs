//! The program afpa: command line, logs, privileges, control of a running process, and `serve`, which
//! joins the configuration, the engine and the cache into a server.

pub mod cli;
pub mod commands;
mod confine;
pub mod control;
mod fast_path;
mod folder;
pub mod keys;
mod log_folder;
pub mod logging;
pub mod notify;
pub mod privileges;
pub mod serve;
mod sockets;
mod span_export;
pub mod summary;
pub mod upgrade;
