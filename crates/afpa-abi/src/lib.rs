//! Layouts that AFPA's eBPF programs and user mode share: `bpf/include/afpa/abi.h` for Rust.
//!
//! The header explains every field; here are only the shapes. Sizes and offsets are asserted at
//! compile time, and `afpa-bpf` compares them with the BTF of the object that is loaded. Numbers are
//! in host byte order; addresses have 16 bytes, IPv4 as `::ffff:a.b.c.d`.
#![forbid(unsafe_code)]
#![allow(missing_docs)] // fields are documented where they are defined, in abi.h

use std::mem::{offset_of, size_of};
use std::net::{IpAddr, SocketAddr};

include!(concat!(env!("OUT_DIR"), "/reasons.rs"));

/// Longest request target of a pinned object.
pub const PATH_MAX: usize = 128;
/// Longest Host value that selects a site.
pub const HOST_MAX: usize = 64;
/// Longest entity tag, quotes included.
pub const ETAG_MAX: usize = 64;
/// Bytes of an IMF-fixdate.
pub const DATE_LENGTH: usize = 29;
/// Longest 304 head.
pub const NOT_MODIFIED_MAX: usize = 384;
/// Longest answer of one segment.
pub const ANSWER_MAX: usize = 1460;
/// Variants of an object: identity, gzip, br, zstd.
pub const CODINGS: usize = 4;
/// Seconds of Date values that are kept.
pub const DATES: usize = 256;
/// Bits of the filter over path hashes.
pub const PATH_FILTER_BITS: usize = 65536;
/// Interfaces that are counted apart.
pub const INTERFACES: usize = 64;
/// Room for reasons, an interface.
pub const REASONS_MAX: usize = 64;
/// Bytes of a longer answer that a page is for.
pub const PAGE: usize = 4096;
/// Bytes of the next page that a page repeats.
pub const PAGE_REACH: usize = 1472;
/// Sums of segments that a page remembers.
pub const PAGE_SUMS: usize = 4;
/// Pages of an answer.
pub const PAGES_MAX: usize = 17;
/// Rtx timers that one run names.
pub const RTX_DUE: usize = 128;
/// Words of the send engine's memory of a path.
pub const PATH_WORDS: usize = 4;
/// Words of the send engine's state.
pub const SENDER_WORDS: usize = 83;
/// Places in which answers of sites are counted.
pub const SITES_COUNTED: usize = 1024;
/// Longest header block that is remembered.
pub const CHECKED_MAX: usize = 2080;

/// `struct afpa_date`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Date {
    pub second: u64,
    pub text: [u8; 32],
    pub sum_even: u32,
    pub sum_odd: u32,
    pub reserved: [u64; 2],
}

/// `struct afpa_shared`: mapped, never moved by value.
#[derive(Debug)]
#[repr(C)]
pub struct Shared {
    pub pulse: u64,
    pub hash_seed: u64,
    pub refresh_ns: u64,
    pub generation: u32,
    pub log_every: u32,
    pub checked_mask: u32,
    pub bypass_after: u32,
    pub pins: u32,
    pub answer_max: u32,
    pub bypass_time: u32,
    pub transfer_ns: u64,
    pub dates: [Date; DATES],
    pub ports: [u64; 65536 / 64],
    pub paths: [u64; PATH_FILTER_BITS / 64],
    pub interfaces: [u32; INTERFACES],
    pub rtx_ns: u64,
}

/// `struct afpa_endpoint`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Endpoint {
    pub address: [u8; 16],
    pub port: u16,
    pub reserved: u16,
}

/// `struct afpa_listener`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Listener {
    pub id: u32,
    pub any_host_site: u32,
}

/// `struct afpa_site_key`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SiteKey {
    pub listener: u32,
    pub host_length: u32,
    pub host: [u8; HOST_MAX],
}

/// `struct afpa_object_key`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ObjectKey {
    pub path_hash: u64,
    pub site: u32,
    pub path_length: u32,
}

/// `struct afpa_object`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Object {
    pub slot: [u32; CODINGS],
}

