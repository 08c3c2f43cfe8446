//! The configuration: read from a file and from options, checked, resolved for this machine.
//!
//! The crate knows settings and their values. How options look on a command line is the program's
//! affair: it gives each one that was typed to [`Overrides`], which goes before the file.

mod access;
pub mod accounts;
mod acme;
mod alternatives;
mod checks;
mod choice;
mod class_checks;
mod compiled;
mod consents;
mod defaults;
mod dns_keys;
mod document;
mod error_checks;
mod errors;
mod fallback;
mod fallbacks;
mod fault;
mod field_rules;
mod filter_checks;
mod filters;
mod finding;
mod fleet;
mod foreign;
mod forward_auth;
mod groups;
mod guarded;
mod header_checks;
mod headers;
mod hierarchy;
mod hint_checks;
mod hints;
mod http2;
mod http3;
mod http3_checks;
mod idle;
mod includes;
mod items;
mod listeners;
mod machine;
mod marking;
mod marking_checks;
mod mirror;
mod mirror_checks;
mod model;
mod overrides;
mod php;
mod places;
mod police;
mod police_classes;
mod rate_places;
mod rates;
mod reader;
mod request_sets;
mod retired;
mod rounds;
mod routes;
mod rules;
mod scripts;
mod server_limits;
mod settings;
mod shared_cache;
mod site_settings;
mod sites;
mod suggest;
mod table;
mod tls;
mod tls_files;
mod traps;
mod units;
mod users;
mod variables;
mod whole_file;
mod written;
mod zone_checks;
mod zones;

#[cfg(test)]
mod manual_test;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::Path;

pub use access::{Access, BasicAuth};
pub use acme::AcmeChallenge;
pub use alternatives::Datagrams;
pub use choice::Choice;
pub use compiled::Routes;
pub use dns_keys::{DnsAlgorithm, DnsKeySettings};
pub use error_checks::error_pages;
pub use errors::{ErrorAnswer, ErrorPage, LONGEST_ERROR_PAGE, read_error_page};
pub use fallback::Fallback;
pub use field_rules::field_rules;
pub use filters::{RootFilter, SiteFilter};
pub use finding::{ConfigError, Finding, Location, Severity, Source};
pub use fleet::{fleet_credentials, fleet_secret};
pub use forward_auth::ForwardAuth;
pub use groups::ServerGroup;
pub use guarded::{Guarded, Guards};
pub use headers::{FieldSettings, HeaderRule};
pub use hierarchy::{Hierarchy, Root};
pub use hints::{Keep, Priority, RootHint, SiteHint};
pub use http2::Http2;
pub use http3::{Http3, KeyError};
pub use includes::files_of;
pub use listeners::ListenerNumbers;
pub use machine::Machine;
pub use marking::{IdMode, OwnMarks, SiteMarks, TraceMode};
pub use mirror::Mirror;
pub use model::{
    AccessField, AccessFormat, AccessTarget, Cache, Coding, Coherency, Compression, Config,
    Confine, Connections, Engine, FastPath, FastPathMode, Internals, Io, Level, Levels, Limits,
    Log, LogField, LogFormat, Policy, Timeouts, Tracing,
};
pub use overrides::Overrides;
pub use php::Php;
pub use police::{Police, prefixes_of_files};
pub use police_classes::PoliceClass;
pub use rate_places::RateOrigin;
pub use rates::{RateLimit, Rates};
pub use request_sets::field_name;
pub use server_limits::ServerLimits;
pub use settings::{Instance, Setting, Settings};
pub use shared_cache::{CacheMode, QueryMode, SetCookie, SharedCache, SiteCache};
pub use site_settings::{Behaviour, ContentGroup, RedirectStatus, SiteSettings, Symlinks, UrlPath};
pub use tls::{CertificateFiles, ClientCertificates, GroupTls, Tls, TlsProfile};
pub use tls_files::{
    LONGEST_TLS_FILE, ReadCertificate, ReadFile, TlsFileError, not_a_tls_file, read_authorities,
    read_certificate, read_certificate_by, read_tls_file,
};
pub use units::{Amount, GIB, KIB, Listen, MIB, Unfit, human_size};
pub use users::read_users;
pub use variables::{Pushed, Variable};
pub use written::Written;
pub use zones::{DnsSettings, ReadZoneFile, ZoneSettings, read_zone_files};

