//! Certificates that come by themselves (ACME: RFC 8555, 8737, 9773).
//!
//! A [`Manager`] has a thread of its own. For each certificate that is wanted it looks whether one is in the
//! [`StateFolder`], orders one at the authority if there is none, and another one long before it ends. While the
//! authority cannot be asked or refuses, the certificate that is there stays, and the pauses between two attempts grow.
//!
//! ```text
//!  due ──► lock the folder ──► order ──► answer a challenge for each name ──► finalize ──► store
//!   ▲                                        │ Challenges: answers for the authority               │
//!   └──────────── when the authority suggests, or at two thirds of the lifetime ◄──────────────────┘
//! ```
//!
//! With certificates on demand the names are those that clients ask for, as far as the operator has allowed them
//! ([`Demand`]).
//!
//! Machines of a fleet order together: one places an order, all answer its challenges, and all have the certificate ([`Others`]).
//!
//! The server reads two things of it: [`Challenges`], which it shows to the authority, and the files of the folder,
//! which it loads as it loads every other certificate.

mod authority;
mod certificate;
mod challenges;
mod demand;
mod due;
mod error;
mod https;
mod manager;
mod program;
mod settings;
mod state;
mod together;
mod zone;

pub use certificate::Facts;
pub use challenges::{AlpnCertificate, Challenges};
pub use demand::{Answer, Demand, OnDemand};
pub use due::{Lifetime, Window, pause_after, renewal_at};
pub use error::AcmeError;
pub use manager::{Clock, Manager, OtherMachines, Pace, Shared, Status, Statuses};
pub use settings::{AcmeSettings, ChallengeKind, ExternalAccount, LETS_ENCRYPT};
pub use state::StateFolder;
pub use together::{Answers, Begun, Held, Kind, Later, NotARecord, OrderRecord, Others, Proof};
pub use zone::ChallengeZones;
