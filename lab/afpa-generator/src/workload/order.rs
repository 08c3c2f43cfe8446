//! In which order requests come.

use afpa_netlab::inject::Random;

use super::Request;

/// How the next request is chosen.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// By chance, in proportion to weights.
    Mix,
    /// Each in its turn, shuffled; all of them before one comes again.
    Sweep,
    /// Indices of requests, connection by connection; from the start again at the end.
    Sessions(Vec<Vec<u32>>),
}

/// One request of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index among all requests.
    pub request: usize,
    /// The connection ends with it.
    pub last: bool,
}

/// A workload's requests, in order, without end.
#[derive(Debug)]
pub struct Steps<'w> {
    random: Random,
    kind: Kind<'w>,
}

#[derive(Debug)]
enum Kind<'w> {
    /// Weights, each added to those before it.
    Mix(Vec<u64>),
    Sweep {
        order: Vec<usize>,
        next: usize,
    },
    Sessions {
        all: &'w [Vec<u32>],
        session: usize,
        next: usize,
    },
}

impl<'w> Steps<'w> {
    pub(super) fn new(order: &'w Order, requests: &[Request], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = match order {
            Order::Mix => {
                let mut sum = 0;
                let add = |request: &Request| {
                    sum += u64::from(request.weight);
                    sum
                };
                Kind::Mix(requests.iter().map(add).collect())
            }
            Order::Sweep => {
                let mut order: Vec<usize> = (0..requests.len()).collect();
                for index in (1..order.len()).rev() {
                    order.swap(index, (random.next() % (index as u64 + 1)) as usize);
                }
                Kind::Sweep { order, next: 0 }
            }
            Order::Sessions(all) => {
                let session = (random.next() % all.len().max(1) as u64) as usize;
                Kind::Sessions { all, session, next: 0 }
            }
        };
        Self { random, kind }
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    /// `None` only when the workload has no requests.
    fn next(&mut self) -> Option<Step> {
        match &mut self.kind {
            Kind::Mix(sums) => {
                let drawn = self.random.next() % sums.last().filter(|sum| **sum > 0)?;
                Some(Step { request: sums.partition_point(|sum| *sum <= drawn), last: false })
            }
            Kind::Sweep { order, next } => {
                let request = *order.get(*next)?;
                *next = (*next + 1) % order.len();
                Some(Step { request, last: false })
            }
            Kind::Sessions { all, session, next } => {
                let now = all.get(*session)?;
                let request = *now.get(*next)? as usize;
                let last = *next + 1 == now.len();
                (*session, *next) =
                    if last { ((*session + 1) % all.len(), 0) } else { (*session, *next + 1) };
                Some(Step { request, last })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::*;

    fn requests(weights: &[u32]) -> Vec<Request> {
        let object = Object::new("/a", 1);
        weights.iter().map(|weight| Request::get(&object).with_weight(*weight)).collect()
    }

    fn steps(order: &Order, weights: &[u32], count: usize) -> Vec<Step> {
        Steps::new(order, &requests(weights), 1).take(count).collect()
    }

    #[test]
    fn a_mix_follows_its_weights() {
        let drawn = steps(&Order::Mix, &[35, 50, 0, 14, 1], 100_000);
        for (request, share) in [0.35, 0.50, 0.0, 0.14, 0.01].into_iter().enumerate() {
            let found = drawn.iter().filter(|step| step.request == request).count() as f64;
            assert!((found - share * 1e5).abs() < 500.0, "{request}: {found}");
        }
        assert!(steps(&Order::Mix, &[0], 1).is_empty());
        assert!(steps(&Order::Mix, &[], 1).is_empty());
    }

    #[test]
    fn a_sweep_asks_for_all_before_it_repeats() {
        let drawn = steps(&Order::Sweep, &[1; 100], 200);
        let mut first: Vec<usize> = drawn[..100].iter().map(|step| step.request).collect();
        assert_eq!(first, drawn[100..].iter().map(|step| step.request).collect::<Vec<_>>());
        assert_ne!(first, (0..100).collect::<Vec<_>>());
        first.sort_unstable();
        assert_eq!(first, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn sessions_end_where_they_end() {
        let order = Order::Sessions(vec![vec![0, 1, 0], vec![2]]);
        let drawn = steps(&order, &[1; 3], 8);
        let first_end = drawn.iter().position(|step| step.last).unwrap();
        let shape: Vec<_> = drawn[first_end + 1..].iter().map(|s| (s.request, s.last)).collect();
        let whole = [(0, false), (1, false), (0, true), (2, true)];
        assert!(
            shape.iter().zip(whole.iter().cycle()).all(|(a, b)| a == b)
                || shape.iter().zip(whole.iter().cycle().skip(3)).all(|(a, b)| a == b)
        );
    }
}
