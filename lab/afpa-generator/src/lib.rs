//! Workloads of the papers, and generators that ask for them.
//!
//! A [`Workload`] says which files there are and what is asked in which order; a [`Generator`]
//! asks a server for it and reports what it [`Measured`]. Both are chosen by name: [`families`],
//! [`generators`].

mod body;
mod files;
mod generators;
mod log;
mod measure;
mod response;
mod workload;

pub use body::Body;
pub use files::{LAST_MODIFIED, MODIFIED};
pub use generators::{Generator, Http2, Http3, fetch_all, generators};
pub use log::{Entry, LogLimits, SyntheticLog, read_log, sessions};
pub use measure::{ClientSetup, Latency, Load, Measured, agreement};
pub use workload::{Object, Request, SEGMENT, Step, Steps, Workload, families, family, replay};
