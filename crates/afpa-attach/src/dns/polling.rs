//! Polls of zones, whose answers renew leases. Several are under way at a time, even for one zone: a lease must outlive polls that a busy
//! server answers late or drops.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use afpa_bpf::monotonic_ns;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{sleep, sleep_until};

use super::ask::{Asker, Reply, Soa};
use super::engine::Engine;

/// Polls that are under way at a time.
const AT_ONCE: usize = 16;
/// From the beginning of a round to that of the next, whatever has been seen.
const BREATH: Duration = Duration::from_millis(2);

impl Engine {
    /// Polls until the end.
    pub(super) async fn poll(&self, askers: &[Asker]) {
        let mut polls = FuturesUnordered::new();
        let mut due: VecDeque<(u32, Vec<u8>)> = VecDeque::new();
        let mut next = Instant::now();
        while !self.is_ended() {
            let now = Instant::now();
            if due.is_empty() && now >= next {
                let mut state = self.state();
                state.zones.wake(monotonic_ns());
                due.extend(state.zones.watched());
                // Many zones are polled less often, but for their leases' sake not too seldom.
                next = now + self.settings.poll.max(BREATH);
            }
            while polls.len() < AT_ONCE
                && let Some((server, apex)) = due.pop_front()
            {
                let Some(asker) = askers.get(server as usize) else { continue };
                polls.push(self.poll_one(asker, server, apex));
            }
            let is_sent = due.is_empty();
            tokio::select! {
                Some(()) = polls.next() => {}
                () = sleep_until(next.into()), if is_sent => {}
                () = self.wake.notified(), if is_sent => {
                    // Something may have changed.
                    next = Instant::now();
                    tokio::select! {
                        Some(()) = polls.next() => {}
                        () = sleep(BREATH) => {}
                    }
                }
            }
        }
    }

    async fn poll_one(&self, asker: &Asker, server: u32, apex: Vec<u8>) {
        let sent = monotonic_ns();
        let told = asker.ask_soa(&apex).await;
        let now = monotonic_ns();
        let mut state = self.state();
        let orders = match told {
            Reply::Answer(Soa::Of { apex: found, content }) if found == apex => {
                state.zones.polled(server, &apex, (sent, now), Some(content))
            }
            // Nobody listens: nothing is answered any more, at once.
            Reply::Closed => state.zones.end_editions(now, None),
            // Its lease runs out, unless the next poll is better.
            _ => state.zones.polled(server, &apex, (sent, now), None),
        };
        self.obey(&orders);
        self.follow(&mut state, &orders);
    }
}
