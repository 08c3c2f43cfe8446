//! Which sites of a configuration the kernel can answer for, and by which Host values.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use afpa_router::Action;

use afpa_config::{Config, Hierarchy, Listen, SiteSettings};

/// Whether the kernel can answer for a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Whatever it caches.
    Whole,
    /// But for what is said here.
    Partly(&'static str),
    /// User mode answers everything, for this reason.
    Not(&'static str),
}

/// What requests to an address lead to; sites by the kernel's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leads {
    pub(super) address: SocketAddr,
    /// The site of hosts that are not known; 0: user mode answers them.
    pub(super) any: u32,
    /// Host values in lower case.
    pub(super) hosts: BTreeMap<String, u32>,
}

impl Fit {
    /// Of every site, in the order of the configuration.
    pub(crate) fn of(config: &Config) -> Vec<Fit> {
        let hierarchy = Hierarchy::of(config, &mut |_| 0);
        let sites = config.sites.iter().zip(&hierarchy.table.sites);
        sites.map(|(site, routed)| fit(config, site, caches(routed))).collect()
    }

    /// Whether it answers anything for it.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(self, Fit::Not(_))
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fit::Whole => f.write_str("yes"),
            Fit::Partly(but) => write!(f, "yes, but {but}"),
            Fit::Not(why) => write!(f, "no: {why}"),
        }
    }
}

fn fit(config: &Config, site: &SiteSettings, caches: bool) -> Fit {
    let mut addresses = tcp_addresses(site).peekable();
    if addresses.peek().is_none() {
        return Fit::Not("it listens on no TCP address");
    }
    // Behind a router in front connections begin with its header, and the client is somebody else.
    if !site.proxy_from.is_empty() {
        return Fit::Not("connections begin with the PROXY protocol");
    }
    if !caches {
        return Fit::Not("nothing of it is cached");
    }
    let stars = site.hosts.iter().filter(|host| is_star(host)).count();
    if !site.hosts.is_empty() {
        return match stars {
            0 => Fit::Whole,
            _ if stars == site.hosts.len() => Fit::Not("its hosts begin with a star"),
            _ => Fit::Partly("not for hosts below a star"),
        };
    }
    let (beside_stars, alone): (Vec<_>, Vec<_>) = addresses.partition(|at| has_stars(config, *at));
    match (beside_stars.is_empty(), alone.is_empty()) {
        (true, _) => Fit::Whole,
        (_, true) => Fit::Not("hosts below a star are another site's"),
        _ => Fit::Partly("not where hosts below a star are another site's"),
    }
}

fn caches(site: &afpa_router::Site) -> bool {
    let contents = site.paths.iter().flat_map(|path| &path.contents);
    contents.into_iter().any(|content| matches!(content.action, Action::Cached { .. }))
}

fn is_star(host: &str) -> bool {
    host.starts_with('*')
}

fn tcp_addresses(site: &SiteSettings) -> impl Iterator<Item = SocketAddr> {
    site.listen.iter().filter_map(|listen| match listen {
        Listen::Tcp(address) => Some(*address),
        Listen::Unix(_) => None,
    })
}

/// Whether some site has hosts below a star on an address: then a host that is not known may be one of
/// them, and the kernel compares whole hosts only.
fn has_stars(config: &Config, address: SocketAddr) -> bool {
    let sites = config.sites.iter().filter(|site| listens(site, address));
    sites.flat_map(|site| &site.hosts).any(|host| is_star(host))
}

fn listens(site: &SiteSettings, address: SocketAddr) -> bool {
    tcp_addresses(site).any(|own| own == address)
}

/// The configured address that a bound one came from: the port may have been chosen by the system.
fn configured(config: &Config, bound: SocketAddr) -> SocketAddr {
    let known = config.sites.iter().any(|site| listens(site, bound));
    if known { bound } else { SocketAddr::new(bound.ip(), 0) }
}

