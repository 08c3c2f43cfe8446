//! The life of an attachment.

mod start;

use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_bpf::preflight::Watch;
use afpa_bpf::{Carriers, Change, FastPath, Interface, PinDir, PortClaim, RtxThread, is_reachable};
use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::watch::{WatchSettings, Watcher};
use afpa_police::{Police, PoliceSettings};
use afpa_self_check::{SelfCheck, SelfCheckSettings};
use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;

use crate::filler::{Filler, FillerBounds, Sink, learn as learn_targets, spawn};
use crate::health::{self, Health};
use crate::names::{Listening, check_hosts, learn, register, sites};
use crate::paths::AttachSocket;
use crate::rights::{DropRights, Rights, Step, drop_all, step_of_stranger};
use crate::say::say;
use crate::settings::{AttachSettings, map_sizes};
use crate::signals::{listen_to_signals, next_signal};
use crate::sockets::Sockets;
use crate::status::Status;
use crate::stranger::Stranger;
use crate::{ReadPolice, control, police};
use start::{
    check_readable, interfaces_of_others, load, open_pin_dir, preflight, stranger_of, taken,
};

/// Accelerates a server until a signal ends it. Must run in the network namespace of the server.
///
/// TERM and INT end it at once: the kernel answers no more. Connections on which it has answered go on:
/// their sequence numbers are translated by the programs, which stay until [`detach`](crate::detach()) or
/// the next attachment. QUIT waits for these connections. HUP asks the server for everything again.
///
/// `read_police` says which clients may connect; HUP calls it again.
///
/// `drop_rights` is called for each [`Step`]: no thread keeps a right that its work does not take.
///
/// # Errors
/// When the fast path cannot be had, the server does not listen, or another fast path is there.
pub fn run(
    settings: AttachSettings,
    read_police: ReadPolice,
    drop_rights: &DropRights,
) -> anyhow::Result<()> {
    let signals = listen_to_signals()?; // before the first thread: they all inherit the mask
    let mut attachment = Attachment::begin(settings, read_police, drop_rights)?;
    let outcome = attachment.live(&signals);
    attachment.end(outcome.as_ref().is_ok_and(|end| *end == End::Drain), &signals);
    outcome.map(|_| ())
}

struct Attachment {
    settings: AttachSettings,
    socket: AttachSocket,
    filler: Arc<Filler>,
    police: Police,
    read_police: ReadPolice,
    watcher: Arc<Watcher>,
    interfaces: Carriers,
    listening: Listening,
    health: Arc<Health>,
    sockets: Sockets,
    tender: Option<RtxThread>,
    self_check: Option<SelfCheck>,
    pin_dir: Option<PinDir>,
    /// Properties of this host that limit the fast path.
    watch: Watch,
    /// Why no SYN is answered, as the last message said.
    tcp_refused: Option<String>,
    admission_refused: Option<String>,
    /// The right to answer on the port. It is the last to go.
    _claim: PortClaim,
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
/// Reasons in the message at the end.
const MOST_TOLD: usize = 5;
/// How long connections get to end where nothing can be pinned.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// The parts that take no programs.
type Parts = (DocumentRoot, Listening, Vec<Interface>, Watch, Option<Arc<Stranger>>);

impl Attachment {
    fn begin(
        settings: AttachSettings,
        read_police: ReadPolice,
        drop_rights: &DropRights,
    ) -> anyhow::Result<Self> {
        let police = read_police()?; // first: an error here leaves nothing behind
        if settings.listen.iter().any(|address| address.port() != settings.port()) {
            bail!("{} have different ports: attach to each port by itself", settings.addresses());
        }
        check_hosts(&settings.hosts)?;
        let mut claim = PortClaim::default();
        claim.lock(settings.port()).map_err(taken)?;
        let all = interfaces_of_others().context("interfaces cannot be listed")?;
        for address in &settings.listen {
            if !is_reachable(address.ip(), &all) {
                bail!(
                    "no interface has the address {}: `ip address` lists those there are",
                    address.ip()
                );
            }
        }
        let watch = preflight(&settings)?;
        let stranger = stranger_of(&settings)?;
        step_of_stranger(stranger.as_deref(), drop_rights, Step::Thread)?;
        let listening = Listening::begin(&settings, stranger.clone(), &all)?;
        let links = RootSettings { symlinks: settings.symlinks, dotfiles: false };
        let root = DocumentRoot::open(&settings.root, links)
            .with_context(|| format!("cannot use {}", settings.root.display()))?;
        let socket = AttachSocket::new(&settings.folder, settings.port());
        let parts = (root, listening, all, watch, stranger);
        let police = (police, read_police);
        let loaded = Self::load(settings, socket.clone(), parts, police, claim, drop_rights);
        loaded.inspect_err(|_| socket.remove())
    }

