//! `afpa serve`: from a configuration to a running server, and from a signal to its end.
//!
//! ```text
//! start:   load ─ limits ─ arena ─ OPEN ─ fast path ─ drop privileges ─ BUILD ─ workers ─ serve
//!                                                                           signals ──┤
//!                                                            TERM, INT: stop      HUP: reload
//!                                                            QUIT: drain          USR1: reopen
//!                                                                                 USR2: upgrade
//! reload:  load ─ OPEN ─ BUILD ─ swap
//! ```
//!
//! OPEN and BUILD are one sequence for both, in `build`. Nothing that starts a thread comes before
//! privileges are dropped: on Linux they belong to threads.
//!
//! Read a reload in this order: `signals`, `reload`, `build` (over `listeners` and `serving`), and
//! `reload` again for the swap.

mod acme;
mod admin;
mod build;
mod certificate_store;
mod convert;
mod dns;
mod drop_thread;
mod error_pages;
mod guards;
mod helpers;
mod introduce;
mod listeners;
mod observe;
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

use crate::cli::Serve;
use crate::logging;
use crate::upgrade::Inherited;
use afpa_config::{Known, ListenerNumbers};
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
    let loaded = options.configuration_by(Known {
        read: &|files| certificates.read(files),
        listeners: ListenerNumbers::default(),
        datagrams: &|address| inherited.has_udp(address) || takes_datagrams(address),
        ..Known::default()
    })?;
    logging::start(&loaded.config.log)?;
    if !loaded.warnings.is_empty() {
        afpa_say::error(&loaded.rendered_warnings());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // First of all: as soon as the server can be seen, a signal may arrive.
        let signals = Signals::listen()?;
        let server = Server::start(loaded, certificates, inherited)?;
        signals.follow(server, options).await
    })
}
