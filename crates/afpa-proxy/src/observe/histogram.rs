//! Times in buckets.

/// Upper bounds of the buckets in microseconds; one more bucket has no bound.
pub const BOUNDS_US: [u32; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// How many times fell into which bucket, and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    sum_us: u64,
}

/// How many buckets there are.
pub const BUCKETS: usize = BOUNDS_US.len() + 1;

impl Histogram {
    /// A histogram of counts that were made with [`Histogram::bucket_of`].
    pub fn counted(buckets: [u64; BUCKETS], sum_us: u64) -> Self {
        Self { buckets, sum_us }
    }

    /// The bucket that a time falls into.
    pub fn bucket_of(us: u32) -> usize {
        BOUNDS_US.partition_point(|bound| *bound < us)
    }

    /// Counts one time.
    pub fn add(&mut self, us: u32) {
        self.buckets[Self::bucket_of(us)] += 1;
        self.sum_us = self.sum_us.saturating_add(u64::from(us));
    }

    /// Counts the times of another one too.
    pub fn add_all(&mut self, other: &Histogram) {
        for (sum, count) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += count;
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of them all.
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// Bound and count of each bucket; the last has no bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u32>, u64)> {
        let bounds = BOUNDS_US.iter().copied().map(Some).chain([None]);
        bounds.zip(self.buckets.iter().copied())
    }

    /// The time that `percent` of them did not exceed, as exactly as the buckets tell: within a bucket, the
    /// times are taken to be spread evenly.
    pub fn percentile_us(&self, percent: u32) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let wanted = (count * u64::from(percent)).div_ceil(100).max(1);
        let (mut below, mut from) = (0, 0);
        for (bound, in_bucket) in self.buckets() {
            let Some(bound) = bound.map(u64::from) else { break };
            if below + in_bucket >= wanted {
                return Some(from + (bound - from) * (wanted - below) / in_bucket);
            }
            below += in_bucket;
            from = bound;
        }
        Some(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_the_bucket_that_bounds_them() {
        let mut histogram = Histogram::default();
        for us in [0, 250, 251, 10_000_000, 10_000_001, u32::MAX] {
            histogram.add(us);
        }
        let buckets: Vec<_> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(buckets, [(Some(250), 2), (Some(500), 1), (Some(10_000_000), 1), (None, 2)]);
        assert_eq!((histogram.count(), histogram.sum_us()), (6, 20_000_502 + (1_u64 << 32) - 1));
    }

    #[test]
    fn histograms_of_several_cores_add_up() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        one.add(250);
        other.add(251);
        other.add(u32::MAX);
        one.add_all(&other);
        let mut buckets = [0; BUCKETS];
        for us in [250, 251, u32::MAX] {
            buckets[Histogram::bucket_of(us)] += 1;
        }
        assert_eq!(one, Histogram::counted(buckets, 501 + u64::from(u32::MAX)));
    }

    #[test]
    fn percentiles_are_within_their_bucket() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile_us(50), None);
        for us in 1..=1000 {
            histogram.add(us);
        }
        assert_eq!(histogram.percentile_us(50), Some(500));
        assert_eq!(histogram.percentile_us(99), Some(990));
        histogram = Histogram::default();
        histogram.add(u32::MAX);
        assert_eq!(histogram.percentile_us(99), Some(10_000_000), "more is not known");
    }
}
