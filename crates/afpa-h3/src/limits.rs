//! The limits of one connection.

use afpa_h2::limits::Budget;

/// Limits of a connection, with safe defaults.
///
/// The budgets are token buckets, as those of HTTP/2. A client that exceeds one gets H3_EXCESSIVE_LOAD, and its
/// connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request head, as HTTP/1.1 would write it (SETTINGS_MAX_FIELD_SECTION_SIZE). A longer head is cut, so that
    /// it is refused for its length.
    pub head: usize,
    /// Bytes of a compressed field section. A longer one is a head that is too long.
    pub section: usize,
    /// Requests that end early: stopped or reset by the client, or by us for a fault of the client.
    pub resets: Budget,
    /// Frames that carry neither a request nor content: frames of unknown types, empty DATA, PRIORITY_UPDATE, streams of
    /// unknown types.
    pub overhead: Budget,
}

impl Default for Limits {
    fn default() -> Self {
        let same = afpa_h2::Limits::default();
        Self { head: same.head, section: same.block, resets: same.resets, overhead: same.overhead }
    }
}

/// Bytes of the payload of a frame on the control stream. SETTINGS of browsers have less than a hundred.
pub(crate) const CONTROL_FRAME: u64 = 1024;
