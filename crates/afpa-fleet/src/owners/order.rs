//! The order of the machines for a key: by a hash of both (rendezvous hashing, Thaler and Ravishankar 1998). A machine that
//! comes or goes changes the place of its own keys alone, and nothing is kept for it: a fleet has few machines.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

/// Numbers of machines.
pub(super) type First = SmallVec<[usize; 16]>;

/// A fixed seed: every machine must compute the same order.
const KEYS: (u64, u64) = (0x4146_5041, 0x6f77_6e65);

/// The hash of a machine's name.
pub(super) fn seed(name: &str) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(KEYS.0, KEYS.1);
    hasher.write(name.as_bytes());
    hasher.finish()
}

/// The first `count` machines for a key, by their place among `machines`. Each machine has a seed, and the parts of its keys, of
/// 256, that it has given up: for these it comes behind all others, in the same order.
pub(super) fn first(machines: impl Iterator<Item = (u64, u8)>, key: u64, count: usize) -> First {
    let mut best: SmallVec<[(bool, u64, usize); 16]> = SmallVec::new();
    for (number, (seed, shed)) in machines.enumerate() {
        let weight = weight(seed, key);
        // The low bits decide nothing else where few machines are compared.
        let keeps = (weight & 0xff) as u8 >= shed;
        let one = (keeps, weight, number);
        let at = best.partition_point(|other| *other > one);
        if at < count {
            best.truncate(count.saturating_sub(1));
            best.insert(at, one);
        }
    }
    best.into_iter().map(|(_, _, number)| number).collect()
}

fn weight(seed: u64, key: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(KEYS.0, seed);
    hasher.write_u64(key);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ones_are_those_of_the_whole_order() {
        let machines: Vec<_> = (0..7).map(|n| (seed(&format!("m{n}")), 16 * n as u8)).collect();
        for key in 0..500 {
            let all = first(machines.iter().copied(), key, 7);
            assert_eq!(all.len(), 7);
            for count in 0..7 {
                assert_eq!(first(machines.iter().copied(), key, count)[..], all[..count]);
            }
        }
    }

    #[test]
    fn every_machine_has_its_share() {
        let machines: Vec<_> = (0..8).map(|n| (seed(&format!("10.0.0.{n}")), 0)).collect();
        let mut got = [0_u32; 8];
        for key in 0..80_000 {
            got[first(machines.iter().copied(), key, 1)[0]] += 1;
        }
        assert!(got.iter().all(|share| (9_500..10_500).contains(share)), "{got:?}");
    }
}
