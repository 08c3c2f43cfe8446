//! HTTP/3 of sites: where it is spoken, and the field that tells clients of it.

use std::collections::HashMap;
use std::net::SocketAddr;

use afpa_http::edits::{Change, FieldRule};

use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::settings::Settings;
use crate::site_settings::SiteSettings;
use crate::units::Listen;

/// Whether datagrams can be received at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagrams {
    /// They can.
    Received,
    /// Another process has the port, or this one may not bind it.
    Refused,
    /// This process has bound the address without TLS, and so not for datagrams.
    Unbound,
}

/// Decides where HTTP/3 is spoken, and has the answers of sites tell of it. Returns warnings.
pub(crate) fn decide(
    config: &mut Config,
    settings: &Settings,
    datagrams: &dyn Fn(SocketAddr) -> Datagrams,
) -> Vec<Finding> {
    if !config.http3.enabled {
        return Vec::new();
    }
    let told = settings.location("http3", "enabled");
    config.http3.is_demanded = told != Location::Nowhere;
    if config.http3.is_demanded && config.sites.iter().all(|site| site.tls.is_empty()) {
        let cause = "HTTP/3 is spoken nowhere: no site has an address in `tls`";
        let remedy = "write for example tls = [\"0.0.0.0:443\"] under [[site]]";
        return vec![Finding::warning(told, cause, remedy)];
    }
    let mut findings = differing(config, settings);
    findings.extend(refused(config, settings, datagrams));
    for site in &mut config.sites {
        announce(&config.http3.silent, site);
    }
    findings
}

/// The first packet of a connection is not read for the name that its client asks for, so the sites of an address have to
/// agree.
fn differing(config: &mut Config, settings: &Settings) -> Vec<Finding> {
    let mut asked = HashMap::new();
    let mut findings = Vec::new();
    for site in &config.sites {
        let clients = config.tls.clients_of(site);
        for listen in &site.tls {
            if *asked.entry(listen).or_insert_with(|| clients.clone()) == clients {
                continue;
            }
            config.http3.silent.push(listen.clone());
            if config.http3.is_demanded {
                let cause = format!(
                    "HTTP/3 is not spoken at {listen}: its sites differ in the certificates of clients"
                );
                let location = settings.location_in("site", site.instance, "tls");
                let remedy =
                    "give the sites addresses of their own, or the same `client_certificates`";
                findings.push(Finding::warning(location, cause, remedy));
            }
        }
    }
    findings
}

/// Where datagrams cannot be received. Where HTTP/3 is demanded, a refused port is an error when it is bound.
fn refused(
    config: &mut Config,
    settings: &Settings,
    datagrams: &dyn Fn(SocketAddr) -> Datagrams,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &config.sites {
        for listen in &site.tls {
            let Listen::Tcp(address) = listen else { continue };
            if config.http3.silent.contains(listen) {
                continue;
            }
            let datagrams = datagrams(*address);
            let (why, remedy) = match datagrams {
                Datagrams::Received => continue,
                Datagrams::Refused => (
                    "its port cannot be had for UDP (`ss -lunp`, as root, tells who has it)",
                    "take the port from the process that has it, or write enabled = false under [http3]",
                ),
                Datagrams::Unbound => (
                    "the running process has bound it without TLS",
                    "start AFPA anew, or send it USR2",
                ),
            };
            config.http3.silent.push(listen.clone());
            if !config.http3.is_demanded || datagrams == Datagrams::Unbound {
                let cause = format!("HTTP/3 is not spoken at {listen}: {why}");
                let location = settings.location_in("site", site.instance, "tls");
                findings.push(Finding::warning(location, cause, remedy));
            }
        }
    }
    findings
}

/// Tells the clients of a site by a field of its answers (RFC 9114 section 3.1.1), before the site's own rules, which
/// may change or remove it. It names a port of its own, and the host stays.
fn announce(silent: &[Listen], site: &mut SiteSettings) {
    let port =
        site.tls.iter().filter(|listen| !silent.contains(listen)).find_map(|listen| match listen {
            Listen::Tcp(address) if address.port() != 0 => Some(address.port()),
            Listen::Tcp(_) | Listen::Unix(_) => None,
        });
    let Some(port) = port else { return };
    site.alternative = Some(says(format!("h3=\":{port}\"; ma=86400")));
}

/// Has clients forget the field of a site from before a reload, behind which it has none (RFC 7838 section 3). The process
/// says so as long as it runs: the next one does not know of the field, and a day later no client does.
pub(crate) fn forget(new: &mut Config, before: &Config) {
    for site in new.sites.iter_mut().filter(|site| site.alternative.is_none()) {
        let had_told = |old: &SiteSettings| old.alternative.is_some() && old.hosts == site.hosts;
        if !site.tls.is_empty() && before.sites.iter().any(had_told) {
            site.alternative = Some(says("clear".to_owned()));
        }
    }
}

fn says(value: String) -> FieldRule {
    let answer = Change { set: vec![("Alt-Svc".to_owned(), value)], ..Change::default() };
    FieldRule { answer, ..FieldRule::default() }
}
