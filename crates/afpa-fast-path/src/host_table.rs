//! Which site each Host value of an address selects.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::eligibility::{configured, has_stars, is_star};
use crate::settings::KernelSite;

/// The hosts of one address. Sites have the kernel's numbers; 0: user mode answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostTable {
    pub(crate) address: SocketAddr,
    /// The site of unknown hosts.
    pub(crate) any: u32,
    /// Host values in lower case, each without and with the port.
    pub(crate) hosts: BTreeMap<String, u32>,
}

impl HostTable {
    /// Of a bound address. `numbers` are the kernel's for the sites, 0 for those that user mode answers;
    /// `own` are the addresses of this machine, by which clients may call it.
    pub(crate) fn new(
        sites: &[KernelSite],
        numbers: &[u32],
        address: SocketAddr,
        own: &[IpAddr],
    ) -> Self {
        let listen = configured(sites, address);
        let numbered = sites.iter().zip(numbers).filter(|(site, _)| site.listens(listen));
        let mut table = Self { address, any: 0, hosts: BTreeMap::new() };
        if !has_stars(sites, listen) {
            let any = numbered.clone().find(|(site, _)| site.hosts.is_empty());
            table.any = any.map_or(0, |(_, number)| *number);
        }
        if table.any != 0 {
            for literal in literals(address.ip(), own) {
                table.insert(literal, table.any);
            }
        }
        for (site, number) in numbered {
            for host in site.hosts.iter().filter(|host| !is_star(host)) {
                table.insert(host.clone(), *number);
            }
        }
        table
    }

    /// The site that a Host value in lower case selects, as the programs find it.
    pub(crate) fn site_of(&self, host: &str) -> u32 {
        if let Some(site) = self.hosts.get(host) {
            return *site;
        }
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let by_name = self.hosts.get(name).filter(|_| self.any != 0);
        by_name.copied().unwrap_or(self.any)
    }

    /// As clients write a host: alone, or with the port.
    fn insert(&mut self, host: String, site: u32) {
        // An unknown host is user mode's as long as the kernel answers for no unknown host.
        if site == 0 && self.any == 0 {
            return;
        }
        self.hosts.insert(format!("{host}:{}", self.address.port()), site);
        self.hosts.insert(host, site);
    }
}

/// IPv6 addresses as Host fields have them (RFC 5952): the programs know them only by name.
fn literals(address: IpAddr, own: &[IpAddr]) -> Vec<String> {
    let one = [address];
    let all = if address.is_unspecified() { own } else { &one };
    all.iter().filter(|ip| ip.is_ipv6()).map(|ip| format!("[{ip}]")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{sample_site, sample_sites};

    #[test]
    fn hosts_lead_to_sites_or_to_user_mode() {
        let own: Vec<IpAddr> = ["10.0.0.1", "fd00::1"].map(|ip| ip.parse().unwrap()).to_vec();
        let table = |address: &str| {
            HostTable::new(&sample_sites(), &[5, 0, 7], address.parse().unwrap(), &own)
        };
        let first = table("10.0.0.1:80");
        assert_eq!(first.any, 7);
        let expected = [
            ("a.org", 5),
            ("a.org:80", 5),
            // Known, so that they are not taken for any other host.
            ("b.org", 0),
            ("b.org:80", 0),
            ("www.a.org", 5),
            ("www.a.org:80", 5),
        ];
        let expected = expected.map(|(host, site)| (host.to_owned(), site));
        assert_eq!(first.hosts.into_iter().collect::<Vec<_>>(), expected);
        let second = table("10.0.0.2:81");
        assert_eq!((second.any, second.hosts.len()), (0, 4));
        let first = table("10.0.0.1:80");
        for (host, site) in [("a.org", 5), ("a.org:81", 5), ("b.org", 0), ("b.org:81", 0)] {
            assert_eq!(first.site_of(host), site, "{host}");
        }
        assert_eq!((first.site_of("x.org:80"), first.site_of("x.org")), (7, 7));
        assert_eq!((second.site_of("a.org:82"), second.site_of("x.org")), (0, 0));
    }

    #[test]
    fn an_unknown_host_may_be_below_a_star() {
        let stars = vec![sample_site(&["10.0.0.1:80"], &["*.c.org"])];
        let sites = [sample_sites(), stars].concat();
        let table = HostTable::new(&sites, &[5, 0, 7, 0], "10.0.0.1:80".parse().unwrap(), &[]);
        assert_eq!(table.any, 0);
        assert!(table.hosts.contains_key("a.org") && !table.hosts.contains_key("b.org"));
    }

    #[test]
    fn own_addresses_are_names_of_the_site_for_any_host() {
        let sites = [sample_site(&["[::]:8080"], &[])];
        let own = ["::1", "fd00::1", "10.0.0.1"].map(|ip| ip.parse().unwrap());
        let table = HostTable::new(&sites, &[3], "[::]:8080".parse().unwrap(), &own);
        let names: Vec<&str> = table.hosts.keys().map(String::as_str).collect();
        assert_eq!(names, ["[::1]", "[::1]:8080", "[fd00::1]", "[fd00::1]:8080"]);
    }

    #[test]
    fn a_port_that_the_system_chose_is_that_of_its_site() {
        let sites = [sample_site(&["127.0.0.1:0"], &[])];
        let bound = "127.0.0.1:4567".parse().unwrap();
        assert_eq!(HostTable::new(&sites, &[3], bound, &[]).any, 3);
    }
}
