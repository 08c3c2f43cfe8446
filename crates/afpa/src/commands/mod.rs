//! The commands, one function each; their output goes to standard output.

pub mod adapt;
pub mod attach;
pub mod doctor;
pub mod explain;
mod fleet;
mod fleet_configuration;
mod output;
pub mod pause;
mod probe;
pub mod route;
mod stats;
pub mod top;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use afpa_fast_path::expectation;
use afpa_police::{NotAPrefix, Prefix};
use anyhow::{Context as _, bail};

pub use output::print;
use output::write;

use crate::cli::{
    self, Call, Check, Completions, Deny, DenyOrder, DenyPrefix, Fleet, FleetOrder, Health, Man,
    Order, Purge, Serve, Server, Stats,
};
use crate::control::{self, Target};
use crate::privileges::Identity;
use crate::{fast_path, log_folder};
use afpa_config::{
    CertificateFiles, ConfigError, Known, Loaded, Machine, Overrides, TlsFileError,
    fleet_credentials, fleet_secret, load, load_by, read_certificate,
};
use rustix::thread::CapabilitySet;

/// The exit status of `afpa serve` for a wrong configuration: EX_CONFIG of sysexits.h, which systemd shows as CONFIG. The unit
/// names it, so that systemd does not try the same file again.
const WRONG_CONFIGURATION: u8 = 78;

/// `afpa serve` and `afpa proxy`. A wrong configuration is printed here, and has an exit status of its own.
///
/// # Errors
/// With a wrong command line, or what the system refused.
pub fn serve(options: &Serve) -> anyhow::Result<ExitCode> {
    match crate::serve::serve(options) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.downcast_ref::<ConfigError>().is_some_and(|why| !why.is_usage()) => {
            afpa_say::error(&words(&error));
            Ok(ExitCode::from(WRONG_CONFIGURATION))
        }
        Err(error) => Err(error),
    }
}

/// `afpa check FILE`.
///
/// # Errors
/// With every error of the file; with `--probe`, when a server takes no connections.
pub fn check(options: &Check) -> anyhow::Result<()> {
    let mut loaded = match &options.user {
        Some(user) => load_as(user, &options.file)?,
        None => load(Some(&options.file), &Overrides::default(), &Machine::probe())?,
    };
    loaded.warnings.extend(log_folder::warning(&loaded));
    let mut text = String::new();
    if options.explain {
        text.push_str(&loaded.explanation());
    } else if options.print {
        text.push_str(&loaded.as_one_file());
    } else if !options.quiet {
        text.push_str(&loaded.table());
        text.push_str(&loaded.request_sets());
        let settings = fast_path::settings(&loaded.config, &loaded.routes.hierarchy);
        text.push_str(&format!("\nfast path: {}\n", expectation(&settings)));
    }
    if options.print && !loaded.warnings.is_empty() {
        // The output is a file.
        afpa_say::error(&loaded.rendered_warnings());
    } else if !loaded.warnings.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}{}", loaded.rendered_warnings()));
    }
    if !options.probe {
        return print(&text);
    }
    let probed = probe::probe(&loaded.config)?;
    print(&format!("{text}\n{}", probed.text))?;
    match probed.silent {
        0 => Ok(()),
        silent => bail!("{silent} of {} servers take no connections", probed.servers),
    }
}

/// As a start by this user would read the file: a key that it may not read is an error, and not a warning as where root may
/// start AFPA.
fn load_as(user: &str, file: &Path) -> anyhow::Result<Loaded> {
    if let Some(identity) = Identity::find(Some(user), None)? {
        identity.assume(CapabilitySet::NET_BIND_SERVICE)?;
    }
    let read = |files: &CertificateFiles| {
        read_certificate(files).map_err(|error| match error.is_denied {
            true => TlsFileError { remedy: REMEDY.to_owned(), is_denied: false, ..error },
            false => error,
        })
    };
    let known = Known { read: &read, ..Known::default() };
    let loaded = load_by(known, Some(file), &Overrides::default(), &Machine::probe())?;
    loaded.config.http3.secret()?;
    fleet_credentials(&loaded.config.fleet)?;
    fleet_secret(&loaded.config.fleet)?;
    Ok(loaded)
}

const REMEDY: &str = "give this user the right";

/// `afpa health`.
///
/// # Errors
/// When there is no process to ask, or it does not answer.
pub fn health(options: &Health) -> anyhow::Result<()> {
    print(&control::find(&target(&options.target))?.get("/health")?)
}

