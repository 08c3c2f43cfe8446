//! Latencies from the program's buckets.

/// Buckets for each power of two; as `HISTOGRAM_SUB` in the program, which a test asserts.
pub(crate) const SUB: u64 = 16;

/// Latency percentiles in microseconds; figures of the program are exact to 1/16 (the width of a bucket).
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The slowest response, or its bucket.
    pub max: f64,
}

impl Latency {
    /// The percentiles of the entries that were added to the buckets from `before` to `after`.
    pub(crate) fn between(before: &[u64], after: &[u64]) -> Self {
        let buckets: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        let total: u64 = buckets.iter().sum();
        if total == 0 {
            return Self::default();
        }
        let weighted = buckets.iter().enumerate().map(|(i, count)| middle(i) * *count as f64);
        Self {
            mean: weighted.sum::<f64>() / total as f64,
            p50: percentile(&buckets, total, 0.5),
            p90: percentile(&buckets, total, 0.9),
            p99: percentile(&buckets, total, 0.99),
            p999: percentile(&buckets, total, 0.999),
            max: percentile(&buckets, total, 1.0),
        }
    }
}

fn percentile(buckets: &[u64], total: u64, fraction: f64) -> f64 {
    let wanted = (total as f64 * fraction).ceil() as u64;
    let mut passed = 0;
    let found = buckets.iter().position(|count| {
        passed += count;
        passed >= wanted.max(1)
    });
    middle(found.unwrap_or(buckets.len() - 1))
}

/// Middle of a bucket, in microseconds.
fn middle(bucket: usize) -> f64 {
    (lowest(bucket as u64) + lowest(bucket as u64 + 1)) as f64 / 2.0 / 1000.0
}

/// The smallest number of nanoseconds that falls into a bucket.
fn lowest(bucket: u64) -> u64 {
    if bucket < SUB {
        return bucket;
    }
    let octave = bucket / SUB - 1;
    (SUB + bucket % SUB) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join_without_gap_and_are_narrow() {
        for bucket in SUB..600 {
            let width = lowest(bucket + 1) - lowest(bucket);
            assert!(width > 0 && width * SUB <= lowest(bucket + 1), "{bucket}");
        }
        assert_eq!(lowest(SUB), SUB);
        assert_eq!(lowest(2 * SUB), 2 * SUB);
        assert_eq!(lowest(3 * SUB), 4 * SUB);
    }

    #[test]
    fn percentiles_come_from_the_difference() {
        let mut before = vec![0; 640];
        before[5] = 1_000;
        let mut after = before.clone();
        after[100] += 99;
        after[200] += 1;
        let latency = Latency::between(&before, &after);
        assert_eq!(latency.p50, middle(100));
        assert_eq!(latency.p99, middle(100));
        assert_eq!(latency.p999, middle(200));
        assert_eq!(latency.max, middle(200));
        assert_eq!(Latency::between(&after, &after), Latency::default());
    }
}
