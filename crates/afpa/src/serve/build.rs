//! The sequence that builds the serving state. The start runs it for the first configuration, and a
//! reload for the next one.
//!
//! ```text
//! Opened::open    open roots ─ read certificates, zones ─ bind addresses     with the privileges that a start then drops
//! Next::build     access log ─ cache ─ router ─ watches        starts threads
//! ```
//!
//! Everything that can fail is in these two. A reload that fails in them has changed nothing that the workers or the
//! kernel use; the parts that it has built are dropped.

use std::collections::HashSet;
use std::hash::Hasher as _;
use std::net::SocketAddr;
use std::sync::Arc;

use afpa_cache::Arena;
use afpa_cache::root::{DocumentRoot, RootHandles};
use afpa_cache::watch::WatchThread;
use afpa_config::{AccessTarget, Config, Loaded, Root, Routes};
use afpa_module_http::Global;
use afpa_server::Address;
use afpa_workers::access_log::{AccessLog, Sinks};
use anyhow::{Context as _, bail};
use siphasher::sip::SipHasher13;

use super::acme::PreparedAcme;
use super::convert;
use super::dns::{Moment, PreparedDns};
use super::fleet::{InForce, PreparedFleet};
use super::listeners::{Listeners, Place};
use super::serving::Content;
use super::tls::{PreparedTls, TlsState};
use crate::confine::Confinement;
use crate::privileges::descriptors_granted;
use crate::span_export::SpanExport;

/// A configuration, and the objects that were opened for it.
pub(super) struct Opened {
    pub(super) config: Config,
    pub(super) routes: Routes,
    pub(super) roots: Vec<DocumentRoot>,
    pub(super) listeners: Listeners,
    pub(super) tls: PreparedTls,
    pub(super) acme: PreparedAcme,
    pub(super) dns: PreparedDns,
    pub(super) fleet: PreparedFleet,
}

/// The addresses that are bound already.
#[derive(Default)]
pub(super) struct Bound {
    pub(super) listeners: Vec<Address>,
    /// Addresses at which DNS is answered.
    pub(super) dns: Vec<SocketAddr>,
    pub(super) moment: Moment,
}

/// The parts of the server that a configuration is built with.
pub(super) struct Frame<'s> {
    pub(super) arena: &'s Arena,
    pub(super) watch_thread: &'s Arc<WatchThread>,
    pub(super) confinement: &'s Confinement,
    /// The name of the user that serves, if it has changed.
    pub(super) user: Option<&'s str>,
}

/// A configuration that can take effect: nothing more can fail.
pub(super) struct Next {
    pub(super) config: Arc<Config>,
    pub(super) routes: Routes,
    pub(super) listeners: Listeners,
    pub(super) tls: PreparedTls,
    pub(super) acme: PreparedAcme,
    pub(super) dns: PreparedDns,
    pub(super) fleet: PreparedFleet,
    pub(super) content: Content,
    /// `None`: those that are running stay, because their settings are the same.
    pub(super) records: Option<Records>,
}

/// The access log and the export of spans, which have sinks together.
#[derive(Default)]
pub(super) struct Records {
    pub(super) log: AccessLog,
    pub(super) spans: SpanExport,
    pub(super) sinks: Sinks,
}

impl Opened {
    /// Opens the roots, reads the certificates and zones, and binds the addresses that are not `bound` yet.
    ///
    /// # Errors
    /// With the directory, the file or the address.
    pub(super) fn open(
        loaded: Loaded,
        (handles, tls): (&mut RootHandles, &mut TlsState),
        bound: &Bound,
        place: Place<'_>,
    ) -> anyhow::Result<Self> {
        let check = check(&loaded);
        // The text, and where each setting stands in it, are not needed any more.
        let Loaded { config, mut routes, settings, source, warnings, written } = loaded;
        drop((settings, source, warnings, written));
        let roots = open_roots(&config, &routes, handles)?;
        let acme = PreparedAcme::new(&config.acme, place.owner)?;
        let in_force = InForce { check, revision: config.revision };
        let fleet = PreparedFleet::new(&config.fleet, place.owner, in_force)?;
        let tls = tls.prepare(&config, acme.files(), fleet.secret())?;
        let listeners =
            Listeners::open(&config, &mut routes.listeners, &tls, &bound.listeners, place)?;
        let dns = PreparedDns::new(&config, &bound.dns, bound.moment)?;
        Ok(Self { config, routes, roots, listeners, tls, acme, dns, fleet })
    }

