//! The program around the server: administration, logs, signals.

mod admin;
mod logs;
mod signals;
mod waiting;
