//! Which sites the kernel can answer for, and on which addresses.

use std::fmt;
use std::net::SocketAddr;

use crate::settings::KernelSite;

/// Whether the kernel can answer for a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// For everything that the site caches.
    Whole,
    /// With this exception.
    Partly(&'static str),
    /// User mode answers everything, for this reason.
    Not(&'static str),
}

impl Eligibility {
    /// Of every site, in their order.
    pub fn of(sites: &[KernelSite]) -> Vec<Self> {
        sites.iter().map(|site| Self::of_one(site, sites)).collect()
    }

    /// Whether the kernel answers anything for it.
    pub fn is_answered(&self) -> bool {
        !matches!(self, Self::Not(_))
    }

    fn of_one(site: &KernelSite, sites: &[KernelSite]) -> Self {
        if site.addresses.is_empty() {
            return Self::Not("it listens on no TCP address for plain HTTP");
        }
        // Behind a proxy, connections begin with its header, which names the real client.
        if site.proxy_protocol {
            return Self::Not("connections begin with the PROXY protocol");
        }
        if !site.caches && !site.caches_answers {
            return Self::Not("nothing of it is cached");
        }
        let stars = site.hosts.iter().filter(|host| is_star(host)).count();
        if !site.hosts.is_empty() {
            return match stars {
                0 => Self::Whole,
                _ if stars == site.hosts.len() => Self::Not("its hosts are patterns"),
                _ => Self::Partly("not for hosts that fit a pattern"),
            };
        }
        let beside_stars = site.addresses.iter().filter(|at| has_stars(sites, **at)).count();
        match beside_stars {
            0 => Self::Whole,
            all if all == site.addresses.len() => {
                Self::Not("hosts that fit a pattern are another site's")
            }
            _ => Self::Partly("not where hosts that fit a pattern are another site's"),
        }
    }
}

impl fmt::Display for Eligibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("yes"),
            Self::Partly(but) => write!(f, "yes, but {but}"),
            Self::Not(why) => write!(f, "no: {why}"),
        }
    }
}

/// Whether a host name stands for all names below it, or for those that fit a regular expression.
pub(crate) fn is_star(host: &str) -> bool {
    host.starts_with(['*', '~'])
}

/// Whether some site has hosts below a star on an address: then an unknown host may be one of them, and
/// the kernel compares whole hosts only.
pub(crate) fn has_stars(sites: &[KernelSite], address: SocketAddr) -> bool {
    let sites = sites.iter().filter(|site| site.listens(address));
    sites.flat_map(|site| &site.hosts).any(|host| is_star(host))
}

/// The configured address that a bound one came from: the system may have chosen the port.
pub(crate) fn configured(sites: &[KernelSite], bound: SocketAddr) -> SocketAddr {
    let known = sites.iter().any(|site| site.listens(bound));
    if known { bound } else { SocketAddr::new(bound.ip(), 0) }
}

/// The configured addresses on which the kernel answers for some site.
pub(crate) fn eligible_addresses(sites: &[KernelSite]) -> Vec<SocketAddr> {
    let answered = sites.iter().zip(Eligibility::of(sites)).filter(|(_, e)| e.is_answered());
    let mut addresses: Vec<_> = answered.flat_map(|(site, _)| &site.addresses).copied().collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The bound addresses on which the kernel answers for some site.
pub(crate) fn eligible_of(sites: &[KernelSite], bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let eligible = eligible_addresses(sites);
    let is_eligible = |address: &&SocketAddr| eligible.contains(&configured(sites, **address));
    bound.iter().filter(is_eligible).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{sample_site, sample_sites};

    fn said(more: Vec<KernelSite>) -> Vec<String> {
        let sites = [sample_sites(), more].concat();
        Eligibility::of(&sites).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn sites_say_why_they_are_left_to_user_mode() {
        assert_eq!(said(vec![]), ["yes", "no: nothing of it is cached", "yes"]);
        let stars = said(vec![sample_site(&["10.0.0.1:80"], &["*.c.org"])]);
        assert_eq!(stars[2], "no: hosts that fit a pattern are another site's");
        assert_eq!(stars[3], "no: its hosts are patterns");
        let both = said(vec![sample_site(&["10.0.0.2:81"], &["*.c.org", "c.org"])]);
        assert_eq!(both[2..], ["yes", "yes, but not for hosts that fit a pattern"]);
        let matching = said(vec![sample_site(&["10.0.0.1:80"], &["~^c[0-9]"])]);
        assert_eq!(matching[2], "no: hosts that fit a pattern are another site's");
        assert_eq!(matching[3], "no: its hosts are patterns");
        let socket = said(vec![sample_site(&[], &[])]);
        assert_eq!(socket[3], "no: it listens on no TCP address for plain HTTP");
        let front = KernelSite { proxy_protocol: true, ..sample_site(&["[::]:90"], &[]) };
        assert_eq!(said(vec![front])[3], "no: connections begin with the PROXY protocol");
    }

    #[test]
    fn only_addresses_of_eligible_sites_are() {
        let bound = ["10.0.0.1:80", "10.0.0.2:81", "10.0.0.3:80"].map(|a| a.parse().unwrap());
        assert_eq!(eligible_of(&sample_sites(), &bound), bound[..2]);
    }

    #[test]
    fn a_port_that_the_system_chose_is_that_of_its_site() {
        let bound = "127.0.0.1:4567".parse().unwrap();
        assert_eq!(eligible_of(&[sample_site(&["127.0.0.1:0"], &[])], &[bound]), [bound]);
    }
}