use reader::Reader;
use variables::Around;

/// A configuration with the record of how it came about.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Its sites as the router sees them.
    pub routes: Routes,
    /// Where each of them was set.
    pub settings: Settings,
    /// The warnings.
    pub warnings: Vec<Finding>,
    /// The text, from which warnings quote lines.
    pub source: Source,
    /// The settings of its files together.
    pub written: Written,
}

impl Config {
    /// Defaults, and `root` as the site.
    pub fn for_directory(root: &Path) -> Result<Loaded, ConfigError> {
        let mut overrides = Overrides::default();
        overrides.path("site", "root", "DIR", Some(root));
        load(None, &overrides, &Machine::probe())
    }
}

/// Reads `file`, if any, puts the options above it, and checks all of it against `machine`.
///
/// # Errors
/// With every error that was found, ready to be printed.
pub fn load(
    file: Option<&Path>,
    overrides: &Overrides,
    machine: &Machine,
) -> Result<Loaded, ConfigError> {
    load_by(Known::default(), file, overrides, machine)
}

/// The part of a configuration that its caller knows already.
pub struct Known<'k> {
    /// Reads certificates: with more rights than this process has, or from memory.
    pub read: &'k ReadCertificate<'k>,
    /// Listeners that have numbers.
    pub listeners: ListenerNumbers,
    /// The variables of the environment.
    pub variable: &'k Variable<'k>,
    /// The files of the fleet.
    pub pushed: Pushed<'k>,
    /// Where HTTP/3 can be spoken.
    pub datagrams: &'k dyn Fn(SocketAddr) -> Datagrams,
    /// The configuration by which a server runs that takes this one up.
    pub before: Option<&'k Config>,
    /// Whether a server runs that has read the files which only a start reads.
    pub runs: bool,
}

impl Default for Known<'_> {
    fn default() -> Self {
        let variable = &|name: &str| std::env::var_os(name);
        Known {
            read: &read_certificate,
            listeners: ListenerNumbers::default(),
            variable,
            pushed: Pushed::Kept,
            datagrams: &|_| Datagrams::Received,
            before: None,
            runs: false,
        }
    }
}

/// [`load`] for a caller that knows something already.
///
/// # Errors
/// As [`load`].
pub fn load_by(
    known: Known<'_>,
    file: Option<&Path>,
    overrides: &Overrides,
    machine: &Machine,
) -> Result<Loaded, ConfigError> {
    let source = match file {
        None => Source::new("", "").within(Path::new("")),
        Some(path) => read_file(path)?,
    };
    let Known { read, listeners, variable, pushed, datagrams, before, runs } = known;
    let around = Around { variable, files: true, pushed };
    let (mut loaded, mut findings) =
        parse(source, around, overrides, machine, (listeners, datagrams, before))?;
    findings.extend(police::read_files(&mut loaded.config.police, &loaded.settings));
    findings.extend(checks::feasibility(&loaded.config, &loaded.settings, machine));
    findings.extend(routes::feasibility(&loaded.config, &loaded.settings));
    findings.extend(fallbacks::feasibility(&loaded.config, &loaded.settings));
    findings.extend(error_checks::feasibility(&loaded.config, &loaded.settings));
    findings.extend(users::feasibility(&loaded.config, &loaded.settings));
    findings.extend(zone_checks::feasibility(&loaded.config, &loaded.settings));
    findings.extend(http3_checks::feasibility(&loaded.config, &loaded.settings, runs));
    findings.extend(fleet::feasibility(&loaded.config, &loaded.settings, runs));
    findings.extend(tls_files::feasibility(&loaded.config, &loaded.settings, read));
    conclude(loaded, findings)
}

/// Reads a text without a look at the file system: syntax, names, kinds, ranges, contradictions. It includes no file,
/// and variables that are files are empty.
///
/// # Errors
/// As [`load`].
pub fn parse_text(
    source: Source,
    overrides: &Overrides,
    machine: &Machine,
) -> Result<Loaded, ConfigError> {
    let listeners = ListenerNumbers::default();
    let Known { variable, datagrams, .. } = Known::default();
    let around = Around { files: false, variable, pushed: Pushed::These(None) };
    let known = (listeners, datagrams, None);
    let (loaded, findings) = parse(source, around, overrides, machine, known)?;
    conclude(loaded, findings)
}

