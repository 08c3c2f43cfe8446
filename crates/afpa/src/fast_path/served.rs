//! What the kernel was told of addresses and hosts.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use afpa_bpf::FastPath;

use super::fit::Leads;

/// Addresses and hosts as they were told last.
#[derive(Default)]
pub(super) struct Served {
    /// The number of each address for the life of the process: its listener set.
    sets: HashMap<SocketAddr, u32>,
    /// Those that are served.
    addresses: HashSet<SocketAddr>,
    hosts: HashSet<(u32, String)>,
}

impl Served {
    /// Tells the kernel where requests lead from now on. Numbers of sites are never used again, and at
    /// every moment each host leads to the site of before or to that of `leads`: hosts are told before
    /// the site of all others, and taken back after it. So a program that was held up between two
    /// look-ups answers for the one or the other, too.
    ///
    /// # Errors
    /// The first that the kernel made. What it did not take leads to user mode.
    pub(super) fn lead_to(
        &mut self,
        fast_path: &FastPath,
        mut leads: Vec<Leads>,
    ) -> anyhow::Result<()> {
        let mut outcome: anyhow::Result<()> = Ok(());
        // A wildcard of IPv6 stands for that of IPv4 as well: one that is said apart comes after it.
        leads.sort_by_key(|leads| (!is_wildcard_v6(&leads.address), leads.address));
        let before: HashSet<SocketAddr> =
            std::mem::replace(&mut self.addresses, leads.iter().map(|l| l.address).collect());
        for address in before.difference(&self.addresses) {
            // One that went by itself is not there any more.
            let _ = fast_path.unlisten(*address);
        }
        let mut wanted = HashSet::new();
        for leads in &leads {
            let set = self.set(leads.address);
            let mapped = leads
                .hosts
                .iter()
                .try_for_each(|(host, site)| fast_path.map_host(set, host, *site).map(drop));
            // A host that could not be told is not to be taken for any other.
            let any = if mapped.is_ok() { leads.any } else { 0 };
            let told = fast_path.listen(leads.address, set, any);
            outcome = outcome.and(mapped.map_err(Into::into)).and(told.map_err(Into::into));
            wanted.extend(leads.hosts.keys().map(|host| (set, host.clone())));
        }
        for (set, host) in self.hosts.difference(&wanted) {
            outcome = outcome.and(fast_path.unmap_host(*set, host).map(drop).map_err(Into::into));
        }
        self.hosts = wanted;
        outcome
    }

    fn set(&mut self, address: SocketAddr) -> u32 {
        let free = self.sets.len() as u32 + 1;
        *self.sets.entry(address).or_insert(free)
    }
}

fn is_wildcard_v6(address: &SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if ip.is_unspecified())
}
