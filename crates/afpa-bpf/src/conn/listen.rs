//! Served addresses, and the Host values that select sites.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_abi::{Endpoint, FIELD_NAME_MAX, FieldName, HOST_MAX, Listener, Site, SiteKey};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::conn::SiteNumber;
use crate::programs::Programs;
use crate::region::Region;
use crate::unavailable::Unavailable;

/// The served addresses, the hosts on them, and the request fields that are known.
pub struct Listeners {
    region: Arc<Region>,
    listeners: MapHandle,
    sites: MapHandle,
    fields: MapHandle,
}

impl Listeners {
    pub(crate) fn over(programs: &Programs, region: &Arc<Region>) -> Result<Self, Unavailable> {
        Ok(Self {
            region: Arc::clone(region),
            listeners: programs.map("listeners")?,
            sites: programs.map("sites")?,
            fields: programs.map("fields")?,
        })
    }

    /// Serves a local address. It belongs to a listener set, numbered from 1: the addresses of one set have the
    /// same hosts, and a host may be another site on another set. Requests whose Host selects no site belong
    /// to `any_host`; 0: user mode answers them. The wildcard `[::]` takes IPv4 as well, as a dual-stack socket
    /// does. Serving an address again replaces its earlier set and site.
    pub fn listen(
        &self,
        address: SocketAddr,
        set: u32,
        any_host: SiteNumber,
    ) -> libbpf_rs::Result<()> {
        for endpoint in endpoints(address) {
            let value = Listener { id: set, any_host_site: any_host }.to_bytes();
            self.listeners.update(&endpoint.to_bytes(), &value, MapFlags::ANY)?;
        }
        self.look_anew();
        self.region.ports(address.port()).fetch_or(1 << (address.port() % 64), Ordering::SeqCst);
        Ok(())
    }

    /// Ends serving an address. Its connections go on in user mode. The port stays marked, because some of them
    /// may need translation.
    pub fn unlisten(&self, address: SocketAddr) -> libbpf_rs::Result<()> {
        let mut endpoints = endpoints(address).into_iter();
        let deleted =
            endpoints.try_for_each(|endpoint| self.listeners.delete(&endpoint.to_bytes()));
        self.look_anew();
        deleted
    }

    /// Requests to addresses of `set` whose Host field is `host` (with its port, if clients send one) belong to
    /// `site`; 0: user mode answers them, even where `any_host` is not 0. Where there is an `any_host`, a name
    /// without a port stands for the name with any port. `host` must be a valid Host value: it is not checked.
    /// False: it is empty or too long.
    pub fn map_host(&self, set: u32, host: &str, site: SiteNumber) -> libbpf_rs::Result<bool> {
        self.map_host_as(set, host, site, 0)
    }

    /// [`map_host`](Self::map_host), for a host that has a number: servers' answers for exactly this value are pinned under
    /// the number as under a site's, and found where the site has no file. 0: it has none.
    pub fn map_host_as(
        &self,
        set: u32,
        host: &str,
        site: SiteNumber,
        number: SiteNumber,
    ) -> libbpf_rs::Result<bool> {
        let Some(key) = site_key(set, host) else { return Ok(false) };
        let value = Site { site, host: number }.to_bytes();
        self.sites.update(&key.to_bytes(), &value, MapFlags::ANY)?;
        self.look_anew();
        Ok(true)
    }

    /// Forgets this host of a set. False: it was not known.
    pub fn unmap_host(&self, set: u32, host: &str) -> libbpf_rs::Result<bool> {
        let Some(key) = site_key(set, host) else { return Ok(false) };
        let known = self.sites.lookup(&key.to_bytes(), MapFlags::ANY)?.is_some();
        if known {
            self.sites.delete(&key.to_bytes())?;
            self.look_anew();
        }
        Ok(known)
    }

    /// From now on answers may depend on request fields that the programs do not read. `classes` has the name, in
    /// lower case, and the classes of each that they may let pass; all others belong to
    /// [`FIELD_UNKNOWN`](crate::FIELD_UNKNOWN). [`PinRules::fields`](crate::PinRules::fields) says which of
    /// them do not matter to an object.
    ///
    /// # Errors
    /// When a name is too long, or the kernel refuses.
    pub fn let_fields_matter<'n>(
        &self,
        classes: impl IntoIterator<Item = (&'n str, u32)>,
    ) -> libbpf_rs::Result<()> {
        for (name, classes) in classes {
            let mut key = FieldName { name: [0; FIELD_NAME_MAX] };
            // The last byte stays 0, as the programs read names.
            let room = key.name.get_mut(..name.len()).filter(|room| room.len() < FIELD_NAME_MAX);
            let room = room.ok_or_else(|| libbpf_rs::Error::from_raw_os_error(36))?; // ENAMETOOLONG
            room.copy_from_slice(name.as_bytes());
            self.fields.update(&key.to_bytes(), &classes.to_ne_bytes(), MapFlags::ANY)?;
        }
        self.region.fields_matter().store(1, Ordering::SeqCst);
        self.look_anew();
        Ok(())
    }

    /// To be called after each change of listeners and hosts: remembered header blocks name sites, and
    /// connections remember their listener. Both lapse.
    pub(crate) fn look_anew(&self) {
        self.region.generation().fetch_add(1, Ordering::SeqCst);
    }
}

fn site_key(listener: u32, host: &str) -> Option<SiteKey> {
    if host.is_empty() || host.len() > HOST_MAX {
        return None;
    }
    let mut key = SiteKey { listener, host_length: host.len() as u32, host: [0; HOST_MAX] };
    for (to, from) in key.host.iter_mut().zip(host.bytes()) {
        *to = from.to_ascii_lowercase();
    }
    Some(key)
}

/// The keys of an address that listens. A dual-stack `[::]` is that of both families.
pub(crate) fn endpoints(address: SocketAddr) -> Vec<Endpoint> {
    let mut all = vec![Endpoint::new(address)];
    if matches!(address.ip(), IpAddr::V6(ip) if ip.is_unspecified()) {
        all.push(Endpoint::new(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port())));
    }
    all
}
