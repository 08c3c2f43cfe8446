//! Checks across settings: contradictions among values, and between values and the machine.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use afpa_http::MOST_CHOSEN;
use afpa_http::syntax::is_alike;

use crate::accounts;
use crate::finding::{Finding, Location};
use crate::groups::ServerGroup;
use crate::machine::Machine;
use crate::marking::TraceMode;
use crate::model::{AccessFormat, AccessTarget, Cache, Coherency, Config, LogField};
use crate::settings::Settings;
use crate::site_settings::{SiteSettings, Symlinks};
use crate::units::{Listen, human_size};

/// Descriptors beyond connections and files: listeners, logs, watches, event loops.
const DESCRIPTOR_RESERVE: usize = 256;

/// Connections of requests that are mirrored.
const MIRROR_CONNECTIONS: usize = 256;

impl Config {
    /// Descriptors needed when every limit is reached at once. A connection is a socket, and may hold a second
    /// descriptor: a file that the cache has ejected meanwhile, or a connection to a server.
    pub fn descriptors(&self) -> usize {
        let connections = 2 * self.limits.connections;
        let roots = self.directories().collect::<HashSet<_>>().len();
        let open = connections + self.cache.open_files + roots;
        let mirrors = if self.mirrors() { MIRROR_CONNECTIONS } else { 0 };
        open + mirrors + self.workers * 8 + DESCRIPTOR_RESERVE
    }

    /// Where other machines ask this one for answers; `None`: they do not.
    pub fn peers_listen(&self) -> Option<Listen> {
        self.fleet.peers.filter(|_| self.fleet.is_on()).map(Listen::Tcp)
    }

    /// The directories that are served; some may be named several times.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.sites.iter().flat_map(|site| {
            let places = site.places().filter_map(|place| place.behaviour.root.as_deref());
            site.root.as_deref().into_iter().chain(places)
        })
    }
}

/// Contradictions within a configuration; looks at nothing else.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut checks = Checks { settings, findings: Vec::new() };
    checks.required_root(config);
    checks.listeners(config);
    checks.sizes(config);
    checks.groups(config);
    checks.access_log(config);
    checks.tracing(config);
    checks.findings
}

/// Whether the machine has and allows what the configuration names.
pub(crate) fn feasibility(config: &Config, settings: &Settings, machine: &Machine) -> Vec<Finding> {
    let mut checks = Checks { settings, findings: Vec::new() };
    checks.root(config);
    checks.accounts(config);
    checks.folders(config);
    checks.snapshot(config);
    checks.ports(config, machine);
    checks.resources(config, machine);
    checks.dangers(config);
    checks.findings
}

struct Checks<'a> {
    settings: &'a Settings,
    findings: Vec<Finding>,
}

