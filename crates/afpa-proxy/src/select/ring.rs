//! Consistent hashing: the hash of a request is a position on a ring of points, and the next point belongs to
//! the server of the request. When a server is added or removed, only its own part of the ring changes.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// Points of a server for each unit of weight: enough that shares differ by a few percent only.
const POINTS: u32 = 64;

/// Most points of a ring: 16 MB.
const MOST_POINTS: u64 = 1 << 20;

/// A fixed seed: every front end of a group must compute the same ring.
const KEYS: (u64, u64) = (0x4146_5041, 0x7269_6e67);

/// The points, in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    points: Vec<(u64, u32)>,
}

impl Ring {
    /// The ring of servers given by number, name and weight. Names decide where the points lie;
    /// a weight of 0 has none.
    pub(crate) fn new<'n>(servers: impl Iterator<Item = (usize, &'n str, u32)> + Clone) -> Self {
        let wanted: u64 = servers.clone().map(|(_, _, w)| u64::from(w) * u64::from(POINTS)).sum();
        let scale = wanted.div_ceil(MOST_POINTS).max(1);
        let mut points = Vec::new();
        for (server, name, weight) in servers {
            let count = (u64::from(weight) * u64::from(POINTS)).div_ceil(scale);
            let number = u32::try_from(server).unwrap_or(u32::MAX);
            points.extend((0..count).map(|nth| (point(name, nth), number)));
        }
        points.sort_unstable();
        Self { points }
    }

    /// The servers from `hash` on, once around the ring; each as often as it has points.
    pub(crate) fn walk(&self, hash: u64) -> impl Iterator<Item = usize> {
        let from = self.points.partition_point(|(point, _)| *point < hash);
        let (before, after) = self.points.split_at(from);
        after.iter().chain(before).map(|(_, server)| *server as usize)
    }
}

/// A hash with well-mixed bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(KEYS.0, KEYS.1);
    hasher.write(bytes);
    hasher.finish()
}

fn point(name: &str, nth: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(KEYS.0, KEYS.1);
    hasher.write(name.as_bytes());
    hasher.write_u8(0);
    hasher.write(&nth.to_le_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("10.0.0.{n}:80")).collect()
    }

    fn ring(names: &[String], weight: impl Fn(usize) -> u32 + Clone) -> Ring {
        Ring::new(names.iter().enumerate().map(move |(n, name)| (n, name.as_str(), weight(n))))
    }

    fn owner(ring: &Ring, key: u64) -> usize {
        ring.walk(hash(&key.to_le_bytes())).next().unwrap()
    }

    #[test]
    fn shares_follow_weights() {
        let names = names(8);
        let ring = ring(&names, |n| if n == 0 { 3 } else { 1 });
        let mut got = [0_u32; 8];
        for key in 0..100_000 {
            got[owner(&ring, key)] += 1;
        }
        for (server, count) in got.into_iter().enumerate() {
            let fair = if server == 0 { 30_000 } else { 10_000 };
            assert!((fair * 7 / 10..fair * 13 / 10).contains(&count), "{server}: {count}, {fair}");
        }
    }

    #[test]
    fn only_the_part_of_the_one_that_leaves_changes_hands() {
        let names = names(10);
        let (all, fewer) = (ring(&names, |_| 1), ring(&names, |n| u32::from(n != 4)));
        for key in 0..20_000 {
            let (before, after) = (owner(&all, key), owner(&fewer, key));
            assert!(before == 4 || before == after, "{key} moved from {before} to {after}");
            assert_ne!(after, 4);
        }
    }

    #[test]
    fn a_ring_is_bounded_and_may_be_empty() {
        assert_eq!(Ring::default().walk(7).next(), None);
        let names = names(1000);
        let ring = ring(&names, |_| 1000);
        assert!(ring.points.len() as u64 <= MOST_POINTS + 1000);
        assert_eq!(ring.walk(u64::MAX).count(), ring.points.len());
    }
}
