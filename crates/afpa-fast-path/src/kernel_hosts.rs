//! The addresses and hosts that the kernel knows.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use afpa_bpf::FastPath;

use crate::host_table::HostTable;

/// What the kernel was told last.
#[derive(Default)]
pub(crate) struct KernelHosts {
    /// The number of each address for the life of the process: its listener set.
    sets: HashMap<SocketAddr, u32>,
    /// Those that are served.
    addresses: HashSet<SocketAddr>,
    hosts: HashSet<(u32, String)>,
}

impl KernelHosts {
    /// Tells the kernel these tables in place of those before. Numbers of sites are never used again, and
    /// at every moment a host leads to its old site or to its new one: hosts are told before the site of
    /// all others, and taken back after it. A program that is held up between two look-ups therefore
    /// answers for the old or the new site, too.
    ///
    /// # Errors
    /// The first one of the kernel. What it did not take leads to user mode.
    pub(crate) fn replace(
        &mut self,
        fast_path: &FastPath,
        mut tables: Vec<HostTable>,
    ) -> anyhow::Result<()> {
        let mut result: anyhow::Result<()> = Ok(());
        // A wildcard of IPv6 covers that of IPv4 as well: an IPv4 address of its own comes after it.
        tables.sort_by_key(|table| (!is_wildcard_v6(&table.address), table.address));
        let before: HashSet<SocketAddr> =
            std::mem::replace(&mut self.addresses, tables.iter().map(|t| t.address).collect());
        for address in before.difference(&self.addresses) {
            // One that went by itself is not there any more.
            let _ = fast_path.unlisten(*address);
        }
        let mut wanted = HashSet::new();
        for table in &tables {
            let set = self.set(table.address);
            let mapped = table
                .hosts
                .iter()
                .try_for_each(|(host, site)| fast_path.map_host(set, host, *site).map(drop));
            // A host that could not be told is not to be taken for any other.
            let any = if mapped.is_ok() { table.any } else { 0 };
            let told = fast_path.listen(table.address, set, any);
            result = result.and(mapped.map_err(Into::into)).and(told.map_err(Into::into));
            wanted.extend(table.hosts.keys().map(|host| (set, host.clone())));
        }
        for (set, host) in self.hosts.difference(&wanted) {
            result = result.and(fast_path.unmap_host(*set, host).map(drop).map_err(Into::into));
        }
        self.hosts = wanted;
        result
    }

    fn set(&mut self, address: SocketAddr) -> u32 {
        let free = self.sets.len() as u32 + 1;
        *self.sets.entry(address).or_insert(free)
    }
}

fn is_wildcard_v6(address: &SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if ip.is_unspecified())
}
