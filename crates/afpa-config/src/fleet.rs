//! `[fleet]`: several machines that serve the same sites.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use afpa_fleet::{Bounds, Credentials, FleetSettings, NotCredentials, Secret};

use crate::finding::{Finding, Location};
use crate::http3::KeyError;
use crate::model::Config;
use crate::reader::Section;
use crate::settings::Settings;
use crate::units::{Listen, Unfit};

pub(crate) const STATE: &str = "/var/lib/afpa/fleet";

const HOUR: Duration = Duration::from_secs(3600);

/// `[fleet]`, with the time after which shared keys are replaced.
pub(crate) fn read(mut s: Section<'_, '_>, key_period: Duration) -> FleetSettings {
    FleetSettings {
        servers: s.texts("servers", "URLs of NATS servers", Vec::new(), server),
        credentials: s.optional_path("credentials"),
        secret: s.optional_path("secret"),
        ca: s.optional_path("ca"),
        name: s.text_or("name", "word", "auto", word),
        region: s.text_or("region", "word", "none", word),
        prefix: s.text("prefix", "word", "afpa".to_owned(), word),
        retention: s.duration("retention", 24 * HOUR, Duration::from_secs(1)..=720 * HOUR),
        stale_after: s.duration_or("stale_after", "never", Duration::from_secs(1)..=720 * HOUR),
        configuration: s.flag("configuration", false),
        bounds: bounds(&mut s),
        certificates: s.flag("certificates", false),
        state: PathBuf::from(s.path_or("state", "path", &[], STATE)),
        peers: s.text_or("peers", "address", "none", peers),
        key_period,
    }
}

fn bounds(s: &mut Section<'_, '_>) -> Bounds {
    let (ms, hour) = (Duration::from_millis(1), HOUR);
    let wait = s.duration("rollout_wait", Duration::from_secs(30), Duration::ZERO..=24 * hour);
    let errors = s.count("rollout_errors", 1, 0..=100);
    let p99 = s.duration("rollout_p99", Duration::from_millis(500), ms..=hour);
    Bounds {
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        errors: errors as u64,
        p99_us: u64::try_from(p99.as_micros()).unwrap_or(u64::MAX),
    }
}

/// The credentials in the file of a fleet; `None`: there is no fleet, or its servers ask for none.
///
/// # Errors
/// When the file cannot be read, or has none.
pub fn fleet_credentials(settings: &FleetSettings) -> Result<Option<Credentials>, KeyError> {
    let Some(path) = settings.credentials.as_deref().filter(|_| settings.is_on()) else {
        return Ok(None);
    };
    let said = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| KeyError {
        cause: format!("cannot read the credentials of the fleet in {said}: {error}"),
        remedy: "correct the path, or write USER:PASSWORD into it".to_owned(),
        is_denied: error.kind() == io::ErrorKind::PermissionDenied,
    })?;
    Credentials::parse(&text).map(Some).map_err(|why: NotCredentials| KeyError {
        cause: format!("{said} {why}"),
        remedy: "write USER:PASSWORD, or a token, as the servers' configuration has it".to_owned(),
        is_denied: false,
    })
}

/// The secret in the file of a fleet; `None`: there is no fleet, or nothing secret is shared.
///
/// # Errors
/// When the file cannot be read, has no secret, or others may read it.
pub fn fleet_secret(settings: &FleetSettings) -> Result<Option<Secret>, KeyError> {
    let Some(path) = settings.secret.as_deref().filter(|_| settings.is_on()) else {
        return Ok(None);
    };
    let said = path.display();
    let remedy = format!("make one by `openssl rand -hex 32 > {said}`, the same for all machines");
    let wrong = |cause: String, remedy: String| KeyError { cause, remedy, is_denied: false };
    let bytes = read_secret(path).map_err(|error| KeyError {
        is_denied: error.kind() == io::ErrorKind::PermissionDenied,
        ..wrong(format!("cannot read the secret of the fleet in {said}: {error}"), remedy.clone())
    })?;
    if let Some(open) = open_to_all(Some(path), Location::Nowhere) {
        return Err(wrong(format!("{}, and so its secret", open.cause), open.remedy));
    }
    Secret::of(&bytes).map(Some).map_err(|why| wrong(format!("{said} {why}"), remedy))
}

