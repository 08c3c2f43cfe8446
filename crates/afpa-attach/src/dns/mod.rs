//! Accelerates an unmodified name server: `afpa attach --dns`.
//!
//! The programs report questions that are not pinned; this process asks the server for those that come again, as a stranger, and pins
//! what is sure. Every bit of a question that may matter is part of its key, and asked as it is.
//!
//! - [`cookies`]: the server's cookies, where their secret is known.
//! - [`key`], [`answer`], [`learn`]: questions, answers, and whether an answer is for everybody. No I/O.
//! - [`zones`], [`pins`], [`wanted`]: editions of zones with their leases; pinned answers; questions to ask. No I/O, no clock.
//! - [`sets`]: records whose order the server is known to keep. No I/O, no clock.
//! - [`timer`]: when a question is asked again, how long rounds rest. No I/O, no clock.
//! - `ask`, `engine`, `polling`, `learning`, `control`, `metrics`: sockets, threads, orders, numbers.

pub mod answer;
mod ask;
mod control;
pub mod cookies;
mod engine;
pub mod key;
pub mod learn;
mod learning;
mod metrics;
pub mod pins;
mod polling;
pub mod sets;
pub mod timer;
pub mod wanted;
pub mod zones;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use afpa_bpf::dns::abi::{DNS_SERVERS, DnsAddress, DnsConfig, DnsSeed};
use afpa_bpf::dns::{DnsPath, address_bytes};
use afpa_bpf::{PortClaim, carrying, interfaces, is_reachable};
use afpa_dnstap::{Counts, Sink};
use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;

use self::cookies::Cookies;
use self::engine::{Engine, Pace};
use crate::paths::AttachSocket;
use crate::rights::{DropRights, Rights, Step, drop_all, step_of_stranger};
use crate::say::say;
use crate::signals::{listen_to_signals, next_signal};
use crate::stranger::{INTERFACE, Stranger};

/// The name server to accelerate, and how.
#[derive(Clone, Debug)]
pub struct DnsSettings {
    /// Addresses on which the server listens, all with the same port.
    pub listen: Vec<SocketAddr>,
    /// Answers a second for a /24 of IPv4 or a /56 of IPv6; the server gives what exceeds that. 0: no limit.
    pub rate: u32,
    /// Questions a second to the server, besides the polls of zones.
    pub ask_rate: u32,
    /// How long the order of several records must have been the same.
    pub settle: Duration,
    /// The time between two polls of a zone.
    pub poll: Duration,
    /// A client is answered for so long after the server itself has answered it.
    pub firewall_interval: Duration,
    /// The file of the secret of the server's cookies.
    pub cookie_secret: Option<PathBuf>,
    /// Clients are known by their next hops as well.
    pub by_gateway: bool,
    /// Where collectors of metrics come.
    pub metrics: Option<SocketAddr>,
    /// The socket of a reader of dnstap, and of how many answers it gets one.
    pub dnstap: Option<(PathBuf, u32)>,
    /// Folder of the control socket.
    pub folder: PathBuf,
}

const TICK: Duration = Duration::from_secs(1);
/// How much of a second's budget a prefix may use at once.
const BURST_NS: u64 = 1_000_000_000;

