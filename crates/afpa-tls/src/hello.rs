//! The fields of a client's first message that concern early data. rustls reports early data only at the end of the
//! handshake, and never whether any was offered.
//!
//! ```text
//! ClientHello:  1 | length (3) | version (2) | random (32) | session ID | cipher suites | compression | extensions
//! ```

/// A ClientHello (RFC 8446, section 4.1.2), as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The client knows TLS 1.3.
    pub(crate) knows_13: bool,
    /// It sends early data behind this message.
    pub(crate) offers_early_data: bool,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
const TLS_13: [u8; 2] = [3, 4];

/// More records than a ClientHello lies in.
const RECORDS: usize = 64;

/// Reads the message at the front of the arrived bytes. `None`: it is not complete, or none that rustls would take.
pub(crate) fn read(arrived: &[u8]) -> Option<Hello> {
    let (first, rest) = record(arrived)?;
    if let Some(message) = message(first) {
        return of(message);
    }
    let (mut joined, mut rest) = (first.to_vec(), rest);
    for _ in 0..RECORDS {
        let (fragment, behind) = record(rest)?;
        joined.extend_from_slice(fragment);
        if let Some(message) = message(&joined) {
            return of(message);
        }
        rest = behind;
    }
    None
}

/// The content of the first record, and what is behind it.
fn record(arrived: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = arrived.split_first_chunk::<5>()?;
    let [HANDSHAKE, _, _, high, low] = *head else { return None };
    rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))
}

/// The body of the message, if it is complete.
fn message(fragments: &[u8]) -> Option<&[u8]> {
    let (head, rest) = fragments.split_first_chunk::<4>()?;
    let [CLIENT_HELLO, high, middle, low] = *head else { return None };
    rest.get(..usize::from(high) << 16 | usize::from(u16::from_be_bytes([middle, low])))
}

fn of(body: &[u8]) -> Option<Hello> {
    let mut rest = body.get(2 + 32..)?;
    vector::<1>(&mut rest)?;
    vector::<2>(&mut rest)?;
    vector::<1>(&mut rest)?;
    let mut extensions = vector::<2>(&mut rest).unwrap_or_default();
    let mut hello = Hello::default();
    while let Some((kind, behind)) = extensions.split_first_chunk::<2>() {
        extensions = behind;
        let content = vector::<2>(&mut extensions)?;
        match u16::from_be_bytes(*kind) {
            EARLY_DATA => hello.offers_early_data = true,
            SUPPORTED_VERSIONS => {
                let mut content = content;
                let versions = vector::<1>(&mut content)?;
                hello.knows_13 = versions.as_chunks::<2>().0.contains(&TLS_13);
            }
            _ => {}
        }
    }
    Some(hello)
}

/// Takes a vector off the front, whose length stands before it in so many bytes.
fn vector<'a, const LENGTH: usize>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = from.split_first_chunk::<LENGTH>()?;
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (content, behind) = rest.split_at_checked(length)?;
    *from = behind;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ClientHello with these extensions, in records of `step` bytes.
    fn hello(extensions: &[(u16, &[u8])], step: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([1, 9, 0, 2, 0x13, 1, 1, 0]);
        let mut list = Vec::new();
        for (kind, content) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend((content.len() as u16).to_be_bytes());
            list.extend_from_slice(content);
        }
        body.extend((list.len() as u16).to_be_bytes());
        body.extend(list);
        let mut message = vec![CLIENT_HELLO, 0, 0, body.len() as u8];
        message.extend(body);
        let record = |content: &[u8]| {
            let mut record = vec![HANDSHAKE, 3, 1, 0, content.len() as u8];
            record.extend_from_slice(content);
            record
        };
        message.chunks(step).flat_map(record).collect()
    }

    #[test]
    fn versions_and_early_data_are_found_in_however_many_records() {
        let both: [(u16, &[u8]); 3] = [(0, b""), (43, &[4, 3, 4, 3, 3]), (42, b"")];
        for step in [200, 60, 5] {
            let known = Hello { knows_13: true, offers_early_data: true };
            assert_eq!(read(&hello(&both, step)), Some(known), "{step}");
            assert_eq!(read(&hello(&[(43, &[2, 3, 3])], step)), Some(Hello::default()), "{step}");
            let one = Hello { knows_13: true, ..Hello::default() };
            assert_eq!(read(&hello(&both[..2], step)), Some(one), "{step}");
        }
    }

    #[test]
    fn what_is_behind_it_does_not_matter_and_what_is_cut_off_is_not_known() {
        let mut whole = hello(&[(43, &[2, 3, 4]), (42, b"")], 20);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        let known = read(&whole);
        whole.extend([23, 3, 3, 0, 9]);
        assert!(known.is_some() && read(&whole) == known);
    }

    #[test]
    fn no_byte_makes_it_panic_or_read_too_far() {
        let whole = hello(&[(43, &[2, 3, 4]), (42, b"")], 200);
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = read(&changed);
            }
        }
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n"), None);
        let endless: Vec<u8> = [22, 3, 1, 0, 1, 1].repeat(1000);
        assert_eq!(read(&endless), None);
    }
}
