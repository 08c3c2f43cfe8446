//! The papers' architectures, as combinations of two strategies.

use clap::ValueEnum;

/// How one thread of control waits for its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Io {
    /// One connection at a time, with calls that block.
    Sync,
    /// Many at a time: the thread asks which are ready, and reads and writes those (epoll).
    Reactive,
    /// Many at a time: the thread hands reads and writes to the kernel, which reports their completion
    /// (io_uring).
    Async,
}

/// How many threads of control there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Concurrency {
    /// One.
    Single,
    /// Processes that were started beforehand; each has a cache of its own.
    Processes,
    /// Threads that were started beforehand; they share the cache.
    Threads,
    /// A thread for each connection, started when it comes.
    PerRequest,
}

/// An architecture that has a name in the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// How many threads of control.
    pub concurrency: Concurrency,
    /// How each of them waits.
    pub io: Io,
    /// Helper threads for the disk, so that the loop never waits for it.
    pub helped: bool,
    /// One request on a connection, then it is closed.
    pub closes: bool,
}

/// The architectures of the papers, and the one that came after them.
pub const ALL: &[Architecture] = &[
    Architecture {
        closes: true,
        ..plain("howl", "accept, read, write, close, one at a time", Concurrency::Single, Io::Sync)
    },
    plain("mp", "pre-forked processes, one connection each", Concurrency::Processes, Io::Sync),
    plain("thread-pool", "threads, one connection each", Concurrency::Threads, Io::Sync),
    plain(
        "thread-per-request",
        "a new thread for each connection",
        Concurrency::PerRequest,
        Io::Sync,
    ),
    plain("sped", "one thread, epoll, reads files itself", Concurrency::Single, Io::Reactive),
    Architecture {
        helped: true,
        ..plain("amped", "sped with helper threads for disk", Concurrency::Single, Io::Reactive)
    },
    plain("io-uring", "one thread, asynchronous I/O", Concurrency::Single, Io::Async),
];

const fn plain(
    name: &'static str,
    about: &'static str,
    concurrency: Concurrency,
    io: Io,
) -> Architecture {
    Architecture { name, about, concurrency, io, helped: false, closes: false }
}

impl Architecture {
    /// The architecture of that name.
    pub fn named(name: &str) -> Option<&'static Architecture> {
        ALL.iter().find(|architecture| architecture.name == name)
    }

    /// Whether it answers more than one request on a connection.
    pub fn keeps_connections(&self) -> bool {
        !self.closes
    }

    /// The reason why it cannot run on this machine; `None` if it can.
    pub fn lacks(&self) -> Option<String> {
        match self.io {
            Io::Async => crate::io::asynchronous::lacks(),
            Io::Sync | Io::Reactive => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for architecture in ALL {
            assert_eq!(Architecture::named(architecture.name), Some(architecture));
        }
        assert_eq!(Architecture::named("no-such"), None);
    }
}
