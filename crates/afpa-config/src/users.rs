//! The files of `basic_auth`: whether they can be read, and whether each of their lines says something.

use std::io;
use std::path::Path;

use crate::access::BasicAuth;
use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::settings::{Section, Settings};
use crate::site_settings::SiteSettings;
use crate::units::Listen;
use crate::whole_file::read_whole;

/// Bytes of the longest file.
const LONGEST: usize = 16 << 20;

/// Every section that can ask for a password.
fn places(config: &Config) -> impl Iterator<Item = (Section, Option<&BasicAuth>)> {
    config.sites.iter().flat_map(of_site)
}

fn of_site(site: &SiteSettings) -> impl Iterator<Item = (Section, Option<&BasicAuth>)> {
    site.sections(site.basic_auth.as_ref(), |behaviour| behaviour.basic_auth.as_ref())
}

/// Realms that nobody is shown; looks at nothing else.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let key = "basic_auth_realm";
    let useless = places(config).filter(|((section, instance), demand)| {
        !matches!(demand, Some(BasicAuth::Users { .. }))
            && settings.differs(section, *instance, key)
    });
    let useless = useless.map(|((section, instance), _)| {
        let location = settings.location_in(section, instance, key);
        let cause = "`basic_auth_realm` has no effect without `basic_auth`";
        Finding::error(location, cause, "write `basic_auth` in the same section, or remove it")
    });
    useless.chain(config.sites.iter().filter_map(|site| readable(site, settings))).collect()
}

/// Passwords that everybody on the way can read. A router in front may have TLS.
fn readable(site: &SiteSettings, settings: &Settings) -> Option<Finding> {
    let is_asked = |demand: Option<&BasicAuth>| matches!(demand, Some(BasicAuth::Users { .. }));
    let ((section, instance), _) = of_site(site).find(|(_, demand)| is_asked(*demand))?;
    if site.https_only || !site.forwarded_from.is_empty() || !site.proxy_from.is_empty() {
        return None;
    }
    let open = site.listen.iter().find_map(|listen| match listen {
        Listen::Tcp(address) if !address.ip().to_canonical().is_loopback() => Some(address),
        _ => None,
    })?;
    let cause = format!("passwords pass {open} without TLS: everybody on the way can read them");
    let remedy = "write `tls` instead of `listen`, or `https_only = true` beside it (docs/https.md); if a router in \
                  front has TLS, name it in `forwarded_from`";
    Some(Finding::warning(settings.location_in(section, instance, "basic_auth"), cause, remedy))
}

/// Whether the files can be used.
pub(crate) fn feasibility(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<&Path> = Vec::new();
    for ((section, instance), demand) in places(config) {
        let Some(BasicAuth::Users { file, .. }) = demand else { continue };
        if seen.contains(&file.as_path()) {
            continue;
        }
        seen.push(file);
        let at = || settings.location_in(section, instance, "basic_auth");
        look(file, at, &mut findings);
    }
    findings
}

/// How many lines of one file are complained about.
const MOST: usize = 10;

fn look(file: &Path, at: impl Fn() -> Location, findings: &mut Vec<Finding>) {
    let name = file.display();
    let bytes = match read_users(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let cause = format!("cannot read the users of {name}: {error}");
            findings.push(Finding::error(at(), cause, remedy(&error)));
            return;
        }
    };
    match afpa_users::Users::read(&bytes) {
        Ok(users) if users.count() == 0 => {
            let cause = format!("{name} has no users: nobody may enter");
            let remedy = format!("add one: htpasswd -B {name} NAME");
            findings.push(Finding::warning(at(), cause, remedy));
        }
        Ok(_) => {}
        Err(faults) => findings.extend(faults.iter().take(MOST).map(|fault| {
            let cause = format!("{name}:{}: {}", fault.line, fault.problem);
            Finding::error(at(), cause, fault.problem.remedy())
        })),
    }
}

/// Reads a whole file of users.
///
/// # Errors
/// As `File::open`, and for a directory, a device, or a file that is too long.
pub fn read_users(path: &Path) -> io::Result<Vec<u8>> {
    read_whole(path, LONGEST)
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "create it with htpasswd -cB FILE NAME; a path that does not begin with / is relative to this file's folder"
        }
        io::ErrorKind::PermissionDenied => "give the user that AFPA runs as the right to read it",
        _ => "name a file that htpasswd has made",
    }
}