/// No file of a secret is long; a device would never end.
fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
    let about = std::fs::metadata(path)?;
    match about.is_file() && about.len() <= 64 * 1024 {
        true => std::fs::read(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no short file")),
    }
}

/// Contradictions; looks at no file.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let fleet = &config.fleet;
    if !fleet.is_on() {
        const OTHERS: [&str; 9] = [
            "credentials",
            "secret",
            "ca",
            "name",
            "region",
            "stale_after",
            "configuration",
            "certificates",
            "peers",
        ];
        for key in OTHERS {
            let at = settings.location("fleet", key);
            if at != Location::Nowhere && settings.get("fleet", key).is_some_and(is_changed) {
                let cause = format!("`{key}` of a fleet without servers");
                let remedy = "write servers = [\"nats://10.0.0.5:4222\"], or remove it";
                findings.push(Finding::warning(at, cause, remedy));
            }
        }
        return findings;
    }
    if fleet.configuration && fleet.secret.is_none() {
        let cause = "`configuration` needs `secret`: it proves that a push is of this fleet";
        let remedy = "write secret = \"/etc/afpa/fleet\", a file of at least 32 random bytes, the same on all machines";
        let at = settings.location("fleet", "configuration");
        findings.push(Finding::error(at, cause, remedy));
    }
    if fleet.certificates && fleet.secret.is_none() {
        let cause = "`certificates` needs `secret`: it seals the keys that the servers pass on";
        let remedy = "write secret = \"/etc/afpa/fleet\", a file of at least 32 random bytes, the same on all machines";
        let at = settings.location("fleet", "certificates");
        findings.push(Finding::error(at, cause, remedy));
    }
    findings.extend(of_peers(config, settings));
    let at = || settings.location("fleet", "servers");
    if let Some(url) = fleet.plain_among_tls() {
        let cause = format!("{url} is without TLS, and another server has tls://");
        let remedy = "write tls:// before each of them, or nats:// before each";
        findings.push(Finding::error(at(), cause, remedy));
    } else if fleet.credentials.is_some() && !fleet.is_by_tls() {
        let far = fleet.servers.iter().find(|url| !is_near(url));
        if let Some(url) = far {
            let cause = format!("the credentials reach {url} without TLS");
            findings.push(Finding::warning(at(), cause, "write tls:// before its name, or `ca`"));
        }
    }
    findings
}

/// Contradictions of the address at which other machines ask.
fn of_peers(config: &Config, settings: &Settings) -> Vec<Finding> {
    let Some(address) = config.fleet.peers else { return Vec::new() };
    let at = || settings.location("fleet", "peers");
    let mut findings = Vec::new();
    if config.fleet.secret.is_none() {
        let cause = "`peers` needs `secret`: the key between the machines follows from it";
        let remedy = "write secret = \"/etc/afpa/fleet\", a file of at least 32 random bytes, the same on all machines";
        findings.push(Finding::error(at(), cause, remedy));
    }
    let is_it = |listen: &Listen| *listen == Listen::Tcp(address);
    let taken = config.sites.iter().any(|site| site.addresses().any(|(listen, _)| is_it(listen)));
    if taken || config.admin == Some(address) {
        let whose = if taken { "a site" } else { "[admin]" };
        let cause = format!("{address} is an address of {whose}, too");
        findings.push(Finding::error(at(), cause, "use another port for `peers`"));
    }
    findings
}

fn is_changed(setting: &crate::settings::Setting) -> bool {
    setting.value != setting.default
}