    /// The part of the start that leaves files and pinned maps behind.
    fn load(
        settings: AttachSettings,
        socket: AttachSocket,
        (root, listening, all, watch, stranger): Parts,
        (police, read_police): (PoliceSettings, ReadPolice),
        claim: PortClaim,
        drop_rights: &DropRights,
    ) -> anyhow::Result<Self> {
        let pin_dir = open_pin_dir(&settings);
        PortClaim::clear(settings.port(), pin_dir.as_ref()).map_err(taken)?;
        let fast_path = Arc::new(load(&settings, pin_dir.as_ref())?);
        for lacking in fast_path.lacks() {
            say(&format!("! the fast path is not whole on this kernel: {lacking}"));
        }
        let listener = control::listen(&socket.path)
            .with_context(|| format!("cannot listen on {}", socket.path.display()))?;
        let sites = sites(&settings, &listening.addresses.get());
        register(&fast_path, &settings, &sites, &listening.addresses.get())?;
        let police = police::begin(&fast_path, &police)?;
        let sockets = Sockets::begin(&fast_path, &settings.listen)?;
        let mut interfaces = Carriers::default();
        attach(&mut interfaces, &fast_path, &settings, &all)?;
        if let Err(why) = fast_path.interfaces.guard() {
            say(&format!(
                "a route that changes to a device without programs breaks connections: {why}"
            ));
        }
        if let Some(Err(error)) = pin_dir.as_ref().map(PinDir::hand_over) {
            say(&format!(
                "the maps that are kept for connections cannot be removed later: {error}"
            ));
        }
        let kept = match fast_path.interfaces.needs_net_admin() {
            true => Rights::NetAdmin,
            false => Rights::None,
        };
        drop_all(stranger.as_deref(), drop_rights, kept)?;
        drop(stranger);
        check_readable(&root, &settings)?;
        let most = map_sizes().objects as usize;
        let scope = (settings.scope.clone(), settings.keeps.clone());
        let bounds = FillerBounds {
            most,
            revalidate: settings.revalidate,
            idle: settings.server_timeout,
            named: !settings.hosts.is_empty(),
        };
        let filler = Arc::new(Filler::new(fast_path, root, scope, sites, bounds));
        let sink = Arc::new(Sink(Arc::clone(&filler)));
        let watcher = Watcher::start(&filler.root, sink, WatchSettings::default())?;
        let watcher = Arc::new(watcher);
        let mut attachment = Self {
            settings,
            socket,
            filler,
            police,
            read_police,
            watcher,
            interfaces,
            listening,
            sockets,
            health: Arc::default(),
            tender: None,
            self_check: None,
            pin_dir,
            watch,
            tcp_refused: None,
            admission_refused: None,
            _claim: claim,
        };
        attachment.start()?;
        attachment.look_at_tcp();
        let attached = control::Attached {
            filler: Arc::clone(&attachment.filler),
            health: Arc::clone(&attachment.health),
            self_checks: attachment.self_check.as_ref().map(|check| Arc::clone(check.counts())),
            police: attachment.police.clone(),
        };
        control::serve(listener, attached)?;
        Ok(attachment)
    }

