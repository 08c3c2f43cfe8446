//! The files of `[tls]` and `[[certificate]]`: reading them, and their faults.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use afpa_tls::Certificate;
use afpa_tls::certificate::{Remark, read_chain};
use afpa_tls::machine::CertificateDer;
use thiserror::Error;

use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::places::Place;
use crate::settings::Settings;
use crate::site_settings::SiteSettings;
use crate::tls::{CertificateFiles, ClientCertificates, Tls};
use crate::units::Listen;

/// A file that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}: {cause} ({remedy})", path.display())]
pub struct TlsFileError {
    /// The setting that names it.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The fault of the file.
    pub cause: String,
    /// The remedy.
    pub remedy: String,
    /// Only this user may not read it.
    pub is_denied: bool,
}

/// A function that reads a whole file, if the file is not longer than [`LONGEST_TLS_FILE`].
pub type ReadFile<'a> = dyn Fn(&Path) -> io::Result<Vec<u8>> + 'a;

/// A function that reads the files of a certificate.
pub type ReadCertificate<'a> = dyn Fn(&CertificateFiles) -> Result<Certificate, TlsFileError> + 'a;

/// Reads the files of a certificate.
///
/// # Errors
/// With the file at fault.
pub fn read_certificate(files: &CertificateFiles) -> Result<Certificate, TlsFileError> {
    read_certificate_by(&read_tls_file, files)
}

/// [`read_certificate`] with another reader of files, for a caller that has one with more rights than this process.
///
/// # Errors
/// With the file at fault.
pub fn read_certificate_by(
    read_file: &ReadFile<'_>,
    files: &CertificateFiles,
) -> Result<Certificate, TlsFileError> {
    let read = |key, path: &Path| explained(key, path, read_file(path));
    let chain = read("chain", &files.chain)?;
    let key = read("key", &files.key)?;
    let staple = files.staple.as_deref().map(|path| read("staple", path)).transpose()?;
    Certificate::read(&chain, &key, staple).map_err(|error| {
        let (name, path) = match &files.staple {
            Some(staple) if error.is_of_staple() => ("staple", staple),
            _ if error.is_of_key() => ("key", &files.key),
            _ => ("chain", &files.chain),
        };
        let (cause, remedy) = (error.to_string(), error.remedy().to_owned());
        TlsFileError { key: name, path: path.clone(), cause, remedy, is_denied: false }
    })
}

/// Reads the certificates of the authorities that issue clients' certificates.
///
/// # Errors
/// When the file cannot be used.
pub fn read_authorities(path: &Path) -> Result<Vec<CertificateDer>, TlsFileError> {
    let key = AUTHORITIES;
    read_chain(&explained(key, path, read_tls_file(path))?).map_err(|error| {
        let (cause, remedy) = (error.to_string(), error.remedy().to_owned());
        TlsFileError { key, path: path.to_owned(), cause, remedy, is_denied: false }
    })
}

const AUTHORITIES: &str = "client_authorities";

const DENIED: &str = "start as root: then it is read before privileges are dropped, and its changes are read by a process of its own; or give this user the right";

/// No file of these is long; a device would never end.
pub const LONGEST_TLS_FILE: u64 = 1024 * 1024;

/// Reads one of these files, by the rights of this process.
///
/// # Errors
/// As `fs::read`, and [`not_a_tls_file`].
pub fn read_tls_file(path: &Path) -> io::Result<Vec<u8>> {
    let about = fs::metadata(path)?;
    if !about.is_file() || about.len() > LONGEST_TLS_FILE {
        return Err(not_a_tls_file());
    }
    fs::read(path)
}

/// The error for a device, a folder, or a file that is too long.
pub fn not_a_tls_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a file of at most 1MiB")
}

fn explained(
    key: &'static str,
    path: &Path,
    read: io::Result<Vec<u8>>,
) -> Result<Vec<u8>, TlsFileError> {
    let wrong = |cause: String, remedy: &str| TlsFileError {
        key,
        path: path.to_owned(),
        cause,
        remedy: remedy.to_owned(),
        is_denied: false,
    };
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            wrong("it does not exist".to_owned(), "create it, or correct the path")
        }
        io::ErrorKind::PermissionDenied => {
            TlsFileError { is_denied: true, ..wrong(denied(&error), DENIED) }
        }
        _ => wrong(error.to_string(), "name a file in PEM"),
    };
    read.map_err(unreadable)
}

/// The system's error text does not say which user may not read the file.
fn denied(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(_) => "this user may not read it".to_owned(),
        None => error.to_string(),
    }
}

