//! The messages of the two processes, over a socket pair: numbers in the host's byte order.
//!
//! First comes the list, as [`List`] in JSON behind its length. Then questions and answers take turns:
//!
//! ```text
//! question:  kind (1 byte)  number of the file in the list (4)
//! answer:    0 or the error's number (4)  length (4)  bytes: the file, its version, or words about the error
//! ```

use std::io::{self, Read, Write};

use afpa_config::LONGEST_TLS_FILE;
use serde::{Deserialize, Serialize};

use super::Version;

/// The user that the process becomes, and the files that it gives out.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct List {
    pub(super) user: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Absolute paths.
    pub(super) files: Vec<std::path::PathBuf>,
}

/// The part of a file that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Bytes,
    Version,
}

pub(super) fn write_list(to: &mut impl Write, list: &List) -> io::Result<()> {
    let text = serde_json::to_vec(list)?;
    to.write_all(&length(&text)?.to_ne_bytes())?;
    to.write_all(&text)
}

pub(super) fn read_list(from: &mut impl Read) -> io::Result<List> {
    Ok(serde_json::from_slice(&read_bytes(from)?)?)
}

pub(super) fn write_question(to: &mut impl Write, question: Question, file: u32) -> io::Result<()> {
    let mut message = vec![u8::from(question == Question::Version)];
    message.extend(file.to_ne_bytes());
    to.write_all(&message)
}

/// `None`: the other side has gone.
pub(super) fn read_question(from: &mut impl Read) -> io::Result<Option<(Question, u32)>> {
    let mut kind = [0];
    if from.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let question = match kind {
        [0] => Question::Bytes,
        [1] => Question::Version,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok(Some((question, read_number(from)?)))
}

pub(super) fn write_answer(to: &mut impl Write, answer: io::Result<Vec<u8>>) -> io::Result<()> {
    let (status, bytes) = match answer {
        Ok(bytes) => (0, bytes),
        Err(error) => (number(&error), error.to_string().into_bytes()),
    };
    to.write_all(&status.to_ne_bytes())?;
    to.write_all(&length(&bytes)?.to_ne_bytes())?;
    to.write_all(&bytes)
}

/// The outer result is that of the transport, the inner one that of the other process.
pub(super) fn read_answer(from: &mut impl Read) -> io::Result<io::Result<Vec<u8>>> {
    let status = read_number(from)?;
    let bytes = read_bytes(from)?;
    Ok(match status {
        0 => Ok(bytes),
        _ => Err(io::Error::new(kind(status), String::from_utf8_lossy(&bytes).into_owned())),
    })
}

/// Errors that the asking process distinguishes.
const KINDS: [io::ErrorKind; 4] = [
    io::ErrorKind::Other,
    io::ErrorKind::NotFound,
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::InvalidInput,
];

fn number(error: &io::Error) -> u32 {
    KINDS.into_iter().zip(1..).find(|(kind, _)| *kind == error.kind()).map_or(1, |(_, at)| at)
}

fn kind(status: u32) -> io::ErrorKind {
    KINDS.into_iter().zip(1..).find(|(_, at)| *at == status).map_or(KINDS[0], |(kind, _)| kind)
}

pub(super) fn version_to_bytes(version: Version) -> Vec<u8> {
    let Version { inode, size, changed_s, changed_ns } = version;
    [inode.to_ne_bytes(), size.to_ne_bytes(), changed_s.to_ne_bytes(), changed_ns.to_ne_bytes()]
        .concat()
}

pub(super) fn version_from_bytes(bytes: &[u8]) -> io::Result<Version> {
    let (words, []) = bytes.as_chunks::<8>() else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let &[inode, size, changed_s, changed_ns] = words else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    Ok(Version {
        inode: u64::from_ne_bytes(inode),
        size: u64::from_ne_bytes(size),
        changed_s: i64::from_ne_bytes(changed_s),
        changed_ns: i64::from_ne_bytes(changed_ns),
    })
}

fn length(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn read_number(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = read_number(from)?;
    // No file that is read is longer, and so no message.
    if u64::from(length) > LONGEST_TLS_FILE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        write_question(&mut bytes, Question::Version, 7).unwrap();
        write_question(&mut bytes, Question::Bytes, 0).unwrap();
        let mut from = &bytes[..];
        assert_eq!(read_question(&mut from).unwrap(), Some((Question::Version, 7)));
        assert_eq!(read_question(&mut from).unwrap(), Some((Question::Bytes, 0)));
        assert_eq!(read_question(&mut from).unwrap(), None);
    }

    #[test]
    fn answers_and_errors_keep_their_kind() {
        let mut bytes = Vec::new();
        write_answer(&mut bytes, Ok(b"text".to_vec())).unwrap();
        for kind in KINDS {
            write_answer(&mut bytes, Err(io::Error::new(kind, "why"))).unwrap();
        }
        write_answer(&mut bytes, Err(io::ErrorKind::AddrInUse.into())).unwrap();
        let mut from = &bytes[..];
        assert_eq!(read_answer(&mut from).unwrap().unwrap(), b"text");
        for kind in KINDS {
            let error = read_answer(&mut from).unwrap().unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (kind, "why".to_owned()));
        }
        assert_eq!(read_answer(&mut from).unwrap().unwrap_err().kind(), io::ErrorKind::Other);
    }

    #[test]
    fn versions_come_back() {
        let version = Version::of(std::path::Path::new("/")).unwrap();
        assert_eq!(version_from_bytes(&version_to_bytes(version)).unwrap(), version);
        assert!(version_from_bytes(b"short").is_err());
        assert!(version_from_bytes(&[0; 40]).is_err());
    }

    #[test]
    fn a_message_beyond_the_limit_is_refused() {
        let mut bytes = 0_u32.to_ne_bytes().to_vec();
        bytes.extend(u32::MAX.to_ne_bytes());
        assert!(read_answer(&mut &bytes[..]).is_err());
        assert!(read_question(&mut &[9_u8, 0, 0, 0, 0][..]).is_err());
    }
}
