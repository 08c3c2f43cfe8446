//! The binary logs of the 1998 World Cup's site: records of twenty bytes, in the order of the network.
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | seconds since 1970, UTC |
//! | 4-7 | number of the client |
//! | 8-11 | number of the object |
//! | 12-15 | bytes of the answer; all ones: the log had a dash |
//! | 16 | method: 0 is GET |
//! | 17 | status: the upper two bits are HTTP's version, the others an index into [`STATUS`] |
//! | 18 | kind of file, an index into [`KINDS`] |
//! | 19 | region and number of the server |

use std::io::Read;

use anyhow::{Result, ensure};

use super::{Entry, LogLimits};

/// Bytes of a record.
const RECORD: usize = 20;
const GET: u8 = 0;
/// Of the byte of the status.
const INDEX: u8 = 0x3f;
/// In the order of the archive's tools; an index behind the last one is no status.
const STATUS: [u16; 37] = [
    100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 305, 400, 401, 402, 403,
    404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 500, 501, 502, 503, 504, 505,
];
/// Extensions of the kinds of files: HTML, image, audio, video, Java, formatted, dynamic, text, compressed, programs,
/// directory, ICL, others.
const KINDS: [&str; 13] =
    ["html", "gif", "bin", "bin", "bin", "bin", "html", "txt", "bin", "bin", "html", "bin", "bin"];

/// Whether a log begins like one: a client's number has a byte of zero, which no line of text has.
pub(crate) fn is_world_cup(begin: &[u8]) -> bool {
    begin.len() >= RECORD && begin[..RECORD].contains(&0)
}

/// Reads such a log, as [`read_log`](super::read_log) does those in common log format; a last record that was cut short is
/// passed over.
///
/// # Errors
///
/// When the log cannot be read, or has no entry that can be replayed.
pub(crate) fn read_world_cup(
    mut log: impl Read,
    limits: &LogLimits,
) -> Result<(Vec<Entry>, usize)> {
    let (mut entries, mut passed_over, mut record) = (Vec::new(), 0, [0; RECORD]);
    while entries.len() < limits.entries {
        let read = read_record(&mut log, &mut record)?;
        if read == 0 {
            break;
        }
        let entry = (read == RECORD).then(|| parse(&record)).flatten();
        match entry.filter(|entry| entry.bytes <= limits.file) {
            Some(entry) => entries.push(entry),
            None => passed_over += 1,
        }
    }
    ensure!(!entries.is_empty(), "the log has no record that can be replayed");
    entries.sort_by_key(|entry| entry.time);
    Ok((entries, passed_over))
}

/// Fills the record as far as the log goes; gives back the number of bytes.
fn read_record(log: &mut impl Read, record: &mut [u8; RECORD]) -> Result<usize> {
    let mut filled = 0;
    while let Some(room) = record.get_mut(filled..).filter(|room| !room.is_empty()) {
        match log.read(room) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}

fn parse(record: &[u8; RECORD]) -> Option<Entry> {
    let (numbers, rest) = record.split_at(16);
    let mut numbers = numbers
        .chunks_exact(4)
        .map(|bytes| bytes.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)));
    let (time, client) = (numbers.next()?, numbers.next()?);
    let (object, bytes) = (numbers.next()?, numbers.next()?);
    let [method, status, kind, _server] = *rest else { return None };
    let status = STATUS.get(usize::from(status & INDEX)).copied()?;
    let replayed = method == GET && matches!(status, 200 | 304 | 404);
    let kind = KINDS.get(usize::from(kind)).copied().unwrap_or("bin");
    replayed.then(|| Entry {
        client: client.to_string(),
        time: i64::from(time),
        path: format!("/{object}.{kind}"),
        status,
        bytes: if bytes == u32::MAX { 0 } else { u64::from(bytes) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::SyntheticLog;

    /// The log is not ours to give away, so one of its shape is made up.
    fn record(time: u32, client: u32, object: u32, bytes: u32, rest: [u8; 4]) -> Vec<u8> {
        let numbers = [time, client, object, bytes].map(u32::to_be_bytes);
        [numbers.concat(), rest.to_vec()].concat()
    }

    fn read(log: &[u8]) -> Result<(Vec<Entry>, usize)> {
        read_world_cup(log, &LogLimits::default())
    }

    #[test]
    fn a_record_is_read_as_the_archive_describes_it() {
        // HTTP/1.0, 200, an image.
        let log = record(894_000_000, 17, 4711, 2326, [0, 0x42, 1, 0x21]);
        let expected = Entry {
            client: "17".into(),
            time: 894_000_000,
            path: "/4711.gif".into(),
            status: 200,
            bytes: 2326,
        };
        assert_eq!(read(&log).unwrap(), (vec![expected], 0));
        assert!(is_world_cup(&log));
        assert!(!is_world_cup(b"199.72.81.55 - frank [10/Oct/2000:13:55:36 -0700]"));
        assert!(!is_world_cup(&log[..19]));
    }

    #[test]
    fn statuses_are_where_the_archive_has_them() {
        for (index, status) in [(2, 200), (13, 304), (19, 404)] {
            let log = record(1, 1, 1, u32::MAX, [0, 0x80 | index, 0, 0]);
            let entry = read(&log).unwrap().0.remove(0);
            assert_eq!((entry.status, entry.bytes), (status, 0));
        }
    }

    #[test]
    fn what_cannot_be_replayed_is_passed_over() {
        let good = record(2, 1, 1, 1, [0, 2, 0, 0]);
        let earlier = record(1, 1, 1, 1, [0, 2, 99, 0]);
        let wrong = [
            record(1, 1, 1, 1, [2, 2, 0, 0]),
            record(1, 1, 1, 1, [0, 31, 0, 0]),
            record(1, 1, 1, 1, [0, 63, 0, 0]),
            record(1, 1, 1, u32::MAX - 1, [0, 2, 0, 0]),
        ];
        let log = [good, wrong.concat(), earlier, vec![0; 7]].concat();
        let (entries, passed_over) = read(&log).unwrap();
        assert_eq!((entries.len(), passed_over), (2, 5));
        assert_eq!((entries[0].time, &*entries[0].path), (1, "/1.bin"));
        assert!(read(&[]).is_err() && read(&[0; 19]).is_err());
    }

    #[test]
    fn a_made_up_log_of_this_shape_is_read_whole() {
        let made = SyntheticLog { entries: 500, files: 50, ..SyntheticLog::default() }.make();
        let records = made.iter().enumerate().map(|(number, entry)| {
            let index = STATUS.iter().position(|status| *status == entry.status).unwrap() as u8;
            record(
                entry.time as u32,
                number as u32 % 40,
                number as u32 % 50,
                entry.bytes as u32,
                [0, index, 1, 0],
            )
        });
        let log: Vec<u8> = records.flatten().collect();
        let (entries, passed_over) = read(&log).unwrap();
        assert_eq!((entries.len(), passed_over), (made.len(), 0));
        let bytes = |entries: &[Entry]| entries.iter().map(|entry| entry.bytes).sum::<u64>();
        assert_eq!(bytes(&entries), bytes(&made));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_it(log: Vec<u8>, entries in 1_usize..50) {
            let limits = LogLimits { entries, ..LogLimits::default() };
            if let Ok((found, _)) = read_world_cup(&*log, &limits) {
                proptest::prop_assert!(found.len() <= entries && found.len() <= log.len() / RECORD);
                proptest::prop_assert!(found.iter().all(|entry| entry.bytes <= limits.file));
            }
            let _ = is_world_cup(&log);
        }
    }
}