/// Contradictions; looks at no file.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tls = &config.tls;
    for files in &config.certificates {
        for (key, path) in [("chain", &files.chain), ("key", &files.key)] {
            let given = settings.location_in("certificate", files.instance, key);
            if path.as_os_str().is_empty() && given == Location::Nowhere {
                let remedy = format!("write {key} = \"/etc/afpa/site.pem\"");
                let cause = format!("no `{key}`");
                findings.push(Finding::error(files.location.clone(), cause, remedy));
            }
        }
    }
    if tls.client_certificates != ClientCertificates::None && tls.client_authorities.is_none() {
        findings.push(nobody_issues(settings.location("tls", "client_certificates")));
    }
    if tls.early_data && tls.tickets == 0 {
        let cause = "early data needs sessions, and `tickets = 0` makes none";
        let remedy = "write tickets = 2, or early_data = false";
        findings.push(Finding::error(settings.location("tls", "early_data"), cause, remedy));
    }
    let plain: HashSet<&Listen> = config.sites.iter().flat_map(|site| &site.listen).collect();
    for site in &config.sites {
        findings.extend(site_consistency(config, settings, site, &plain));
    }
    findings
}

fn nobody_issues(location: Location) -> Finding {
    let cause = "clients are asked for certificates, and no authority for these is named";
    let remedy = "write client_authorities = \"/etc/afpa/clients.pem\"";
    Finding::error(location, cause, remedy)
}

impl Tls {
    /// Whether a site asks its TLS clients for certificates, and the file of the authorities; `None`: it does not ask.
    pub fn clients_of(&self, site: &SiteSettings) -> Option<(ClientCertificates, PathBuf)> {
        let which = site.client_certificates.unwrap_or(self.client_certificates);
        let authorities = site.client_authorities.as_ref().or(self.client_authorities.as_ref());
        authorities
            .filter(|_| which != ClientCertificates::None && !site.tls.is_empty())
            .map(|path| (which, path.clone()))
    }
}

/// Contradictions between a site's demands on its clients and its listeners.
fn clients_consistency(config: &Config, settings: &Settings, site: &SiteSettings) -> Vec<Finding> {
    let location = |key| settings.location_in("site", site.instance, key);
    let mut findings = Vec::new();
    let which = site.client_certificates.unwrap_or(config.tls.client_certificates);
    let asked = config.tls.clients_of(site).is_some();
    let own = site.client_certificates.is_some_and(|which| which != ClientCertificates::None);
    if own && !asked && !site.tls.is_empty() {
        findings.push(nobody_issues(location("client_certificates")));
    }
    if asked && which == ClientCertificates::Required && !site.listen.is_empty() && !site.https_only
    {
        let cause = "clients that come without TLS get in without the certificate that is required";
        let remedy = "write https_only = true, or take the addresses out of `listen`";
        findings.push(Finding::warning(location("listen"), cause, remedy));
    }
    let demands = |place: &Place<'_>| place.behaviour.if_client_subject.is_some();
    for Place { section: (section, instance), .. } in
        site.places().filter(|place| !asked && demands(place))
    {
        let location = settings.location_in(section, instance, "if_client_subject");
        let cause = "clients of this site are not asked for a certificate";
        let remedy = "write client_certificates = \"optional\" under its [[site]]";
        findings.push(Finding::error(location, cause, remedy));
    }
    findings
}

fn site_consistency(
    config: &Config,
    settings: &Settings,
    site: &SiteSettings,
    plain: &HashSet<&Listen>,
) -> Vec<Finding> {
    let location = |key| settings.location_in("site", site.instance, key);
    let mut findings = Vec::new();
    let comes = config.acme.orders();
    if !site.tls.is_empty() && config.certificates.is_empty() && !comes {
        let remedy = "write a [[certificate]] with `chain` and `key`, or [acme] with `domains`, or give --cert and \
                      --key, or --domain";
        findings.push(Finding::error(location("tls"), "there is no certificate", remedy));
    }
    findings.extend(clients_consistency(config, settings, site));
    for key in ["https_only", "hsts", "client_certificates", "client_authorities"] {
        if site.tls.is_empty() && settings.differs("site", site.instance, key) {
            let cause = format!("`{key}` of a site without an address in `tls`");
            findings.push(Finding::error(
                location(key),
                cause,
                "write for example tls = [\"0.0.0.0:443\"]",
            ));
        }
    }
    if let Some(both) = site.tls.iter().find(|listen| plain.contains(listen)) {
        let cause = format!("{both} is an address for plain HTTP, too");
        findings.push(Finding::error(location("tls"), cause, "use another port"));
    }
    findings
}

