//! Certificates of several machines that serve the same names: one orders, all answer challenges and have the certificate.
//!
//! ```text
//! record: nobody's ──► held ──► order placed, with the key ──► answers ──► all have them ──► finalized ──► certificate, nobody's
//!                        ▲                │                                   │                 │
//!                        └── the next ◄───┴──────── its machine dies ◄────────┴─────────────────┘
//! ```
//!
//! The order and the key of its certificate are in the record before the authority is asked to certify. So the next machine goes on
//! with that order, and one order is one certificate.

mod answers;
mod attend;
mod office;
mod order;
mod record;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use answers::Answers;
pub(crate) use office::{Alone, Counter};
pub(crate) use order::drive;
pub use record::{Begun, Kind, NotARecord, OrderRecord, Proof};

/// A future in a box, for the traits below.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The other machines, as records that all of them have.
pub trait Others: Send + Sync {
    /// Whether they can be asked: all records are read.
    fn are_here(&self) -> bool;

    /// The value of a record, as it was last heard.
    fn value(&self, key: &str) -> Option<Arc<str>>;

    /// Takes a record; `None`: another machine has it. An error is for people.
    fn take<'a>(&'a self, key: &'a str) -> Later<'a, Result<Option<Box<dyn Held>>, String>>;

    /// Waits until a value changes.
    fn changed(&self) -> Later<'_, ()>;
}

/// A record that this machine holds, and no other. Dropping it gives it back as it is.
pub trait Held: Send {
    /// Its value.
    fn value(&self) -> Option<Arc<str>>;

    /// Whether nobody else can hold it yet.
    fn holds(&self) -> bool;

    /// Writes another value. An error: it is not held any more, or nobody knows.
    fn put(&mut self, value: String) -> Later<'_, Result<(), String>>;

    /// Waits, but not for ever, until all machines have the value that was written last.
    fn seen(&self) -> Later<'_, ()>;

    /// Writes the last value, and gives it back.
    fn give_back(self: Box<Self>, value: String) -> Later<'static, Result<(), String>>;
}

/// The key of the record of a certificate, whatever the order of its names.
pub(crate) fn certificate_key(directory: &str, names: &[String]) -> String {
    let mut names: Vec<_> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    names.sort();
    format!("{CERTIFICATE}{directory} {}", names.join(" "))
}

/// The key of the record of an account.
pub(crate) fn account_key(directory: &str) -> String {
    format!("account {directory}")
}

const CERTIFICATE: &str = "certificate ";
