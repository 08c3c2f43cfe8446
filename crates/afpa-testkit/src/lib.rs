//! Aids of all tests: `afpa` as a process, a raw HTTP client that trusts nothing it reads, TCP and packets by
//! hand, document roots that remove themselves, and facts about a process from `/proc` and strace.
//!
//! The client and its response parser share no code with the server, so that one misreading of an
//! RFC cannot hide in both.
//!
//! ```no_run
//! use afpa_testkit::{Server, Tree};
//!
//! let tree = Tree::new();
//! tree.file("index.html", "hello");
//! let server = Server::start(tree.path(), |launch| {
//!     launch.arg("--workers").arg("1");
//! });
//! let response = server.connect().get("/");
//! assert_eq!((response.status, response.text()), (200, "hello"));
//! ```

pub mod aloud;
pub mod bpf_fs;
pub mod client;
pub mod curl;
pub mod exclusive;
pub mod held;
pub mod limits;
pub mod nginx;
pub mod packet;
pub mod proc;
pub mod random;
pub mod response;
mod running;
pub mod sample;
pub mod server;
pub mod settings;
mod smoke;
pub mod strace;
pub mod tcp;
pub mod tree;
pub mod until;

pub use client::{Client, Endpoint};
pub use random::Random;
pub use response::{Asked, ReceiveError, Response};
pub use running::Running;
pub use server::{Launch, Server};
pub use smoke::{smoke, smoke_some};
pub use tree::Tree;
pub use until::{eventually, eventually_within};
