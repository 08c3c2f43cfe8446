//! The names by which clients call the server.

use std::net::IpAddr;

use afpa_bpf::{FastPath, Interface};
use anyhow::bail;

use crate::filler::Hosts;
use crate::life::AttachSettings;

/// The only listener there is.
const LISTENER: u32 = 1;

/// Tells the programs which site each name selects.
pub(crate) fn register(
    fast_path: &FastPath,
    settings: &AttachSettings,
    sites: &[Hosts],
) -> anyhow::Result<()> {
    fast_path.listen(settings.listen, LISTENER, 0)?;
    for hosts in sites {
        for name in &hosts.names {
            let port = format!(":{}", settings.listen.port());
            let bare = name.strip_suffix(&port).unwrap_or(name);
            for spelling in [bare, name] {
                if !fast_path.map_host(LISTENER, spelling, hosts.site)? {
                    bail!("the name {spelling:?} is empty or too long");
                }
            }
        }
    }
    Ok(())
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
    let mut names: Vec<String> = vec![format!("localhost{port}")];
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
    names.dedup();
    vec![Hosts { site: 1, names }]
}
