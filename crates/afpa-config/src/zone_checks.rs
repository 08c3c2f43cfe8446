//! Checks of zones: contradictions, and faults in their files.

use std::net::SocketAddr;

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

/// Contradictions; looks at no file.
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
        for secondary in &zone.notify {
            if !zone.transfer.iter().any(|network| network.contains(secondary.ip())) {
                let cause = format!("{secondary} is told of a new zone, and may not have it");
                let remedy = format!("add it: transfer = [\"{}\"]", secondary.ip());
                findings.push(Finding::warning(at("notify"), cause, remedy));
            }
        }
    }
    findings
}

/// Whether the zone files can be served.
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
    config.zones.iter().flat_map(of_zone).collect()
}
