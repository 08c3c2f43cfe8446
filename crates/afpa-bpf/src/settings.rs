//! Sizes and habits of the fast path.

use std::path::PathBuf;
use std::time::Duration;

use afpa_abi::ANSWER_MAX;

/// Which clients' connections may begin without a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Clients that the kernel's own path has let in lately.
    #[default]
    Recent,
    /// As `Recent`. While SYNs come in a flood ([`Settings::flood_syns`]), those of all clients
    /// are answered, as far as the way back is sure; the firewall of this host is asked before any request is answered.
    Flood,
    /// All clients, as far as the way back is sure. The firewall of this host is not asked:
    /// [`Settings::firewall_interval`] has no effect.
    Everyone,
}

/// [`Settings::flood_syns`] by default: the kernel's TCP needs about a twentieth of a processor for these.
pub const FLOOD_SYNS: u32 = 10_000;

/// [`Settings::firewall_interval`] by default: a ban ends answers within two seconds.
pub const FIREWALL_INTERVAL: Duration = Duration::from_secs(1);

/// [`Settings::bypass_after`] by default. A hit saves about ten times the cost of a pass, so that the fast path
/// pays from one hit in ten requests on. Where hits come by chance, 64 misses in a row are seen once in some
/// 8,500 requests with one hit in ten, once in some millions with one in five.
pub const BYPASS_AFTER: u32 = 64;
pub(crate) const BYPASS_AFTER_MAX: u32 = u16::MAX as u32;

/// Sizes and habits of the fast path. Memory is allocated when it is loaded, but for objects and pages that are not ready then.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Variants of objects that may be pinned, those being retired included; 2.2 KB each if they are ready.
    pub objects: u32,
    /// So many of them have their memory from the start on. The others take 4 KiB each while they are used, and a hit looks
    /// for them in a hash.
    pub ready_objects: u32,
    /// Longest answer, head and content, that the kernel gives. Answers longer than one segment need
    /// pages and transfers.
    pub answer_max: u32,
    /// Longest answer to a request that asks for the connection's end, on connections without a socket: longer ones pay
    /// here, because a socket would have to be made for them. No less than `answer_max`.
    pub last_answer_max: u32,
    /// Pages for answers that are longer than one segment, one for every 4,096 bytes; 5.6 KB each if they are ready.
    pub pages: u32,
    /// So many of them have their memory from the start on; the others take 8 KiB each while they are used.
    pub ready_pages: u32,
    /// Bytes of objects and pages that are not ready.
    pub more_bytes: usize,
    /// Transfers, answers of several segments, that are under way at a time; about 1 KB each. Further ones are
    /// left to user mode.
    pub transfers: u32,
    /// Connections that have an rtx timer at a time, because they were sent an answer of one segment in the last
    /// tenth of a second; 64 bytes each, and again as much for those that have not acknowledged it. On further ones
    /// a lost answer is sent again when the client asks again.
    pub rtx_timers: u32,
    /// Bytes of slots and pages that are kept, a second after they were retired, for clients that do not
    /// have their answers yet. When they are more, the oldest of these connections end.
    pub retired_bytes: usize,
    /// Connections shared with the fast path; about 200 bytes each. Further ones stay in user mode.
    pub flows: u32,
    /// Host values that select sites, of all listener sets together; a site with names has two of each, with
    /// its port and without.
    pub hosts: u32,
    /// Connections on which the beginning of a request is kept until its rest comes, 2.7 KB each; of further
    /// ones, those that wait longest are left to user mode.
    pub partial_heads: u32,
    /// Header blocks remembered, 1.6 KB each; rounded up to a power of two.
    pub header_blocks: u32,
    /// Bytes of the ring buffer of answered requests; rounded up to a power of two of pages.
    pub event_bytes: u32,
    /// Report one in this many answers; 0: none.
    pub log_every: u32,
    /// Pass a request of each connection to user mode at least this often, so that the idle timer
    /// of a server we do not control sees one; zero: never.
    pub refresh: Duration,
    /// After this many consecutive requests that the kernel could not answer, user mode alone serves the rest of the
    /// connection, unless paths were pinned meanwhile; 0: never. At most 65,535.
    pub bypass_after: u32,
    /// The least time that these requests must span: longer than it takes to pin a changed object again.
    pub bypass_time: Duration,
    /// Clients are answered for so long after their packets got through the kernel's own path: netfilter, cgroup
    /// programs, routes. Then a request of theirs takes that path. Zero: for ever.
    pub firewall_interval: Duration,
    /// Whether the connections of clients that are known begin without a socket: their SYNs are answered by the programs,
    /// and the kernel's TCP gets a connection with the first request that is not answered here. Linux 6.9.
    pub socketless: bool,
    /// The clients whose connections may begin without a socket.
    pub admission: Admission,
    /// With [`Admission::Flood`]: from so many SYNs a second on, of clients that are not known, on one processor, there is
    /// a flood.
    pub flood_syns: u32,
    /// Connections without a socket that one client may have (IPv6: one /64); 0: any number. Further ones are the
    /// kernel's from the beginning.
    pub client_connections: u32,
    /// A connection without a socket that nothing was heard of for so long is closed, as an idle server would.
    pub socketless_idle: Duration,
    /// A folder on a BPF file system that keeps programs and connections when this process ends:
    /// nothing is answered then, but connections with a sequence offset are still translated, and the
    /// next process that loads with the same folder takes them over. None: they break.
    pub keep_in: Option<PathBuf>,
    /// Whether kept maps are taken with their sizes, instead of those of these settings.
    pub sizes_as_kept: bool,
    /// How long the bytes of a retired object stay, for clients that lost their answer: as long as most
    /// stacks try. [`Objects::reclaim`](crate::Objects::reclaim) frees them earlier if no connection needs them.
    pub retire_after: Duration,
    /// For tests: as on kernels without tcx.
    #[doc(hidden)]
    pub without_tcx: bool,
    /// For tests: bits of a cookie that are not looked at, so that guesses come true within a test's time.
    #[doc(hidden)]
    pub cookie_ignored: u32,
}

/// The longest answer to any request. The last one of a connection may be longer where connections begin without a socket.
pub fn longest_answer<N: Ord>(socketless: bool, answer_max: N, last_answer_max: N) -> N {
    if socketless { answer_max.max(last_answer_max) } else { answer_max }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            objects: 8192,
            ready_objects: 1024,
            answer_max: ANSWER_MAX as u32,
            last_answer_max: 0,
            pages: 1024,
            ready_pages: 512,
            more_bytes: 64 << 20,
            transfers: 1024,
            rtx_timers: 16384,
            retired_bytes: 16 << 20,
            flows: 65536,
            hosts: 4096,
            partial_heads: 512,
            header_blocks: 4096,
            event_bytes: 1 << 20,
            log_every: 1,
            refresh: Duration::ZERO,
            bypass_after: BYPASS_AFTER,
            bypass_time: Duration::from_secs(1),
            firewall_interval: FIREWALL_INTERVAL,
            socketless: false,
            admission: Admission::Recent,
            flood_syns: FLOOD_SYNS,
            client_connections: 0,
            socketless_idle: Duration::from_secs(60),
            keep_in: None,
            sizes_as_kept: false,
            retire_after: Duration::from_secs(60),
            without_tcx: false,
            cookie_ignored: 0,
        }
    }
}