/// `struct afpa_answer`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Answer {
    pub length: u32,
    pub head_length: u16,
    pub date_offset: u16,
    pub sum: u32,
    pub head_sum: u32,
}

/// `struct afpa_slot`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Slot {
    pub version: u64,
    pub whole: Answer,
    pub not_modified: Answer,
    pub path_length: u16,
    pub etag_length: u16,
    pub site: u32,
    pub pages: [u32; PAGES_MAX],
    pub reserved: u32,
    pub path: [u8; PATH_MAX],
    pub etag: [u8; ETAG_MAX],
    pub last_modified: [u8; 32],
    pub not_modified_bytes: [u8; NOT_MODIFIED_MAX],
    pub bytes: [u8; ANSWER_MAX + 4],
}

/// `struct afpa_page`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Page {
    pub bytes: [u8; PAGE + PAGE_REACH],
    pub sums: [u64; PAGE_SUMS],
}

/// `struct afpa_flow_key`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    pub client: [u8; 16],
    pub server: [u8; 16],
    pub client_port: u16,
    pub server_port: u16,
}

/// `enum afpa_owner`
pub mod owner {
    /// Nothing outstanding: the fast path may answer.
    pub const NONE: u8 = 0;
    /// One request is with user mode.
    pub const USER: u8 = 1;
    /// User mode keeps the connection.
    pub const USER_FINAL: u8 = 2;
    /// A FIN went by.
    pub const CLOSING: u8 = 3;
    /// User mode keeps the connection, since the fast path has had nothing for it.
    pub const BYPASSED: u8 = 4;
}

/// `enum afpa_flow_flags`
pub mod flow_flags {
    /// The client sent its FIN.
    pub const CLIENT_FIN: u8 = 8;
    /// The server sent its FIN.
    pub const SERVER_FIN: u8 = 16;
    /// Answers of several segments are possible.
    pub const MULTI_SEGMENT: u8 = 32;
    /// One is on its way.
    pub const TRANSFER: u8 = 64;
    /// Marks instead of losses were negotiated.
    pub const ECN: u8 = 128;
}

/// `struct afpa_flow`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    pub lock: u32,
    pub owner: u8,
    pub flags: u8,
    pub client_scale: u8,
    pub answer_kind: u8,
    pub window: u16,
    pub mss: u16,
    pub rx_offset: u32,
    pub tx_offset: u32,
    pub client_next: u32,
    pub kernel_next: u32,
    pub stale_below: u32,
    pub acked_to_kernel: u32,
    pub response_start: u32,
    pub kernel_received: u32,
    pub ts_sent: u32,
    pub ts_seen: u32,
    pub ts_offset: u32,
    pub listener: u32,
    pub request_seq: u32,
    pub request_length: u32,
    pub answer_seq: u32,
    pub answer_size: u32,
    pub answer_slot: u32,
    pub answer_date: u32,
    pub snd_una: u32,
    pub answer_version: u64,
    pub used_ns: u64,
    pub user_ns: u64,
    pub responses_pending: u8,
    pub phase: u8,
    pub head_bits: u16,
    pub chunk: u32,
    pub passed: u16,
    pub pins: u16,
    pub passing_since: u32,
    pub path: [u64; PATH_WORDS],
    pub any_host_site: u32,
    pub generation: u32,
    pub rtx_stamp: u32,
    pub answer_sent: u32,
    pub retransmits: u8,
    pub rtt_wanted: u8,
    pub reserved: [u8; 6],
}

/// `struct afpa_transfer`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Transfer {
    pub version: u64,
    pub slot: u32,
    pub date: u32,
    pub flow: FlowKey,
    pub lock: u32,
    pub at: u32,
    pub interface: u32,
    pub ethernet: [u8; 14],
    pub send_pending: u8,
    pub place: u8,
    pub sender: [u64; SENDER_WORDS],
}

/// `enum afpa_rtx_kind`
pub mod rtx_kind {
    /// The last answer of a connection, of one segment.
    pub const ANSWER: u8 = 0;
    /// A transfer.
    pub const TRANSFER: u8 = 1;
}

