//! The interrupt context: loads, attaches and feeds AFPA's eBPF programs.
//!
//! [`FastPath::load`] brings programs and maps into the kernel, or says what is missing.
//! [`FastPath::attach`] puts them on an interface, [`FastPath::listen`] names the served addresses,
//! [`FastPath::pin`] and [`FastPath::unpin`] say what they answer. Nothing is answered until
//! [`FastPath::beat`] is called, and no longer than two seconds after the last call; connections
//! whose numbers have drifted are translated for as long as the programs are attached.
//! [`FastPath::sweep`] removes connections whose socket is gone; call it every few seconds.
//!
//! The mechanism is described in `bpf/include/afpa/` (maps, flow invariants) and in the programs.

mod attach;
mod blocks;
mod clock;
mod counters;
mod dry_run;
mod events;
mod flights;
mod flows;
mod home;
mod interfaces;
mod listen;
mod load;
mod pin;
mod region;
mod sum;
mod tcx;
mod tend;
mod watches;

pub use afpa_abi::{
    ANSWER_MAX, ETAG_MAX, Event, Flow, FlowKey, HOST_MAX, NOT_MODIFIED_MAX, PATH_MAX, Reason,
    SITES_COUNTED, SiteCount, kind,
};
pub use counters::Counters;
pub use dry_run::{DryRun, Hook, TCX_DROP, TCX_NEXT, TCX_REDIRECT};
pub use events::Events;
pub use flows::Swept;
pub use home::{HOME, open_home};
pub use interfaces::{Carriers, Change, Interface, carrying, interfaces, is_reachable};
pub use listen::Site;
pub use load::{FastPath, ProgramStatistics, REST_AFTER, Settings, Unavailable};
pub use pin::{Coding, PinError, Response, Usage, Variant};
pub use tcx::{TcxHook, TcxProgram, detach_link};
pub use tend::Tender;

/// Memory of one pinned variant.
pub const VARIANT_BYTES: usize = size_of::<afpa_abi::Slot>();

/// Bytes of an answer that a page is for, and the memory of one.
pub const PAGE: usize = afpa_abi::PAGE;
/// See [`PAGE`].
pub const PAGE_BYTES: usize = size_of::<afpa_abi::Page>();

/// Longest answer that can be pinned at all.
pub const LONGEST_ANSWER: usize = afpa_abi::PAGES_MAX * PAGE;

/// The eBPF object this crate was built with.
pub static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/afpa.bpf.o"));
