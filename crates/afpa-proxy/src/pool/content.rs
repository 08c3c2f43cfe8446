//! The memory of one core for content that is gathered as a whole: of requests, before PHP is asked, and of error pages,
//! before any of them is sent.
//!
//! A client never holds more than is left for the others: alone it has half of the room, and each further one that holds as
//! much as it may leaves room for a next one.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use foldhash::fast::RandomState;

use crate::client::Client;

/// The most bytes that all requests of a core hold together.
pub const MOST_GATHERED: usize = 64 << 20;

/// Bytes that are held now, of [`MOST_GATHERED`].
#[derive(Clone, Debug, Default)]
pub(crate) struct GatheredContent(Rc<Held>);

#[derive(Debug, Default)]
struct Held {
    all: Cell<usize>,
    /// By client; none holds nothing.
    clients: RefCell<HashMap<Client, usize, RandomState>>,
}

/// The share of one request. Its drop makes room for others.
#[derive(Debug)]
pub struct Share {
    all: GatheredContent,
    /// `None`: it is nobody's in particular.
    client: Option<Client>,
    bytes: usize,
}

impl GatheredContent {
    /// A share without a byte.
    pub(crate) fn share(&self, client: Option<IpAddr>) -> Share {
        Share { all: self.clone(), client: client.map(Client::from), bytes: 0 }
    }
}

impl Share {
    /// Raises the share to so many bytes, unless it is larger already. Returns whether there is room.
    #[must_use]
    pub fn reach(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let held = &self.all.0;
        let all = held.all.get().saturating_add(more);
        let mut clients = held.clients.borrow_mut();
        let own =
            self.client.map(|client| clients.get(&client).copied().unwrap_or_default() + more);
        let left = MOST_GATHERED.checked_sub(all);
        let is_room = left.is_some_and(|left| own.is_none_or(|own| own <= left));
        if is_room {
            held.all.set(all);
            self.bytes += more;
            if let Some((client, own)) = self.client.zip(own) {
                clients.insert(client, own);
            }
        }
        is_room
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let held = &self.all.0;
        held.all.set(held.all.get().saturating_sub(self.bytes));
        if let Some(client) = self.client {
            let mut clients = held.clients.borrow_mut();
            let left = clients.get(&client).copied().unwrap_or_default().saturating_sub(self.bytes);
            match left {
                0 => drop(clients.remove(&client)),
                left => drop(clients.insert(client, left)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_once_and_given_back() {
        let all = GatheredContent::default();
        let (mut one, mut other) = (all.share(None), all.share(None));
        assert!(one.reach(MOST_GATHERED / 2));
        assert!(one.reach(MOST_GATHERED / 4), "it has that much already");
        assert!(other.reach(MOST_GATHERED / 2));
        assert!(!other.reach(MOST_GATHERED / 2 + 1));
        drop(one);
        assert!(other.reach(MOST_GATHERED));
        assert!(!all.share(None).reach(1));
        drop(other);
        assert!(all.share(None).reach(MOST_GATHERED));
    }

    #[test]
    fn no_client_holds_more_than_is_left() {
        let all = GatheredContent::default();
        let client = |number: u8| Some(IpAddr::from([192, 0, 2, number]));
        let mut held: Vec<Share> = (0..64).map(|_| all.share(client(1))).collect();
        let count =
            held.iter_mut().map(|share| share.reach(1 << 20)).filter(|is_room| *is_room).count();
        assert_eq!(count, 32, "half of it");
        let mut other = all.share(client(2));
        assert!(other.reach(16 << 20) && !other.reach(17 << 20), "half of the rest");
        assert!(all.share(client(3)).reach(8 << 20));
        held.clear();
        assert!(other.reach(32 << 20), "what others have given back");
        drop(other);
        assert!(all.0.clients.borrow().is_empty() && all.0.all.get() == 0);
    }
}