impl Checks<'_> {
    fn error(&mut self, section: &str, key: &str, cause: String, remedy: impl Into<String>) {
        let location = self.settings.location(section, key);
        self.findings.push(Finding::error(location, cause, remedy));
    }

    fn warning(&mut self, section: &str, key: &str, cause: String, remedy: impl Into<String>) {
        let location = self.settings.location(section, key);
        self.findings.push(Finding::warning(location, cause, remedy));
    }

    /// A site that serves nothing.
    fn required_root(&mut self, config: &Config) {
        for site in &config.sites {
            let given =
                |key| self.settings.location_in("site", site.instance, key) != Location::Nowhere;
            // A value that was given but is wrong has been reported already.
            if site.paths.is_empty() && !given("root") && !given("to") {
                let cause = "no `root`: which directory is to be served?".to_owned();
                let remedy = "write under [[site]]: root = \"/var/www/html\"";
                self.findings.push(Finding::error(site.location.clone(), cause, remedy));
            }
        }
    }

    fn listeners(&mut self, config: &Config) {
        for site in &config.sites {
            let location = || self.settings.location_in("site", site.instance, "listen");
            let mut seen = HashSet::new();
            if site.listen.is_empty() && site.tls.is_empty() {
                let cause = "`listen` is empty: nobody could connect";
                let remedy = "write for example listen = [\"[::]:80\"]";
                self.findings.push(Finding::error(location(), cause, remedy));
            }
            for (listen, _) in site.addresses() {
                if !seen.insert(listen) {
                    let cause = format!("`listen` has {listen} twice");
                    self.findings.push(Finding::error(location(), cause, "remove one of the two"));
                }
            }
            if let Some(admin) = config.admin
                && seen.contains(&Listen::Tcp(admin))
            {
                let cause = format!("{admin} is an address of the site too");
                self.error("admin", "listen", cause, "use another port for [admin]");
            }
        }
    }

    fn groups(&mut self, config: &Config) {
        let names_clients = |group: &&ServerGroup| group.settings.preface.is_some();
        for group in config.groups.iter().filter(names_clients) {
            if group.settings.http2.is_some() {
                let at =
                    self.settings.location_in("server_group", group.instance, "proxy_protocol");
                let cause =
                    "`proxy_protocol` names one client, and `http2` has many share a connection";
                self.findings.push(Finding::error(at, cause, "remove one of the two"));
            }
        }
        for group in &config.groups {
            let policy = &group.exchange.request;
            if let (Some(subject), Some(address)) = (&policy.client_subject, &policy.client_address)
                && is_alike(subject.as_bytes(), address.as_bytes())
            {
                let section = "server_group.request";
                let at = self.settings.location_in(section, group.instance, "client_address");
                let cause =
                    format!("a server takes {address} for the {subject} of `client_subject`");
                self.findings.push(Finding::error(at, cause, "give each of the two its own name"));
            }
        }
    }

    fn access_log(&mut self, config: &Config) {
        let log = &config.log;
        if log.access_format == AccessFormat::Combined && !log.access_fields.is_empty() {
            let cause = "the fields of `combined` are always the same".to_owned();
            let remedy = "write access_format = \"json\", or \"logfmt\"";
            self.error("log", "access_fields", cause, remedy);
        }
        let mut seen = Vec::new();
        for field in &log.access_fields {
            if seen.contains(&field) {
                let cause = format!("`access_fields` has {field} twice");
                self.error("log", "access_fields", cause, "remove one of the two");
            }
            seen.push(field);
        }
        let of_requests = |field: &&LogField| matches!(field, LogField::Request(_));
        if log.access_fields.iter().filter(of_requests).count() > MOST_CHOSEN {
            let cause = format!("`access_fields` has more than {MOST_CHOSEN} fields of requests");
            self.error("log", "access_fields", cause, "leave the least useful ones out");
        }
    }

    /// Spans go nowhere without a collector, and there are none without traces.
    fn tracing(&mut self, config: &Config) {
        let has_traces = config.sites.iter().any(|site| {
            let own = || site.own_marks();
            site.marks.traceparent != TraceMode::Off
                || own().any(|own| own.traceparent.is_some_and(|mode| mode != TraceMode::Off))
        });
        if config.tracing.otlp.is_none() {
            for key in ["service", "headers"] {
                if self.settings.differs("tracing", [0; 4], key) {
                    let cause = format!("`{key}` has no effect without `otlp`");
                    self.error("tracing", key, cause, "write otlp = \"http://127.0.0.1:4318\"");
                }
            }
        } else if !has_traces {
            let cause = "there are no spans: no site has `traceparent`".to_owned();
            self.warning("tracing", "otlp", cause, "write traceparent = \"on\" in a site");
        }
    }

    fn sizes(&mut self, config: &Config) {
        if config.compression.min_size > config.compression.max_size {
            let cause =
                "`min_size` is more than `max_size`: nothing would be compressed".to_owned();
            self.error(
                "compression",
                "min_size",
                cause,
                "to switch compression off: enabled = false",
            );
        }
        let share = config.cache.pinned_limit / Cache::LARGEST_SHARE;
        if config.cache.pin_threshold > share {
            let share = human_size(share as u64);
            let cause = format!("`pin_threshold` is more than a tenth of `pinned_limit` ({share})");
            let remedy = "files between the two sizes are sent from the page cache: lower the first or raise the second";
            self.warning("cache", "pin_threshold", cause, remedy);
        }
    }

    fn root(&mut self, config: &Config) {
        for site in &config.sites {
            let location = self.settings.location_in("site", site.instance, "root");
            if let Some(root) = &site.root {
                self.findings.extend(look_at(root, location));
            }
        }
    }

    fn accounts(&mut self, config: &Config) {
        let unknown_user = |name: &&str| !matches!(accounts::user(name), Ok(Some(_)));
        let unknown_group = |name: &&str| !matches!(accounts::group(name), Ok(Some(_)));
        let user = config.user.as_deref().filter(unknown_user);
        let group = config.group.as_deref().filter(unknown_group);
        for (key, name) in [("user", user), ("group", group)] {
            if let Some(name) = name {
                let cause = format!("{key} \"{name}\" does not exist");
                let remedy = match accounts::missing_database() {
                    None => format!("create it or correct `{key}`"),
                    Some(file) => format!("there is no {file}: give `{key}` as a number"),
                };
                self.error("", key, cause, remedy);
            }
        }
    }

    /// Folders in which sockets and logs will be created.
    fn folders(&mut self, config: &Config) {
        let listen = config.sites.iter().flat_map(SiteSettings::addresses);
        let sockets = listen.filter_map(|(listen, _)| match listen {
            Listen::Unix(path) => Some(("site", "listen", path)),
            Listen::Tcp(_) => None,
        });
        let control = config.control.iter().map(|path| ("control", "path", path));
        let log = match &config.log.access {
            AccessTarget::File(path) => Some(("log", "access", path)),
            AccessTarget::Off | AccessTarget::Standard => None,
        };
        for (section, key, path) in sockets.chain(control).chain(log) {
            let folder = path.parent().unwrap_or(Path::new("/"));
            if !folder.is_dir() {
                let shown = folder.display();
                let cause = format!("`{key}`: directory {shown} does not exist");
                self.error(section, key, cause, format!("create it: mkdir -p {shown}"));
            }
        }
    }

    /// The folder of the snapshot is made, but not those above it.
    fn snapshot(&mut self, config: &Config) {
        let Some(path) = &config.shared_cache.snapshot else { return };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let (section, key, shown) = ("shared_cache", "snapshot", folder.display());
        if path.is_dir() {
            let cause = format!("`{key}`: {} is a directory", path.display());
            return self.error(section, key, cause, "name a file in it");
        }
        match fs::metadata(folder) {
            Ok(found) if !found.is_dir() => {
                let cause = format!("`{key}`: {shown} is not a directory");
                self.error(section, key, cause, "choose another one");
            }
            Ok(found) if found.permissions().mode() & 0o022 != 0 => {
                let cause = format!("`{key}`: others may write to {shown}, so it is not used");
                self.warning(section, key, cause, format!("chmod go-w {shown}"));
            }
            Err(_) if !folder.parent().is_some_and(Path::is_dir) => {
                let cause = format!("`{key}`: directory {shown} does not exist");
                self.error(section, key, cause, format!("create it: mkdir -p {shown}"));
            }
            _ => {}
        }
    }

    fn ports(&mut self, config: &Config, machine: &Machine) {
        let all = config.sites.iter().flat_map(|site| site.addresses().map(move |all| (site, all)));
        for (site, (listen, is_tls)) in all {
            let Listen::Tcp(address) = listen else { continue };
            let port = address.port();
            if port != 0 && port < machine.unprivileged_ports && !machine.binds_any_port {
                let cause = format!("port {port} needs a privilege that this user does not have");
                let first = machine.unprivileged_ports;
                let remedy = format!(
                    "start as root (afpa drops its privileges after binding), or use a port from {first}"
                );
                let key = if is_tls { "tls" } else { "listen" };
                let location = self.settings.location_in("site", site.instance, key);
                self.findings.push(Finding::warning(location, cause, remedy));
            }
        }
    }

    fn resources(&mut self, config: &Config, machine: &Machine) {
        if config.workers > machine.cores {
            let cause = format!("{} workers share {} cores", config.workers, machine.cores);
            self.warning("", "workers", cause, "workers = \"auto\" takes one for each core");
        }
        if config.cache.pinned_limit > machine.memory / 4 * 3 {
            let memory = human_size(machine.memory as u64);
            let cause = format!("`pinned_limit` leaves little of this machine's {memory}");
            let remedy = "pinned memory cannot be swapped: leave a quarter to the system";
            self.warning("cache", "pinned_limit", cause, remedy);
        }
        let needed = config.descriptors();
        if needed > machine.descriptors {
            let cause = format!(
                "the limits and the document roots need {needed} descriptors, and this user may have {}",
                machine.descriptors
            );
            let remedy = format!("set LimitNOFILE={needed} in the unit, or ulimit -Hn {needed}");
            self.warning("limits", "connections", cause, remedy);
        }
        if config.coherency.watch && machine.watches < Coherency::MOST_WATCHES {
            let (wanted, allowed) = (Coherency::MOST_WATCHES, machine.watches);
            let cause = format!("the system allows {allowed} watches, not {wanted}");
            let remedy = format!("sysctl fs.inotify.max_user_watches={wanted}");
            self.warning("coherency", "watch", cause, remedy);
        }
    }

    fn dangers(&mut self, config: &Config) {
        if config.user.as_deref() == Some("root") {
            let cause = "AFPA would stay root after binding".to_owned();
            self.warning("", "user", cause, "user = \"auto\" becomes www-data or nobody");
        }
        for site in &config.sites {
            let location = |key| self.settings.location_in("site", site.instance, key);
            if site.symlinks == Symlinks::Always {
                let cause = "every symbolic link within the root is followed";
                let remedy = "symlinks = \"owner\" follows those whose owner owns the target";
                self.findings.push(Finding::warning(location("symlinks"), cause, remedy));
            }
            if site.dotfiles {
                let cause = "names that begin with a dot are served, .git and .env among them";
                let remedy = "dotfiles = false hides them";
                self.findings.push(Finding::warning(location("dotfiles"), cause, remedy));
            }
        }
        if let Some(admin) = config.admin
            && !admin.ip().is_loopback()
        {
            let cause = format!("metrics on {admin} can be read from other machines");
            self.warning("admin", "listen", cause, "use a loopback address");
        }
    }
}

/// A document root that does not exist, or that anyone can write to.
fn look_at(root: &Path, location: Location) -> Option<Finding> {
    let shown = root.display();
    match fs::metadata(root) {
        Err(error) => {
            let (cause, remedy) = missing(root, &error);
            Some(Finding::error(location, cause, remedy))
        }
        Ok(found) if !found.is_dir() => {
            let cause = format!("{shown} is not a directory");
            Some(Finding::error(location, cause, "name the directory that holds it"))
        }
        Ok(found) if found.permissions().mode() & 0o002 != 0 => {
            let cause = format!("every user of this machine can write to {shown}");
            let remedy = format!("chmod o-w {shown}, or serve another directory");
            Some(Finding::warning(location, cause, remedy))
        }
        Ok(_) => None,
    }
}

fn missing(root: &Path, error: &io::Error) -> (String, String) {
    let shown = root.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            (format!("directory {shown} does not exist"), "create it or correct `root`".to_owned())
        }
        io::ErrorKind::PermissionDenied => (
            format!("directory {shown} cannot be reached by this user"),
            "give every directory above it the permission x".to_owned(),
        ),
        _ => (format!("directory {shown} cannot be used: {error}"), "correct `root`".to_owned()),
    }
}
