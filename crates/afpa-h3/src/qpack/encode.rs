//! Our field sections (RFC 9204 section 4.5): entries of the static table and literals, none in Huffman code, so that a
//! date can be patched where it stands.

use afpa_h2::hpack::integer;
use afpa_h2::{CodedReader, FieldCode, ResponseEvent};

use super::statics::{self, Place};

/// Field sections of HTTP/3.
#[derive(Clone, Copy, Debug)]
pub struct Qpack;

/// The first entry of `:status`.
const STATUS: usize = 24;

impl FieldCode for Qpack {
    /// The prefix (section 4.5.1): nothing of the dynamic table is required.
    fn begin(out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
    }

    fn put_status(out: &mut Vec<u8>, status: u16) {
        const KNOWN: [(u16, usize); 14] = [
            (103, 24),
            (200, 25),
            (304, 26),
            (404, 27),
            (503, 28),
            (100, 63),
            (204, 64),
            (206, 65),
            (302, 66),
            (400, 67),
            (403, 68),
            (421, 69),
            (425, 70),
            (500, 71),
        ];
        match KNOWN.iter().find(|(known, _)| *known == status) {
            Some((_, index)) => integer::put(out, 0xc0, 6, *index),
            None => {
                integer::put(out, 0x50, 4, STATUS);
                let digits =
                    [status / 100, status / 10 % 10, status % 10].map(|digit| digit as u8 + b'0');
                put_text(out, 0, 7, &digits);
            }
        }
    }

    fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        let mut room = [0; 64];
        let lower = room.get_mut(..name.len()).map(|lower| {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            &*lower
        });
        // No name of the static table is longer than the room.
        match lower.and_then(|lower| statics::place_of(lower, value)) {
            Some(Place::Field(index)) => return integer::put(out, 0xc0, 6, index),
            Some(Place::Name(index)) => integer::put(out, 0x50, 4, index),
            None => {
                integer::put(out, 0x20, 3, name.len());
                out.extend(name.iter().map(u8::to_ascii_lowercase));
            }
        }
        put_text(out, 0, 7, value);
    }
}

/// The field section of a response's whole head of HTTP/1.1, to be kept and to have further fields behind it; `None`: it is no such
/// head.
pub fn section_of(head: &[u8]) -> Option<Vec<u8>> {
    let mut reader = CodedReader::<Qpack>::new(false, false);
    let (length, event) = reader.read(head).ok()?;
    let is_whole =
        length == head.len() && matches!(event, Some(ResponseEvent::Head { interim: false, .. }));
    is_whole.then(|| reader.block().to_vec())
}

fn put_text(out: &mut Vec<u8>, first: u8, prefix: u32, text: &[u8]) {
    integer::put(out, first, prefix, text.len());
    out.extend_from_slice(text);
}
