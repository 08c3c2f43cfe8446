//! Turns: which long answer sends next when a core is behind (JAWS, section 5: small objects before large ones).
//!
//! ```text
//! send ── bytes left in this round ──▶ at once
//!    └─── spent: wait ── the core looks at its sockets ── next round: by priority, bytes left, age
//! ```
//!
//! Long answers, those that do not fit the gather buffer, share a number of bytes in each round. A long answer that
//! finds these bytes spent waits, unless it is nearly done. Before the next round the core looks at its sockets, and
//! answers requests that have arrived meanwhile; short answers never wait. Where no answer waits, a turn costs a
//! comparison.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use afpa_framework::Priority;

/// The turns of one core.
#[derive(Default)]
pub(crate) struct Turns {
    /// Bytes of a round; 0: no turns.
    round: Cell<usize>,
    /// Bytes of these that are not sent yet.
    left: Cell<usize>,
    queue: RefCell<Queue<Waker>>,
    /// An answer waits for a round.
    needed: Cell<bool>,
    /// The core's loop, while it waits until a round is needed.
    core: RefCell<Option<Waker>>,
    waits: Cell<u64>,
}

/// The claim of a long answer to a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) priority: Priority,
    pub(crate) bytes_left: u64,
}

/// A place in the queue, or none. Its drop leaves the queue.
pub(crate) struct Ticket {
    turns: Rc<Turns>,
    number: Option<u64>,
}

/// An answer with no more bytes left than this does not wait, unless its priority is low: it would be first in most
/// rounds, and the queue would cost more than it gains.
const SHORT: u64 = 64 * 1024;

/// An answer that has waited so long goes before all others, so that none starves.
const LONGEST_MS: u64 = 100;

impl Turns {
    /// The bytes of a round from now on.
    pub(crate) fn set_round(&self, bytes: usize) {
        self.round.set(bytes);
        self.left.set(bytes);
    }

    pub(crate) fn ticket(self: &Rc<Self>) -> Ticket {
        Ticket { turns: Rc::clone(self), number: None }
    }

    /// So many bytes of a long answer were sent.
    pub(crate) fn sent(&self, bytes: usize) {
        self.left.set(self.left.get().saturating_sub(bytes));
    }

    /// How often an answer had to wait, since the last call.
    pub(crate) fn take_waits(&self) -> u64 {
        self.waits.take()
    }

    /// Waits until a round is needed, has the core look at its sockets, and begins the round.
    pub(crate) async fn next_round(&self, now_ms: impl Fn() -> u64) {
        poll_fn(|cx| match self.needed.get() {
            true => Poll::Ready(()),
            false => {
                *self.core.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await;
        // Tasks that were ready before run first, and then the event loop looks at the sockets.
        tokio::task::yield_now().await;
        self.begin_round(now_ms());
    }

    fn begin_round(&self, now_ms: u64) {
        let round = self.round.get();
        self.left.set(round);
        let mut queue = self.queue.borrow_mut();
        let mut granted = 0;
        // Without a limit any more, everybody goes.
        while round == 0 || granted < round {
            let Some((claim, waker)) = queue.grant(now_ms) else { break };
            granted = granted.saturating_add(usize::try_from(claim.bytes_left).unwrap_or(round));
            waker.wake();
        }
        self.needed.set(queue.waiting() > 0);
    }

    fn ask_for_round(&self) {
        self.needed.set(true);
        if let Some(core) = self.core.take() {
            core.wake();
        }
    }
}

impl Ticket {
    /// Whether it may send once, now. After that it has to ask again.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        claim: Claim,
        now_ms: impl Fn() -> u64,
    ) -> Poll<()> {
        let turns = &self.turns;
        let mut queue = turns.queue.borrow_mut();
        let Some(number) = self.number else {
            let ends = claim.bytes_left <= SHORT && claim.priority <= Priority::Normal;
            let some_left = queue.waiting() == 0 && turns.left.get() > 0;
            let free = ends || some_left || turns.round.get() == 0;
            if free {
                return Poll::Ready(());
            }
            self.number = Some(queue.enter(claim, now_ms(), cx.waker().clone()));
            drop(queue);
            turns.waits.set(turns.waits.get() + 1);
            turns.ask_for_round();
            return Poll::Pending;
        };
        if queue.take_granted(number) {
            self.number = None;
            return Poll::Ready(());
        }
        queue.set_waker(number, cx.waker());
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.turns.queue.borrow_mut().leave(number);
        }
    }
}

/// The answers that wait, in two orders. The queue reads no clock, and does not know what a waker is.
struct Queue<W> {
    next: u64,
    seats: HashMap<u64, Seat<W>>,
    by_claim: BTreeSet<(Claim, u64)>,
    /// Numbers grow with time.
    by_age: BTreeSet<u64>,
}

struct Seat<W> {
    claim: Claim,
    since_ms: u64,
    waker: W,
    granted: bool,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        let (by_claim, by_age) = (BTreeSet::new(), BTreeSet::new());
        Queue { next: 0, seats: HashMap::new(), by_claim, by_age }
    }
}

impl<W: Clone> Queue<W> {
    fn enter(&mut self, claim: Claim, now_ms: u64, waker: W) -> u64 {
        let number = self.next;
        self.next += 1;
        self.seats.insert(number, Seat { claim, since_ms: now_ms, waker, granted: false });
        self.by_claim.insert((claim, number));
        self.by_age.insert(number);
        number
    }

    /// How many wait for a turn, without those that were granted one.
    fn waiting(&self) -> usize {
        self.by_age.len()
    }

