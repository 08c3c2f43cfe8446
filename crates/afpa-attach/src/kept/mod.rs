//! Answers that no file stands behind (`--cache`): kept for as long as they say that a shared cache may keep them
//! (RFC 9111), and no longer.
//!
//! A target that clients ask for often is a candidate. The server is asked for it as for files: as a stranger, from
//! everywhere, with decoys. The answer is kept if it says how long it is fresh, and if nothing but its Date, its
//! Expires and its coding depends on who asks, and how. As long as clients use it, the server confirms it again and
//! again; each time its age begins anew.
//!
//! - [`KeptScope`]: which targets. [`allowed`]: which answers, and how long. [`KeptTable`]: the state of each target.
//!   [`Budget`]: how much may be asked. [`Copy`]: an answer in the form that is pinned. No I/O, no clock.

mod allowed;
mod budget;
mod copy;
mod scope;
mod table;

pub use allowed::{Allowed, allowed, is_public, permit};
pub use budget::Budget;
pub use copy::Copy;
pub use scope::{KeptScope, Which};
pub use table::{KeptCounts, KeptJob, KeptTable, KeptWork, Target};
