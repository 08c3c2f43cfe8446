//! The share of a server that one client may hold: docs/rules/clients.md, C1.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::client::Client;

/// How many places each client holds.
#[derive(Debug)]
pub(super) struct Held(HashMap<Client, u32>);

/// Clients that there is room for from the beginning, so that the first requests allocate nothing.
const CLIENTS: usize = 16;

impl Default for Held {
    fn default() -> Self {
        Self(HashMap::with_capacity(CLIENTS))
    }
}

impl Held {
    pub(super) fn take(&mut self, client: Option<Client>) {
        if let Some(client) = client {
            *self.0.entry(client).or_default() += 1;
        }
    }

    pub(super) fn give_back(&mut self, client: Option<Client>) {
        let Some(client) = client else { return };
        if let Entry::Occupied(mut entry) = self.0.entry(client) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    /// Whether a client may have one place more, of `most`, of which `taken` are taken. With a share of p per cent it
    /// may hold p / (100 - p) times the places that are free: alone it gets its share, and any number of clients leave
    /// room for one more. A client that is not counted may have any place.
    pub(super) fn allows(
        &self,
        client: Option<Client>,
        (taken, most): (u32, u32),
        percent: u32,
    ) -> bool {
        let Some(client) = client else { return true };
        let percent = u64::from(percent.clamp(1, 100));
        let limit = u64::from(most.saturating_sub(taken)) * percent;
        let is_below = |places: u32| u64::from(places) * (100 - percent) < limit;
        // No client holds more than all together, so the client is not looked up while there is room for any.
        is_below(taken) || is_below(self.0.get(&client).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of each client if they take one in turn until none may have more, and the places that are left.
    fn fill(clients: u8, most: u32, percent: u32) -> (Vec<u32>, u32) {
        let (mut held, mut taken) = (Held::default(), 0);
        let clients: Vec<Client> =
            (0..clients).map(|last| std::net::IpAddr::from([192, 0, 2, last]).into()).collect();
        loop {
            let before = taken;
            for client in &clients {
                if taken < most && held.allows(Some(*client), (taken, most), percent) {
                    held.take(Some(*client));
                    taken += 1;
                }
            }
            if taken == before {
                let all = clients.iter().map(|client| held.0.get(client).copied().unwrap_or(0));
                return (all.collect(), most - taken);
            }
        }
    }

    #[test]
    fn a_client_has_its_share_and_any_number_of_them_leave_room() {
        assert_eq!(fill(1, 1024, 75), (vec![768], 256));
        assert_eq!(fill(1, 1024, 50), (vec![512], 512));
        assert_eq!(fill(1, 1024, 100), (vec![1024], 0), "no share");
        let (held, free) = fill(2, 1024, 75);
        assert!(free >= 1024 / 8 && held.iter().all(|held| *held <= 448), "{held:?} {free}");
        for clients in [10, 100, 250] {
            assert!(fill(clients, 1024, 75).1 > 0, "{clients}");
        }
        // A server that takes few at a time is not left idle for one client.
        for (most, got) in [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6), (10, 8)] {
            assert_eq!(fill(1, most, 75).0, [got], "{most}");
        }
    }

    #[test]
    fn who_is_not_counted_may_have_any_and_what_is_given_back_is_gone() {
        let mut held = Held::default();
        assert!(held.allows(None, (1023, 1024), 1));
        let client = Some(Client::from(std::net::IpAddr::from([192, 0, 2, 1])));
        held.take(client);
        held.take(None);
        assert!(!held.allows(client, (99, 100), 50) && held.allows(None, (99, 100), 50));
        held.give_back(None);
        held.give_back(client);
        held.give_back(client);
        assert!(held.0.is_empty() && held.allows(client, (99, 100), 50));
    }
}
