//! The interrupt context: loads, attaches and feeds AFPA's eBPF programs.
//!
//! [`FastPath::load`] brings programs and maps into the kernel, or returns the missing feature. It has a handle for each
//! part, which owns the maps of that part: [`Interfaces::attach`] puts the programs on an interface,
//! [`Listeners::listen`] names the served addresses, [`Objects::pin`] and [`Objects::unpin`] add and remove answers.
//! Nothing is answered until [`Clock::beat`] is called, and no longer than two seconds after the last call; connections
//! that have a sequence offset are translated for as long as the programs are attached.
//! [`FastPath::sweep`] removes connections whose socket is gone; call it every few seconds.
//!
//! The mechanism is described in `bpf/include/afpa/` (maps, flow invariants) and in the programs.

mod cache;
mod clock;
mod conn;
pub mod dns;
mod dry_run;
mod entries;
pub mod explain;
mod found;
mod kernel;
mod load;
mod net;
mod packed;
mod pin_dir;
mod pin_home;
pub mod preflight;
mod program;
mod programs;
pub mod quic;
mod region;
mod ring;
mod rtx;
mod settings;
mod stats;
mod time;
mod unavailable;
mod verify;

pub use afpa_abi::{
    ANSWER_MAX, ETAG_MAX, Event, Flow, FlowKey, HOST_MAX, NOT_MODIFIED_MAX, PAGE, PATH_MAX, Reason,
    SITES_COUNTED, Sample, SiteCount, kind,
};
pub use cache::pin::{Objects, PinnedPlaces, Usage};
pub use cache::places::{MORE_PAGE_BYTES, MORE_VARIANT_BYTES, PAGE_BYTES, VARIANT_BYTES};
pub use cache::room::FreeRoom;
pub use cache::variant::{
    AGE_DIGITS, AcceptedCodings, BEFORE_AGE, Coding, FIELD_HOP, FIELD_UNKNOWN, Freshness,
    LONGEST_ANSWER, PinError, PinRules, Response, TTL_DIGITS, Ttl, Variant, WEIGHTS_AS_OURS,
};
pub use clock::Clock;
pub use conn::SiteNumber;
pub use conn::admit::Clients;
pub use conn::events::Events;
pub use conn::flows::{Flows, Swept};
pub use conn::listen::Listeners;
pub use conn::misses::{Missed, Misses};
pub use conn::police::Police;
pub use conn::reports::Reports;
pub use conn::samples::{Samples, sampled_answer, sampled_request};
pub use conn::served::{ServedSockets, Sockets};
pub use conn::socketless::Socketless;
pub use dry_run::{DryRun, Hook, Place, TCX_DROP, TCX_NEXT, TCX_REDIRECT};
pub use found::connections::{listening, receiving};
pub use found::{FoundFastPath, OnHooks, OtherProgram, Process};
pub use load::FastPath;
pub use net::attach::Interfaces;
pub use net::carriers::{Carriers, Change};
pub use net::interfaces::{Interface, carrying, interfaces, is_reachable};
pub use net::port_claim::{ClaimRefused, PortClaim};
pub use net::tcx::{TcxHook, TcxProgram, detach_link};
pub use packed::Packed;
pub use pin_dir::{PinDir, PinDirOwner, PinDirRefused};
pub use pin_home::{HOME, open_home};
pub use program::ProgramStatistics;
pub use programs::Programs;
pub use ring::Ring;
pub use rtx::{Rtx, RtxThread};
pub use settings::{
    Admission, BYPASS_AFTER, FIREWALL_INTERVAL, FLOOD_SYNS, Settings, longest_answer,
};
pub use stats::{Counters, Stats, words};
pub use time::{boot_ns, monotonic_ns};
pub use unavailable::Unavailable;

/// The eBPF object this crate was built with.
pub static OBJECT: Packed = Packed(include_bytes!(concat!(env!("OUT_DIR"), "/afpa.bpf.z")));

/// The eBPF object of the programs that answer DNS.
pub static DNS_OBJECT: Packed = Packed(include_bytes!(concat!(env!("OUT_DIR"), "/dns.bpf.z")));

/// The eBPF object of the program for QUIC.
pub static QUIC_OBJECT: Packed = Packed(include_bytes!(concat!(env!("OUT_DIR"), "/quic.bpf.z")));
