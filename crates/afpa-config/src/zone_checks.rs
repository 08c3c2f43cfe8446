//! Checks of zones: contradictions, and faults in their files.

use std::net::SocketAddr;
use std::path::Path;

use crate::dns_keys::DnsKeySettings;
use crate::finding::Finding;
use crate::model::Config;
use crate::settings::Settings;
use crate::zones::{ZoneSettings, read_zone_files};

impl Config {
    /// The addresses on which questions are taken, each once.
    pub fn dns_addresses(&self) -> Vec<SocketAddr> {
        let mut addresses: Vec<_> =
            self.zones.iter().flat_map(|zone| zone.listen.clone()).collect();
        addresses.sort();
        addresses.dedup();
        addresses
    }
}

/// Contradictions, those of keys as well; looks at no file.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, zone) in config.zones.iter().enumerate() {
        let at = |key| settings.location_in("zone", zone.instance, key);
        let before = config.zones.iter().take(index);
        if let Some(other) = before.clone().find(|other| other.name.lower() == zone.name.lower()) {
            let cause = format!("the zone {} is there twice", zone.name);
            let other = settings.location_in("zone", other.instance, "name");
            let finding = Finding::error(at("name"), cause, "remove one of the two");
            findings.push(finding.against(other));
        }
        if zone.listen.is_empty() {
            let remedy = "write for example listen = [\"192.0.2.1:53\"]";
            findings.push(Finding::error(
                at("listen"),
                "`listen` is empty: nobody could ask",
                remedy,
            ));
        }
        let is_for_all = zone.key.is_some() && zone.transfer.is_empty();
        for secondary in zone.notify.iter().filter(|_| !is_for_all) {
            if !zone.transfer.iter().any(|network| network.contains(secondary.ip())) {
                let cause = format!("{secondary} is told of a new zone, and may not have it");
                let remedy = format!("add it: transfer = [\"{}\"]", secondary.ip());
                findings.push(Finding::warning(at("notify"), cause, remedy));
            }
        }
    }
    findings.extend(keys_consistency(config, settings));
    findings
}

/// Whether the zone files can be served, and the secrets of keys read.
pub(crate) fn feasibility(config: &Config, settings: &Settings) -> Vec<Finding> {
    let of_zone = |zone: &ZoneSettings| {
        let at = settings.location_in("zone", zone.instance, "file");
        let findings = read_zone_files(zone).read.findings.into_iter();
        let told = findings.map(move |found| {
            let cause = found.to_string();
            match found.is_error {
                true => Finding::error(at.clone(), cause, found.remedy),
                false => Finding::warning(at.clone(), cause, found.remedy),
            }
        });
        told.collect::<Vec<_>>()
    };
    let of_keys = keys_feasibility(config, settings);
    config.zones.iter().flat_map(of_zone).chain(of_keys).collect()
}

/// Names that are there twice, and those that no key has.
fn keys_consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, key) in config.dns_keys.iter().enumerate() {
        let at = settings.location_in("dns.key", key.instance, "name");
        let before = config.dns_keys.iter().take(index);
        if before.into_iter().any(|other| other.name.lower() == key.name.lower()) {
            let cause = format!("the key {} is there twice", key.name);
            findings.push(Finding::error(at, cause, "remove one of the two"));
        }
    }
    for zone in &config.zones {
        let Some(name) = &zone.key else { continue };
        if !config.dns_keys.iter().any(|key| key.name.lower() == name.lower()) {
            let at = settings.location_in("zone", zone.instance, "key");
            let remedy = "add it: [[dns.key]] with `name` and `file`";
            findings.push(Finding::error(at, format!("there is no key {name}"), remedy));
        }
    }
    findings
}

/// Whether the secrets can be read.
fn keys_feasibility(config: &Config, settings: &Settings) -> Vec<Finding> {
    let of_key = |key: &DnsKeySettings| {
        let at = settings.location_in("dns.key", key.instance, "file");
        match key.read_key() {
            Err((cause, remedy)) => Some(Finding::error(at, cause, remedy)),
            Ok(_) if is_open(&key.file) => {
                let cause = format!("everybody may read {}", key.file.display());
                Some(Finding::warning(at, cause, "chmod o-r it"))
            }
            Ok(_) => None,
        }
    };
    config.dns_keys.iter().filter_map(of_key).collect()
}

fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}
