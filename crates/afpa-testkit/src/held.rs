//! The resources that a server holds. A test of a bound reads `/proc`, never the server's own counts.
//!
//! ```no_run
//! use afpa_testkit::{Server, Tree, held::{Growth, MIB}};
//!
//! let tree = Tree::new();
//! let server = Server::start(tree.path(), |_| ());
//! let before = server.held();
//! // A hostile client fills just the memory that the limit does not see, and keeps it filled.
//! let grown = server.held().since(before);
//! grown.is_at_most("heads that never end", Growth { memory: 4 * MIB, ..Growth::default() });
//! ```
//!
//! Memory is the resident set of the process itself, and its files without a name: files that it has mapped do not count, nor
//! do the kernel's buffers of its sockets. Fill until a few megabytes tell a bound that holds from one that does not, measure while
//! the client still holds what it has, and permit what one unit may hold times the limit, not a round number.

use crate::proc::Process;
use crate::server::Server;

/// Bytes.
pub const MIB: u64 = 1 << 20;

/// The resources that a process holds at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Bytes of memory of its own.
    pub memory: u64,
    /// Open descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
}

/// How much more a process holds than before; 0 where it holds less. As a bound: how much more it may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// Bytes of memory of its own.
    pub memory: u64,
    /// Open descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
}

impl Held {
    /// The resources that this process holds now.
    ///
    /// # Panics
    /// When it is gone, or somebody else's.
    #[track_caller]
    pub fn by(process: Process) -> Self {
        Self {
            memory: process.resident().expect("resident set")
                + process.nameless_files().expect("descriptors"),
            descriptors: process.descriptors().expect("descriptors"),
            threads: process.threads().expect("threads"),
        }
    }

    /// How much more it is than `before`.
    #[must_use]
    pub fn since(self, before: Held) -> Growth {
        Growth {
            memory: self.memory.saturating_sub(before.memory),
            descriptors: self.descriptors.saturating_sub(before.descriptors),
            threads: self.threads.saturating_sub(before.threads),
        }
    }
}

impl Growth {
    /// Fails when any of the three is more than `bound` permits. `filled` names the load in the message.
    ///
    /// # Panics
    /// Then.
    #[track_caller]
    pub fn is_at_most(self, filled: &str, bound: Growth) {
        println!(
            "{filled}: {} KiB of {} more, {} of {} descriptors, {} of {} threads",
            self.memory / 1024,
            bound.memory / 1024,
            self.descriptors,
            bound.descriptors,
            self.threads,
            bound.threads
        );
        let holds = self.memory <= bound.memory
            && self.descriptors <= bound.descriptors
            && self.threads <= bound.threads;
        assert!(holds, "{filled}: the process holds {self:?} more; {bound:?} is permitted");
    }
}

impl Server {
    /// The resources that it holds now. Call [`Server::settle`] first, so that the start has made everything it makes.
    ///
    /// # Panics
    /// When it is gone.
    #[track_caller]
    pub fn held(&self) -> Held {
        Held::by(self.process())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_held_is_seen_and_more_than_is_permitted_fails() {
        let own = Process(std::process::id());
        let before = Held::by(own);
        let memory = vec![1u8; 32 << 20];
        let file = File::open("/proc/self/status").expect("a file");
        let grown = Held::by(own).since(before);
        assert!(grown.memory >= 30 * MIB && grown.descriptors >= 1, "{grown:?}");
        let ample = Growth { memory: 64 * MIB, descriptors: 64, threads: 64 };
        grown.is_at_most("a vector and a file", ample);
        let too_little = Growth { memory: 16 * MIB, ..ample };
        let refused = std::panic::catch_unwind(|| grown.is_at_most("a vector", too_little));
        assert!(refused.is_err(), "{} {file:?}", memory.len());
    }
}
