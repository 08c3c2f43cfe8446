//! The demands of sites on TLS clients.

use std::path::PathBuf;

use afpa_config::{ClientCertificates, Config, Listen, SiteSettings, read_authorities};
use afpa_module_http::ClientDemand;
use afpa_tls::{ClientAuthorities, ListenerTls, ServerSettings, ServerTls};

/// How connections are taken that are for each site, in the order of the sites.
pub(super) struct SitesTls(Vec<SiteTls>);

#[derive(Clone)]
struct SiteTls {
    tls: ServerTls,
    demand: Option<ClientDemand>,
}

/// The demand on clients; sites with the same one share their TLS. `None`: no certificate is asked for.
type Wanted = Option<(ClientCertificates, PathBuf)>;

impl SitesTls {
    /// Makes the TLS of each site. Sites with the same demand share it, and with it the sessions of their clients.
    ///
    /// # Errors
    /// With the file that cannot be used.
    pub(super) fn new(
        config: &Config,
        common: &ServerSettings,
        make: impl Fn(&ServerSettings) -> anyhow::Result<ServerTls>,
    ) -> anyhow::Result<Self> {
        let mut made: Vec<(Wanted, SiteTls)> = Vec::new();
        let mut sites = Vec::with_capacity(config.sites.len());
        for site in &config.sites {
            let wanted = config.tls.clients_of(site);
            let found = made.iter().find(|(other, _)| *other == wanted).map(|(_, tls)| tls.clone());
            let tls = match found {
                Some(tls) => tls,
                None => {
                    let tls = SiteTls::new(&wanted, common, &make)?;
                    made.push((wanted, tls.clone()));
                    tls
                }
            };
            sites.push(tls);
        }
        Ok(Self(sites))
    }

    /// How the connections of each address are taken. For an unknown name the settings of the site without hosts
    /// apply, else those of the first site.
    pub(super) fn listeners(&self, config: &Config) -> Vec<(Listen, ListenerTls)> {
        let mut listeners: Vec<(Listen, ListenerTls)> = Vec::new();
        for listen in config.sites.iter().flat_map(|site| &site.tls) {
            if listeners.iter().any(|(other, _)| other == listen) {
                continue;
            }
            let here = || {
                let sites = config.sites.iter().zip(&self.0);
                sites.filter(|(site, _)| site.tls.contains(listen))
            };
            let any = here().find(|(site, _)| site.hosts.is_empty()).or_else(|| here().next());
            let Some((_, default)) = any else { continue };
            let names =
                here().flat_map(|(site, made)| names(site).map(|name| (name, made.tls.clone())));
            let tls = ListenerTls::by_name(default.tls.clone(), names);
            listeners.push((listen.clone(), tls));
        }
        listeners
    }

    pub(super) fn demands(&self) -> Vec<Option<ClientDemand>> {
        self.0.iter().map(|site| site.demand).collect()
    }
}

fn names(site: &SiteSettings) -> impl Iterator<Item = &str> {
    site.hosts.iter().map(String::as_str)
}

impl SiteTls {
    fn new(
        wanted: &Wanted,
        common: &ServerSettings,
        make: impl Fn(&ServerSettings) -> anyhow::Result<ServerTls>,
    ) -> anyhow::Result<Self> {
        let Some((which, path)) = wanted else {
            return Ok(Self { tls: make(common)?, demand: None });
        };
        let required = *which == ClientCertificates::Required;
        let clients = ClientAuthorities { roots: read_authorities(path)?, required };
        let demand = Some(ClientDemand { authorities: clients.id().0, required });
        let tls = make(&ServerSettings { clients: Some(clients), ..common.clone() })?;
        Ok(Self { tls, demand })
    }
}
