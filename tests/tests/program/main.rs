//! The program around the server: administration, logs, signals.

mod accounts;
mod adapt;
mod admin;
mod adoption;
mod cores;
mod exit_status;
mod hints;
mod logs;
mod many_sites;
mod messages;
mod metrics;
mod namespaces;
mod newcomer;
mod operations;
mod overlap;
mod several_files;
mod signals;
mod status_page;
mod upgrade;
mod waiting;
