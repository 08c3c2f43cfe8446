//! Bounds that hold what they say: a client of ill will fills just what a limit does not see, and the process is looked
//! at from outside. [`afpa_testkit::held`] is the measure; SECURITY.md has the table of the limits.

mod clients;
mod connections;
mod exchanges;
mod files;
mod handshakes;
mod logs;
mod pages;
