//! The addresses and hosts that the kernel knows.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use crate::host_map::HostMap;
use crate::host_table::HostTable;

/// The hosts as the kernel has them now.
#[derive(Default)]
pub(crate) struct KernelHosts {
    /// The number of each address for the life of the process: its listener set.
    sets: HashMap<SocketAddr, u32>,
    /// The tables of the addresses that are served.
    tables: Vec<HostTable>,
    hosts: HashSet<(u32, String)>,
    /// Numbers of the Host values of sites that have answers of servers in the kernel.
    numbers: HashMap<(u32, String), u32>,
    /// The last of them; none is ever used again.
    last: u32,
    /// No Host value leads to its number.
    is_held: bool,
}

/// Most Host values with numbers: where any host is served, clients choose them.
pub(crate) const MOST_NUMBERS: usize = 1024;

/// Numbers of hosts have this bit, those of sites do not.
const OF_HOST: u32 = 1 << 31;

impl KernelHosts {
    /// Gives the kernel these tables in place of those before. Numbers of sites are never used again, and
    /// at every moment a host leads to its old site or to its new one: new hosts are entered before the site of
    /// all other hosts changes, and old ones removed after it. A program that is held up between two look-ups
    /// therefore answers for the old or the new site, too.
    ///
    /// # Errors
    /// The first one of the kernel. Hosts that it did not take lead to user mode.
    pub(crate) fn replace(
        &mut self,
        map: &impl HostMap,
        mut tables: Vec<HostTable>,
    ) -> anyhow::Result<()> {
        let mut result: anyhow::Result<()> = Ok(());
        // A wildcard of IPv6 covers that of IPv4 as well: an IPv4 address of its own comes after it.
        tables.sort_by_key(|table| (!is_wildcard_v6(&table.address), table.address));
        let addresses: HashSet<SocketAddr> = tables.iter().map(|table| table.address).collect();
        let before: HashSet<SocketAddr> = self.tables.iter().map(|table| table.address).collect();
        for address in before.difference(&addresses) {
            // An address whose entry is gone already is refused.
            let _ = map.unlisten(*address);
        }
        let mut wanted = HashSet::new();
        for table in &tables {
            let set = self.set(table.address);
            let mapped = table
                .hosts
                .iter()
                .try_for_each(|(host, site)| map.map_host(set, host, *site, 0).map(drop));
            // Without this, a host that could not be entered would be answered as any other host.
            let any = if mapped.is_ok() { table.any } else { 0 };
            let told = map.listen(table.address, set, any);
            result = result.and(mapped).and(told);
            wanted.extend(table.hosts.keys().map(|host| (set, host.clone())));
        }
        for (set, host) in self.hosts.difference(&wanted) {
            result = result.and(map.unmap_host(*set, host));
        }
        self.hosts = wanted;
        self.numbers.clear();
        self.tables = tables;
        result
    }

    /// The number of a Host value, in lower case, of a site. The kernel gets it for every address where the value selects
    /// the site. `None`: there is no such address, or there are too many numbers.
    pub(crate) fn number(&mut self, map: &impl HostMap, site: u32, host: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(&(site, host.to_owned())) {
            return Some(*number);
        }
        let mut tables = self.tables.iter().filter(|table| table.site_of(host) == site).peekable();
        if self.numbers.len() >= MOST_NUMBERS || tables.peek().is_none() {
            return None;
        }
        self.last = self.last.wrapping_add(1) & !OF_HOST;
        let number = OF_HOST | self.last;
        let shown = if self.is_held { 0 } else { number };
        for table in tables {
            let set = *self.sets.get(&table.address)?;
            if !map.map_host(set, host, site, shown).unwrap_or(false) {
                return None;
            }
            self.hosts.insert((set, host.to_owned()));
        }
        self.numbers.insert((site, host.to_owned()), number);
        Some(number)
    }

    /// Takes the numbers away from all Host values, so that no answer of a server is found: some system calls, however many
    /// answers there are. Host values that get a number before [`KernelHosts::release`] do not lead to it either. An
    /// answer that was found before this returns may still leave.
    ///
    /// # Errors
    /// When the kernel refuses. Nothing is held then.
    pub(crate) fn hold(&mut self, map: &impl HostMap) -> anyhow::Result<()> {
        self.is_held = false;
        self.tell(map, |_| 0)?;
        self.is_held = true;
        Ok(())
    }

