//! The life of an attachment.

use std::fs;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_bpf::{
    Carriers, Change, FastPath, Interface, RtxThread, Settings, interfaces, is_reachable,
};
use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::watch::{WatchSettings, Watcher};
use anyhow::{Context as _, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::AsFd;

use crate::filler::{Filler, Hosts, Sink, spawn};
use crate::names::{learn, register, sites};
use crate::paths::AttachPaths;
use crate::server::Server;
use crate::settings::{AttachSettings, map_sizes};
use crate::{Scope, control};

/// Accelerates a server until a signal ends it. Must run in the network namespace of the server.
///
/// TERM and INT end it at once: the kernel answers no more. Connections on which it has answered go on:
/// their sequence numbers are translated by the programs, which stay until [`detach`](crate::detach()) or
/// the next attachment. QUIT waits for these connections. HUP asks the server for everything again.
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
    paths: AttachPaths,
    has_pin_dir: bool,
    filler: Arc<Filler>,
    watcher: Arc<Watcher>,
    interfaces: Carriers,
    tender: Option<RtxThread>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Now,
    Drain,
}

/// The programs stop answering two seconds after the last heartbeat.
const BEAT: Duration = Duration::from_millis(250);
const TICK: Duration = Duration::from_secs(1);
/// Flows without a packet for this long are swept.
const IDLE: Duration = Duration::from_secs(20);
/// How long connections get to end where nothing can be pinned.
const LAST_WAIT: Duration = Duration::from_secs(10);

impl Attachment {
    fn begin(settings: AttachSettings) -> anyhow::Result<Self> {
        let paths = AttachPaths::new(&settings.folder, settings.listen);
        if paths.is_running() {
            bail!("{} is accelerated already; end that with: afpa detach", settings.listen);
        }
        let mut server = Server::new(settings.listen, settings.answer_timeout);
        server.reach().with_context(|| format!("no server listens on {}", settings.listen))?;
        let all = interfaces().context("interfaces cannot be listed")?;
        let sites = sites(&settings, &all);
        if !is_reachable(settings.listen.ip(), &all) {
            bail!("no interface has the address {}", settings.listen.ip());
        }
        let links = RootSettings { symlinks: settings.symlinks, dotfiles: false };
        let root = DocumentRoot::open(&settings.root, links)
            .with_context(|| format!("cannot use {}", settings.root.display()))?;
        Self::load(settings, paths.clone(), root, sites, (server, all))
            .inspect_err(|_| paths.abandon())
    }

    /// The part of the start that leaves files and pinned maps behind.
    fn load(
        settings: AttachSettings,
        paths: AttachPaths,
        root: DocumentRoot,
        sites: Vec<Hosts>,
        (server, all): (Server, Vec<Interface>),
    ) -> anyhow::Result<Self> {
        let (fast_path, has_pin_dir) = load(&settings, &paths)?;
        let listener = control::listen(&paths.socket)
            .with_context(|| format!("cannot listen on {}", paths.socket.display()))?;
        register(&fast_path, &settings, &sites)?;
        let most = map_sizes().objects as usize;
        let scope = settings.scope.clone();
        let filler = Arc::new(Filler::new(fast_path, root, scope, sites, most));
        let sink = Arc::new(Sink(Arc::clone(&filler)));
        let watcher = Watcher::start(&filler.root, sink, WatchSettings::default())?;
        let watcher = Arc::new(watcher);
        let interfaces = Carriers::default();
        let mut attachment =
            Self { settings, paths, has_pin_dir, filler, watcher, interfaces, tender: None };
        attachment.attach(&all)?;
        control::serve(listener, Arc::clone(&attachment.filler))?;
        attachment.start(server)?;
        Ok(attachment)
    }

