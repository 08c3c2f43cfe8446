//! Memory of pages that were made for responses and do not lie in the arena: listings, and results of filters that are not
//! pinned. A slow client holds its page for as long as it likes, whether the page is listed or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of all such pages, and the most that they may be.
#[derive(Debug)]
pub(crate) struct PageRoom {
    taken: AtomicUsize,
    limit: usize,
}

/// The part of one page, which ends when the charge is dropped.
#[derive(Debug)]
pub struct PageCharge {
    room: Arc<PageRoom>,
    bytes: usize,
}

impl PageRoom {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), limit })
    }

    /// `None`: there is no room for so many bytes.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<PageCharge> {
        let more = |taken: usize| taken.checked_add(bytes).filter(|all| *all <= self.limit);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(PageCharge { room: Arc::clone(self), bytes })
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl PageCharge {
    /// Whether this page should not be kept for later requests: kept pages may have half of the room, so that there is always
    /// some that comes free with the responses.
    pub fn is_for_one_response(&self) -> bool {
        self.room.taken() > self.room.limit / 2
    }
}

impl Drop for PageCharge {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_room_that_there_is_and_give_it_back() {
        let room = PageRoom::new(100);
        let kept = room.take(50).expect("room");
        assert!(!kept.is_for_one_response());
        let one = room.take(40).expect("room");
        assert!(one.is_for_one_response());
        assert!(room.take(11).is_none() && room.take(usize::MAX).is_none());
        drop(kept);
        assert!(room.take(60).is_some_and(|_| room.taken() == 100));
        drop(one);
        assert_eq!(room.taken(), 0);
    }
}
