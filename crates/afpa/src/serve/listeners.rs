//! The addresses of a configuration: some are to be bound, some stay bound, and others are closed.

use std::io;
use std::net::SocketAddr;

use afpa_bpf::Process;
use afpa_config::{Config, Listen, ListenerNumbers, SiteSettings};
use afpa_police::Police;
use afpa_server::{Address, BoundListener, ListenerSettings};
use anyhow::Context as _;

use super::convert;
use super::tls::PreparedTls;
use crate::privileges::Identity;
use crate::sockets;
use crate::upgrade::Inherited;

/// The listeners of a configuration, compared with the addresses that are bound already.
pub(super) struct Listeners {
    /// Bound for this configuration.
    pub(super) new: Vec<BoundListener>,
    /// Bound before, and how their connections are taken from now on.
    pub(super) staying: Vec<(Address, ListenerSettings)>,
    /// Bound before, and no longer configured.
    pub(super) gone: Vec<Address>,
}

impl Listeners {
    /// Binds what is neither `bound` yet nor inherited.
    ///
    /// # Errors
    /// With the address that cannot be bound.
    pub(super) fn open(
        config: &Config,
        numbers: &mut ListenerNumbers,
        tls: &PreparedTls,
        bound: &[Address],
        place: Place<'_>,
    ) -> anyhow::Result<Self> {
        let Place { inherited, owner } = place;
        let engine = convert::engine(config, None, &Police::default());
        let wanted = convert::addresses(config);
        let (mut new, mut staying) = (Vec::new(), Vec::new());
        for (listen, address) in &wanted {
            let taken = settings(config, numbers, tls, listen);
            if bound.contains(address) {
                staying.push((address.clone(), taken));
            } else {
                let place = Place { inherited: &mut *inherited, owner };
                let mut listener = bind(address, engine.workers, engine.backlog, place)?;
                if config.http3.is_bound_at(listen) && taken.tls.is_some() && !taken.is_inner {
                    bind_udp(&mut listener, engine.workers, inherited)?;
                }
                new.push(listener.with(taken));
            }
        }
        let is_wanted = |bound: &&Address| wanted.iter().any(|(_, address)| address == *bound);
        let gone = bound.iter().filter(|bound| !is_wanted(bound)).cloned().collect();
        Ok(Self { new, staying, gone })
    }

    /// The TCP addresses that are listened on for plain HTTP: the kernel answers on no others.
    pub(super) fn tcp(&self) -> Vec<SocketAddr> {
        let new = self.new.iter().map(|listener| (&listener.address, &listener.settings));
        let all = self.staying.iter().map(|(address, settings)| (address, settings)).chain(new);
        let tcp = all.filter_map(|(address, settings)| kernel_address(address, settings));
        tcp.collect()
    }
}

impl Listeners {
    /// The addresses that are bound for HTTP/3 now, by UDP.
    pub(super) fn udp(&self) -> Vec<SocketAddr> {
        let sockets = self.new.iter().filter_map(|listener| listener.udp_sockets().next());
        sockets.filter_map(|socket| socket.local_addr().ok()).collect()
    }
}

/// The address, if the kernel may answer on it: it cannot decrypt.
pub(super) fn kernel_address(address: &Address, settings: &ListenerSettings) -> Option<SocketAddr> {
    match address {
        Address::Tcp(address) if settings.tls.is_none() && !settings.is_inner => Some(*address),
        Address::Tcp(_) | Address::Unix(_) => None,
    }
}

/// How connections to an address are taken.
fn settings(
    config: &Config,
    numbers: &mut ListenerNumbers,
    tls: &PreparedTls,
    listen: &Listen,
) -> ListenerSettings {
    // Sites that share an address have the same `proxy_from`: the checks of the configuration see to that.
    let on = |site: &&SiteSettings| site.addresses().any(|(other, _)| other == listen);
    let site = config.sites.iter().find(on);
    let tls = tls.listeners.iter().find(|(other, _)| other == listen).map(|(_, tls)| tls.clone());
    let proxy_from = site.map_or(&[][..], |site| &site.proxy_from);
    let is_inner = config.peers_listen().is_some_and(|peers| peers == *listen);
    ListenerSettings {
        number: numbers.number(listen),
        address: match listen {
            Listen::Tcp(address) => Some(*address),
            Listen::Unix(_) => None,
        },
        proxy_from: proxy_from.into(),
        http2: config.http2.cleartext && !is_inner,
        is_inner,
        others_only: false,
        tls,
    }
}