/// `afpa stats`.
///
/// # Errors
/// When there is no process to ask, or it does not answer.
pub fn stats(options: &Stats) -> anyhow::Result<()> {
    let socket = control::find(&target(&options.target))?;
    let ask = |target: &str| socket.get(target);
    if options.json || options.top.is_some() {
        let answer = match options.top {
            Some(most) => ask(&format!("/top?most={most}"))?,
            None => ask("/stats")?,
        };
        return match options.json {
            true => print(&format!("{}\n", answer.trim_end())),
            false => print(&stats::table(&numbers(&answer)?)),
        };
    }
    let (before, begun) = (numbers(&ask("/stats")?)?, Instant::now());
    let is_serve = !before["requests"].is_null();
    if is_serve {
        std::thread::sleep(RATE_PERIOD);
    }
    let now = numbers(&ask("/stats")?)?;
    let between = begun.elapsed();
    let digest = stats::digest::Digest { before: &before, now: &now, between }.text();
    let rest = match (options.all, is_serve) {
        (true, true) => format!("\n{}", stats::table(&now)),
        (false, true) => "(afpa stats --all tells the rest)\n".to_owned(),
        (_, false) => stats::table(&now),
    };
    print(&(digest + &rest))
}

/// The time between the two samples from which rates are calculated.
const RATE_PERIOD: Duration = Duration::from_millis(500);

fn numbers(answer: &str) -> anyhow::Result<serde_json::Value> {
    serde_json::from_str(answer).context("the running afpa sent no JSON")
}

/// `afpa purge URL`.
///
/// # Errors
/// When the URL has no path, there is no process to ask, or it does not answer.
pub fn purge(options: &Purge) -> anyhow::Result<()> {
    if let Some((kind, name)) = dns_name(options) {
        let socket = control::find(&target(&options.target))?;
        // Zones are read from files in `afpa serve`, and pinned answers dropped in `afpa attach`.
        let reads = socket.get("/")?.lines().any(|line| line.contains(" /dns/read "));
        let order = if reads { "dns/read" } else { "purge" };
        let answer = socket.post(&format!("/{order}?{kind}={}", control::escape(name)))?;
        return print(&format!("{}\n", answer.trim_end()));
    }
    let url = options.url.as_deref();
    let path = url.map(control::path_of_url).transpose()?;
    let host = options.host.as_deref().or(url.and_then(control::host_of_url));
    let parameters = [
        ("path", path),
        ("query", url.and_then(control::query_of_url)),
        ("host", host),
        ("tag", options.tag.as_deref()),
        ("below", options.below.then_some("yes")),
        ("soft", options.soft.then_some("yes")),
    ];
    let given = parameters.iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        Some(format!("{name}={}", control::escape(value)))
    });
    let given: Vec<String> = given.collect();
    let socket = control::find(&target(&options.target))?;
    if options.fleet {
        let order = format!("/fleet/purge?{}", given.join("&"));
        return print(&fleet::send(&socket, &order, Duration::from_secs_f64(options.wait))?);
    }
    let answer = socket.post(&format!("/purge?{}", given.join("&")))?;
    print(&format!("{}\n", answer.trim_end()))
}

fn dns_name(options: &Purge) -> Option<(&'static str, &str)> {
    let name = options.name.as_deref().map(|name| ("name", name));
    name.or(options.zone.as_deref().map(|zone| ("zone", zone)))
}

/// `afpa fleet`, and its orders.
///
/// # Errors
/// When there is no process to ask, it is in no fleet, or it does not answer; when an order has not reached all machines.
pub fn fleet(options: &Fleet) -> anyhow::Result<()> {
    match &options.order {
        Some(FleetOrder::Push(order)) => {
            let socket = control::find(&target(&order.target))?;
            return fleet_configuration::push(&socket, &order.path, order.no_wait);
        }
        Some(FleetOrder::Rollback(order)) => {
            let socket = control::find(&target(&order.target))?;
            let wait = Duration::from_secs_f64(order.wait);
            return print(&fleet_configuration::roll_back(&socket, order.revision, wait)?);
        }
        Some(FleetOrder::Revisions(order)) => {
            let socket = control::find(&target(&order.target))?;
            return print(&fleet_configuration::revisions(&socket, order.json)?);
        }
        None => {}
    }
    let socket = control::find(&target(&options.target))?;
    let answer = socket.get("/fleet").map_err(fleet::without_fleet)?;
    if options.json {
        return print(&format!("{}\n", answer.trim_end()));
    }
    let look = serde_json::from_str(&answer).context("the running afpa sent no JSON")?;
    print(&fleet::table(&look))
}

/// `afpa server ORDER SERVER`.
///
/// # Errors
/// When there is no such server, there is no process to ask, or it does not answer.
pub fn server(options: &Server) -> anyhow::Result<()> {
    let order = match options.order {
        Order::Drain => "drain",
        Order::Ready => "ready",
    };
    let mut path = format!("/{order}?server={}", control::escape(&options.server));
    if let Some(group) = &options.group {
        path.push_str(&format!("&group={}", control::escape(group)));
    }
    let socket = control::find(&target(&options.target))?;
    print(&format!("{}\n", socket.post(&path)?.trim_end()))
}