    /// Gives the numbers back. Answers that were pinned under them, and not taken back meanwhile, are found again.
    ///
    /// # Errors
    /// The first one of the kernel; the other numbers are given back all the same.
    pub(crate) fn release(&mut self, map: &impl HostMap) -> anyhow::Result<()> {
        self.is_held = false;
        self.tell(map, |number| number)
    }

    fn tell(&self, map: &impl HostMap, number_of: fn(u32) -> u32) -> anyhow::Result<()> {
        let mut result = Ok(());
        for ((site, host), number) in &self.numbers {
            for table in self.tables.iter().filter(|table| table.site_of(host) == *site) {
                let Some(set) = self.sets.get(&table.address) else { continue };
                result = result.and(map.map_host(*set, host, *site, number_of(*number)).map(drop));
            }
        }
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    const SITE: u32 = 7;

    /// The tables, in memory.
    #[derive(Default)]
    struct Tables(RefCell<BTreeMap<(u32, String), (u32, u32)>>);

    impl Tables {
        /// The site and the number that a host of the first listener set leads to.
        fn of(&self, host: &str) -> Option<(u32, u32)> {
            self.0.borrow().get(&(1, host.to_owned())).copied()
        }
    }

    impl HostMap for Tables {
        fn listen(&self, _: SocketAddr, _: u32, _: u32) -> anyhow::Result<()> {
            Ok(())
        }

        fn unlisten(&self, _: SocketAddr) -> anyhow::Result<()> {
            Ok(())
        }

        fn map_host(&self, set: u32, host: &str, site: u32, number: u32) -> anyhow::Result<bool> {
            self.0.borrow_mut().insert((set, host.to_owned()), (site, number));
            Ok(true)
        }

        fn unmap_host(&self, set: u32, host: &str) -> anyhow::Result<()> {
            self.0.borrow_mut().remove(&(set, host.to_owned()));
            Ok(())
        }
    }

    fn table(hosts: &[&str]) -> HostTable {
        let hosts = hosts.iter().map(|host| ((*host).to_owned(), SITE)).collect();
        HostTable { address: ([127, 0, 0, 1], 80).into(), any: SITE, hosts }
    }

    fn told(map: &Tables) -> KernelHosts {
        let mut hosts = KernelHosts::default();
        hosts.replace(map, vec![table(&["test"])]).expect("told");
        hosts
    }

    #[test]
    fn a_host_has_its_number_until_the_tables_change() {
        let map = Tables::default();
        let mut hosts = told(&map);
        assert_eq!(map.of("test"), Some((SITE, 0)));
        let number = hosts.number(&map, SITE, "test").expect("a number");
        assert_eq!(map.of("test"), Some((SITE, number)));
        assert_eq!(hosts.number(&map, SITE, "test"), Some(number));
        assert_eq!(hosts.number(&map, SITE + 1, "test"), None);
        hosts.replace(&map, vec![table(&["test"])]).expect("told");
        assert_eq!(map.of("test"), Some((SITE, 0)));
        assert_ne!(hosts.number(&map, SITE, "test").expect("a number"), number);
    }

    /// Answers may be pinned while others are taken back, and be purged before those have left.
    #[test]
    fn while_held_no_host_leads_to_a_number_not_even_a_new_one() {
        let map = Tables::default();
        let mut hosts = told(&map);
        let number = hosts.number(&map, SITE, "test").expect("a number");
        hosts.hold(&map).expect("held");
        let new = hosts.number(&map, SITE, "new").expect("a number");
        assert_eq!((map.of("test"), map.of("new")), (Some((SITE, 0)), Some((SITE, 0))));
        hosts.release(&map).expect("released");
        assert_eq!((map.of("test"), map.of("new")), (Some((SITE, number)), Some((SITE, new))));
    }

    #[test]
    fn a_reload_ends_no_hold() {
        let map = Tables::default();
        let mut hosts = told(&map);
        hosts.hold(&map).expect("held");
        hosts.replace(&map, vec![table(&["test"])]).expect("told");
        let number = hosts.number(&map, SITE, "test").expect("a number");
        assert_eq!(map.of("test"), Some((SITE, 0)));
        hosts.release(&map).expect("released");
        assert_eq!(map.of("test"), Some((SITE, number)));
    }
}
