//! The send engine: an answer of several segments, from its first byte to its last acknowledgement.
//!
//! The fast path answers from the softirq in which a request arrived, with bytes that the kernel's TCP
//! never saw; what TCP promises about them has to be kept here. [`Flight`] is one answer on its way. It
//! is pure: it takes acknowledgements and times, and says which bytes are to be sent. It has no idea of
//! HTTP, of packets, or of where the bytes come from.
//!
//! It is a model in the strict sense: integers, fixed arrays and bounded loops only. The same engine for
//! the kernel is in `bpf/include/afpa/tcp`, and a test of afpa-bpf holds the whole state of the two
//! against each other after every step. No program is attached with it yet. `LIFECYCLE.md` beside the manifest has states,
//! transitions and the invariants S1 to S8 that comments and tests cite.
//!
//! The order of calls: [`Flight::begin`]; then [`Flight::poll_send`] until it has nothing, and after
//! each [`Flight::on_ack`] and each [`Flight::on_time`] again. [`Flight::deadline`] says when
//! `on_time` is due if nothing else happens.
//!
//! Sources: RFC 5681 (congestion control), 6298 (time-outs), 6675 (loss recovery by SACK), 6928 (initial
//! window), 8985 (RACK-TLP), 9293 (windows, probes), 3168 (ECN).

mod ack;
mod bits;
mod flight;
mod numbers;
mod path;
mod rtt;
mod send;
mod time;

pub use ack::{Ack, Progress};
pub use bits::Bits;
pub use flight::{Begin, Flight};
pub use path::{Path, Undo};
pub use rtt::Rtt;
pub use send::Send;

/// Microseconds of a clock that never jumps.
pub type Micros = u64;

/// Segments that one answer may have: what two words can hold a set of.
pub const MAX_SEGMENTS: u32 = 128;

/// Segments that leave at once on a new path (RFC 6928).
pub const INITIAL_WINDOW: u16 = 10;

/// Bytes that arrive nowhere for this long end an answer, as a server's send time-out would.
pub const PATIENCE: Micros = 60_000_000;
