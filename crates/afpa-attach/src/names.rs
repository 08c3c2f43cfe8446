//! The names by which clients call the server.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afpa_bpf::{FastPath, Interface, SiteNumber};
use afpa_http::Host;
use afpa_http::request::CLASSED;
use anyhow::bail;

use crate::filler::{Filler, Hosts};
use crate::say::say;
use crate::server::{Addresses, Server, Viewpoints, callable};
use crate::settings::AttachSettings;
use crate::stranger::Stranger;

/// The number of the only listener.
const LISTENER: u32 = 1;

/// The addresses by which the server is called: those, and only those, by which it was asked.
pub(crate) struct Listening {
    pub(crate) addresses: Addresses,
    stranger: Option<Arc<Stranger>>,
    /// All names that the machine has for it, also names by which it does not answer.
    looked_at: Vec<SocketAddr>,
}

/// How long an address may take to accept a connection: two lost SYN segments.
const PATIENCE: Duration = Duration::from_secs(4);

impl Listening {
    /// # Errors
    /// When the server can be called by no address, or by none that a stranger can call.
    pub(crate) fn begin(
        settings: &AttachSettings,
        stranger: Option<Arc<Stranger>>,
        all: &[Interface],
    ) -> anyhow::Result<Self> {
        let mut listening =
            Self { addresses: Addresses::default(), stranger, looked_at: Vec::new() };
        listening.look(settings, all);
        let found = listening.addresses.get();
        for listen in &settings.listen {
            let mut addresses = callable(*listen, all).into_iter();
            if !addresses.any(|address| Server::new(address, PATIENCE).reach().is_ok()) {
                bail!(
                    "no server listens on {listen}: start it first, or name its address with --listen"
                );
            }
        }
        if let Some(stranger) = &listening.stranger
            && found.iter().all(|address| address.ip().is_loopback())
        {
            bail!(
                "the server on {} cannot be asked as a stranger, so nothing would be answered: a \
                 firewall must let {} in; or --ask-only-locally takes what this machine is told for \
                 what everybody is told",
                settings.addresses(),
                stranger.interface()
            );
        }
        Ok(listening)
    }

    /// The clients and addresses by which the server is asked.
    pub(crate) fn viewpoints(&self, settings: &AttachSettings, filler: Arc<Filler>) -> Viewpoints {
        let (addresses, stranger) = (self.addresses.clone(), self.stranger.clone());
        Viewpoints::new(addresses, stranger, filler, settings.answer_timeout)
    }

    /// Nothing is asked any more.
    pub(crate) fn end(&self) {
        if let Some(stranger) = &self.stranger {
            stranger.leave();
        }
    }

    /// Looks at all addresses again, next time.
    pub(crate) fn look_anew(&mut self) {
        self.looked_at.clear();
    }

    /// Whether the addresses have changed.
    fn look(&mut self, settings: &AttachSettings, all: &[Interface]) -> bool {
        let now = callable_by_any(settings, all);
        if now == self.looked_at {
            return false;
        }
        let before = self.addresses.get();
        let found = now.iter().copied().filter(|address| self.accepts(*address)).collect();
        self.looked_at = now;
        let changed = before != found;
        self.addresses.set(found);
        changed
    }

    /// Whether the server can be asked by this address. Others are left to it.
    fn accepts(&self, address: SocketAddr) -> bool {
        let mut server = match &self.stranger {
            Some(stranger) if !address.ip().is_loopback() => {
                Server::asked_by(Arc::clone(stranger), address, PATIENCE)
            }
            _ => Server::new(address, PATIENCE),
        };
        let outcome = server.reach();
        if let Err(error) = &outcome {
            say(&format!("{address} is left to the server: it cannot be asked there: {error}"));
        }
        outcome.is_ok()
    }
}

/// The addresses of the machine by which the server may be called, over all its listening addresses.
fn callable_by_any(settings: &AttachSettings, all: &[Interface]) -> Vec<SocketAddr> {
    let called: BTreeSet<SocketAddr> =
        settings.listen.iter().flat_map(|listen| callable(*listen, all)).collect();
    called.into_iter().collect()
}