/// Accelerates a name server until a signal ends it. Must run in the network namespace of the server. HUP asks for everything again.
///
/// # Errors
/// When the programs cannot be had, or another fast path is there.
pub fn run(settings: DnsSettings, drop_rights: &DropRights) -> anyhow::Result<()> {
    let signals = listen_to_signals()?; // before the first thread: they all inherit the mask
    let port = check(&settings)?;
    let cookies = settings.cookie_secret.as_deref().map(Cookies::read).transpose()?;
    let mut claim = PortClaim::default();
    claim.lock(port).context("the port cannot be accelerated")?;
    let stranger =
        Arc::new(Stranger::make(port).context("the server cannot be asked as a stranger")?);
    step_of_stranger(Some(&stranger), drop_rights, Step::Thread)?;
    let path = DnsPath::load().context("the fast path cannot be had")?;
    for (number, address) in settings.listen.iter().enumerate() {
        path.serve(address.ip(), number as u32)?;
    }
    let seed = seed().context("/dev/urandom cannot be read")?;
    path.plant(&seed)?;
    let first = |number: usize| settings.listen.get(number).map(|address| address.ip());
    let config = DnsConfig {
        way_life: settings.firewall_interval.as_nanos() as u64,
        cost: 1_000_000_000u64.checked_div(settings.rate.into()).unwrap_or(0),
        burst: BURST_NS,
        cookie_secret: cookies.as_ref().map_or([0; 2], Cookies::words),
        knows_cookies: cookies.is_some().into(),
        port: port.into(),
        sampled: settings.dnstap.as_ref().map_or(0, |(_, one_in)| u32::MAX / one_in.max(&1)),
        first: [0, 1].map(|number| {
            let address = first(number).map_or([0; 16], address_bytes);
            DnsAddress { address }
        }),
        ..DnsConfig::ZERO
    };
    let pace = Pace { rate: settings.ask_rate, settle: settings.settle, poll: settings.poll };
    let samples = settings.dnstap.as_ref().map(|_| Arc::<Counts>::default());
    let engine = Arc::new(Engine::new(
        path,
        settings.listen.clone(),
        pace,
        (config, seed),
        cookies,
        samples.clone(),
    ));
    let socket = AttachSocket::new(&settings.folder, port);
    let listener = crate::control::listen(&socket.path)
        .with_context(|| format!("cannot listen on {}", socket.path.display()))?;
    let metrics = settings.metrics.map(|address| {
        TcpListener::bind(address).with_context(|| format!("metrics cannot be on {address}"))
    });
    let metrics = metrics.transpose()?;
    attach(&engine)?;
    // Threads are made behind this: they inherit what is left.
    let begun = drop_all(Some(&stranger), drop_rights, Rights::None);
    let begun = begun.and_then(|()| engine.start(&stranger)).and_then(|()| {
        crate::control::serve(listener, control::AttachedDns(Arc::clone(&engine)))?;
        if let (Some((path, one_in)), Some(counts)) = (&settings.dnstap, samples) {
            let sink = Sink::start(path, *one_in, counts);
            let sink = sink.context("there can be no thread for dnstap")?;
            let engine = Arc::clone(&engine);
            crate::filler::spawn("dnstap", move || {
                if let Some(tap) = sink.tap() {
                    engine.pass_samples(&tap);
                }
            })?;
        }
        if let Some(listener) = metrics {
            crate::control::serve_metrics(listener, control::AttachedDns(Arc::clone(&engine)))?;
        }
        Ok(())
    });
    let outcome = begun.and_then(|()| live(&engine, settings.by_gateway, &signals));
    engine.end();
    stranger.leave();
    socket.remove();
    let statistics = control::statistics(&engine);
    say(&format!("{} questions were answered in the kernel", statistics["answered"]));
    outcome
}

/// The port of all addresses.
fn check(settings: &DnsSettings) -> anyhow::Result<u16> {
    let Some(first) = settings.listen.first() else { bail!("--listen ADDR:53 is missing") };
    if settings.listen.iter().any(|address| address.port() != first.port()) {
        bail!("the addresses have different ports: attach to each port by itself");
    }
    if settings.listen.len() > DNS_SERVERS {
        bail!("there are more than {DNS_SERVERS} addresses: leave some to the server");
    }
    let all = interfaces().context("interfaces cannot be listed")?;
    for address in settings.listen.iter().map(SocketAddr::ip) {
        if address.is_unspecified() {
            bail!(
                "--dns needs each address by itself: name those that clients ask, as --listen 192.0.2.1:53"
            );
        }
        if address.is_loopback() {
            bail!("clients on this machine are the server's: name an address that others ask");
        }
        if !is_reachable(address, &all) {
            bail!("no interface has the address {address}: `ip address` lists those there are");
        }
    }
    Ok(first.port())
}

/// All of it random.
fn seed() -> std::io::Result<DnsSeed> {
    let mut bytes = vec![0; size_of::<DnsSeed>()];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    DnsSeed::from_bytes(&bytes).ok_or_else(|| std::io::Error::other("too few bytes"))
}

/// Puts the programs on the interfaces that clients come by and that have none yet.
fn attach(engine: &Engine) -> anyhow::Result<()> {
    let all = interfaces()?;
    let carriers = carrying(&engine.listen, &all)
        .filter(|one| !one.loopback && !one.bare && !one.name.starts_with(INTERFACE));
    for interface in carriers {
        let name = &interface.name;
        match engine.path.attach(interface.index) {
            Ok(false) => {}
            Ok(true) => say(&format!("answering DNS on {name}")),
            Err(error) => return Err(error).with_context(|| format!("{name} takes no programs")),
        }
    }
    Ok(())
}

fn live(
    engine: &Arc<Engine>,
    by_gateway: bool,
    signals: &nix::sys::signalfd::SignalFd,
) -> anyhow::Result<()> {
    let mut unsure = false;
    loop {
        if by_gateway {
            let sure = engine.look_at_routes().context("routes cannot be read")?;
            if !sure && !unsure {
                say("! --clients gateway: no gateway is sure, so clients have to be known");
            }
            unsure = !sure;
        }
        match next_signal(signals, TICK)? {
            Some(Signal::SIGHUP) => {
                say("asking for everything anew");
                engine.forget();
            }
            Some(_) => return Ok(()),
            None => attach(engine)?,
        }
    }
}
