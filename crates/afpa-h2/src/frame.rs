//! Frames on the wire (RFC 9113 sections 4 and 6): 9 bytes of header, then the payload.

/// The bytes that a client sends before its first frame (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's header.
pub const HEADER: usize = 9;

/// The longest payload that we accept, and that every client does (section 4.2).
pub const MAX_PAYLOAD: usize = 16_384;

/// The largest flow-control window (section 6.9.1).
pub const MAX_WINDOW: i64 = 0x7fff_ffff;

/// The window that a connection and its streams begin with (section 6.9.2).
pub const INITIAL_WINDOW: i64 = 65_535;

/// Types of frames (section 6; RFC 9218 section 7.1 for the last one).
pub mod kind {
    #![allow(missing_docs, reason = "the names are those of the RFC")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// Flags of frames.
pub mod flag {
    #![allow(missing_docs, reason = "the names are those of the RFC")]
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 0x20;
}

/// Settings (section 6.5.2; RFC 8441 section 3 and RFC 9218 section 2.1 for the last two).
pub mod setting {
    #![allow(missing_docs, reason = "the names are those of the RFC")]
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
    pub const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// Why a stream or a connection ends (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ErrorCode {
    /// Nothing went wrong.
    NoError = 0,
    /// The peer broke a rule that has no code of its own.
    Protocol = 1,
    /// We failed.
    Internal = 2,
    /// More was sent than the window allowed, or a window grew beyond its limit.
    FlowControl = 3,
    /// A setting was not acknowledged in time.
    SettingsTimeout = 4,
    /// A frame for a stream that is closed.
    StreamClosed = 5,
    /// A frame of a wrong size.
    FrameSize = 6,
    /// The stream was not looked at: the request may be sent again.
    Refused = 7,
    /// The stream is no longer needed.
    Cancel = 8,
    /// The header compression is broken.
    Compression = 9,
    /// The connection that was asked for by CONNECT failed.
    Connect = 10,
    /// The peer makes too much work.
    EnhanceYourCalm = 11,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of payload.
    pub length: usize,
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads the header at the front of `input`; `None` if there are fewer than 9 bytes.
    #[inline]
    pub fn read(input: &[u8]) -> Option<FrameHeader> {
        let &[a, b, c, kind, flags, s0, s1, s2, s3] = input.first_chunk::<HEADER>()?;
        Some(FrameHeader {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The first bit is reserved, and ignored (section 4.1).
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
        })
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The header's bytes.
    #[inline]
    pub fn bytes(self) -> [u8; HEADER] {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }
}

/// Appends a frame.
#[inline]
pub fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let header = FrameHeader { length: payload.len(), kind, flags, stream };
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(payload);
}

/// Appends room for the header of a frame. Returns where it begins, for [`end`].
#[inline]
pub(crate) fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    start
}

/// Writes the header of a frame that began at `start`.
#[inline]
pub(crate) fn end(out: &mut [u8], start: usize, header: FrameHeader) {
    if let Some(place) = out.get_mut(start..start + HEADER) {
        place.copy_from_slice(&header.bytes());
    }
}

/// Appends RST_STREAM (section 6.4).
pub fn put_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    put(out, kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
}

/// Appends WINDOW_UPDATE (section 6.9).
pub fn put_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    put(out, kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

/// Appends GOAWAY (section 6.8), with a reason for people who debug the client.
pub fn put_goaway(out: &mut Vec<u8>, last: u32, code: ErrorCode, why: &str) {
    let mut payload = [0; 8 + 64];
    let why = why.as_bytes().get(..why.len().min(64)).unwrap_or_default();
    let end = 8 + why.len();
    payload[..4].copy_from_slice(&last.to_be_bytes());
    payload[4..8].copy_from_slice(&(code as u32).to_be_bytes());
    payload[8..end].copy_from_slice(why);
    put(out, kind::GOAWAY, 0, 0, &payload[..end]);
}

/// Appends SETTINGS (section 6.5).
pub fn put_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let header =
        FrameHeader { length: settings.len() * 6, kind: kind::SETTINGS, flags: 0, stream: 0 };
    out.extend_from_slice(&header.bytes());
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = FrameHeader {
            length: MAX_PAYLOAD,
            kind: kind::CONTINUATION,
            flags: flag::END_HEADERS,
            stream: 0x7fff_ffff,
        };
        let bytes = header.bytes();
        assert_eq!(FrameHeader::read(&bytes), Some(header));
        assert_eq!(FrameHeader::read(&bytes[..8]), None);
        let mut reserved = bytes;
        reserved[5] |= 0x80;
        assert_eq!(FrameHeader::read(&reserved), Some(header), "the reserved bit is ignored");
    }

    #[test]
    fn frames_have_the_bytes_of_the_rfc() {
        let mut out = Vec::new();
        put_reset(&mut out, 3, ErrorCode::Cancel);
        assert_eq!(out, [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8]);
        out.clear();
        put_settings(&mut out, &[(setting::MAX_FRAME_SIZE, 16_384)]);
        assert_eq!(out, [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x40, 0]);
        out.clear();
        put_goaway(&mut out, 5, ErrorCode::Protocol, "no");
        assert_eq!(out, [0, 0, 10, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, b'n', b'o']);
    }
}
