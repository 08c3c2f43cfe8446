//! TLS (RFC 8446, RFC 5246), sans-IO.
//!
//! * [`machine`]: one connection of either side, between ciphertext and plaintext; the only file that knows how
//!   rustls moves records;
//! * `sealing`: keys for sending that rustls and the machine share, so that records are sealed where they lie;
//! * [`certificate`]: certificates and keys from PEM files, and their faults;
//! * [`resolver`]: which certificate a client gets, by the name that it asks for;
//! * [`greeting`]: which of a listener's settings a client gets, by the name that it asks for;
//! * [`profile`]: Mozilla's profiles: versions, cipher suites, groups;
//! * [`tickets`]: keys of session tickets, which rotate and may be shared between machines;
//! * [`sessions`]: sessions that are kept here and taken once, where early data is accepted;
//! * [`shared_key`]: two sides that have one key and accept no other, without certificates;
//! * `hello`: the fields of a client's first message that concern early data;
//! * [`quic`]: the same settings for QUIC (RFC 9001);
//! * [`server`], [`client`]: the settings of the two sides, and their form for the machine.
//!
//! No secret is ever formatted: keys have no `Debug`, and errors name files and subjects only.
#![forbid(unsafe_code)]

pub mod certificate;
pub mod client;
mod failure;
pub mod greeting;
mod hello;
pub mod machine;
pub mod profile;
pub mod quic;
pub mod resolver;
mod sealing;
pub mod server;
pub mod sessions;
pub mod shared_key;
pub mod tickets;

#[cfg(test)]
mod testing;

pub use certificate::{Certificate, CertificateError};
pub use client::{ClientSettings, ClientTls, Verify};
pub use failure::{Failure, Reason};
pub use greeting::{Greeted, Greeting, ListenerTls};
pub use machine::{ClientMachine, EarlyData, Facts, Progress, ServerMachine};
pub use profile::Profile;
pub use resolver::{Certificates, ChallengeCertificates};
pub use server::{
    AcceptEarlyData, AuthoritiesId, ClientAuthorities, ServerSettings, ServerTls, SettingsError,
};
pub use sessions::Sessions;
pub use shared_key::SharedKey;
pub use tickets::{TicketFileError, TicketKeys};