/// `afpa deny ORDER`.
///
/// # Errors
/// When the prefix is invalid, the order changes nothing, no process can be asked, or the process does not answer.
pub fn deny(options: &Deny) -> anyhow::Result<()> {
    let order = |order: &str, which: &DenyPrefix| {
        // The prefix is checked first, so that an error in it needs no running process.
        let prefix: Prefix = which
            .prefix
            .parse()
            .map_err(|why: NotAPrefix| anyhow::anyhow!("{why} ({})", why.remedy()))?;
        let prefix = control::escape(&prefix.to_string());
        let socket = control::find(&target(&which.target))?;
        if which.fleet {
            let order = format!("/fleet/deny/{order}?prefix={prefix}");
            let wait = Duration::from_secs_f64(which.wait);
            return fleet::send(&socket, &order, wait);
        }
        socket.post(&format!("/deny/{order}?prefix={prefix}"))
    };
    let answer = match &options.order {
        DenyOrder::Add(which) => order("add", which)?,
        DenyOrder::Del(which) => order("del", which)?,
        DenyOrder::List(which) => control::find(&target(which))?.get("/deny")?,
    };
    print(&answer)
}

/// `afpa call NAME`.
///
/// # Errors
/// When there is no such operation, no process can be asked, or the process does not do it.
pub fn call(options: &Call) -> anyhow::Result<()> {
    let socket = control::find(&target(&options.target))?;
    let list = socket.get("/")?;
    let Some(name) = &options.name else { return print(&list) };
    let operations: Vec<(&str, &str)> = list.lines().filter_map(operation).collect();
    let wanted = name.trim_start_matches('/');
    let Some((method, _)) = operations.iter().find(|(_, name)| *name == wanted) else {
        let names: Vec<&str> = operations.iter().map(|(_, name)| *name).collect();
        bail!("the running afpa has no operation {wanted}; it has: {}", names.join(", "));
    };
    let parameters = options.parameters.iter();
    let parameters = parameters
        .map(|(name, value)| format!("{}={}", control::escape(name), control::escape(value)));
    let path = format!("/{wanted}?{}", parameters.collect::<Vec<_>>().join("&"));
    let answer = if *method == "POST" { socket.post(&path) } else { socket.get(&path) }?;
    print(&format!("{}\n", answer.trim_end()))
}

/// Method and name of a line such as `POST /deny/add prefix=PREFIX: refuses the clients of a prefix`.
fn operation(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?, words.next()?);
    Some((method, path.trim_end_matches(':').strip_prefix('/')?))
}

/// `afpa completions SHELL`.
///
/// # Errors
/// When standard output cannot be written to.
pub fn completions(options: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut cli::command(), "afpa", &mut script);
    write(&script)
}

/// `afpa man DIR`.
///
/// # Errors
/// When a page cannot be written.
pub fn man(options: &Man) -> anyhow::Result<()> {
    let folder = &options.directory;
    clap_mangen::generate_to(cli::command(), folder)
        .with_context(|| format!("cannot write man pages to {}", folder.display()))
}

/// An error as it is printed. Each one of a configuration says where it is, behind the program's name.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let text = match error.downcast_ref::<ConfigError>() {
        Some(config) => config.to_string(),
        None => return format!("afpa: {error:#}\n"),
    };
    let each = text.trim_end().split("\n\n").map(|finding| format!("afpa: {finding}\n"));
    each.collect::<Vec<_>>().join("\n")
}

/// Prints the error. The exit status is 2 for a wrong command line, 1 for everything else ([`serve`] has one more).
pub fn report(error: &anyhow::Error) -> ExitCode {
    afpa_say::error(&words(error));
    let usage = error.downcast_ref::<ConfigError>().is_some_and(ConfigError::is_usage)
        || error.is::<control::NotAUrl>();
    ExitCode::from(if usage { 2 } else { 1 })
}

fn target(options: &cli::Target) -> Target {
    match (&options.control, options.pid) {
        (Some(path), _) => Target::Socket(path.clone()),
        (None, Some(pid)) => Target::Process(pid),
        (None, None) => Target::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_and_pages_know_every_command() {
        let folder = tempfile::tempdir().unwrap();
        man(&Man { directory: folder.path().to_owned() }).unwrap();
        for command in cli::command().get_subcommands() {
            let page = folder.path().join(format!("afpa-{}.1", command.get_name()));
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(text.contains(".SH SYNOPSIS"), "{}", page.display());
        }
        let mut script = Vec::new();
        let bash = clap_complete::Shell::Bash;
        clap_complete::generate(bash, &mut cli::command(), "afpa", &mut script);
        let script = String::from_utf8(script).unwrap();
        assert!(script.contains("--pinned-limit") && script.contains("s3-fifo"), "{script}");
    }

    #[test]
    fn lines_of_the_list_have_a_method_and_a_name() {
        let lines = ["GET  /stats: all", "POST /deny/add prefix=PREFIX: refuses", "", "nothing"];
        let found = [Some(("GET", "stats")), Some(("POST", "deny/add")), None, None];
        assert_eq!(lines.map(operation), found);
    }

    #[test]
    fn man_pages_need_a_directory() {
        let error = man(&Man { directory: "/nowhere/at/all".into() }).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.starts_with("cannot write man pages to /nowhere/at/all: No such file"),
            "{text}"
        );
    }
}