/// `enum afpa_rtx_kinds`
pub mod rtx_kinds {
    /// Those of transfers.
    pub const TRANSFERS: u8 = 1;
    /// Those of answers of one segment.
    pub const ANSWERS: u8 = 2;
}

/// `enum afpa_rtx_state`
pub mod rtx_state {
    /// Transfers are under way.
    pub const TRANSFERS_LEFT: u8 = 1;
    /// More of them may be due.
    pub const TRANSFERS_MORE: u8 = 2;
    /// The FIFO has entries.
    pub const ANSWERS_LEFT: u8 = 4;
    /// More of them may be due.
    pub const ANSWERS_MORE: u8 = 8;
}

/// `struct afpa_rtx_timer`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RtxTimer {
    pub flow: FlowKey,
    pub interface: u32,
    pub ethernet: [u8; 14],
    pub kind: u8,
    pub reserved: u8,
    pub stamp: u32,
    pub due: u32,
}

/// `enum afpa_kind`
pub mod kind {
    /// Head and body.
    pub const WHOLE: u8 = 0;
    /// The head alone.
    pub const HEAD: u8 = 1;
    /// 304.
    pub const NOT_MODIFIED: u8 = 2;
}

/// `struct afpa_event`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    pub flow: FlowKey,
    pub listener: u32,
    pub site: u32,
    pub date: u32,
    pub version: u64,
    pub length: u32,
    pub weight: u32,
    pub kind: u8,
    pub head: u8,
    pub reserved: [u8; 2],
    pub block: u32,
    pub block_sequence: u32,
    pub spare: u32,
}

/// `struct afpa_site_count`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SiteCount {
    pub whole: u64,
    pub not_modified: u64,
}

/// `struct afpa_checked`, without the bytes at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CheckedHead {
    pub sequence: u32,
    pub generation: u32,
    pub listener: u32,
    pub length: u32,
    pub block: [u32; 5],
    pub reserved: [u32; 3],
}

impl Endpoint {
    /// The map key of a local address.
    pub fn new(address: SocketAddr) -> Self {
        Self { address: address_bytes(address.ip()), port: address.port(), reserved: 0 }
    }
}

impl FlowKey {
    /// The key of a connection, seen from the server.
    pub fn new(client: SocketAddr, server: SocketAddr) -> Self {
        Self {
            client: address_bytes(client.ip()),
            server: address_bytes(server.ip()),
            client_port: client.port(),
            server_port: server.port(),
        }
    }
}

/// The 16 bytes of an address, IPv4 mapped.
pub fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

// The header has no implicit padding, so sizes pin every offset but those around mixed widths.
const _: () = {
    assert!(size_of::<Date>() == 64);
    assert!(
        offset_of!(Shared, dates) == 64
            && size_of::<Shared>() == 64 + 64 * DATES + 2 * 8192 + 4 * INTERFACES + 8
    );
    assert!(Reason::ALL.len() <= REASONS_MAX);
    assert!(
        size_of::<Endpoint>() == 20 && size_of::<Listener>() == 8 && size_of::<SiteKey>() == 72
    );
    assert!(size_of::<ObjectKey>() == 16 && size_of::<Object>() == 16 && size_of::<Answer>() == 16);
    assert!(
        offset_of!(Slot, path) == 120
            && offset_of!(Slot, bytes) == 728
            && size_of::<Slot>() == 2192
    );
    assert!(size_of::<FlowKey>() == 36);
    assert!(size_of::<SiteCount>() == 16 && size_of::<CheckedHead>() == 48);
    assert!(
        offset_of!(Flow, rx_offset) == 12
            && offset_of!(Flow, answer_version) == 88
            && offset_of!(Flow, responses_pending) == 112
            && offset_of!(Flow, path) == 128
            && offset_of!(Flow, rtx_stamp) == 168
            && size_of::<Flow>() == 184
    );
    assert!(size_of::<Page>() == 5600);
    assert!(offset_of!(Transfer, sender) == 80 && size_of::<Transfer>() == 80 + 8 * SENDER_WORDS);
    assert!(size_of::<RtxTimer>() == 64);
    assert!(offset_of!(Event, version) == 48 && size_of::<Event>() == 80);
};