/// Tells the programs which addresses are served, which site each name selects, and which request fields
/// are known.
pub(crate) fn register(
    fast_path: &FastPath,
    settings: &AttachSettings,
    sites: &[Hosts],
    addresses: &[SocketAddr],
) -> anyhow::Result<()> {
    let classed = CLASSED.iter().map(|(name, class)| (*name, 1 << *class as u32));
    fast_path.listeners.let_fields_matter(classed)?;
    for name in &settings.allowed_fields {
        if name.len() >= FIELD_NAME || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        {
            bail!("{name:?} is no name of a request field that the programs could read");
        }
        fast_path.listeners.let_fields_matter([(name.to_ascii_lowercase().as_str(), 0)])?;
    }
    for address in addresses {
        fast_path.listeners.listen(*address, LISTENER, 0)?;
    }
    for (spelling, site) in spellings(settings, sites) {
        if !fast_path.listeners.map_host(LISTENER, &spelling, site)? {
            bail!("the name {spelling:?} is empty or too long");
        }
    }
    Ok(())
}

/// The programs read names that are shorter.
const FIELD_NAME: usize = 40;

/// The names with and without the port.
fn spellings(settings: &AttachSettings, sites: &[Hosts]) -> BTreeSet<(String, SiteNumber)> {
    let port = format!(":{}", settings.port());
    let names = sites.iter().flat_map(|hosts| hosts.names.iter().map(|name| (name, hosts.site)));
    let spelled = names.flat_map(|(name, site)| {
        let bare = name.strip_suffix(&port).unwrap_or(name);
        [(bare.to_owned(), site), (name.clone(), site)]
    });
    spelled.collect()
}

/// New addresses of the machine become names of the server, and those that are gone stop being names,
/// unless the names were given. Whether anything changed.
///
/// # Errors
/// When the kernel refuses. A pinned answer is never reachable by a name for which it was not asked.
pub(crate) fn learn(
    filler: &Filler,
    settings: &AttachSettings,
    listening: &mut Listening,
    interfaces: &[Interface],
) -> anyhow::Result<bool> {
    let addresses_before = listening.addresses.get();
    if !listening.look(settings, interfaces) {
        return Ok(false);
    }
    let addresses = listening.addresses.get();
    for address in addresses_before.iter().filter(|address| !addresses.contains(address)) {
        filler.fast_path.listeners.unlisten(*address)?;
    }
    let (before, now) = (filler.sites(), sites(settings, &addresses));
    let (old, new) = (spellings(settings, &before), spellings(settings, &now));
    for (spelling, _) in old.difference(&new) {
        filler.fast_path.listeners.unmap_host(LISTENER, spelling)?;
    }
    // Nothing is pinned when this returns, and what will be is asked for by all addresses.
    filler.rename(now);
    for (spelling, site) in new.difference(&old) {
        filler.fast_path.listeners.map_host(LISTENER, spelling, *site)?;
    }
    for address in addresses.iter().filter(|address| !addresses_before.contains(address)) {
        filler.fast_path.listeners.listen(*address, LISTENER, 0)?;
    }
    Ok(true)
}

/// # Errors
/// When a name is none that a client could send as Host.
pub(crate) fn check_hosts(hosts: &[String]) -> anyhow::Result<()> {
    for name in hosts {
        if Host::parse(name.as_bytes()).is_err() {
            bail!("--host {name:?} is no name: write one such as www.example.org, without http://");
        }
    }
    Ok(())
}

fn port_of(name: &str) -> Option<u16> {
    Host::parse(name.as_bytes()).ok()?.port()
}

