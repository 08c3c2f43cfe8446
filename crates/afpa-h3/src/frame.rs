//! Frames as they are on the wire (RFC 9114 section 7).

use crate::varint;

/// Types of frames (sections 7.2 and 11.2.1; RFC 9218 section 7.2).
pub mod kind {
    #![allow(missing_docs)]
    pub const DATA: u64 = 0x00;
    pub const HEADERS: u64 = 0x01;
    pub const CANCEL_PUSH: u64 = 0x03;
    pub const SETTINGS: u64 = 0x04;
    pub const PUSH_PROMISE: u64 = 0x05;
    pub const GOAWAY: u64 = 0x07;
    pub const MAX_PUSH_ID: u64 = 0x0d;
    pub const PRIORITY_UPDATE: u64 = 0xf0700;
    pub const PRIORITY_UPDATE_PUSH: u64 = 0xf0701;

    /// Types that HTTP/2 has and HTTP/3 has not (section 7.2.8).
    pub fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
    }
}

/// Types of unidirectional streams (section 6.2; RFC 9204 section 4.2).
pub mod stream_kind {
    #![allow(missing_docs)]
    pub const CONTROL: u64 = 0x00;
    pub const PUSH: u64 = 0x01;
    pub const QPACK_ENCODER: u64 = 0x02;
    pub const QPACK_DECODER: u64 = 0x03;
}

/// Settings (section 7.2.4.1; RFC 9204 section 5; RFC 9220 section 3; RFC 9297 section 2.1.1).
pub mod setting {
    #![allow(missing_docs)]
    pub const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
    pub const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
    pub const QPACK_BLOCKED_STREAMS: u64 = 0x07;
    pub const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
    pub const H3_DATAGRAM: u64 = 0x33;

    /// Settings that HTTP/2 has and HTTP/3 has not (section 7.2.4.1).
    pub fn is_of_http2(id: u64) -> bool {
        matches!(id, 0x00 | 0x02 | 0x03 | 0x04 | 0x05)
    }
}

/// Error codes (section 8.1; RFC 9204 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u64)]
pub enum ErrorCode {
    NoError = 0x0100,
    GeneralProtocol = 0x0101,
    Internal = 0x0102,
    StreamCreation = 0x0103,
    ClosedCriticalStream = 0x0104,
    FrameUnexpected = 0x0105,
    Frame = 0x0106,
    ExcessiveLoad = 0x0107,
    Id = 0x0108,
    Settings = 0x0109,
    MissingSettings = 0x010a,
    RequestRejected = 0x010b,
    RequestCancelled = 0x010c,
    RequestIncomplete = 0x010d,
    Message = 0x010e,
    Connect = 0x010f,
    VersionFallback = 0x0110,
    QpackDecompressionFailed = 0x0200,
    QpackEncoderStream = 0x0201,
    QpackDecoderStream = 0x0202,
}

/// Appends the header of a frame.
pub fn put_header(out: &mut Vec<u8>, kind: u64, length: u64) {
    varint::put(out, kind);
    varint::put(out, length);
}

/// Bytes of a frame with a payload of this length.
pub fn size(kind: u64, length: usize) -> usize {
    varint::size(kind) + varint::size(length as u64) + length
}

/// Reads the header of a frame: its type, the length of its payload, and how many bytes the header took.
pub fn read_header(input: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, first) = varint::read(input)?;
    let (length, second) = varint::read(input.get(first..)?)?;
    Some((kind, length, first + second))
}

/// The longest header of a frame.
pub const HEADER: usize = 16;
