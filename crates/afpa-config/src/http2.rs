//! `[http2]`: where HTTP/2 is spoken, and what one connection may ask for.

use afpa_h2::Limits;

use crate::reader::Section;
use crate::units::{KIB, MIB};

/// Where HTTP/2 is spoken, and what one connection may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Http2 {
    /// Whether HTTP/2 is offered on listeners with TLS.
    pub tls: bool,
    /// Whether clients may begin with the preface of HTTP/2 on listeners without TLS.
    pub cleartext: bool,
    /// Limits of one connection.
    pub limits: afpa_h2::Limits,
}

impl Http2 {
    pub(crate) fn read(mut s: Section<'_, '_>, head: usize) -> Self {
        let default = Limits::default().with_head(head);
        let tls = s.flag("tls", true);
        let cleartext = s.flag("cleartext", false);
        let streams = number(s.count("streams", default.streams as usize, 1..=1024));
        // A connection begins with the least value (RFC 9113 section 6.9.2), and no setting can make it smaller.
        let stream_window = number(s.size("stream_window", 256 * KIB, 64 * KIB..=256 * MIB));
        // Some uploads at a time go on at the speed of one; more share the memory.
        let connection_window = 4 * stream_window;
        let limits = Limits { streams, stream_window, connection_window, ..default };
        Http2 { tls, cleartext, limits }
    }
}

/// Reads `[server_group.streams]`: limits of one HTTP/2 connection to a server, both of its requests and of the
/// server's frames. Response heads are no longer than `head`.
pub(crate) fn read_of_servers(mut s: Section<'_, '_>, head: usize) -> Limits {
    let default = Limits::default().with_head(head);
    let streams = number(s.count("most", 100, 1..=1024));
    let stream_window = number(s.size("window", 256 * KIB, 64 * KIB..=16 * MIB));
    Limits {
        streams,
        stream_window,
        // One for each stream, so that a client which does not read its response stops no other.
        connection_window: streams.saturating_mul(stream_window),
        ..default
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