/// Names as clients write them: with the port, unless it is 80, or the operator gave one.
pub(crate) fn sites(settings: &AttachSettings, addresses: &[SocketAddr]) -> Vec<Hosts> {
    let port = match settings.port() {
        80 => String::new(),
        port => format!(":{port}"),
    };
    if !settings.hosts.is_empty() {
        let sites = settings.hosts.iter().zip(1..);
        let named = |name: &str| match port_of(name) {
            Some(_) => name.to_owned(), // as behind a balancer with a port of its own
            None => format!("{name}{port}"),
        };
        let sites = sites.map(|(name, site)| (site, vec![named(name)]));
        return sites.map(|(site, names)| Hosts { site, names }).collect();
    }
    let name = |address: &SocketAddr| match address.ip() {
        IpAddr::V4(address) => format!("{address}{port}"),
        IpAddr::V6(address) => format!("[{address}]{port}"),
    };
    // The first name is the one that is asked; the order of the others does not matter.
    let mut names: Vec<String> = addresses.iter().map(name).collect();
    names.sort_unstable();
    names.dedup();
    names.insert(0, format!("localhost{port}"));
    vec![Hosts { site: 1, names }]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings(listen: &str, hosts: &[&str]) -> AttachSettings {
        AttachSettings {
            listen: listen.split(' ').map(|listen| listen.parse().unwrap()).collect(),
            root: "/".into(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            scope: crate::Scope { extensions: Vec::new(), excluded: Vec::new(), longest: 0 },
            answer_max: 0,
            keeps: crate::kept::KeptScope::default(),
            symlinks: afpa_cache::root::SymlinkPolicy::Always,
            server_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(1),
            revalidate: Duration::from_secs(1),
            allowed_fields: Vec::new(),
            ask_only_locally: false,
            self_check: 0,
            bypass_after: 0,
            firewall_interval: Duration::ZERO,
            socketless: false,
            admission: afpa_bpf::Admission::Recent,
            folder: "/".into(),
            owner: None,
        }
    }

    fn interfaces(addresses: &[&str]) -> Vec<Interface> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        vec![Interface { name: "eth0".into(), index: 1, addresses, loopback: false, bare: false }]
    }

    fn names(listen: &str, hosts: &[&str], addresses: &[&str]) -> Vec<Vec<String>> {
        let settings = settings(listen, hosts);
        let sites = sites(&settings, &callable_by_any(&settings, &interfaces(addresses)));
        sites.into_iter().map(|hosts| hosts.names).collect()
    }

    #[test]
    fn addresses_are_names_in_whatever_order_they_come() {
        let all = ["10.0.0.2", "fd00::1", "10.0.0.1", "fe80::1", "10.0.0.2"];
        let expected = ["localhost:81", "10.0.0.1:81", "10.0.0.2:81", "[fd00::1]:81"];
        assert_eq!(names("[::]:81", &[], &all), [expected]);
        let reversed: Vec<&str> = all.iter().rev().copied().collect();
        assert_eq!(names("[::]:81", &[], &reversed), [expected]);
        assert_eq!(names("10.0.0.1:80", &[], &all), [["localhost", "10.0.0.1"]]);
        let two = names("10.0.0.1:80 [fd00::1]:80", &[], &all);
        assert_eq!(two, [["localhost", "10.0.0.1", "[fd00::1]"]]);
        assert_eq!(names("[::]:80", &["a.org", "b.org"], &all), [["a.org"], ["b.org"]]);
        assert_eq!(names("[::]:81", &["a.org:81", "[::1]"], &all), [["a.org:81"], ["[::1]:81"]]);
    }

    #[test]
    fn a_name_may_have_a_port_and_nothing_else() {
        let spelled = |listen: &str, host: &str| {
            let settings = settings(listen, &[host]);
            let spelled = spellings(&settings, &sites(&settings, &[]));
            spelled.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(spelled("0.0.0.0:81", "a.org:81"), ["a.org", "a.org:81"]);
        assert_eq!(spelled("0.0.0.0:81", "a.org"), ["a.org", "a.org:81"]);
        assert_eq!(spelled("0.0.0.0:80", "a.org:80"), ["a.org", "a.org:80"]);
        assert_eq!(spelled("0.0.0.0:80", "a.org:8080"), ["a.org:8080"]);
        let check = |host: &str| check_hosts(&[host.to_owned()]);
        assert!(check("a.org").is_ok() && check("a.org:81").is_ok() && check("[::1]:81").is_ok());
        for odd in ["http://a.org", "a.org/", "", "a b", "a.org:port", "*.a.org"] {
            assert!(check(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn names_are_spelled_with_the_port_and_without() {
        let settings = settings("0.0.0.0:81", &[]);
        let addresses = ["[fd00::1]:81".parse().unwrap()];
        let spelled = spellings(&settings, &sites(&settings, &addresses));
        let names: Vec<&str> = spelled.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["[fd00::1]", "[fd00::1]:81", "localhost", "localhost:81"]);
    }
}
