//! The names by which clients call the server.

use std::collections::BTreeSet;
use std::net::IpAddr;

use afpa_bpf::{FastPath, Interface, SiteNumber};
use anyhow::bail;

use crate::filler::{Filler, Hosts};
use crate::settings::AttachSettings;

/// The number of the only listener.
const LISTENER: u32 = 1;

/// Tells the programs which site each name selects.
pub(crate) fn register(
    fast_path: &FastPath,
    settings: &AttachSettings,
    sites: &[Hosts],
) -> anyhow::Result<()> {
    fast_path.listen(settings.listen, LISTENER, 0)?;
    for (spelling, site) in spellings(settings, sites) {
        if !fast_path.map_host(LISTENER, &spelling, site)? {
            bail!("the name {spelling:?} is empty or too long");
        }
    }
    Ok(())
}

/// The names with and without the port.
fn spellings(settings: &AttachSettings, sites: &[Hosts]) -> BTreeSet<(String, SiteNumber)> {
    let port = format!(":{}", settings.listen.port());
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
    interfaces: &[Interface],
) -> anyhow::Result<bool> {
    let (before, now) = (filler.sites(), sites(settings, interfaces));
    if before.iter().map(|hosts| &hosts.names).eq(now.iter().map(|hosts| &hosts.names)) {
        return Ok(false);
    }
    let (old, new) = (spellings(settings, &before), spellings(settings, &now));
    for (spelling, _) in old.difference(&new) {
        filler.fast_path.unmap_host(LISTENER, spelling)?;
    }
    filler.rename(now);
    for (spelling, site) in new.difference(&old) {
        filler.fast_path.map_host(LISTENER, spelling, *site)?;
    }
    Ok(true)
}

/// Names as clients write them: with the port, unless it is 80.
pub(crate) fn sites(settings: &AttachSettings, interfaces: &[Interface]) -> Vec<Hosts> {
    let port = match settings.listen.port() {
        80 => String::new(),
        port => format!(":{port}"),
    };
    if !settings.hosts.is_empty() {
        let sites = settings.hosts.iter().zip(1..);
        let sites = sites.map(|(name, site)| (site, vec![format!("{name}{port}")]));
        return sites.map(|(site, names)| Hosts { site, names }).collect();
    }
    let mut names: Vec<String> = Vec::new();
    let listen = settings.listen.ip();
    for address in interfaces.iter().flat_map(|interface| &interface.addresses) {
        let name = match address {
            IpAddr::V4(address) => format!("{address}{port}"),
            IpAddr::V6(address) if address.is_unicast_link_local() => continue,
            IpAddr::V6(address) => format!("[{address}]{port}"),
        };
        if listen.is_unspecified() || *address == listen {
            names.push(name);
        }
    }
    // The first name is the one that is asked; the order of the others does not matter.
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
            listen: listen.parse().unwrap(),
            root: "/".into(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            scope: crate::Scope { extensions: Vec::new(), excluded: Vec::new(), longest: 0 },
            symlinks: afpa_cache::root::SymlinkPolicy::Always,
            server_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(1),
            bypass_after: 0,
            folder: "/".into(),
        }
    }

    fn interfaces(addresses: &[&str]) -> Vec<Interface> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        vec![Interface { name: "eth0".into(), index: 1, addresses, loopback: false }]
    }

    fn names(listen: &str, hosts: &[&str], addresses: &[&str]) -> Vec<Vec<String>> {
        let sites = sites(&settings(listen, hosts), &interfaces(addresses));
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
        assert_eq!(names("[::]:80", &["a.org", "b.org"], &all), [["a.org"], ["b.org"]]);
    }

    #[test]
    fn names_are_spelled_with_the_port_and_without() {
        let settings = settings("0.0.0.0:81", &[]);
        let spelled = spellings(&settings, &sites(&settings, &interfaces(&["fd00::1"])));
        let names: Vec<&str> = spelled.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["[fd00::1]", "[fd00::1]:81", "localhost", "localhost:81"]);
    }
}