/// Whether the files can be used, and what about them should be looked at.
pub(crate) fn feasibility(
    config: &Config,
    settings: &Settings,
    read: &ReadCertificate<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let mut certificates = Vec::new();
    for files in &config.certificates {
        match read(files) {
            Ok(certificate) => {
                findings.extend(remarks(files, settings, &certificate, now));
                certificates.push(certificate);
            }
            Err(error) => {
                let location = settings.location_in("certificate", files.instance, error.key);
                let cause = format!("{}: {}", error.path.display(), error.cause);
                // A start as root may.
                findings.push(match error.is_denied {
                    true => Finding::warning(location, cause, error.remedy),
                    false => Finding::error(location, cause, error.remedy),
                });
            }
        }
    }
    // Names are only missing where everything could be read.
    if certificates.len() == config.certificates.len() && !certificates.is_empty() {
        let names: HashSet<String> = certificates
            .iter()
            .flat_map(|certificate| certificate.names())
            .map(|name| name.to_ascii_lowercase())
            .collect();
        for site in config.sites.iter().filter(|site| !site.tls.is_empty()) {
            findings.extend(uncovered(config, site, settings, &names));
        }
    }
    let common = config.tls.client_authorities.as_deref();
    let common = common.map(|path| (path, settings.location("tls", AUTHORITIES)));
    let of_sites = config.sites.iter().filter_map(|site| {
        let location = settings.location_in("site", site.instance, AUTHORITIES);
        site.client_authorities.as_deref().map(|path| (path, location))
    });
    for (path, location) in common.into_iter().chain(of_sites) {
        if let Err(error) = read_authorities(path) {
            let cause = format!("{}: {}", error.path.display(), error.cause);
            findings.push(Finding::error(location, cause, error.remedy));
        }
    }
    findings
}

fn remarks(
    files: &CertificateFiles,
    settings: &Settings,
    certificate: &Certificate,
    now: i64,
) -> Vec<Finding> {
    let location = |key| settings.location_in("certificate", files.instance, key);
    let (chain, key) = (files.chain.display(), files.key.display());
    let mut findings = Vec::new();
    for remark in certificate.remarks(now) {
        let (cause, remedy) = match remark {
            Remark::Expired(ago) => (format!("{chain} expired {} ago", days(ago)), "renew it"),
            Remark::ExpiresSoon(left) => (format!("{chain} expires in {}", days(left)), "renew it"),
            Remark::NotYetValid => {
                (format!("{chain} is not valid yet"), "compare the clock with `date`, or wait")
            }
            Remark::Order(at) => (
                format!("certificate {at} in {chain} has not issued the one before it"),
                "put each certificate before the one that issued it",
            ),
            Remark::Incomplete(issuer) => (
                format!("{chain} does not have the certificate of its issuer, {issuer}"),
                "use the authority's file with the whole chain (fullchain.pem), or clients may refuse it",
            ),
            Remark::NoNames => {
                (format!("{chain} is for no host"), "clients look at its subject alternative names")
            }
        };
        findings.push(Finding::warning(location("chain"), cause, remedy));
    }
    let others =
        fs::metadata(&files.key).is_ok_and(|about| about.permissions().mode() & 0o007 != 0);
    if others {
        let cause = format!("every user of this machine can read {key}");
        findings.push(Finding::warning(location("key"), cause, format!("chmod o= {key}")));
    }
    findings
}

fn days(seconds: i64) -> String {
    match seconds / (24 * 3600) {
        0 => "less than a day".to_owned(),
        1 => "a day".to_owned(),
        days => format!("{days} days"),
    }
}

/// Hosts of a site that no certificate is for.
fn uncovered(
    config: &Config,
    site: &SiteSettings,
    settings: &Settings,
    names: &HashSet<String>,
) -> Option<Finding> {
    let comes = |host: &str| {
        let parent = host.find('.').and_then(|dot| host.get(dot..));
        let on_demand = &config.acme.on_demand;
        on_demand.allows(host)
            || on_demand.names.iter().any(|name| name == host)
            || config.acme.certificates.iter().flatten().any(|name| {
                name == host || name.strip_prefix('*').is_some_and(|rest| Some(rest) == parent)
            })
    };
    let covered = |host: &str| {
        comes(host)
            || names.contains(&host.to_ascii_lowercase())
            || host.split_once('.').is_some_and(|(label, rest)| {
                label != "*" && names.contains(&format!("*.{}", rest.to_ascii_lowercase()))
            })
    };
    let is_local = |host: &str| host == "localhost" || host.parse::<IpAddr>().is_ok();
    let missing = site.hosts.iter().map(String::as_str).filter(|h| !covered(h) && !is_local(h));
    // The names that an expression stands for are not known.
    let missing: Vec<&str> = missing.filter(|host| !host.starts_with('~')).collect();
    if missing.is_empty() {
        return None;
    }
    let location = settings.location_in("site", site.instance, "hosts");
    let cause = format!("no certificate is for {}", missing.join(", "));
    let remedy = "clients get the first certificate, and most refuse it: add a [[certificate]]";
    Some(Finding::warning(location, cause, remedy))
}
