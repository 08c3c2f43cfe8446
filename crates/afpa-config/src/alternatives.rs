//! HTTP/3 of sites: the field that tells clients of it, and places where it is enabled and not spoken.

use std::collections::HashMap;

use afpa_http::edits::{Change, FieldRule};

use crate::finding::Finding;
use crate::http3::Http3;
use crate::model::{Config, SiteSettings};
use crate::settings::Settings;
use crate::units::Listen;

/// Tells the clients of a site by a field of its answers (RFC 9114 section 3.1.1), before the site's own rules, which
/// may change or remove it. It names a port of its own, and the host stays.
pub(crate) fn announce(http3: &Http3, site: &mut SiteSettings) {
    let port = site.tls.iter().find_map(|listen| match listen {
        Listen::Tcp(address) if address.port() != 0 => Some(address.port()),
        Listen::Tcp(_) | Listen::Unix(_) => None,
    });
    let Some(port) = port.filter(|_| http3.enabled) else { return };
    let set = vec![("Alt-Svc".to_owned(), format!("h3=\":{port}\"; ma=86400"))];
    let answer = Change { set, ..Change::default() };
    site.alternative = Some(FieldRule { answer, ..FieldRule::default() });
}

/// Where HTTP/3 is enabled and is not spoken.
pub(crate) fn warnings(config: &Config, settings: &Settings) -> Vec<Finding> {
    if !config.http3.enabled {
        return Vec::new();
    }
    if config.sites.iter().all(|site| site.tls.is_empty()) {
        let cause = "HTTP/3 is spoken nowhere: no site has an address in `tls`";
        let remedy = "write for example tls = [\"0.0.0.0:443\"] under [[site]]";
        return vec![Finding::warning(settings.location("http3", "enabled"), cause, remedy)];
    }
    // The first packet of a connection is not read for the name that its client asks for.
    let mut asked = HashMap::new();
    let mut findings = Vec::new();
    for site in &config.sites {
        let clients = config.tls.clients_of(site);
        for listen in &site.tls {
            if *asked.entry(listen).or_insert_with(|| clients.clone()) != clients {
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
