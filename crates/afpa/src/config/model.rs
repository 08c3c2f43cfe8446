//! The configuration as the rest of the program sees it: plain values, resolved for this machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::choice::choice;
use super::units::Listen;

/// A configuration with every value resolved for this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Worker threads, each with its own event loop on its own core.
    pub workers: usize,
    /// User to become after binding; `None`: www-data, else nobody, when started as root.
    pub user: Option<String>,
    /// Group to become; `None`: the user's own.
    pub group: Option<String>,
    /// `[limits]`.
    pub limits: Limits,
    /// `[timeouts]`.
    pub timeouts: Timeouts,
    /// `[cache]`.
    pub cache: Cache,
    /// `[coherency]`.
    pub coherency: Coherency,
    /// `[fast_path]`.
    pub fast_path: FastPath,
    /// `[compression]`.
    pub compression: Compression,
    /// `[log]`.
    pub log: Log,
    /// `[admin] listen`: metrics and health over TCP, if wanted.
    pub admin: Option<SocketAddr>,
    /// `[control] path`; `None`: where `afpa stats` looks by itself.
    pub control: Option<PathBuf>,
    /// The `[[site]]`.
    pub site: Site,
}

/// What a client may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Open connections in total.
    pub connections: usize,
    /// Open connections of one client address.
    pub connections_per_client: usize,
    /// Bytes of a request line.
    pub request_line: usize,
    /// Bytes of a request head.
    pub head: usize,
    /// Fields of a request head.
    pub fields: usize,
    /// Bytes of a request body that are read and discarded.
    pub body: usize,
    /// Pipelined requests answered in one write.
    pub pipelined: usize,
}

/// How long is waited.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeouts {
    /// For a request head, from its first byte to its last.
    pub head: Duration,
    /// For the next bytes of a request body.
    pub body: Duration,
    /// For the next request of a connection.
    pub idle: Duration,
    /// For a client to take more bytes of a response.
    pub write: Duration,
    /// For connections to end during a graceful stop.
    pub shutdown: Duration,
}

choice! {
    /// Which object gives way when the pinned arena is full.
    Policy {
        /// AFPA's modified LRU: prefers to eject objects no smaller than the one that comes.
        AfpaLru = "afpa-lru",
        /// Least recently used.
        Lru = "lru",
        /// Least frequently used.
        Lfu = "lfu",
        /// S3-FIFO, which a scan does not wash out.
        S3Fifo = "s3-fifo",
    }
}

/// What is kept in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Bytes of the locked arena.
    pub pinned_limit: usize,
    /// Largest payload that is pinned; larger ones are sent from their file.
    pub pin_threshold: usize,
    /// Largest object in bytes of the arena, all its codings together.
    pub max_object: usize,
    /// File-system objects, which hold a descriptor each.
    pub open_files: usize,
    /// Cache objects of all kinds.
    pub objects: usize,
    /// Replacement policy.
    pub policy: Policy,
}

/// How a change of a file is noticed.
#[derive(Clone, Debug, PartialEq)]
pub struct Coherency {
    /// Whether directories are watched.
    pub watch: bool,
    /// Directories watched at most.
    pub max_watches: usize,
    /// Age up to which an object that cannot be watched is served without a look at its file.
    pub unwatched_max_age: Duration,
    /// Whether a file written into the tree enters the cache at once.
    pub push: bool,
}

choice! {
    /// Whether requests are answered in the kernel.
    FastPathMode {
        /// Where it is possible.
        Auto = "auto",
        /// Or AFPA does not start.
        On = "on",
        /// Never.
        Off = "off",
    }
}

/// What the kernel answers by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct FastPath {
    /// Whether it does.
    pub mode: FastPathMode,
    /// Answers kept there, one for each coding of an object.
    pub objects: usize,
    /// Bytes that they may take up.
    pub memory: usize,
    /// Connections shared with it.
    pub flows: usize,
    /// One in so many answers goes to the access log; 0: none.
    pub log_every: usize,
    /// Whether connections outlive the process for the next one.
    pub keep: bool,
}

choice! {
    /// A content coding that AFPA can produce.
    Coding {
        /// Brotli (RFC 7932).
        Brotli = "br",
        /// Zstandard (RFC 8878).
        Zstd = "zstd",
        /// Gzip (RFC 1952).
        Gzip = "gzip",
    }
}

/// What is compressed when it enters the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// Whether anything is.
    pub enabled: bool,
    /// Media types; `text/*` means all of a kind.
    pub types: Vec<String>,
    /// Smallest file in bytes.
    pub min_size: usize,
    /// Largest file in bytes.
    pub max_size: usize,
    /// Codings made.
    pub codings: Vec<Coding>,
    /// How hard each coding tries.
    pub levels: Levels,
}

/// `[compression.levels]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// Brotli quality.
    pub br: u32,
    /// Zstandard level.
    pub zstd: u32,
    /// Gzip level.
    pub gzip: u32,
}

choice! {
    /// How much is logged.
    Level {
        /// What stops AFPA from doing its work.
        Error = "error",
        /// What someone should look at.
        Warn = "warn",
        /// Start, stop, reload.
        Info = "info",
        /// Decisions.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

choice! {
    /// How messages are written.
    LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

choice! {
    /// How the access log is written.
    AccessFormat {
        /// The combined format of nginx and Apache.
        Combined = "combined",
        /// One JSON object a line.
        Json = "json",
    }
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// Nowhere.
    Off,
    /// Standard output.
    Standard,
    /// A file, appended to.
    File(PathBuf),
}

/// What is written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Messages of this weight and above.
    pub level: Level,
    /// Their form.
    pub format: LogFormat,
    /// Where the access log goes.
    pub access: AccessTarget,
    /// Its form.
    pub access_format: AccessFormat,
    /// Bytes of access records that may wait in each worker; beyond that lines are dropped.
    pub access_queue: usize,
}

choice! {
    /// Which symbolic links are followed; none ever leads out of the root.
    Symlinks {
        /// None.
        Never = "never",
        /// Those whose owner owns the target too.
        Owner = "owner",
        /// All.
        Always = "always",
    }
}

/// What is served.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Addresses and sockets to listen on.
    pub listen: Vec<Listen>,
    /// The document root, absolute.
    pub root: PathBuf,
    /// Host names answered, in lower case; empty: any.
    pub hosts: Vec<String>,
    /// Files that stand for their directory, in order of preference.
    pub index: Vec<String>,
    /// Whether a directory without an index file is listed.
    pub listing: bool,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// Whether names that begin with a dot are served.
    pub dotfiles: bool,
    /// Whether `/~user/` leads to that user's pages.
    pub homes: bool,
    /// Their folder within a home directory.
    pub homes_directory: String,
    /// Response fields added to every answer from a file.
    pub headers: Vec<(String, String)>,
    /// Media types by extension, before the built-in ones.
    pub types: Vec<(String, String)>,
}
