//! The members of the group: slots for the configured servers and for the addresses of names.

use std::net::SocketAddr;
use std::sync::Arc;

use super::cookie::SetCookie;
use super::{Address, Core, Held, Life, Ring, ServerAddress, ServerCounts, Slot, Target};

/// Addresses of one name that are used; more are ignored.
const MOST_ADDRESSES: usize = 64;

impl<W> Core<W> {
    /// A name has these addresses now. An empty list changes nothing: old addresses are better than none.
    pub(in crate::select) fn resolved(
        &mut self,
        place: &ServerAddress,
        addresses: &[SocketAddr],
        now_ms: u64,
    ) {
        self.now_ms = self.now_ms.max(now_ms);
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(MOST_ADDRESSES);
        if addresses.is_empty() {
            return;
        }
        match self.resolved.iter_mut().find(|(known, _)| known == place) {
            Some((_, known)) if *known == addresses => return,
            Some((_, known)) => *known = addresses,
            None => self.resolved.push((place.clone(), addresses)),
        }
        self.arrange();
    }

    /// Orders the servers called `name` to drain, or to stop draining. Returns their names. The order outlasts
    /// changes of the settings, for as long as the server belongs to the group.
    pub(in crate::select) fn order_drain(&mut self, name: &str, drain: bool) -> Vec<String> {
        let members = self.order.iter().map(|number| &*self.slots[*number].target);
        let meant: Vec<(Address, String)> = members
            .filter(|target| target.is_called(name))
            .map(|target| (target.address.clone(), target.name.clone()))
            .collect();
        self.drained.retain(|address| !meant.iter().any(|(other, _)| other == address));
        if drain {
            self.drained.extend(meant.iter().map(|(address, _)| address.clone()));
        }
        self.arrange();
        meant.into_iter().map(|(_, name)| name).collect()
    }

    /// Gives every server of the settings a slot, retires the other slots, and makes a new ring.
    pub(super) fn arrange(&mut self) {
        let mut wanted: Vec<(Address, String, u32, u32)> = Vec::new();
        for server in &self.settings.servers {
            let addresses: Vec<Address> = match &server.to {
                ServerAddress::Fixed(address) => vec![address.clone()],
                name => self.addresses(name),
            };
            for address in addresses {
                if wanted.iter().any(|(known, ..)| *known == address) {
                    continue;
                }
                let name = match &server.to {
                    ServerAddress::Fixed(address) => address.to_string(),
                    name => format!("{name} {address}"),
                };
                let weight = if self.drained.contains(&address) { 0 } else { server.weight };
                wanted.push((address, name, weight, server.max_connections.max(1)));
            }
        }
        self.drained.retain(|address| wanted.iter().any(|(known, ..)| known == address));
        for slot in &mut self.slots {
            slot.retired = true;
        }
        self.order = wanted.into_iter().map(|server| self.slot_for(server)).collect();
        for slot in &self.slots {
            slot.target.wanted.set(!slot.retired && slot.weight > 0);
        }
        let points = self.order.iter().map(|number| {
            let slot = &self.slots[*number];
            (*number, slot.target.address_text.as_str(), slot.weight)
        });
        self.ring = Ring::new(points);
    }

    fn addresses(&self, place: &ServerAddress) -> Vec<Address> {
        let found = self.resolved.iter().find(|(known, _)| known == place);
        found.map_or_else(Vec::new, |(_, all)| all.iter().copied().map(Address::Tcp).collect())
    }

    fn slot_for(&mut self, (address, name, weight, max): (Address, String, u32, u32)) -> usize {
        let group = &self.settings.name;
        let cookie = self.secret.value(group, &address.to_string());
        let told = &self.settings.cookie_settings;
        let set_cookie = SetCookie::new(&self.settings.cookie, &cookie, told);
        let known = self.slots.iter().position(|slot| slot.target.address == address);
        if let Some(number) = known {
            let slot = &mut self.slots[number];
            let known = Some(&*slot.target);
            let target = Target::new(known, address, name, cookie, set_cookie);
            slot.target = Arc::new(target);
            (slot.weight, slot.max, slot.retired) = (weight, max, false);
            return number;
        }
        let target = Arc::new(Target::new(None, address, name, cookie, set_cookie));
        let slot = Slot {
            target,
            weight,
            max,
            retired: false,
            in_flight: 0,
            held: Held::default(),
            life: Life::new(self.now_ms),
            counts: ServerCounts::default(),
        };
        match self.slots.iter().position(|slot| slot.retired && slot.in_flight == 0) {
            Some(number) => {
                self.slots[number] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        }
    }
}
