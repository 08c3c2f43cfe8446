//! The addresses of a configuration: which of them are to be bound, and by which numbers connections
//! name them.

use std::net::SocketAddr;

use afpa_config::{Config, Hierarchy, Listen};
use afpa_server::{Address, BoundListener, ListenerSettings};
use anyhow::Context as _;

use super::convert;
use crate::privileges::Identity;

/// The listeners of a configuration, compared with the addresses that are bound already.
pub(super) struct Listeners {
    /// Bound for this configuration.
    pub(super) new: Vec<BoundListener>,
    /// Bound before, and how their connections are taken from now on.
    pub(super) staying: Vec<(Address, ListenerSettings)>,
    /// Bound before, and no longer configured.
    pub(super) gone: Vec<Address>,
}

/// The numbers by which connections name their listener: an address keeps its own for the life of the
/// process, so that a connection means the same before and after a reload.
#[derive(Default)]
pub(super) struct ListenerNumbers(Vec<Listen>);

impl Listeners {
    /// Binds what is not `bound` yet. Unix sockets are given to `owner`, who will remove them.
    ///
    /// # Errors
    /// With the address that cannot be bound.
    pub(super) fn open(
        config: &Config,
        numbers: &mut ListenerNumbers,
        bound: &[Address],
        owner: Option<&Identity>,
    ) -> anyhow::Result<Self> {
        let settings = convert::engine(config, None);
        let wanted = convert::addresses(config);
        let (mut new, mut staying) = (Vec::new(), Vec::new());
        for (listen, address) in &wanted {
            let taken = numbers.settings(config, listen);
            if bound.contains(address) {
                staying.push((address.clone(), taken));
            } else {
                let listener = bind(address, settings.workers, settings.backlog, owner)?;
                new.push(listener.with(taken));
            }
        }
        let is_wanted = |bound: &&Address| wanted.iter().any(|(_, address)| address == *bound);
        let gone = bound.iter().filter(|bound| !is_wanted(bound)).cloned().collect();
        Ok(Self { new, staying, gone })
    }

    /// The TCP addresses that are listened on: the kernel answers on no others.
    pub(super) fn tcp(&self) -> Vec<SocketAddr> {
        let new = self.new.iter().map(|listener| &listener.address);
        let all = self.staying.iter().map(|(address, _)| address).chain(new);
        let tcp = all.filter_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        });
        tcp.collect()
    }
}

impl ListenerNumbers {
    /// The hierarchy of a configuration, in which listeners have these numbers.
    pub(super) fn hierarchy(&mut self, config: &Config) -> Hierarchy {
        Hierarchy::of(config, &mut |listen| self.number(listen))
    }

    /// How connections to an address are taken.
    fn settings(&mut self, config: &Config, listen: &Listen) -> ListenerSettings {
        // Sites that share an address agree on it; the checks see to that.
        let site = config.sites.iter().find(|site| site.listen.contains(listen));
        let proxy_from = site.map_or(&[][..], |site| &site.proxy_from);
        ListenerSettings { number: self.number(listen), proxy_from: proxy_from.into() }
    }

    fn number(&mut self, listen: &Listen) -> u32 {
        let known = self.0.iter().position(|other| other == listen);
        let number = known.unwrap_or_else(|| {
            self.0.push(listen.clone());
            self.0.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

pub(super) fn bind(
    address: &Address,
    workers: usize,
    backlog: i32,
    owner: Option<&Identity>,
) -> anyhow::Result<BoundListener> {
    let listener = BoundListener::bind(address, workers, backlog)
        .with_context(|| format!("cannot listen on {address}{}", hint(address)))?;
    if let Some(owner) = owner {
        listener
            .give_to(owner.uid.as_raw(), owner.gid.as_raw())
            .with_context(|| format!("cannot give {address} to {}", owner.name))?;
    }
    Ok(listener)
}

fn hint(address: &Address) -> &'static str {
    match address {
        Address::Tcp(address) if address.port() < 1024 && address.port() != 0 => {
            " (ports below 1024 need root or CAP_NET_BIND_SERVICE)"
        }
        _ => "",
    }
}
