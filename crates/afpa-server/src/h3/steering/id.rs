//! Our connection ids (RFC 9000 section 5.1): each names the worker that has the connection, for those who have the key.
//!
//! ```text
//! random (4) | mask xor place (4)       mask: the low half of SipHash-2-4 of the random number; big-endian
//!                      place: 18 bits of 0 | generation, 4 bits | worker, 10 bits
//! ```
//!
//! The zeros tell an id of ours from others without state: one in 262,144 ids that clients choose passes for ours. A
//! generation is a process: several live at once while a program is upgraded.
//!
//! A client can make an id of another place out of its own, but not one of another random number. Ids that a Retry of the
//! kernel's gives have a key of their own, so here they are like those that clients choose: the hash of addresses has their
//! datagrams, until the client has learnt the server's id.

use std::hash::Hasher as _;

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use rand::RngExt as _;
use siphasher::sip::SipHasher24;

/// Bytes of an id.
pub(super) const LENGTH: usize = 8;

/// Processes with numbers of their own.
pub(super) const GENERATIONS: u8 = 1 << GENERATION_BITS;

pub(super) const WORKER_BITS: u32 = 10;
const GENERATION_BITS: u32 = 4;

/// A worker of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) generation: u8,
    pub(super) worker: u16,
}

impl Spot {
    fn bits(self) -> u32 {
        u32::from(self.generation) << WORKER_BITS | u32::from(self.worker)
    }

    fn of_bits(bits: u32) -> Option<Self> {
        if bits >> (WORKER_BITS + GENERATION_BITS) != 0 {
            return None;
        }
        let generation = u8::try_from(bits >> WORKER_BITS).ok()?;
        let worker = u16::try_from(bits & ((1 << WORKER_BITS) - 1)).ok()?;
        Some(Self { generation, worker })
    }
}

/// The key of ids.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct IdKey(pub(super) [u8; 16]);

impl std::fmt::Debug for IdKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IdKey")
    }
}

impl IdKey {
    pub(super) fn id(&self, random: u32, spot: Spot) -> [u8; LENGTH] {
        let masked = self.mask(random) ^ spot.bits();
        (u64::from(random) << 32 | u64::from(masked)).to_be_bytes()
    }

    /// Whose connection it is; `None`: it is no id of ours.
    pub(super) fn read(&self, id: [u8; LENGTH]) -> Option<Spot> {
        let id = u64::from_be_bytes(id);
        let (random, masked) = ((id >> 32) as u32, id as u32);
        Spot::of_bits(masked ^ self.mask(random))
    }

    fn mask(&self, random: u32) -> u32 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&random.to_le_bytes());
        hasher.finish() as u32
    }
}

/// The id that a datagram is sent to, if it has the length of ours (RFC 8999 section 5).
pub(super) fn destination(datagram: &[u8]) -> Option<[u8; LENGTH]> {
    let [first, rest @ ..] = datagram else { return None };
    let id = match first & 0x80 {
        0 => rest,
        // Behind the version stands the length.
        _ => match rest.get(4..)? {
            [8, id @ ..] => id,
            _ => return None,
        },
    };
    id.first_chunk().copied()
}

/// Makes the ids of a worker's connections.
pub(super) struct Ids {
    pub(super) key: IdKey,
    pub(super) spot: Spot,
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.key.id(rand::rng().random(), self.spot))
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let id = <[u8; LENGTH]>::try_from(&id[..]).map_err(|_| InvalidCid)?;
        self.key.read(id).map(drop).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_tls::quic::{SECRET, Secret};

    #[test]
    fn an_id_names_its_spot_under_its_key_alone() {
        let (key, other) = (IdKey([7; 16]), IdKey([8; 16]));
        let mut foreign = 0;
        for at in 0..20_000_u32 {
            let random = at.wrapping_mul(0x9e37_79b9);
            let spot = Spot { generation: (at % 16) as u8, worker: (at % 1024) as u16 };
            let id = key.id(random, spot);
            assert_eq!(key.read(id), Some(spot));
            foreign += usize::from(other.read(id).is_some());
        }
        assert!(foreign < 4, "{foreign} of 20,000 ids pass for ones of another key");
    }

    #[test]
    fn ids_of_one_spot_have_nothing_in_common() {
        let mut ids = Ids { key: IdKey([3; 16]), spot: Spot { generation: 1, worker: 5 } };
        let made: Vec<ConnectionId> = (0..64).map(|_| ids.generate_cid()).collect();
        for at in 0..LENGTH {
            assert!(made.iter().any(|id| id[at] != made[0][at]), "byte {at} is the same in all");
        }
        assert!(made.iter().all(|id| ids.validate(id).is_ok()));
        assert!(ids.validate(&ConnectionId::new(&[1, 2, 3])).is_err());
    }

    #[test]
    fn what_is_made_of_a_retrys_id_is_not_ours() {
        let keys = Secret::of([5; SECRET]).keys();
        let (own, of_retry) = (IdKey(keys.ids), IdKey(keys.retry_ids));
        let mut passed = 0;
        for at in 0..2_000_u32 {
            let id = of_retry.id(at.wrapping_mul(0x9e37_79b9), Spot::default());
            // The place that it would have to have is all that changes in those of one random number.
            for place in [0, 1023, 1 << 10, (1 << 14) - 1, at & 1023, at << 3 & 0x3fff] {
                let made = (u64::from_be_bytes(id) ^ u64::from(place)).to_be_bytes();
                passed += usize::from(own.read(made).is_some());
            }
            for bit in 0..64 {
                let made = (u64::from_be_bytes(id) ^ 1 << bit).to_be_bytes();
                passed += usize::from(own.read(made).is_some());
            }
        }
        assert!(passed < 20, "{passed} of 140,000 pass for ids of ours");
    }

    #[test]
    fn the_destination_stands_where_the_header_says() {
        let id = [1, 2, 3, 4, 5, 6, 7, 8];
        let short = [&[0x40][..], &id, &[0; 20]].concat();
        let long = [&[0xc0, 0, 0, 0, 1, 8][..], &id, &[0; 20]].concat();
        let of_seven = [&[0xc0, 0, 0, 0, 1, 7][..], &id, &[0; 20]].concat();
        assert_eq!(destination(&short), Some(id));
        assert_eq!(destination(&long), Some(id));
        assert_eq!(destination(&of_seven), None);
        for cut in 0..9 {
            assert_eq!(destination(&short[..cut]), None);
        }
        for cut in 0..14 {
            assert_eq!(destination(&long[..cut]), None);
        }
    }
}
