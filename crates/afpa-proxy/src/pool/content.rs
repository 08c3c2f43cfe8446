//! The memory of one core for content that is gathered as a whole: of requests, before PHP is asked, and of error pages,
//! before any of them is sent.

use std::cell::Cell;
use std::rc::Rc;

/// The most bytes that all requests of a core hold together.
pub const MOST_GATHERED: usize = 64 << 20;

/// Bytes that are held now, of [`MOST_GATHERED`].
#[derive(Clone, Debug, Default)]
pub(crate) struct GatheredContent(Rc<Cell<usize>>);

/// The share of one request. Its drop makes room for others.
#[derive(Debug)]
pub struct Share {
    all: GatheredContent,
    bytes: usize,
}

impl GatheredContent {
    /// A share without a byte.
    pub(crate) fn share(&self) -> Share {
        Share { all: self.clone(), bytes: 0 }
    }
}

impl Share {
    /// Raises the share to so many bytes, unless it is larger already. Returns whether there is room.
    #[must_use]
    pub fn reach(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let all = self.all.0.get() + more;
        let is_room = all <= MOST_GATHERED;
        if is_room {
            self.all.0.set(all);
            self.bytes += more;
        }
        is_room
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.0.set(self.all.0.get().saturating_sub(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_once_and_given_back() {
        let all = GatheredContent::default();
        let (mut one, mut other) = (all.share(), all.share());
        assert!(one.reach(MOST_GATHERED / 2));
        assert!(one.reach(MOST_GATHERED / 4), "it has that much already");
        assert!(other.reach(MOST_GATHERED / 2));
        assert!(!other.reach(MOST_GATHERED / 2 + 1));
        drop(one);
        assert!(other.reach(MOST_GATHERED));
        assert!(!all.share().reach(1));
        drop(other);
        assert!(all.share().reach(MOST_GATHERED));
    }
}