    /// Attaches the programs to interfaces that do not have them yet.
    fn attach(&mut self, all: &[Interface]) -> anyhow::Result<()> {
        let listen = self.settings.listen;
        for change in self.interfaces.update(&self.filler.fast_path, &[listen], all) {
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
        let filler = Arc::clone(&self.filler);
        spawn("beat", move || {
            loop {
                filler.beat();
                std::thread::sleep(BEAT);
            }
        })?;
        self.tender = Some(tender(&self.filler)?);
        let (filler, watcher) = (Arc::clone(&self.filler), Arc::clone(&self.watcher));
        spawn("filler", move || filler.fill(&watcher, &mut server))?;
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
                    self.filler.everything_changed();
                }
                Some(_) => return Ok(End::Now),
                None => {}
            }
            ticks += 1;
            if ticks.is_multiple_of(2) {
                self.filler.fast_path.sweep(IDLE)?;
                let all = interfaces()?;
                self.attach(&all)?;
                if learn(&self.filler, &self.settings, &all)? {
                    say("addresses have changed: asking for everything anew");
                }
            }
            status.show(&self.filler, &self.watcher);
        }
    }

    /// Stops answering, and leaves no connection broken.
    fn end(&mut self, drain: bool, signals: &SignalFd) {
        self.filler.end();
        let _closed = fs::remove_file(&self.paths.socket);
        let answered = self.filler.fast_path.counters().map(|counters| counters.answered());
        say(&format!("{} requests were answered in the kernel", answered.unwrap_or_default()));
        let deadline = Instant::now() + LAST_WAIT;
        let translated = loop {
            let _swept = self.filler.fast_path.sweep(Duration::ZERO);
            let translated = self.filler.fast_path.translated_flows().unwrap_or_default();
            // Without this process, nothing retransmits what is lost of an answer of several segments.
            let transfers = self.filler.fast_path.transfers().unwrap_or_default();
            let waits =
                drain || ((!self.has_pin_dir || transfers > 0) && Instant::now() < deadline);
            if translated == 0 || !waits {
                break translated;
            }
            match next_signal(signals, Duration::from_millis(100)) {
                Ok(None) => {}
                _ => break translated,
            }
        };
        if translated > 0 && self.has_pin_dir {
            say(&format!(
                "{translated} connections are translated until they end; `afpa detach` cleans up after them"
            ));
            return;
        }
        self.interfaces.detach(&self.filler.fast_path);
        if self.has_pin_dir {
            let _gone = FastPath::forget(&self.paths.pin_dir);
        }
    }
}

/// Retransmits answers that are not acknowledged in time.
fn tender(filler: &Arc<Filler>) -> std::io::Result<RtxThread> {
    let filler = Arc::clone(filler);
    let complain = |error: &_| {
        say(&format!("lost segments are not retransmitted: {error}"));
    };
    RtxThread::start(move || filler.fast_path.service_timers(), complain)
}

/// Loads the programs, with a directory on the BPF file system if there is one. Whether there is.
fn load(settings: &AttachSettings, paths: &AttachPaths) -> anyhow::Result<(FastPath, bool)> {
    let prepared = paths.prepare_pin_dir();
    if let Err(error) = &prepared {
        say(&format!(
            "connections cannot survive this process: {}: {error}",
            paths.pin_dir.display()
        ));
    }
    let has_pin_dir = prepared.is_ok();
    let longest = settings.scope.longest;
    let several_segments = longest > Scope::ONE_SEGMENT;
    let fast_path = FastPath::load(Settings {
        refresh: settings.server_timeout / 2,
        bypass_after: settings.bypass_after,
        keep_in: has_pin_dir.then(|| paths.pin_dir.clone()),
        answer_max: u32::try_from(longest).unwrap_or(u32::MAX),
        pages: if several_segments { PAGES } else { 0 },
        transfers: if several_segments { TRANSFERS } else { 1 },
        ..map_sizes()
    });
    Ok((fast_path.context("the fast path cannot be had")?, has_pin_dir))
}

/// Memory for answers of several segments: 23 MB.
const PAGES: u32 = 4096;
const TRANSFERS: u32 = 4096;

/// What the operator sees: a line when everything was asked for, and on a terminal one every second.
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

    fn show(&mut self, filler: &Filler, watcher: &Watcher) {
        let standing = filler.standing();
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
        let answered = filler.fast_path.counters().map_or(self.answered, |c| c.answered());
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

/// Prints a line for the operator. An error of standard output must not end the attachment.
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

/// A signal, or `None` when none came within `timeout`.
fn next_signal(signals: &SignalFd, timeout: Duration) -> anyhow::Result<Option<Signal>> {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let signal = signals.read_signal()?;
    Ok(signal.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok()))
}