    /// Fails if `user` cannot read a root: every answer from it would be 403.
    fn check_readable(&self, user: Option<&str>) -> anyhow::Result<()> {
        for (root, configured) in self.roots.iter().zip(&self.routes.hierarchy.roots) {
            if !root.is_readable() {
                let (who, path) = (user.unwrap_or("this user"), configured.directory.display());
                bail!("{who} may not read {path}: change its permissions, or choose another --user")
            }
        }
        Ok(())
    }
}

impl Next {
    /// Builds the rest. `running` has the settings of the access log that is being written and of the export of spans,
    /// `previous` is the state that the workers serve from.
    ///
    /// # Errors
    /// When a root cannot be read, the log cannot be opened or a thread cannot be started.
    pub(super) fn build(
        opened: Opened,
        frame: &Frame<'_>,
        running: Option<(&Config, &SpanExport)>,
        previous: &Global,
    ) -> anyhow::Result<Self> {
        opened.check_readable(frame.user)?;
        let Frame { arena, watch_thread, confinement, user, .. } = *frame;
        let Opened { config, routes, roots, listeners, tls, acme, dns, fleet } = opened;
        let is_same = |(running, _): &(&Config, &SpanExport)| {
            (&running.log, &running.tracing) == (&config.log, &config.tracing)
                && running.resolver == config.resolver
        };
        let records = match running.filter(is_same) {
            Some(_) => None,
            None => {
                let before = running.map(|(_, spans)| spans);
                Some(start_records(&config, (confinement, user), before)?)
            }
        };
        let threads = (watch_thread, confinement);
        let content = Content::build(&config, &routes, roots, arena.clone(), threads, previous)?;
        let config = Arc::new(config);
        Ok(Self { config, routes, listeners, tls, acme, dns, fleet, content, records })
    }
}

/// A check of the files of a configuration, by which machines of a fleet tell whether they have the same. Nothing is
/// calculated where there is none.
fn check(loaded: &Loaded) -> String {
    if !loaded.config.fleet.is_on() {
        return String::new();
    }
    let mut hasher = SipHasher13::new();
    hasher.write(loaded.as_one_file().as_bytes());
    format!("{:08x}", hasher.finish() >> 32)
}

/// Opens every directory that something is cached from.
///
/// # Errors
/// With the directory that cannot be opened.
fn open_roots(
    config: &Config,
    routes: &Routes,
    handles: &mut RootHandles,
) -> anyhow::Result<Vec<DocumentRoot>> {
    handles.forget_released();
    let roots = routes.hierarchy.roots.iter().map(|root| {
        let site = config.sites.get(root.site).context("a root belongs to a site")?;
        let opened = handles.open(&root.directory, convert::root(site));
        opened.with_context(|| cannot_open(config, root))
    });
    roots.collect()
}

fn cannot_open(config: &Config, root: &Root) -> String {
    let mut why = format!("cannot open the document root {}", root.directory.display());
    let (needed, granted) = (config.descriptors() as u64, descriptors_granted());
    if granted.is_some_and(|granted| granted < needed) {
        let roots = config.directories().collect::<HashSet<_>>().len();
        let granted = granted.unwrap_or_default();
        why += &format!(
            " ({roots} document roots take a descriptor each, and there may be {granted}: ulimit -Hn {needed}, or LimitNOFILE={needed} in the unit)"
        );
    }
    why
}

/// One sink for each worker, and one for the kernel's answers.
fn start_records(
    config: &Config,
    (confinement, user): (&Confinement, Option<&str>),
    before: Option<&SpanExport>,
) -> anyhow::Result<Records> {
    let started = AccessLog::start(&config.log, config.workers + 1);
    let (log, logs) = started.map_err(|error| match (user, &config.log.access) {
        (Some(user), AccessTarget::File(path)) => {
            let folder = path.parent().unwrap_or(path).display();
            error.context(format!(
                "`access` of [log]: AFPA becomes {user}, who opens it (install -d -o {user} {folder})"
            ))
        }
        _ => error,
    })?;
    let (spans, of_spans) = SpanExport::start(config, confinement, before)?;
    Ok(Records { log, spans, sinks: Sinks::new(logs, of_spans) })
}