/// Whether the files can be read. Where a server `runs`, it has read them with more rights.
pub(crate) fn feasibility(config: &Config, settings: &Settings, runs: bool) -> Vec<Finding> {
    let fleet = &config.fleet;
    let at = |key| settings.location("fleet", key);
    let mut findings = Vec::new();
    let credentials = fleet_credentials(fleet);
    if let Ok(Some(_)) = credentials {
        findings.extend(open_to_all(fleet.credentials.as_deref(), at("credentials")));
    }
    let faults = [("credentials", credentials.err()), ("secret", fleet_secret(fleet).err())];
    for (key, fault) in faults {
        match fault {
            None => {}
            Some(KeyError { is_denied: true, .. }) if runs => {}
            Some(KeyError { cause, remedy, is_denied: true }) => {
                findings.push(Finding::warning(at(key), cause, remedy));
            }
            Some(KeyError { cause, remedy, .. }) => {
                findings.push(Finding::error(at(key), cause, remedy));
            }
        }
    }
    let ca = fleet.ca.as_deref().filter(|_| fleet.is_on());
    if let Some(Err(error)) = ca.map(std::fs::metadata) {
        let said = ca.map(|path| path.display().to_string()).unwrap_or_default();
        let cause =
            format!("cannot read the authorities of the fleet's servers in {said}: {error}");
        findings.push(Finding::error(at("ca"), cause, "correct the path"));
    }
    findings
}

fn open_to_all(path: Option<&Path>, at: Location) -> Option<Finding> {
    let path = path?;
    let mode = path.metadata().ok()?.permissions().mode();
    let cause = format!("every user of this machine can read {}", path.display());
    let remedy = format!("chmod o= {}", path.display());
    (mode & 0o007 != 0).then(|| Finding::warning(at, cause, remedy))
}

/// Whether a server is on this machine.
fn is_near(url: &str) -> bool {
    let host = host_of(url);
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    match rest.rfind(']') {
        Some(end) => &rest[..=end],
        None => rest.split(':').next().unwrap_or_default(),
    }
}

/// `nats://HOST:PORT` or `tls://HOST:PORT`; without a port, 4222.
fn server(text: &str) -> Result<String, Unfit> {
    let rest = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://"));
    let remedy = "write for example \"nats://10.0.0.5:4222\" or \"tls://nats.example.org\"";
    let Some(rest) = rest else {
        return Err(Unfit::new(format!("\"{text}\" is not the URL of a NATS server"), remedy));
    };
    if rest.contains('@') {
        let cause = "an URL in the configuration has no credentials in it";
        return Err(Unfit::new(cause, "write them to a file, and its path as `credentials`"));
    }
    let host = host_of(text);
    let port = rest.strip_prefix(host).unwrap_or_default();
    let is_port =
        port.strip_prefix(':').is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let is_literal = host.strip_prefix('[').is_some_and(|rest| {
        rest.strip_suffix(']').is_some_and(|rest| rest.parse::<std::net::Ipv6Addr>().is_ok())
    });
    let is_name = !host.is_empty()
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    match (is_literal || is_name) && is_port && (port.is_empty() || port.starts_with(':')) {
        true => Ok(text.to_owned()),
        false => Err(Unfit::new(format!("\"{text}\" is not the URL of a NATS server"), remedy)),
    }
}

/// An address of this machine, with its port, that others reach.
fn peers(text: &str) -> Result<SocketAddr, Unfit> {
    let remedy = "write an address of this machine that the others reach, with a port of its own: \"10.0.0.1:8471\"";
    let address: SocketAddr = text
        .parse()
        .map_err(|_| Unfit::new(format!("\"{text}\" is no address with a port"), remedy))?;
    match address.ip().is_unspecified() || address.port() == 0 {
        true => Err(Unfit::new(format!("no other machine can ask {address}"), remedy)),
        false => Ok(address),
    }
}

/// A part of names at the servers.
fn word(text: &str) -> Result<String, Unfit> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !text.is_empty() && text.len() <= 32 && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(Unfit::new(
            format!("\"{text}\" is not a word"),
            "use at most 32 letters, digits and hyphens",
        )),
    }
}