    /// Grants the next turn.
    fn grant(&mut self, now_ms: u64) -> Option<(Claim, W)> {
        let oldest = *self.by_age.first()?;
        let waited = |number| {
            self.seats.get(&number).map_or(0, |seat: &Seat<W>| now_ms.saturating_sub(seat.since_ms))
        };
        let (_, smallest) = *self.by_claim.first()?;
        let number = if waited(oldest) >= LONGEST_MS { oldest } else { smallest };
        let seat = self.seats.get_mut(&number)?;
        seat.granted = true;
        let (claim, waker) = (seat.claim, seat.waker.clone());
        self.by_claim.remove(&(claim, number));
        self.by_age.remove(&number);
        Some((claim, waker))
    }

    /// Takes a turn that was granted.
    fn take_granted(&mut self, number: u64) -> bool {
        let granted = self.seats.get(&number).is_none_or(|seat| seat.granted);
        if granted {
            self.seats.remove(&number);
        }
        granted
    }

    fn set_waker(&mut self, number: u64, waker: &W) {
        if let Some(seat) = self.seats.get_mut(&number) {
            seat.waker = waker.clone();
        }
    }

    fn leave(&mut self, number: u64) {
        if let Some(seat) = self.seats.remove(&number) {
            self.by_claim.remove(&(seat.claim, number));
            self.by_age.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(priority: Priority, bytes_left: u64) -> Claim {
        Claim { priority, bytes_left }
    }

    fn normal(bytes_left: u64) -> Claim {
        claim(Priority::Normal, bytes_left)
    }

    #[test]
    fn the_priority_decides_and_then_the_bytes_that_are_left() {
        let mut queue = Queue::default();
        for (at, claim) in [
            claim(Priority::Low, 1),
            normal(500),
            normal(20),
            claim(Priority::High, 9_000),
            normal(20),
        ]
        .into_iter()
        .enumerate()
        {
            queue.enter(claim, 0, at);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.grant(10).map(|(_, at)| at)).collect();
        assert_eq!(order, [3, 2, 4, 1, 0]);
        assert!(queue.take_granted(3) && queue.seats.len() == 4);
    }

    #[test]
    fn nobody_starves() {
        let mut queue = Queue::default();
        queue.enter(claim(Priority::Low, u64::MAX), 0, "large");
        let mut now = 0;
        let waited = loop {
            queue.enter(claim(Priority::High, 1), now, "small");
            let (_, who) = queue.grant(now).expect("somebody waits");
            if who == "large" {
                break now;
            }
            now += 1;
        };
        assert_eq!(waited, LONGEST_MS);
    }

    #[test]
    fn who_leaves_is_not_granted_a_turn() {
        let mut queue = Queue::default();
        let first = queue.enter(normal(1), 0, 1);
        let second = queue.enter(normal(2), 0, 2);
        queue.leave(first);
        assert!(!queue.take_granted(second));
        assert_eq!(queue.grant(0).map(|(_, who)| who), Some(2));
        queue.leave(second);
        assert_eq!((queue.waiting(), queue.seats.len(), queue.by_claim.len()), (0, 0, 0));
        assert!(queue.grant(0).is_none());
    }

    /// A waker that does nothing: the test asks again by itself.
    fn poll(ticket: &mut Ticket, bytes_left: u64) -> Poll<()> {
        ticket.poll(&mut Context::from_waker(Waker::noop()), normal(bytes_left), || 0)
    }

    #[test]
    fn a_round_has_so_many_bytes_and_who_finds_them_spent_waits() {
        let turns = Rc::new(Turns::default());
        turns.set_round(1_000_000);
        let mut tickets: Vec<Ticket> = (0..4).map(|_| turns.ticket()).collect();
        assert!(poll(&mut tickets[0], 5_000_000).is_ready());
        turns.sent(600_000);
        assert!(poll(&mut tickets[1], 5_000_000).is_ready(), "some bytes are left");
        turns.sent(600_000);
        for (ticket, bytes_left) in tickets.iter_mut().zip([4_400_000, 4_400_000, 300_000, 200_000])
        {
            assert!(poll(ticket, bytes_left).is_pending());
        }
        assert_eq!(turns.take_waits(), 4);
        turns.begin_round(0);
        assert!(poll(&mut tickets[3], 200_000).is_ready());
        assert!(poll(&mut tickets[2], 300_000).is_ready());
        assert!(poll(&mut tickets[0], 4_400_000).is_ready(), "the first of equals goes with them");
        assert!(poll(&mut tickets[1], 4_400_000).is_pending());
        drop(tickets);
        assert_eq!(turns.queue.borrow().seats.len(), 0);
        turns.begin_round(0);
        assert!(!turns.needed.get());
    }

    #[test]
    fn who_is_nearly_done_does_not_wait_unless_its_priority_is_low() {
        let turns = Rc::new(Turns::default());
        turns.set_round(1_000);
        turns.sent(1_000);
        assert!(poll(&mut turns.ticket(), SHORT).is_ready());
        assert!(poll(&mut turns.ticket(), SHORT + 1).is_pending());
        let low = claim(Priority::Low, 1);
        let mut context = Context::from_waker(Waker::noop());
        assert!(turns.ticket().poll(&mut context, low, || 0).is_pending());
    }

    #[test]
    fn without_turns_nobody_waits() {
        let turns = Rc::new(Turns::default());
        let mut ticket = turns.ticket();
        turns.sent(usize::MAX);
        assert!(poll(&mut ticket, u64::MAX).is_ready());
    }
}
