//! The record of a roll-out as the servers have it: sealed for its number, and for the buckets as they were made. These times
//! stand before it, so that a record of buckets before is known from one of another secret.
//!
//! ```text
//! 2 | made (8): of the files | made (8): of the record | sealed { record }
//! ```

use crate::nats::Fault;
use crate::rollout::Rollout;
use crate::seal::Secret;

const FORM: u8 = 2;

/// When the buckets of files and of the record were made.
pub(crate) type Made = [u64; 2];

/// A record of this fleet.
#[derive(Debug, PartialEq)]
pub(crate) enum Opened {
    Here(Box<Rollout>),
    /// It was written before one of the buckets was made anew. Nobody follows it, and the next one may be written in its place.
    OfBucketBefore,
}

/// Seals a record that is to have a number.
pub(crate) fn seal(
    secret: &Secret,
    made: Made,
    number: u64,
    rollout: &Rollout,
) -> Result<Vec<u8>, Fault> {
    let sealed = secret.seal(&context(made, number), &serde_json::to_vec(rollout)?);
    let [files, record] = made.map(u64::to_be_bytes);
    Ok([&[FORM], &files[..], &record, &sealed].concat())
}

/// Opens the record with a number.
pub(crate) fn open(
    secret: &Secret,
    made: Made,
    number: u64,
    bytes: &[u8],
) -> Result<Opened, Fault> {
    let opened = parts(bytes)
        .and_then(|(said, sealed)| Some((said, secret.open(&context(said, number), sealed)?)));
    match opened {
        Some((said, opened)) if said == made => Ok(Opened::Here(serde_json::from_slice(&opened)?)),
        Some(_) => Ok(Opened::OfBucketBefore),
        None => Err("it is sealed by another `secret` than this machine has, or by an earlier version: then delete the buckets of \
             configurations, and push again".into()),
    }
}

fn parts(bytes: &[u8]) -> Option<(Made, &[u8])> {
    let (&FORM, rest) = bytes.split_first()? else { return None };
    let (files, rest) = rest.split_first_chunk()?;
    let (record, sealed) = rest.split_first_chunk()?;
    Some(([files, record].map(|bytes| u64::from_be_bytes(*bytes)), sealed))
}

/// The purpose of a record: nobody can put it to another place.
fn context([files, record]: Made, number: u64) -> String {
    format!("rollout {files} {record} {number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Load;
    use crate::rollout::{Bounds, Phase, Stage};

    fn secret(byte: u8) -> Secret {
        Secret::of(&[byte; 32]).unwrap()
    }

    fn rollout() -> Rollout {
        Rollout {
            target: 1,
            base: None,
            stage: Stage::All,
            phase: Phase::Done,
            chosen: Vec::new(),
            at: "a".to_owned(),
            driver: "d".to_owned(),
            beats: 0,
            bounds: Bounds { wait_ms: 1000, errors: 1, p99_us: 0 },
            before: Load::default(),
            revisions: Vec::new(),
        }
    }

    #[test]
    fn a_record_of_a_bucket_before_is_no_order_and_may_be_replaced() {
        let (made, rollout) = ([7, 8], rollout());
        let bytes = seal(&secret(1), made, 3, &rollout).unwrap();
        assert_eq!(open(&secret(1), made, 3, &bytes).unwrap(), Opened::Here(Box::new(rollout)));
        for anew in [[7, 9], [9, 8]] {
            let opened = open(&secret(1), anew, 3, &bytes).unwrap();
            assert_eq!(opened, Opened::OfBucketBefore, "{anew:?}");
        }
    }

    #[test]
    fn what_another_secret_has_sealed_is_left_alone() {
        let made = [7, 8];
        let bytes = seal(&secret(1), made, 3, &rollout()).unwrap();
        assert!(open(&secret(2), made, 3, &bytes).is_err());
        assert!(open(&secret(1), made, 4, &bytes).is_err(), "another number");
        // A stranger can say another time, and has not sealed for it.
        let mut said = bytes.clone();
        said[8] ^= 1;
        assert!(open(&secret(1), made, 3, &said).is_err());
        for length in 0..bytes.len() {
            assert!(open(&secret(1), made, 3, &bytes[..length]).is_err(), "{length}");
        }
    }
}
