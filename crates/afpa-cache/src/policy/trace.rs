//! A bounded sample of the requests that a cache serves.

use super::replay::Request;

/// Keeps the requests for a sample of the objects: all for one object, or none.
///
/// A cache of one *n*th of the size that serves the requests for one *n*th of the objects has nearly the
/// hit ratio of the whole one (Waldspurger and others, "Efficient MRC Construction with SHARDS", FAST 2015). So
/// when there are more requests or objects than the recorder has room for, it halves its sample, and never
/// needs more memory.
#[derive(Default)]
pub(super) struct Recorder {
    requests: Vec<Request>,
    sample: Sample,
}

/// Which objects are in the sample: one of 2 to the power of `halvings`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    halvings: u32,
}

/// A recorded trace.
pub struct Trace {
    pub(super) requests: Vec<Request>,
    pub(super) sample: Sample,
}

/// Requests that are kept between two judgements.
const MOST_REQUESTS: usize = 32_768;
/// Objects of the cache that are in the sample.
const MOST_OBJECTS: usize = 8_192;

impl Recorder {
    /// Notes a request. `objects`: how many the cache has.
    pub(super) fn note(&mut self, request: Request, objects: usize) {
        if !self.sample.holds(request.key) {
            return;
        }
        if self.requests.capacity() == 0 {
            self.requests.reserve_exact(MOST_REQUESTS);
        }
        let many = objects >> self.sample.halvings > MOST_OBJECTS;
        if many || self.requests.len() >= MOST_REQUESTS {
            self.sample.halvings += 1;
            let sample = self.sample;
            self.requests.retain(|request| sample.holds(request.key));
            return self.note(request, objects);
        }
        self.requests.push(request);
    }

    /// Gives the requests that were recorded since the last time. `empty` has the memory of an earlier trace, or none.
    pub(super) fn take(&mut self, mut empty: Vec<Request>) -> Trace {
        empty.clear();
        let requests = std::mem::replace(&mut self.requests, empty);
        Trace { requests, sample: self.sample }
    }
}

impl Trace {
    /// Its memory, for the next one.
    pub fn into_memory(self) -> Vec<Request> {
        self.requests
    }
}

impl Sample {
    pub(super) fn holds(self, key: u64) -> bool {
        mixed(key) >> (64 - self.halvings.clamp(1, 63)) == 0 || self.halvings == 0
    }

    /// Of so many objects one is in the sample.
    pub(super) fn parts(self) -> u64 {
        1 << self.halvings.min(63)
    }
}

/// SplitMix64's finish: fingerprints are hashes already, but the keys of a replayed trace count from 0.
fn mixed(key: u64) -> u64 {
    let z = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_halves_its_sample_and_never_outgrows_its_room() {
        let mut recorder = Recorder::default();
        for key in 0..500_000 {
            recorder.note(Request::new(key, 1), 0);
            assert!(recorder.requests.len() <= MOST_REQUESTS);
        }
        let capacity = recorder.requests.capacity();
        let trace = recorder.take(Vec::new());
        assert_eq!(capacity, MOST_REQUESTS);
        let parts = trace.sample.parts();
        assert!((16..=32).contains(&parts), "one of {parts}");
        assert!(trace.requests.iter().all(|request| trace.sample.holds(request.key)));
        let expected = 500_000 / parts as usize;
        assert!(trace.requests.len().abs_diff(expected) < expected / 10);
        assert!(recorder.take(trace.into_memory()).requests.is_empty());
    }

    #[test]
    fn a_smaller_sample_is_part_of_a_larger_one() {
        let smaller = |halvings| (Sample { halvings }, Sample { halvings: halvings + 1 });
        for (large, small) in (0..20).map(smaller) {
            assert!((0..100_000).all(|key| !small.holds(key) || large.holds(key)));
        }
        assert!((0..1000).all(|key| Sample::default().holds(key)));
    }

    #[test]
    fn many_objects_make_the_sample_small_at_once() {
        let mut recorder = Recorder::default();
        (0..1000).for_each(|key| recorder.note(Request::new(key, 1), 1_000_000));
        assert_eq!(recorder.take(Vec::new()).sample.parts(), 128);
    }
}
