//! Hashed names (RFC 5155): which record matches a name, and which one covers it.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use crate::rtype;
use crate::zone::{Node, Zone};

/// More rounds than this make a zone insecure for everybody who validates (RFC 9276 section 3.2), and each answer slow.
pub(crate) const MOST_ITERATIONS: u16 = 150;

/// The chain of hashes of a zone.
#[derive(Clone, Debug)]
pub(crate) struct Nsec3 {
    iterations: u16,
    salt: Box<[u8]>,
    /// From the hash to the name in lower case of the record.
    chain: BTreeMap<[u8; 20], Box<[u8]>>,
}

impl Nsec3 {
    pub(crate) fn of(zone: &Zone) -> Option<Self> {
        let parameters = zone.top()?.set(rtype::NSEC3PARAM)?.data.first()?;
        let (head, rest) = parameters.split_first_chunk::<5>()?;
        let [algorithm, _, high, low, length] = *head;
        let iterations = u16::from_be_bytes([high, low]);
        if algorithm != 1 || iterations > MOST_ITERATIONS {
            return None;
        }
        let salt: Box<[u8]> = rest.get(..usize::from(length))?.into();
        let nodes = zone.hashed().filter(|node| node.set(rtype::NSEC3).is_some());
        let chain = nodes.filter_map(|node| {
            let label = node.owner.labels().next()?;
            Some((from_base32(label)?, node.owner.lower().wire().into()))
        });
        Some(Self { iterations, salt, chain: chain.collect() })
    }

    fn hash(&self, lower: &[u8]) -> Option<[u8; 20]> {
        let round = |bytes: &[u8]| {
            let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
            context.update(bytes);
            context.update(&self.salt);
            context.finish()
        };
        let mut digest = round(lower);
        for _ in 0..self.iterations {
            digest = round(digest.as_ref());
        }
        digest.as_ref().try_into().ok()
    }

    /// The node whose hash is that of a name.
    pub(crate) fn matching<'z>(&self, zone: &'z Zone, lower: &[u8]) -> Option<&'z Node> {
        zone.hashed_node(self.chain.get(&self.hash(lower)?)?)
    }

    /// The node whose hash is the last one before that of a name.
    pub(crate) fn covering<'z>(&self, zone: &'z Zone, lower: &[u8]) -> Option<&'z Node> {
        let hash = self.hash(lower)?;
        let before = self.chain.range(..hash).next_back();
        let (_, name) = before.or_else(|| self.chain.last_key_value())?;
        zone.hashed_node(name)
    }

    /// The closest name above one that has a hash in the chain, and the name one label longer.
    pub(crate) fn provable<'n>(
        &self,
        zone: &Zone,
        lower: &'n [u8],
    ) -> Option<(&'n [u8], &'n [u8])> {
        let mut below = lower;
        for suffix in crate::name::suffixes(lower).skip(1) {
            if self.matching(zone, suffix).is_some() {
                return Some((suffix, below));
            }
            below = suffix;
        }
        None
    }
}

/// Twenty bytes from their extended base32 (RFC 4648 section 7).
fn from_base32(label: &[u8]) -> Option<[u8; 20]> {
    if label.len() != 32 {
        return None;
    }
    let mut bytes = [0; 20];
    let (mut held, mut bits, mut at) = (0_u32, 0, 0);
    for digit in label {
        let value = match digit.to_ascii_lowercase() {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'v' => digit - b'a' + 10,
            _ => return None,
        };
        held = held << 5 | u32::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            *bytes.get_mut(at)? = (held >> bits) as u8;
            at += 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    /// RFC 5155 appendix A: the hash of each name of its zone.
    #[test]
    fn hashes_are_those_of_the_rfc() {
        let nsec3 =
            Nsec3 { iterations: 12, salt: [0xaa, 0xbb, 0xcc, 0xdd].into(), chain: BTreeMap::new() };
        let root = Name::root();
        for (name, hash) in [
            ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            ("a.example", "35mthgpgcu1qg68fab165klnsnk3dpvl"),
            ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
            ("xx.example", "t644ebqk9bibcna874givr6joj62mlhv"),
        ] {
            let name = Name::parse(name, &root).expect("a name");
            assert_eq!(nsec3.hash(name.wire()), from_base32(hash.as_bytes()));
        }
    }
}
