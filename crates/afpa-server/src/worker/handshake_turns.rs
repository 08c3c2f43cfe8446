//! How much of a core handshakes of TLS take at a time.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Pieces of handshakes that a core works on between two looks at its other connections. One with a signature of RSA takes
/// about a millisecond.
const ROUND: u32 = 8;

/// How many pieces the core has worked on since it last looked at its other connections.
#[derive(Default)]
pub(crate) struct HandshakeTurns {
    used: Cell<u32>,
    round: Cell<u64>,
}

/// A handshake's place in the queue.
#[derive(Default)]
pub(super) struct Turn {
    /// The round that was full, and the core's look at its other connections.
    waiting: Option<(u64, Look)>,
}

type Look = Pin<Box<dyn Future<Output = ()>>>;

impl Turn {
    /// Ready when it may work on a piece. The first task that wakes up after the core has looked begins a new round.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, turns: &HandshakeTurns) -> Poll<()> {
        loop {
            if let Some((seen, looked)) = &mut self.waiting {
                ready!(looked.as_mut().poll(cx));
                if *seen == turns.round.get() {
                    turns.round.set(seen.wrapping_add(1));
                    turns.used.set(0);
                }
                self.waiting = None;
            }
            if turns.used.get() < ROUND {
                turns.used.set(turns.used.get() + 1);
                return Poll::Ready(());
            }
            self.waiting = Some((turns.round.get(), Box::pin(tokio::task::yield_now())));
        }
    }
}

impl HandshakeTurns {
    /// Nothing had arrived, so there was nothing to work on.
    pub(super) fn give_back(&self) {
        self.used.set(self.used.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_core_looks_at_its_other_connections_after_a_round_of_pieces() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (turns, done) = (Rc::new(HandshakeTurns::default()), Rc::new(Cell::new(0)));
        let pieces = ROUND * 5;
        let all = tokio::task::LocalSet::new();
        for _ in 0..pieces {
            let (turns, done) = (Rc::clone(&turns), Rc::clone(&done));
            all.spawn_local(async move {
                let mut turn = Turn::default();
                poll_fn(|cx| turn.poll(cx, &turns)).await;
                done.set(done.get() + 1);
            });
        }
        let looks = all.block_on(&runtime, async {
            let mut looks = vec![0];
            while done.get() < pieces {
                tokio::task::yield_now().await;
                looks.push(done.get());
            }
            looks
        });
        for pair in looks.windows(2) {
            assert!(pair[1] - pair[0] <= ROUND, "{looks:?}");
        }
        assert_eq!(looks.last(), Some(&pieces));
    }
}
