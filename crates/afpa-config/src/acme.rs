//! `[acme]`: certificates that come by themselves.

use std::path::PathBuf;

use afpa_acme::{AcmeSettings, ChallengeKind, ExternalAccount, LETS_ENCRYPT, OnDemand};
use afpa_dns::Name;

use crate::choice::choice;
use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::reader::Section;
use crate::rules;
use crate::settings::{Instance, Settings};
use crate::units::Unfit;

choice! {
    /// How it is shown that a name is ours.
    AcmeChallenge {
        /// By a response on port 80.
        Http = "http-01",
        /// By a certificate on port 443.
        TlsAlpn = "tls-alpn-01",
        /// By a record in the DNS.
        Dns = "dns-01",
    }
}

/// Let's Encrypt takes 300 orders of an account in three hours; the rest is for renewals.
const PER_HOUR: usize = 60;

const STATE: &str = "/var/lib/afpa/acme";

/// `[acme]`: one certificate for each of its names.
pub(crate) fn read(mut s: Section<'_, '_>) -> AcmeSettings {
    let domains = s.texts("domains", "host names", Vec::new(), domain);
    let on_demand = OnDemand {
        names: s.texts("on_demand", "host names", Vec::new(), domain),
        most: s.count("on_demand_limit", 1000, 1..=100_000),
        per_hour: PER_HOUR,
    };
    let email = s.text_or("email", "address", "none", email);
    let directory = s.text("directory", "URL", LETS_ENCRYPT.to_owned(), directory);
    let directory_ca = s.optional_path("directory_ca");
    let state = s.path_or("state", "path", &[], STATE);
    let challenge = s.choice("challenge", AcmeChallenge::Http);
    let dns_program = s.optional_path("dns_program");
    let challenge_alias = s.text_or("challenge_alias", "host name", "none", domain);
    let profile = s.text_or("profile", "word", "none", rules::any);
    let key_id = s.text_or("account_key_id", "word", "none", rules::any);
    let key_file = s.optional_path("account_key_file");
    AcmeSettings {
        directory,
        directory_ca,
        email,
        challenge: match challenge {
            AcmeChallenge::Http => ChallengeKind::Http01,
            AcmeChallenge::TlsAlpn => ChallengeKind::TlsAlpn01,
            AcmeChallenge::Dns => ChallengeKind::Dns01,
        },
        dns_program,
        challenge_alias,
        profile,
        external_account: key_id
            .zip(key_file)
            .map(|(key_id, key_file)| ExternalAccount { key_id, key_file }),
        certificates: domains.into_iter().map(|name| vec![name]).collect(),
        on_demand,
        ..AcmeSettings::new(PathBuf::from(state))
    }
}

/// A name that an authority certifies: one of the public DNS, which has a dot.
fn domain(text: &str) -> Result<String, Unfit> {
    let name = rules::host_pattern(text)?;
    let bare = name.strip_prefix("*.").unwrap_or(&name);
    let numeric = bare.rsplit('.').next().is_some_and(|last| last.parse::<u8>().is_ok());
    match bare.contains('.') && !numeric {
        true => Ok(name),
        false => Err(Unfit::new(
            format!("\"{text}\" is not a name of the public DNS"),
            "write for example \"www.example.org\"",
        )),
    }
}

fn email(text: &str) -> Result<String, Unfit> {
    let looks_right = text.split_once('@').is_some_and(|(who, host)| {
        !who.is_empty() && host.contains('.') && !text.contains([' ', ',', ':'])
    });
    match looks_right {
        true => Ok(text.to_owned()),
        false => Err(Unfit::new(
            format!("\"{text}\" is not an address"),
            "write for example \"admin@example.org\"",
        )),
    }
}

fn directory(text: &str) -> Result<String, Unfit> {
    match text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty()) {
        true => Ok(text.to_owned()),
        false => Err(Unfit::new(
            format!("\"{text}\" is not the URL of a directory"),
            format!("write for example \"{LETS_ENCRYPT}\""),
        )),
    }
}

/// Contradictions; looks at no file.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let acme = &config.acme;
    let mut error = |key: &str, cause: String, remedy: &str| {
        findings.push(Finding::error(settings.location("acme", key), cause, remedy));
    };
    let names = || acme.certificates.iter().flatten();
    let given = |key| settings.location("acme", key) != Location::Nowhere;
    let key = if acme.certificates.is_empty() { "on_demand" } else { "domains" };
    if let Some(name) = names().chain(&acme.on_demand.names).next()
        && config.sites.iter().all(|site| site.tls.is_empty())
    {
        let cause = format!("nobody would see the certificate of {name}");
        error(key, cause, "write tls = [\"0.0.0.0:443\"] under [[site]], or give --tls");
    }
    let is_dns = acme.challenge == ChallengeKind::Dns01;
    if let Some(name) = names().find(|name| name.starts_with('*'))
        && !is_dns
    {
        let cause = format!("{name} can be shown to be ours by the DNS alone");
        error("domains", cause, "write challenge = \"dns-01\" and `dns_program`, or each name");
    }
    if is_dns && acme.dns_program.is_none() && config.zones.is_empty() {
        let cause = "no program sets the record in the DNS, and no [[zone]] can have it".to_owned();
        error(
            "challenge",
            cause,
            "write dns_program = \"/usr/local/bin/dns-record\", or a [[zone]]",
        );
    }
    if is_dns && acme.dns_program.is_none() && !config.zones.is_empty() {
        let alias = acme.challenge_alias.as_deref();
        for name in names() {
            let bare = alias.unwrap_or(name.strip_prefix("*.").unwrap_or(name));
            let record = format!("_acme-challenge.{bare}.");
            let Ok(record) = Name::parse(&record, &Name::root()) else { continue };
            if !config.zones.iter().any(|zone| record.is_within(zone.name.lower().wire())) {
                let cause = format!("no [[zone]] has {record}, which shows that {name} is ours");
                error(
                    "domains",
                    cause,
                    "add the zone, or write challenge_alias = \"NAME\" of a zone that is here",
                );
            }
        }
    }
    if acme.challenge_alias.is_some() && (!is_dns || acme.dns_program.is_some()) {
        let cause = "`challenge_alias` is for dns-01 in a [[zone]] of this server".to_owned();
        error(
            "challenge_alias",
            cause,
            "write challenge = \"dns-01\" and no `dns_program`, or remove it",
        );
    }
    let key = "on_demand_limit";
    if settings.differs("acme", Instance::default(), key) && acme.on_demand.names.is_empty() {
        let cause = format!("`{key}` without names that may be asked for");
        error(key, cause, "write for example on_demand = [\"*.example.org\"]");
    }
    if given("account_key_id") != given("account_key_file") {
        let cause = "an account of an authority has an identifier and a key".to_owned();
        error("account_key_id", cause, "write both `account_key_id` and `account_key_file`");
    }
    findings
}
