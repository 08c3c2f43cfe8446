//! Field blocks for clients: indices of the static table, and literals that are not indexed (RFC 7541 sections 6.1
//! and 6.2.2). A field block never depends on an earlier one.

use super::{integer, statics};
use crate::code::FieldCode;

/// Field blocks of HTTP/2.
#[derive(Clone, Copy, Debug)]
pub struct Hpack;

impl FieldCode for Hpack {
    fn begin(_: &mut Vec<u8>) {}

    fn put_status(out: &mut Vec<u8>, status: u16) {
        put_status(out, status);
    }

    fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        put_field(out, name, value);
    }
}

/// Appends `:status`.
pub fn put_status(out: &mut Vec<u8>, status: u16) {
    const KNOWN: [(u16, u8); 7] =
        [(200, 8), (204, 9), (206, 10), (304, 11), (400, 12), (404, 13), (500, 14)];
    match KNOWN.iter().find(|(known, _)| *known == status) {
        Some((_, index)) => out.push(0x80 | index),
        None => {
            integer::put(out, 0, 4, 8);
            put_text(out, itoa::Buffer::new().format(status).as_bytes());
        }
    }
}

/// Appends a field, its name in lower case.
pub fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let mut room = [0; 64];
    let lower = room.get_mut(..name.len()).map(|lower| {
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        &*lower
    });
    // No name of the static table is longer than the room.
    match lower.and_then(statics::index_of) {
        Some(index) => integer::put(out, 0, 4, index),
        None => {
            out.push(0);
            integer::put(out, 0, 7, name.len());
            out.extend(name.iter().map(u8::to_ascii_lowercase));
        }
    }
    put_text(out, value);
}

/// Appends the word that the dynamic table has no room (section 6.3). The first block of a connection begins with it:
/// then no later SETTINGS_HEADER_TABLE_SIZE of the client has to be answered (section 4.2).
pub fn put_no_table(out: &mut Vec<u8>) {
    out.push(0x20);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    integer::put(out, 0, 7, text.len());
    out.extend_from_slice(text);
}
