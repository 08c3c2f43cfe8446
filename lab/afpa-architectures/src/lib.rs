//! The papers' server architectures as small reference servers on our HTTP core and cache.
//!
//! They all serve the same bytes; they differ in how connections get their turn. As in JAWS that is
//! two strategies, chosen apart from each other and from the protocol:
//!
//! - [`Io`]: how one thread of control waits for its connections: it blocks on one
//!   (*synchronous*), asks which of many are ready (*reactive*), or learns from the kernel which
//!   operations have ended (*asynchronous*);
//! - [`Concurrency`]: how many threads of control there are: one, processes or threads that were
//!   started beforehand, or a thread for each connection.
//!
//! [`ALL`] names the combinations that the papers name. Each of JAWS's protocol optimisations can be
//! switched off ([`Without`]). Read [`protocol`](crate::Handler) first, then the I/O strategies:
//! each is a page.
//!
//! These are instruments for measuring and for reading. They serve files with their validators and
//! nothing else, and have no time limits: a client that is silent keeps its process or thread.

mod architecture;
mod clock;
mod concurrency;
mod content;
mod context;
mod io;
mod options;
mod protocol;
mod serve;

pub use architecture::{ALL, Architecture, Concurrency, Io};
pub use content::{Content, Header, Loaded};
pub use options::{Options, Without};
pub use protocol::{Answer, Body, Handler, Step};
pub use serve::serve;