/// Where listening sockets come from, and to whom they go.
pub(super) struct Place<'a> {
    /// Sockets that are bound already.
    pub(super) inherited: &'a mut Inherited,
    /// The user that will remove the files of unix sockets.
    pub(super) owner: Option<&'a Identity>,
}

pub(super) fn bind(
    address: &Address,
    workers: usize,
    backlog: i32,
    Place { inherited, owner }: Place<'_>,
) -> anyhow::Result<BoundListener> {
    let inherited = inherited
        .listener(address, workers, backlog)
        .with_context(|| format!("the inherited socket of {address} cannot be used"))?;
    if let Some(listener) = inherited {
        return Ok(listener);
    }
    let listener =
        BoundListener::bind(address, workers, backlog).map_err(|error| refused(address, error))?;
    if let Some(owner) = owner {
        listener
            .give_to(owner.uid.as_raw(), owner.gid.as_raw())
            .with_context(|| format!("cannot give {address} to {}", owner.name))?;
    }
    Ok(listener)
}

/// Binds the address of a listener for HTTP/3, too, unless its sockets were inherited.
fn bind_udp(
    listener: &mut BoundListener,
    workers: usize,
    inherited: &mut Inherited,
) -> anyhow::Result<()> {
    let Address::Tcp(address) = listener.address else { return Ok(()) };
    let udp = inherited.udp_of(address);
    if !udp.is_empty() {
        listener.adopt_udp(udp, workers);
        return Ok(());
    }
    listener.bind_udp(workers).map_err(|error| {
        let why = why_refused(error.kind(), &listener.address, Use::Datagrams);
        let off = ", or set `enabled = false` in [http3]";
        let cause = format!("cannot listen on {address} for HTTP/3, by UDP{why}{off}");
        anyhow::Error::new(error).context(cause)
    })
}

fn refused(address: &Address, error: io::Error) -> anyhow::Error {
    let why = why_refused(error.kind(), address, Use::Connections);
    anyhow::Error::new(error).context(format!("cannot listen on {address}{why}"))
}

/// The purpose of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Connections,
    Datagrams,
    Both,
}

/// Why an address cannot be bound, and what to do about it.
pub(super) fn why_refused(kind: io::ErrorKind, address: &Address, wanted: Use) -> String {
    match (kind, address) {
        (io::ErrorKind::AddrInUse, _) => match holder(address, wanted) {
            Some(process) => format!(": {process} does already; end it, or listen elsewhere"),
            None => {
                let sockets = match wanted {
                    Use::Connections => "-ltnp",
                    Use::Datagrams => "-lunp",
                    Use::Both => "-ltunp",
                };
                format!(
                    ": another process does already (`ss {sockets}`, as root, tells which); end it, or listen elsewhere"
                )
            }
        },
        (io::ErrorKind::PermissionDenied, Address::Tcp(_)) => {
            " (ports below 1024 need root or CAP_NET_BIND_SERVICE)".to_owned()
        }
        (io::ErrorKind::PermissionDenied, Address::Unix(_)) => {
            " (this user may not write to its folder)".to_owned()
        }
        (io::ErrorKind::AddrNotAvailable, _) => {
            " (no interface has this address: `ip address` lists those there are)".to_owned()
        }
        _ => String::new(),
    }
}

fn holder(address: &Address, wanted: Use) -> Option<Process> {
    let of_connections = || sockets::holder(address);
    let of_datagrams = || match address {
        Address::Tcp(address) => sockets::holder_of_datagrams(*address),
        Address::Unix(_) => None,
    };
    match wanted {
        Use::Connections => of_connections(),
        Use::Datagrams => of_datagrams(),
        Use::Both => of_datagrams().or_else(of_connections),
    }
}
