//! The limits of one connection.

/// Limits of a connection, with safe defaults.
///
/// The budgets are token buckets: a number of frames that may come at once, and how many more each second. A client
/// that exceeds one gets GOAWAY with ENHANCE_YOUR_CALM, and its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams that may be open at a time (SETTINGS_MAX_CONCURRENT_STREAMS).
    pub streams: u32,
    /// Bytes of content that may arrive on one stream before they are read (SETTINGS_INITIAL_WINDOW_SIZE).
    pub stream_window: u32,
    /// Bytes of content that may arrive on all streams together before they are read.
    pub connection_window: u32,
    /// Bytes of a request head, as HTTP/1.1 would write it (SETTINGS_MAX_HEADER_LIST_SIZE). A longer head is cut, so
    /// that it is refused for its length.
    pub head: usize,
    /// Bytes of a compressed field block, with all its CONTINUATION frames.
    pub block: usize,
    /// CONTINUATION frames of one field block.
    pub continuations: u32,
    /// Streams that end early: reset by the client, or by us for a fault of the client.
    pub resets: Budget,
    /// Frames that carry neither a request nor content nor room for content: SETTINGS, PING, PRIORITY, frames of
    /// unknown types, empty DATA, windows that grow by little.
    pub overhead: Budget,
}

impl Limits {
    /// With heads of this length at most. Fields that are not compressed are shorter than twice the head that HTTP/1.1
    /// would write, and frames of the default size (16 KiB) carry a block that is twice as long as needed.
    pub fn with_head(self, head: usize) -> Self {
        let block = self.block.max(2 * head);
        let frames = u32::try_from(block / (8 * 1024)).unwrap_or(u32::MAX);
        Self { head, block, continuations: self.continuations.max(frames), ..self }
    }
}

/// A token bucket: so many at once, and so many more each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// At once.
    pub burst: u32,
    /// Each second from then on.
    pub per_second: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: 128,
            stream_window: 256 * 1024,
            connection_window: 1024 * 1024,
            head: 32 * 1024,
            block: 64 * 1024,
            continuations: 8,
            // A browser that leaves a page with many pictures resets some hundred streams at once; a rapid reset attack
            // (CVE-2023-44487) resets thousands a second.
            resets: Budget { burst: 256, per_second: 32 },
            // A client that acknowledges each DATA frame by a window of its own, and pings, stays far below this.
            overhead: Budget { burst: 1024, per_second: 128 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_the_longest_head_fits_and_others_keep_the_defaults() {
        let default = Limits::default();
        assert_eq!(default.with_head(default.head), default);
        assert_eq!(default.with_head(1024), Limits { head: 1024, ..default });
        let long = default.with_head(256 * 1024);
        assert_eq!((long.block, long.continuations), (512 * 1024, 64));
    }
}
