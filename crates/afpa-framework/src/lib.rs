//! The AFPA framework: the part of a server that is the same for every protocol.
//!
//! A server is the framework plus a [`Module`] for one application protocol (IBM paper,
//! section 5; USENIX paper, section 3.2). The module supplies the *state functions* and names a *table* of transitions.
//! One function walks that table for every protocol, and the engine does what it says.
//!
//! * [`state`]: the states, their events, the two contexts they may run in;
//! * [`table`]: the tables of transitions: user mode's, the one for measurements, the kernel's;
//! * [`steps`]: the walk of a request through its module's table;
//! * [`module`]: the interface between framework and protocol, with its three kinds of data;
//! * [`datagram`]: the same for protocols whose requests are datagrams;
//! * [`outbox`]: the input of *send response*: bytes gathered for one write, then memory or files;
//! * [`client_stream`]: the client's half of a connection that is split between client and server;
//! * [`helpers`]: the threads to which work goes that may block;
//! * [`give_way`](give_way()): a task that lets the others go first;
//! * [`control`]: operations on a running server, of the framework and of its modules;
//! * [`peer`]: the other end of a connection;
//! * [`counter`]: counts that a core keeps for itself;
//! * [`preface`]: the header in which a router in front names the client (PROXY protocol);
//! * [`address`], [`network`]: addresses of sockets, and ranges of them;
//! * [`seldom`]: a bound on messages that clients can cause;
//! * [`clock`]: the steady time.
#![forbid(unsafe_code)]

pub mod address;
pub mod client_stream;
pub mod clock;
pub mod control;
pub mod counter;
pub mod datagram;
mod give_way;
pub mod helpers;
pub mod module;
pub mod network;
pub mod outbox;
pub mod peer;
mod places;
pub mod preface;
pub mod seldom;
pub mod state;
pub mod steps;
pub mod table;

pub use address::Address;
pub use client_stream::{BreakOff, ClientStream, Timeouts, extended};
pub use clock::{Now, duration_us, steady_ms};
pub use control::{Arguments, Control, Offered, Operation, OperationKind, Refusal, Reply};
pub use counter::Counter;
pub use datagram::{Arrived, Datagram, DatagramModule, Looked};
pub use give_way::give_way;
pub use helpers::{HelperLimits, Helpers, Overloaded};
pub use module::{
    Cached, Derived, Finished, Miss, Module, Persistence, Protocol, Then, Timeout, Waiting,
};
pub use network::{Network, NotANetwork};
pub use outbox::{GATHERED, Outbox, Part, Priority, Receipt, SharedBytes};
pub use peer::{Client, Peer, Secured, SpanIds};
pub use preface::{BrokenPreface, Preface, PrefaceVersion};
pub use seldom::Seldom;
pub use state::{Context, Event, State};
pub use steps::{Step, Walk};
pub use table::{Datagrams, Diagram, Softirq, Table, Threads};
