//! `afpa serve`: from a configuration to a running server, and from a signal to its end.
//!
//! ```text
//! start:   load ─ limits ─ arena ─ OPEN ─ fast path ─ drop privileges ─ BUILD ─ workers ─ ADOPT ─ serve
//!                                                                                   signals ──┤
//!                                                                    TERM, INT: stop      HUP: reload
//!                                                                    QUIT: drain          USR1: reopen
//!                                                                                         USR2: upgrade
//! reload:  load ─ OPEN ─ BUILD ─ ADOPT
//! ```
//!
//! OPEN, BUILD and ADOPT are the same for both: a start makes workers that serve nothing, and its configuration is taken
//! into use as that of a reload is. So a reload cannot forget a part. Nothing that starts a thread comes before
//! privileges are dropped: on Linux they belong to threads.
//!
//! Read a reload in this order: `signals`, `reload`, `build` (over `listeners` and `serving`), and `adopt`.

mod acme;
mod admin;
mod adopt;
mod build;
mod certificate_store;
mod convert;
mod dns;
mod drop_thread;
mod error_pages;
mod fleet;
mod fleet_certificates;
mod fleet_control;
mod fleet_purges;
mod guards;
mod helpers;
mod introduce;
mod listeners;
mod observe;
mod peers;
mod police;
mod rates;
mod reload;
mod serving;
mod signals;
mod snapshot;
mod start;
mod tls;
mod tls_of_groups;
mod tls_of_sites;
mod upgrade;
mod zone_keeper;
mod zone_notices;
mod zone_operations;

use crate::cli::Serve;
use crate::logging;
use crate::upgrade::Inherited;
use afpa_config::{Datagrams, Known, ListenerNumbers, Loaded};
use afpa_server::listener::takes_datagrams;
use certificate_store::CertificateStore;
use signals::Signals;

pub(crate) use start::Server;

/// `afpa serve`.
///
/// # Errors
/// With every error of the configuration, or what the system refused.
pub fn serve(options: &Serve) -> anyhow::Result<()> {
    // First of all: another program that is started would keep them open.
    let inherited = Inherited::take();
    let certificates = CertificateStore::default();
    let known = Known {
        read: &|files| certificates.read(files),
        listeners: ListenerNumbers::default(),
        datagrams: &|address| match inherited.has_udp(address) || takes_datagrams(address) {
            true => Datagrams::Received,
            false => Datagrams::Refused,
        },
        ..Known::default()
    };
    let loaded = load(options, known)?;
    logging::start(&loaded.config.log)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // First of all: as soon as the server can be seen, a signal may arrive.
        let signals = Signals::listen()?;
        let server = Server::start(loaded, certificates, inherited)?;
        signals.follow(server, options).await
    })
}

/// Reads the configuration, and prints its warnings.
fn load(options: &Serve, known: Known<'_>) -> anyhow::Result<Loaded> {
    let loaded = options.configuration_by(known)?;
    if !loaded.warnings.is_empty() {
        afpa_say::error(&loaded.rendered_warnings());
    }
    Ok(loaded)
}
