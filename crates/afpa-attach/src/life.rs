//! The life of an attachment.

use std::fs;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_bpf::{
    Carriers, Change, FastPath, Interface, RtxThread, Settings, interfaces, is_reachable,
};
use afpa_cache::root::{DocumentRoot, RootSettings, SymlinkPolicy};
use afpa_cache::watch::{WatchSettings, Watcher};
use anyhow::{Context as _, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::AsFd;

use crate::filler::{Hosts, Shared, Sink, spawn};
use crate::names::{learn, register, sites};
use crate::place::Place;
use crate::server::Server;
use crate::{Scope, control};

/// What to accelerate, and how.
#[derive(Clone, Debug)]
pub struct AttachSettings {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// The folder whose files it serves.
    pub root: PathBuf,
    /// Names by which clients call it, each a site of its own. Empty: its addresses and `localhost`,
    /// where all of them must get the same answers.
    pub hosts: Vec<String>,
    /// Which files.
    pub scope: Scope,
    /// Symbolic links that are followed.
    pub symlinks: SymlinkPolicy,
    /// The server closes connections that are idle for so long; it is shown a request of each before.
    pub server_timeout: Duration,
    /// Requests in a row, none of them for the kernel, after which a connection is left to the server; 0: none is.
    pub rest_after: u32,
    /// How long it is waited for one answer.
    pub patience: Duration,
    /// Folder of the control socket.
    pub folder: PathBuf,
}

/// Accelerates a server until a signal ends it. Must run in the network namespace of the server.
///
/// TERM and INT end at once: nothing is answered any more; connections that have been answered in the
/// kernel go on, translated by programs that stay behind until [`detach`](crate::detach()) or the
/// next attachment. QUIT waits for these connections. HUP asks for everything anew.
///
/// # Errors
/// When the fast path cannot be had, the server does not listen, or another attachment is there.
pub fn run(settings: AttachSettings) -> anyhow::Result<()> {
    let signals = listen_to_signals()?; // before the first thread: they all inherit the mask
    let mut attachment = Attachment::begin(settings)?;
    let outcome = attachment.live(&signals);
    attachment.end(outcome.as_ref().is_ok_and(|end| *end == End::Drain), &signals);
    outcome.map(|_| ())
}

struct Attachment {
    settings: AttachSettings,
    place: Place,
    keeps: bool,
    shared: Arc<Shared>,
    watcher: Arc<Watcher>,
    interfaces: Carriers,
    tender: Option<RtxThread>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Now,
    Drain,
}

/// Programs stop answering two seconds after the last sign of life.
const BEAT: Duration = Duration::from_millis(250);
const TICK: Duration = Duration::from_secs(1);
/// Flows that nothing was heard of for so long are looked after.
const IDLE: Duration = Duration::from_secs(20);
/// Where nothing can be kept, connections get this long to end.
const LAST_WAIT: Duration = Duration::from_secs(10);

impl Attachment {
    fn begin(settings: AttachSettings) -> anyhow::Result<Self> {
        let place = Place::new(&settings.folder, settings.listen);
        if place.is_running() {
            bail!("{} is accelerated already; end that with: afpa detach", settings.listen);
        }
        let mut server = Server::new(settings.listen, settings.patience);
        server.reach().with_context(|| format!("no server listens on {}", settings.listen))?;
        let all = interfaces().context("interfaces cannot be listed")?;
        let sites = sites(&settings, &all);
        if !is_reachable(settings.listen.ip(), &all) {
            bail!("no interface has the address {}", settings.listen.ip());
        }
        let links = RootSettings { symlinks: settings.symlinks, dotfiles: false };
        let root = DocumentRoot::open(&settings.root, links)
            .with_context(|| format!("cannot use {}", settings.root.display()))?;
        Self::load(settings, place.clone(), root, sites, (server, all))
            .inspect_err(|_| place.abandon())
    }

    /// What leaves traces.
    fn load(
        settings: AttachSettings,
        place: Place,
        root: DocumentRoot,
        sites: Vec<Hosts>,
        (server, all): (Server, Vec<Interface>),
    ) -> anyhow::Result<Self> {
        let (fast_path, keeps) = load(&settings, &place)?;
        let listener = control::listen(&place.socket)
            .with_context(|| format!("cannot listen on {}", place.socket.display()))?;
        register(&fast_path, &settings, &sites)?;
        let most = sizes().objects as usize;
        let scope = settings.scope.clone();
        let shared = Arc::new(Shared::new(fast_path, root, scope, sites, most));
        let sink = Arc::new(Sink(Arc::clone(&shared)));
        let watcher = Watcher::start(&shared.root, sink, WatchSettings::default())?;
        let watcher = Arc::new(watcher);
        let interfaces = Carriers::default();
        let mut attachment =
            Self { settings, place, keeps, shared, watcher, interfaces, tender: None };
        attachment.attach(&all)?;
        control::serve(listener, Arc::clone(&attachment.shared))?;
        attachment.start(server)?;
        Ok(attachment)
    }

    /// Programs on interfaces that have not got them yet.
    fn attach(&mut self, all: &[Interface]) -> anyhow::Result<()> {
        let listen = self.settings.listen;
        for change in self.interfaces.update(&self.shared.fast_path, &[listen], all) {
            match change {
                Change::Added(name) => say(&format!("answering {listen} on {name}")),
                Change::Gone(name) => say(&format!("{name} is gone")),
                Change::Refused(name, why) => {
                    return Err(anyhow::Error::new(why).context(format!("{name} refuses")));
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, mut server: Server) -> anyhow::Result<()> {
        let shared = Arc::clone(&self.shared);
        spawn("beat", move || {
            loop {
                shared.beat();
                std::thread::sleep(BEAT);
            }
        })?;
        self.tender = Some(tender(&self.shared)?);
        let (shared, watcher) = (Arc::clone(&self.shared), Arc::clone(&self.watcher));
        spawn("filler", move || shared.fill(&watcher, &mut server))?;
        Ok(())
    }

    fn live(&mut self, signals: &SignalFd) -> anyhow::Result<End> {
        let mut status = Status::new();
        let mut ticks = 0u64;
        loop {
            match next_signal(signals, TICK)? {
                Some(Signal::SIGQUIT) => return Ok(End::Drain),
                Some(Signal::SIGHUP) => {
                    say("asking for everything anew");
                    self.shared.everything_changed();
                }
                Some(_) => return Ok(End::Now),
                None => {}
            }
            ticks += 1;
            if ticks.is_multiple_of(2) {
                self.shared.fast_path.sweep(IDLE)?;
                let all = interfaces()?;
                self.attach(&all)?;
                if learn(&self.shared, &self.settings, &all)? {
                    say("addresses have changed: asking for everything anew");
                }
            }
            status.show(&self.shared, &self.watcher);
        }
    }

    /// Nothing is answered any more; then nothing may be broken.
    fn end(&mut self, drain: bool, signals: &SignalFd) {
        self.shared.end();
        let _closed = fs::remove_file(&self.place.socket);
        let answered = self.shared.fast_path.counters().map(|counters| counters.answered());
        say(&format!("{} requests were answered in the kernel", answered.unwrap_or_default()));
        let deadline = Instant::now() + LAST_WAIT;
        let drifted = loop {
            let _swept = self.shared.fast_path.sweep(Duration::ZERO);
            let drifted = self.shared.fast_path.translated_flows().unwrap_or_default();
            // Nobody sends the lost end of a long answer again when we are gone.
            let flights = self.shared.fast_path.transfers().unwrap_or_default();
            let patient = drain || ((!self.keeps || flights > 0) && Instant::now() < deadline);
            if drifted == 0 || !patient {
                break drifted;
            }
            match next_signal(signals, Duration::from_millis(100)) {
                Ok(None) => {}
                _ => break drifted,
            }
        };
        if drifted > 0 && self.keeps {
            say(&format!(
                "{drifted} connections are translated until they end; `afpa detach` cleans up after them"
            ));
            return;
        }
        self.interfaces.detach(&self.shared.fast_path);
        if self.keeps {
            let _gone = FastPath::forget(&self.place.kept);
        }
    }
}

/// Sends answers again when nothing comes from their clients.
fn tender(shared: &Arc<Shared>) -> std::io::Result<RtxThread> {
    let shared = Arc::clone(shared);
    let complain = |error: &_| {
        say(&format!("what is lost of answers is not sent again: {error}"));
    };
    RtxThread::start(move || shared.fast_path.service_timers(), complain)
}

/// With a folder for what outlives us, where there can be one.
fn load(settings: &AttachSettings, place: &Place) -> anyhow::Result<(FastPath, bool)> {
    let kept = place.prepare_kept();
    if let Err(error) = &kept {
        say(&format!("connections cannot outlive this process: {}: {error}", place.kept.display()));
    }
    let keeps = kept.is_ok();
    let longest = settings.scope.longest;
    let several_segments = longest > Scope::ONE_SEGMENT;
    let fast_path = FastPath::load(Settings {
        refresh: settings.server_timeout / 2,
        bypass_after: settings.rest_after,
        keep_in: keeps.then(|| place.kept.clone()),
        answer_max: u32::try_from(longest).unwrap_or(u32::MAX),
        pages: if several_segments { PAGES } else { 0 },
        transfers: if several_segments { FLIGHTS } else { 1 },
        ..sizes()
    });
    Ok((fast_path.context("the fast path cannot be had")?, keeps))
}

/// Room for long answers: 23 MB.
const PAGES: u32 = 4096;
const FLIGHTS: u32 = 4096;

/// Whoever takes kept maps over has to do with what is there.
pub(crate) fn sizes() -> Settings {
    // The log of an attached server is its own.
    Settings { log_every: 0, sizes_as_kept: true, ..Settings::default() }
}

/// What is shown: once when everything was asked for, and every second where somebody looks.
struct Status {
    terminal: bool,
    said: bool,
    answered: u64,
    since: Instant,
}

impl Status {
    fn new() -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self { terminal, said: false, answered: 0, since: Instant::now() }
    }

    fn show(&mut self, shared: &Shared, watcher: &Watcher) {
        let standing = shared.standing();
        if !self.said && !standing.busy {
            self.said = true;
            let known = standing.known;
            say(&format!("{}; {} of {known} objects pinned", watcher.summary(), standing.pinned));
            for (why, count) in &standing.unfit {
                say(&format!("  {count} not: {why}"));
            }
        }
        if !self.terminal {
            return;
        }
        let answered = shared.fast_path.counters().map_or(self.answered, |c| c.answered());
        let seconds = self.since.elapsed().as_secs_f64().max(0.001);
        let rate = answered.saturating_sub(self.answered) as f64 / seconds;
        (self.answered, self.since) = (answered, Instant::now());
        let work = if standing.busy { ", asking" } else { "" };
        let mut out = std::io::stdout().lock();
        let line =
            format!("{rate:.0} answers/s, {answered} in all, {} pinned{work}", standing.pinned);
        let _gone = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
    }
}

/// A line for the operator. That nobody reads it is no reason to end.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let clear = if std::io::stdout().is_terminal() { "\r\x1b[K" } else { "" };
    let _gone = writeln!(out, "{clear}afpa attach: {line}").and_then(|()| out.flush());
}

fn listen_to_signals() -> anyhow::Result<SignalFd> {
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
        mask.add(signal);
    }
    mask.thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

/// A signal, or None when none came for `patience`.
fn next_signal(signals: &SignalFd, patience: Duration) -> anyhow::Result<Option<Signal>> {
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let signal = signals.read_signal()?;
    Ok(signal.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok()))
}
