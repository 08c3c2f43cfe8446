//! When requests of an open loop are due. No I/O: times are nanoseconds of the run.

use std::collections::VecDeque;

use afpa_netlab::inject::Random;

/// Requests that may wait for a connection; more are not asked at all, and counted.
const MOST_WAITING: usize = 1_000_000;

/// Requests that arrive independently of each other (a Poisson process), whether or not the server
/// keeps up.
#[derive(Debug)]
pub(super) struct Arrivals {
    random: Random,
    /// Mean distance.
    distance: f64,
    next: f64,
    waiting: VecDeque<u64>,
    /// Arrivals for which there was no room.
    pub(super) lost: u64,
}

impl Arrivals {
    /// `rate` a second, from time 0 on.
    pub(super) fn new(rate: f64, seed: u64) -> Self {
        let mut arrivals = Self {
            random: Random::new(seed),
            distance: 1e9 / rate,
            next: 0.0,
            waiting: VecDeque::new(),
            lost: 0,
        };
        arrivals.advance();
        arrivals
    }

    /// Queues the requests that have arrived by `now`.
    pub(super) fn arrive(&mut self, now: u64) {
        while self.next <= now as f64 {
            if self.waiting.len() < MOST_WAITING {
                self.waiting.push_back(self.next as u64);
            } else {
                self.lost += 1;
            }
            self.advance();
        }
    }

    /// Takes the request that has waited longest. Returns the time at which it was due.
    pub(super) fn take(&mut self) -> Option<u64> {
        self.waiting.pop_front()
    }

    /// A request is asked again, on another connection.
    pub(super) fn put_back(&mut self, due: u64) {
        self.waiting.push_front(due);
    }

    /// Nanoseconds until the next arrival.
    pub(super) fn until_next(&self, now: u64) -> u64 {
        (self.next - now as f64).max(0.0) as u64
    }

    /// When those that still wait were due.
    pub(super) fn overdue(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.waiting.iter().copied()
    }

    fn advance(&mut self) {
        self.next += -(1.0 - self.random.fraction()).ln() * self.distance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_their_rate_and_their_spread() {
        let mut arrivals = Arrivals::new(10_000.0, 1);
        let distance = arrivals.until_next(0);
        arrivals.arrive(distance.saturating_sub(1));
        assert_eq!(arrivals.take(), None);
        arrivals.arrive(1_000_000_000);
        let due: Vec<u64> = std::iter::from_fn(|| arrivals.take()).collect();
        assert!((9_700..10_300).contains(&due.len()), "{}", due.len());
        assert!(due.is_sorted());
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let long = gaps.iter().filter(|gap| **gap > 100_000.0).count() as f64;
        // e^-1 of the gaps are longer than the mean one.
        assert!((long / gaps.len() as f64 - 0.368).abs() < 0.03);
    }

    #[test]
    fn what_was_put_back_comes_first_and_the_rest_is_overdue() {
        let mut arrivals = Arrivals::new(1_000.0, 1);
        arrivals.arrive(10_000_000);
        let first = arrivals.take().unwrap();
        arrivals.put_back(first);
        assert_eq!(arrivals.overdue().next(), Some(first));
        assert_eq!(arrivals.take(), Some(first));
        assert!(arrivals.overdue().len() > 1);
    }
}
