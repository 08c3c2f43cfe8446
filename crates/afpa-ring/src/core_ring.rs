//! The ring of a core, as the owners of its sockets know it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use crate::Ring;

/// The ring of a core, if it has one, and whether sockets enter it now. Clones are handles to the same. By default there
/// is no ring.
#[derive(Clone, Default)]
pub struct CoreRing(Rc<Inner>);

#[derive(Default)]
struct Inner {
    /// `None`: there is none, or it has failed.
    ring: RefCell<Option<Ring>>,
    used: Cell<bool>,
}

impl CoreRing {
    /// A ring that no socket enters yet.
    pub fn new(ring: Option<Ring>) -> Self {
        Self(Rc::new(Inner { ring: RefCell::new(ring), used: Cell::new(false) }))
    }

    /// Whether sockets enter the ring now. When it turns false, the sockets in the ring leave it.
    pub fn is_used(&self) -> bool {
        self.0.used.get()
    }

    /// Has sockets enter it, or not, from now on. Returns whether they do: there may be no ring.
    pub fn set_used(&self, used: bool) -> bool {
        let used = used && self.0.ring.borrow().is_some();
        self.0.used.set(used);
        used
    }

    /// The ring, if there is one.
    pub fn ring(&self) -> Option<Ring> {
        self.0.ring.borrow().clone()
    }

    /// The ring has failed: nothing that is under way in it will be done.
    pub fn lose(&self) {
        self.set_used(false);
        self.0.ring.replace(None);
    }

    /// See [`Ring::catch_up`].
    pub fn catch_up(&self) {
        if let Some(ring) = self.ring() {
            ring.catch_up();
        }
    }
}

impl fmt::Debug for CoreRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreRing").field("used", &self.0.used).finish_non_exhaustive()
    }
}
