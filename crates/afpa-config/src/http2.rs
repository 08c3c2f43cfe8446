//! `[http2]`: where HTTP/2 is spoken, and what one connection may ask for.

use afpa_h2::Limits;
use afpa_h2::limits::Budget;

use crate::reader::Section;
use crate::units::{GIB, KIB, MIB};

/// Where HTTP/2 is spoken, and what one connection may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Http2 {
    /// Whether HTTP/2 is offered on listeners with TLS.
    pub tls: bool,
    /// Whether clients may begin with the preface of HTTP/2 on listeners without TLS.
    pub cleartext: bool,
    /// Limits of one connection. `head` comes from `[limits]`.
    pub limits: afpa_h2::Limits,
}

impl Http2 {
    pub(crate) fn read(mut s: Section<'_, '_>) -> Self {
        let default = Limits::default();
        let tls = s.flag("tls", true);
        let cleartext = s.flag("cleartext", false);
        let resets = budget(&mut s, "resets_burst", "resets_per_second", default.resets);
        let overhead = budget(&mut s, "overhead_burst", "overhead_per_second", default.overhead);
        let limits = Limits {
            streams: number(s.count("streams", default.streams as usize, 1..=1024)),
            // A connection begins with the least value (RFC 9113 section 6.9.2), and no setting can make it smaller.
            stream_window: number(s.size("stream_window", 256 * KIB, 64 * KIB..=GIB)),
            connection_window: number(s.size("connection_window", MIB, 64 * KIB..=GIB)),
            block: s.size("field_block", 64 * KIB, KIB..=MIB),
            continuations: continuations(&mut s, default),
            resets,
            overhead,
            ..default
        };
        Http2 { tls, cleartext, limits }
    }
}

/// Reads `[server_group.streams]`: limits of one HTTP/2 connection to a server, both of its requests and of the
/// server's frames. Response heads are no longer than `head`.
pub(crate) fn read_of_servers(mut s: Section<'_, '_>, head: usize) -> Limits {
    let default = Limits::default();
    let streams = number(s.count("most", 100, 1..=1024));
    let stream_window = number(s.size("window", 256 * KIB, 64 * KIB..=16 * MIB));
    Limits {
        streams,
        stream_window,
        // One for each stream, so that a client which does not read its response stops no other.
        connection_window: streams.saturating_mul(stream_window),
        head,
        block: s.size("field_block", 64 * KIB, KIB..=MIB),
        continuations: continuations(&mut s, default),
        overhead: budget(&mut s, "overhead_burst", "overhead_per_second", default.overhead),
        ..default
    }
}

fn continuations(s: &mut Section<'_, '_>, default: Limits) -> u32 {
    number(s.count("continuations", default.continuations as usize, 0..=128))
}

fn budget(
    s: &mut Section<'_, '_>,
    burst: &'static str,
    per_second: &'static str,
    default: Budget,
) -> Budget {
    Budget {
        burst: number(s.count(burst, default.burst as usize, 1..=1_000_000)),
        per_second: number(s.count(per_second, default.per_second as usize, 0..=1_000_000)),
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
