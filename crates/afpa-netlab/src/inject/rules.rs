//! The settings of the injector: the impairments of packets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use afpa_testkit::packet::TcpView;

/// Both directions, and the seed of their fates.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// From the client to the server.
    pub to_server: Impairment,
    /// From the server to the client.
    pub to_client: Impairment,
    /// The same seed and the same packets: the same fates.
    pub seed: u64,
}

impl Rules {
    /// The same impairment in both directions.
    pub fn both(impairment: Impairment, seed: u64) -> Self {
        Self { to_server: impairment.clone(), to_client: impairment, seed }
    }
}

/// The impairments of the packets of one direction. Probabilities are 0 to 1 for each packet,
/// independent of each other. The default passes everything at once.
#[derive(Debug, Clone)]
pub struct Impairment {
    /// Lost.
    pub loss: f64,
    /// Several in a row lost.
    pub burst: Option<Burst>,
    /// Marked as having met congestion; lost, where the sender does not take marks (RFC 3168).
    pub mark: f64,
    /// Sent twice.
    pub duplicate: f64,
    /// Held back, so that packets behind it overtake it.
    pub reorder: f64,
    /// How long a packet is held back.
    pub hold: Duration,
    /// Added to every packet.
    pub delay: Duration,
    /// Uniform, added on top of the delay; does not reorder by itself.
    pub jitter: Duration,
    /// Bits of frames per second.
    pub rate: Option<u64>,
    /// Packets that wait for the rate limit; one more is dropped (drop-tail).
    pub queue: usize,
    /// Losses of certain kinds of packets.
    pub drop_rules: Vec<DropRule>,
}

impl Default for Impairment {
    fn default() -> Self {
        Self {
            loss: 0.0,
            burst: None,
            mark: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            hold: Duration::from_millis(2),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: None,
            queue: 1000,
            drop_rules: Vec::new(),
        }
    }
}

/// Loss of several packets in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// Probability that one begins at a packet.
    pub start: f64,
    /// Packets lost.
    pub length: u32,
}

/// Drops some of the segments that a predicate chooses.
#[derive(Clone)]
pub struct DropRule {
    matches: Arc<dyn Fn(&TcpView<'_>) -> bool + Send + Sync>,
    skip: u64,
    take: u64,
    every: u64,
    seen: u64,
}

impl DropRule {
    /// Drops every segment for which `matches` is true; narrow it down with the methods below.
    pub fn when(matches: impl Fn(&TcpView<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self { matches: Arc::new(matches), skip: 0, take: u64::MAX, every: 1, seen: 0 }
    }

    /// Drops the last segment of each write, see [`TcpView::is_tail`].
    pub fn tails() -> Self {
        Self::when(|segment| segment.is_tail())
    }

    /// Only the match number `n`, counted from 1.
    pub fn nth(mut self, n: u64) -> Self {
        (self.skip, self.take) = (n.saturating_sub(1), 1);
        self
    }

    /// Only every `n`th match.
    pub fn every(mut self, n: u64) -> Self {
        self.every = n.max(1);
        self
    }

    /// Counts the segment when it matches, and tells whether it is one to drop.
    pub(crate) fn drops(&mut self, segment: &TcpView<'_>) -> bool {
        if !(self.matches)(segment) {
            return false;
        }
        self.seen += 1;
        self.seen > self.skip
            && self.seen - self.skip <= self.take
            && self.seen.is_multiple_of(self.every)
    }
}

impl fmt::Debug for DropRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { skip, take, every, seen, .. } = self;
        write!(f, "DropRule {{ skip: {skip}, take: {take}, every: {every}, seen: {seen} }}")
    }
}

#[cfg(test)]
mod tests {
    use afpa_testkit::packet::PSH;

    use super::*;

    const SEGMENT: TcpView<'_> = TcpView {
        source: 80,
        destination: 40000,
        sequence: 1,
        acknowledgement: 1,
        flags: PSH,
        window: 1,
        options: &[],
        payload: b"HTTP/1.1 200 OK",
        segment: &[],
    };

    fn dropped(mut rule: DropRule) -> Vec<usize> {
        (1..=6).filter(|_| rule.drops(&SEGMENT)).collect()
    }

    #[test]
    fn rules_choose_among_matches() {
        assert_eq!(dropped(DropRule::tails()).len(), 6);
        assert_eq!(dropped(DropRule::when(|s| s.payload.starts_with(b"HTTP")).nth(3)), [3]);
        assert_eq!(dropped(DropRule::tails().every(2)), [2, 4, 6]);
        assert_eq!(dropped(DropRule::when(|s| s.payload.is_empty())), [] as [usize; 0]);
    }
}
