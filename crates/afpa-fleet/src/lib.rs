//! Several machines that serve the same sites.
//!
//! Servers of NATS carry the messages between the machines: orders to purge and to deny, heartbeats, and sealed records
//! (configurations, keys, certificates). Each order is a message of a log, which is a stream of JetStream. Each member follows
//! the logs and says how far it has come; an order has reached the fleet when every member has passed its place in the log.
//!
//! | file | |
//! |---|---|
//! | `message.rs`, `proof.rs` | orders and heartbeats as bytes; the part of these that is sealed |
//! | `follower.rs` | a place in a log, and the meaning of a message and of a gap there |
//! | `members.rs` | the machines that are there, and those that have carried out an order |
//! | `orders.rs`, `orders/` | orders on their way to the log, and their fate |
//! | `owners/`, `peers/`, `cooperation.rs` | the machines that keep an answer for all, and questions for it |
//! | `state.rs` | all this, as one value behind a lock |
//! | `files.rs`, `load.rs`, `window.rs` | the files of a configuration; errors and times of a machine |
//! | `rollout.rs`, `words.rs`, `driver.rs` | a configuration on its way to all machines, in words, and the lease of the machine that drives it |
//! | `configuring.rs`, `configure.rs`, `record.rs` | orders about it, the conversation with the servers, and its record there |
//! | `folder.rs` | files that outlive the process |
//! | `lease.rs` | a lease that one of all machines holds |
//! | `keyring.rs` | seeds of keys that all machines have, which the holder of a lease makes |
//! | `shelf.rs`, `records.rs`, `shelving.rs` | records that all machines have, each with a lease; for other threads; the conversation |
//! | `seal.rs` | the secret of the fleet: sealed values, derived keys |
//! | `machine.rs` | the machine itself, for the thread |
//! | `agent.rs`, `nats.rs`, `nats/`, `streams.rs`, `send.rs`, `keep.rs` | the thread, and its conversation with the servers |
//!
//! The cores read no clock and no socket, and tests run them in a network that loses, doubles and reorders: those of orders, of
//! members, of owners, of a roll-out, of the lease and of the keys.

mod agent;
mod configure;
mod configuring;
mod cooperation;
mod driver;
mod files;
mod folder;
mod follower;
mod keep;
mod keyring;
mod lease;
mod load;
mod machine;
mod members;
mod message;
mod nats;
mod orders;
mod owners;
mod peers;
mod proof;
mod record;
mod records;
mod rollout;
mod seal;
mod send;
mod settings;
mod shelf;
mod shelving;
mod shown;
mod state;
mod streams;
mod window;
mod words;

pub use agent::{Fleet, FleetView};
pub use configuring::{Asked, ConfigurationLook, Outcome};
pub use cooperation::{Choice, PeersView};
pub use driver::Driver;
pub use files::{Files, KeptFiles, LONGEST_FILES, NamedText, Revision};
pub use folder::{FleetFolder, Kept};
pub use follower::{Begun, Due, Follower, Found, Log, Position, Unflushed};
pub use keyring::{Foreign, Keyring, SEED, Seed, Seeds, Write};
pub use lease::{Lease, TERM};
pub use load::Load;
pub use machine::{Configure, Machine, Readings};
pub use members::{MemberLook, Members, Standing};
pub use message::{Envelope, Heartbeat, NotUnderstood, Order, PeerWord, Refused};
pub use orders::{Fate, Full, Orders, Queued};
pub use owners::{Decision, Footing, Heat, Hot, Owner, Roster, Shed};
pub use peers::{
    ANSWER, Asking, Peer, PeerCounts, PeerKey, Proof, QUESTION, Question, Refusal, Refusals,
    Serving,
};
pub use records::{HeldRecord, Records};
pub use rollout::{Bounds, Listed, Phase, Rollout, Stage, Taker, Unfit};
pub use seal::{NotASecret, Secret};
pub use settings::{Credentials, FleetSettings, NotCredentials};
pub use shelf::{Changed, Sealed, Shelf, ShelfWrite};
pub use state::{Counts, FleetLook, OrderLook};