    fn start(&mut self) -> anyhow::Result<()> {
        let filler = Arc::clone(&self.filler);
        filler.beat(); // a busy machine may take its time to run a new thread
        spawn("beat", move || {
            loop {
                filler.beat();
                std::thread::sleep(BEAT);
            }
        })?;
        self.tender = Some(tender(&self.filler)?);
        let (filler, watcher) = (Arc::clone(&self.filler), Arc::clone(&self.watcher));
        let mut server = self.listening.viewpoints(&self.settings, Arc::clone(&filler));
        spawn("filler", move || filler.fill(&watcher, &mut server))?;
        let addresses = self.listening.addresses.clone();
        if !self.filler.keeps.is_empty() {
            self.filler.fast_path.reports.note_requests();
            let filler = Arc::clone(&self.filler);
            spawn("learner", move || learn_targets(&filler))?;
            let filler = Arc::clone(&self.filler);
            let mut server = self.listening.viewpoints(&self.settings, Arc::clone(&filler));
            spawn("keeper", move || filler.keep_answers(&mut server))?;
        }
        health::watch(Arc::clone(&self.health), Arc::clone(&self.filler), addresses)?;
        self.self_check = self_check(&self.filler, &self.settings)?;
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
                    police::reload(&self.police, &self.read_police);
                    self.listening.look_anew();
                    self.filler.everything_changed();
                }
                Some(_) => return Ok(End::Now),
                None => {}
            }
            ticks += 1;
            for change in self.interfaces.look_at_chains(&self.filler.fast_path.interfaces)? {
                tell(change, &self.settings)?;
            }
            if ticks.is_multiple_of(2) {
                self.look_at_tcp();
                self.filler.fast_path.sweep(IDLE)?;
                self.sockets.look(&self.filler.fast_path);
                let all = interfaces_of_others()?;
                attach(&mut self.interfaces, &self.filler.fast_path, &self.settings, &all)?;
                if learn(&self.filler, &self.settings, &mut self.listening, &all)? {
                    say("addresses have changed: asking for everything anew");
                }
            }
            for finding in self.watch.news() {
                say(&format!("! {finding}"));
            }
            status.show(&self.filler, &self.watcher);
        }
    }

    /// Settings of TCP may change: SYNs are answered by the current ones, or not at all.
    fn look_at_tcp(&mut self) {
        let refused =
            self.filler.fast_path.socketless.look_at_tcp().err().map(|why| why.to_string());
        if let Some(why) = refused.as_ref().filter(|_| self.tcp_refused != refused) {
            say(&format!("! all connections have sockets of the kernel's: {why}"));
        }
        self.tcp_refused = refused;
        let refused = self.filler.fast_path.socketless.admission_refusal();
        if let Some(why) = refused.as_ref().filter(|_| self.admission_refused != refused) {
            say(&format!("! --connections: clients have to be known all the same: {why}"));
        }
        self.admission_refused = refused;
    }

    /// Why requests went to the server, the most frequent reasons.
    fn tell_passes(&self) {
        let Ok(counters) = self.filler.fast_path.stats.counters() else { return };
        let mut passes = counters.passes();
        passes.truncate(MOST_TOLD);
        for (words, count) in passes {
            say(&format!("  {count} went to the server: {words}"));
        }
    }

    /// Stops answering, and leaves no connection broken.
    fn end(&mut self, drain: bool, signals: &SignalFd) {
        drop(self.self_check.take());
        self.filler.end();
        self.filler.fast_path.socketless.drain();
        if let Err(error) = self.filler.fast_path.flows.close_socketless() {
            say(&format!("connections without a socket are not closed: {error}"));
        }
        self.listening.end();
        self.socket.remove();
        let answered = self.filler.fast_path.stats.counters().map(|counters| counters.answered());
        say(&format!("{} requests were answered in the kernel", answered.unwrap_or_default()));
        self.tell_passes();
        let deadline = Instant::now() + LAST_WAIT;
        let translated = loop {
            let fast_path = &self.filler.fast_path;
            // Where connections cannot be counted there may be some.
            let owed = fast_path.flows.answers_owed().map_or(true, |owed| owed > 0);
            let _swept = fast_path.sweep(Duration::ZERO);
            let translated = fast_path.flows.translated_flows().ok();
            let waits = drain || ((self.pin_dir.is_none() || owed) && Instant::now() < deadline);
            if translated == Some(0) || !waits {
                break translated;
            }
            match next_signal(signals, Duration::from_millis(100)) {
                Ok(None) => {}
                _ => break translated,
            }
        };
        if let Some(pin_dir) = self.pin_dir.as_mut().filter(|_| translated != Some(0)) {
            let many =
                translated.map_or("an unknown number of".to_owned(), |many| many.to_string());
            say(&format!(
                "{many} connections are translated until they end; `afpa detach` cleans up after them"
            ));
            return pin_dir.leave(true);
        }
        self.interfaces.detach(&self.filler.fast_path.interfaces);
        self.pin_dir.iter_mut().for_each(|pin_dir| pin_dir.leave(false));
    }
}

/// Retransmits answers that are not acknowledged in time.
fn tender(filler: &Arc<Filler>) -> std::io::Result<RtxThread> {
    let filler = Arc::clone(filler);
    let complain = |error: &_| {
        say(&format!("lost segments are not retransmitted: {error}"));
    };
    RtxThread::start(move || filler.fast_path.rtx.service_timers(), complain)
}

/// A change that no file tells of has reached the kernel when everything was confirmed once.
const SETTLE: Duration = Duration::from_secs(2);

/// Compares some of the kernel's answers with the server's. A difference ends the answering.
fn self_check(
    filler: &Arc<Filler>,
    settings: &AttachSettings,
) -> std::io::Result<Option<SelfCheck>> {
    if settings.self_check == 0 {
        return Ok(None);
    }
    let stopped = Arc::clone(filler);
    let settings =
        SelfCheckSettings { every: settings.self_check, settle: settings.revalidate + SETTLE };
    SelfCheck::start(Arc::clone(filler), Filler::checked, settings, move |found| {
        stopped.stop_for(found);
    })
    .map(Some)
}

/// Attaches the programs to interfaces that do not have them yet.
fn attach(
    carriers: &mut Carriers,
    fast_path: &FastPath,
    settings: &AttachSettings,
    all: &[Interface],
) -> anyhow::Result<()> {
    for change in carriers.update(&fast_path.interfaces, &settings.listen, all) {
        tell(change, settings)?;
    }
    Ok(())
}

fn tell(change: Change, settings: &AttachSettings) -> anyhow::Result<()> {
    match change {
        Change::Added(name) => say(&format!("answering {} on {name}", settings.addresses())),
        Change::Gone(name) => say(&format!("{name} is gone")),
        Change::Refused(name, why) => {
            return Err(anyhow::Error::new(why).context(format!("{name} takes no programs")));
        }
        Change::NotFirst(name) => {
            say(&format!(
                "another program stands before ours on {name}: not answering there \
                 (attach it behind ours, or start afpa after it)"
            ));
        }
        Change::FirstAgain(name) => say(&format!("answering on {name} again")),
    }
    Ok(())
}