/// The TCP addresses on which the kernel answers for some site.
pub(super) fn addresses(config: &Config, fits: &[Fit]) -> Vec<SocketAddr> {
    let fit = config.sites.iter().zip(fits).filter(|(_, fit)| fit.is_answered());
    let mut addresses: Vec<_> = fit.flat_map(|(site, _)| tcp_addresses(site)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The bound addresses on which the kernel answers for some site.
pub(super) fn answerable(config: &Config, fits: &[Fit], bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let wanted = addresses(config, fits);
    let wanted = |address: &&SocketAddr| wanted.contains(&configured(config, **address));
    bound.iter().filter(wanted).copied().collect()
}

/// What requests to `address` lead to. `numbers` are the kernel's for the sites, 0 for those that user
/// mode answers; `own` are the addresses of this machine, by which clients may call it.
pub(super) fn leads(
    config: &Config,
    numbers: &[u32],
    address: SocketAddr,
    own: &[IpAddr],
) -> Leads {
    let listen = configured(config, address);
    let sites = config.sites.iter().zip(numbers).filter(|(site, _)| listens(site, listen));
    let mut leads = Leads { address, any: 0, hosts: BTreeMap::new() };
    if !has_stars(config, listen) {
        let any = sites.clone().find(|(site, _)| site.hosts.is_empty());
        leads.any = any.map_or(0, |(_, number)| *number);
    }
    if leads.any != 0 {
        for literal in literals(address.ip(), own) {
            leads.enter(literal, leads.any);
        }
    }
    for (site, number) in sites {
        for host in site.hosts.iter().filter(|host| !is_star(host)) {
            leads.enter(host.clone(), *number);
        }
    }
    leads
}

impl Leads {
    /// As clients write a host: alone, or with the port.
    fn enter(&mut self, host: String, site: u32) {
        // What is not known is user mode's as long as nobody answers for any host.
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
    use afpa_config::{Machine, Overrides, Source, parse_text};

    fn config(text: &str) -> Config {
        let source = Source::new("f", text);
        parse_text(source, &Overrides::default(), &Machine::probe()).unwrap().config
    }

    fn fits(text: &str) -> Vec<String> {
        Fit::of(&config(text)).iter().map(ToString::to_string).collect()
    }

    const SITES: &str = r#"
        [[site]]
        listen = ["10.0.0.1:80", "10.0.0.2:81"]
        hosts = ["a.org", "www.a.org"]
        root = "/a"
        [[site]]
        listen = ["10.0.0.1:80"]
        hosts = ["b.org"]
        to = "127.0.0.1:3000"
        [[site]]
        listen = ["10.0.0.1:80"]
        root = "/any"
        to = "127.0.0.1:3000"
    "#;

    #[test]
    fn sites_say_why_they_are_left_to_user_mode() {
        assert_eq!(fits(SITES), ["yes", "no: nothing of it is cached", "yes"]);
        let with = |more: &str| fits(&format!("{SITES}\n[[site]]\n{more}"));
        let stars = with("listen = [\"10.0.0.1:80\"]\nhosts = [\"*.c.org\"]\nroot = \"/c\"");
        assert_eq!(stars[2], "no: hosts below a star are another site's");
        assert_eq!(stars[3], "no: its hosts begin with a star");
        let both = "listen = [\"10.0.0.2:81\"]\nhosts = [\"*.c.org\", \"c.org\"]\nroot = \"/c\"";
        assert_eq!(with(both)[2..], ["yes", "yes, but not for hosts below a star"]);
        let socket = with("listen = [\"unix:/run/x\"]\nroot = \"/c\"");
        assert_eq!(socket[3], "no: it listens on no TCP address");
        let front = with("listen = [\"[::]:90\"]\nroot = \"/c\"\nproxy_from = [\"10.0.0.0/8\"]");
        assert_eq!(front[3], "no: connections begin with the PROXY protocol");
    }

    #[test]
    fn hosts_lead_to_sites_or_to_user_mode() {
        let config = config(SITES);
        let fits = Fit::of(&config);
        let bound = ["10.0.0.1:80", "10.0.0.2:81", "10.0.0.3:80"].map(|a| a.parse().unwrap());
        assert_eq!(answerable(&config, &fits, &bound), bound[..2]);
        let own: Vec<IpAddr> = ["10.0.0.1", "fd00::1"].map(|ip| ip.parse().unwrap()).to_vec();
        let lead = |address| leads(&config, &[5, 0, 7], address, &own);
        let pairs = |leads: &Leads| -> Vec<(String, u32)> {
            leads.hosts.iter().map(|(host, site)| (host.clone(), *site)).collect()
        };
        let first = lead(bound[0]);
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
        assert_eq!(pairs(&first), expected.map(|(host, site)| (host.to_owned(), site)));
        let second = lead(bound[1]);
        assert_eq!((second.any, second.hosts.len()), (0, 4));
    }

    #[test]
    fn an_unknown_host_may_be_below_a_star() {
        let stars = "[[site]]\nlisten = [\"10.0.0.1:80\"]\nhosts = [\"*.c.org\"]\nroot = \"/c\"";
        let config = config(&format!("{SITES}\n{stars}"));
        let leads = leads(&config, &[5, 0, 7, 0], "10.0.0.1:80".parse().unwrap(), &[]);
        assert_eq!(leads.any, 0);
        assert!(leads.hosts.contains_key("a.org") && !leads.hosts.contains_key("b.org"));
    }

    #[test]
    fn own_addresses_are_names_of_the_site_for_any_host() {
        let config = config("[[site]]\nlisten = [\"[::]:8080\"]\nroot = \"/a\"");
        let own = ["::1", "fd00::1", "10.0.0.1"].map(|ip| ip.parse().unwrap());
        let leads = leads(&config, &[3], "[::]:8080".parse().unwrap(), &own);
        let names: Vec<&str> = leads.hosts.keys().map(String::as_str).collect();
        assert_eq!(names, ["[::1]", "[::1]:8080", "[fd00::1]", "[fd00::1]:8080"]);
    }

    #[test]
    fn a_port_that_the_system_chose_is_that_of_its_site() {
        let config = config("[[site]]\nlisten = [\"127.0.0.1:0\"]\nroot = \"/a\"");
        let bound = "127.0.0.1:4567".parse().unwrap();
        assert_eq!(answerable(&config, &Fit::of(&config), &[bound]), [bound]);
        assert_eq!(leads(&config, &[3], bound, &[]).any, 3);
    }
}