fn parse(
    mut source: Source,
    around: Around<'_>,
    overrides: &Overrides,
    machine: &Machine,
    (listeners, datagrams, before): (
        ListenerNumbers,
        &dyn Fn(SocketAddr) -> Datagrams,
        Option<&Config>,
    ),
) -> Result<(Loaded, Vec<Finding>), ConfigError> {
    let (mut document, revision) = includes::read(&mut source, around).or_else(|findings| {
        // A document that cannot be parsed would only cause errors that do not exist.
        ConfigError::from_findings(&source, &findings).map_or(Ok((Vec::new(), None)), Err)
    })?;
    let renamed = retired::translate(&mut document);
    let mut reader = Reader::new(&document, overrides, &source);
    let mut config = Config::read(&mut reader, machine);
    config.revision = revision;
    let (mut settings, mut findings) = reader.finish(&known(machine));
    findings.extend(renamed);
    let is_secret = |name: &str| CREDENTIALS.iter().any(|part| name.contains(part));
    for (name, value) in &config.tracing.headers {
        if is_secret(&name.to_ascii_lowercase()) {
            source.add_own_secret(value);
        }
    }
    settings.show(("tracing", "headers"), |value| source.hide(value.to_owned()));
    hierarchy::name_servers(&mut config);
    scripts::speak_fastcgi(&mut config, &settings);
    findings.extend(alternatives::decide(&mut config, &settings, datagrams));
    before.into_iter().for_each(|before| alternatives::forget(&mut config, before));
    let (routes, conflicts) = Routes::of(&config, listeners);
    findings.extend(checks::consistency(&config, &settings));
    findings.extend(police::consistency(&config.police, &settings));
    findings.extend(class_checks::consistency(&config, &settings));
    findings.extend(hint_checks::consistency(&config, &settings));
    findings.extend(filter_checks::consistency(&config, &settings));
    findings.extend(header_checks::consistency(&config, &settings));
    findings.extend(marking_checks::consistency(&config, &settings));
    findings.extend(error_checks::consistency(&config, &settings));
    findings.extend(users::consistency(&config, &settings));
    findings.extend(consents::consistency(&config, &settings));
    findings.extend(mirror_checks::consistency(&config, &settings));
    findings.extend(routes::consistency(&config, &settings, &routes, conflicts));
    findings.extend(fallbacks::consistency(&config, &settings));
    findings.extend(scripts::consistency(&config, &settings));
    findings.extend(tls_files::consistency(&config, &settings));
    findings.extend(acme::consistency(&config, &settings));
    findings.extend(fleet::consistency(&config, &settings));
    findings.extend(zone_checks::consistency(&config, &settings));
    let written = Written::of(document);
    Ok((Loaded { config, routes, settings, warnings: Vec::new(), source, written }, findings))
}

/// Fields with one of these in their names prove to a collector who sends it something.
const CREDENTIALS: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// A file with one of each section that may appear several times.
const CATALOGUE: &str = "[[police.class]]\n[[certificate]]\n[[dns.key]]\n[[zone]]\n[[server_group]]\n[[site]]\n[[site.hint]]\n[[site.filter]]\n[[site.header]]\n[[site.errors]]\n[[site.path]]\n[[site.path.header]]\n[[site.path.errors]]\n[[site.path.content]]\n[[site.path.content.header]]\n[[site.path.content.errors]]\n";

/// Every setting that there is, once.
fn known(machine: &Machine) -> Settings {
    let document = document::parse(CATALOGUE).unwrap_or_default();
    let overrides = Overrides::default();
    let source = Source::new("", "");
    let mut reader = Reader::new(&document, &overrides, &source);
    Config::read(&mut reader, machine);
    reader.finish(&Settings::default()).0
}

fn conclude(loaded: Loaded, findings: Vec<Finding>) -> Result<Loaded, ConfigError> {
    match ConfigError::from_findings(&loaded.source, &findings) {
        Some(error) => Err(error),
        None => Ok(Loaded { warnings: findings, ..loaded }),
    }
}

fn read_file(path: &Path) -> Result<Source, ConfigError> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Source::new(name, text).within(path.parent().unwrap_or(Path::new("")))),
        Err(error) => Err(ConfigError::unreadable(&name, &error)),
    }
}
