//! Connections without a socket (`bpf/include/afpa/conn/socketless.h`): whether this host can have them, and the options of
//! their handshakes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use afpa_abi::{Reason, handshake};

use crate::conn::admission::Routes;
use crate::conn::loss::{Loss, Losses};
use crate::conn::worth::{Begun, Worth};
use crate::kernel::Kernel;
use crate::programs::Programs;
use crate::region::Region;
use crate::settings::{Admission, Settings};
use crate::stats::Stats;
use crate::unavailable::Unavailable;

/// The oldest kernel whose TCP takes a connection in the middle (`bpf_sk_assign_tcp_reqsk`).
const OLDEST: (u32, u32) = (6, 9);

/// The kernel's `tcp_rmem[2]` and `rmem_max`, where they cannot be read.
const RECEIVE_MAX: u64 = 6 << 20;

/// How TCP is set up on this host, or in this network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: bool,
    /// `net.ipv4.tcp_sack`.
    pub sack: bool,
    /// `net.ipv4.tcp_window_scaling`.
    pub scaling: bool,
    /// `net.ipv4.tcp_syncookies`: whether the kernel's TCP takes an acknowledgement of a cookie.
    pub cookies: bool,
    /// The largest receive buffer, in bytes.
    pub receive_max: u64,
}

impl TcpSettings {
    /// The settings of the current network namespace.
    pub(crate) fn of_this_namespace() -> Self {
        Self::read(Path::new("/proc/sys/net"))
    }

    fn read(root: &Path) -> Self {
        let number = |name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(root.join(name)).ok()?;
            text.split_whitespace().next_back()?.parse().ok()
        };
        let is_on = |name: &str| number(name).is_some_and(|value| value != 0);
        let receive = [number("ipv4/tcp_rmem"), number("core/rmem_max")];
        Self {
            timestamps: is_on("ipv4/tcp_timestamps"),
            sack: is_on("ipv4/tcp_sack"),
            scaling: is_on("ipv4/tcp_window_scaling"),
            cookies: is_on("ipv4/tcp_syncookies"),
            receive_max: receive.into_iter().flatten().max().unwrap_or(RECEIVE_MAX),
        }
    }

    /// The shift of the window that the kernel's TCP announces (`tcp_select_initial_window`).
    fn window_scale(self) -> u32 {
        (self.receive_max.max(1).ilog2()).saturating_sub(15).min(14)
    }

    /// `handshake` of the shared region.
    fn words(self) -> u32 {
        let bit = |set: bool, bit: u8| if set { u32::from(bit) } else { 0 };
        bit(true, handshake::ON)
            | bit(self.timestamps, handshake::TIMESTAMPS)
            | bit(self.sack, handshake::SACK)
            | bit(self.scaling, handshake::SCALING)
    }

    /// Why there can be no connection without a socket here.
    pub(crate) fn refusal(self) -> Option<Unavailable> {
        (!self.cookies).then(|| Unavailable {
            reason: "the kernel's TCP takes no cookies here (net.ipv4.tcp_syncookies is 0)".into(),
            remedy: "sysctl net.ipv4.tcp_syncookies=1",
        })
    }
}

/// Whether the clients of the last seconds were tracked. Pure.
#[derive(Debug, Default)]
struct Tracking {
    tracked: u64,
    answered: u64,
    now: bool,
}

impl Tracking {
    /// Takes both counts: SYN-ACKs of the kernel's that were tracked, and SYNs that were answered without it. The state
    /// stays as it is while no client connects.
    fn see(&mut self, tracked: u64, answered: u64) -> bool {
        if tracked != self.tracked {
            self.now = true;
        } else if answered != self.answered {
            self.now = false;
        }
        (self.tracked, self.answered) = (tracked, answered);
        self.now
    }
}

/// Why this kernel cannot have connections without a socket.
pub(crate) fn refusal_of(kernel: &Kernel) -> Option<Unavailable> {
    (kernel.version() < OLDEST).then(|| Unavailable {
        reason: format!("TCP of Linux {} takes no connection in the middle", kernel.release),
        remedy: "Linux 6.9 or newer",
    })
}

/// Connections without a socket.
pub struct Socketless {
    region: Arc<Region>,
    stats: Arc<Stats>,
    /// Whether the settings of the start want any: answers are kept in the form that they need.
    possible: bool,
    /// Whether the settings of now want any.
    wanted: AtomicBool,
    /// Whether there are as many connections as there may be.
    full: AtomicBool,
    /// Whether nearly all of them need a socket in the end.
    vain: AtomicBool,
    /// Whether the kernel has taken the programs for them.
    programs: bool,
    admission: Admission,
    routes: Routes,
    tracking: Mutex<Tracking>,
    loss: Mutex<Loss>,
    worth: Mutex<Worth>,
}

impl Socketless {
    /// `can`: the kernel has taken the programs for them.
    pub(crate) fn over(
        programs: &Programs,
        region: &Arc<Region>,
        stats: &Arc<Stats>,
        settings: &Settings,
        can: bool,
    ) -> Result<Self, Unavailable> {
        Ok(Self {
            region: Arc::clone(region),
            stats: Arc::clone(stats),
            possible: settings.socketless,
            wanted: AtomicBool::new(settings.socketless),
            full: AtomicBool::new(false),
            vain: AtomicBool::new(false),
            programs: can,
            admission: settings.admission,
            routes: Routes::over(programs, region)?,
            tracking: Mutex::default(),
            loss: Mutex::default(),
            worth: Mutex::default(),
        })
    }

    /// Why connections cannot begin without a socket on this kernel, in this network namespace; None: they can.
    pub fn refusal() -> Option<Unavailable> {
        refusal_of(&Kernel::this()).or_else(|| TcpSettings::of_this_namespace().refusal())
    }

    /// Take over how TCP is set up in the current network namespace, which must be that of the interfaces: SYNs are
    /// answered as the kernel's TCP would answer them, or not at all. To be called once a second.
    ///
    /// # Errors
    ///
    /// Says why no SYN is answered, where [`Settings::socketless`](crate::Settings::socketless) wants it.
    pub fn look_at_tcp(&self) -> Result<(), Unavailable> {
        if !self.is_wanted() {
            if self.possible {
                self.drain();
            }
            return Ok(());
        }
        let tcp = TcpSettings::of_this_namespace();
        let refusal = refusal_of(&Kernel::this())
            .or_else(|| (!self.programs).then(lacking))
            .or_else(|| tcp.refusal())
            .or_else(|| self.look_at_loss());
        self.look_at_worth();
        let full = if self.begins_none() { u32::from(handshake::FULL) } else { 0 };
        let words = if refusal.is_none() { tcp.words() | full } else { 0 };
        self.region.window_scale().store(tcp.window_scale(), Ordering::SeqCst);
        self.region.handshake().store(words, Ordering::SeqCst);
        if self.admission != Admission::Recent {
            self.routes.look();
        }
        refusal.or_else(|| self.look_at_tracking()).map_or(Ok(()), Err)
    }

    /// New connections are the kernel's: there may be no more without a socket, or they do not pay.
    fn begins_none(&self) -> bool {
        self.full.load(Ordering::SeqCst) || self.vain.load(Ordering::SeqCst)
    }

    /// Where unknown clients are answered, that is not for speed: it shields the kernel's TCP.
    fn look_at_worth(&self) {
        let Ok(counters) = self.stats.counters() else { return };
        let begun = Begun {
            opened: counters[Reason::SocketlessOpened],
            assigned: counters[Reason::SocketlessToKernel],
            unopened: counters[Reason::SocketlessTooMany] + counters[Reason::PassFlowsFull],
        };
        let mut worth = self.worth.lock().unwrap_or_else(PoisonError::into_inner);
        let vain = worth.see(begun, Instant::now());
        self.vain.store(vain && self.admission == Admission::Recent, Ordering::SeqCst);
    }

    /// Whether clients have sockets because their connections are tracked.
    fn look_at_tracking(&self) -> Option<Unavailable> {
        let counters = self.stats.counters().ok()?;
        let mut tracking = self.tracking.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (counters[Reason::SocketlessTracked], counters[Reason::SocketlessSyn]);
        tracking.see(now.0, now.1).then(|| Unavailable {
            reason: "connections are tracked here (conntrack): what tracks them may refuse one that the kernel's TCP takes \
                     in the middle"
                .into(),
            remedy: "rules with `notrack` for the served port, both ways",
        })
    }

    /// Whether something drops the connections that the kernel's TCP is to take over.
    fn look_at_loss(&self) -> Option<Unavailable> {
        let counters = self.stats.counters().ok()?;
        let prefixes = self.region.lost_clients();
        let seen = Losses {
            all: counters[Reason::SocketlessLost],
            alone: counters[Reason::SocketlessLostAlone],
            prefixes: prefixes.load(Ordering::SeqCst).count_ones(),
        };
        let mut loss = self.loss.lock().unwrap_or_else(PoisonError::into_inner);
        let (lost, anew) = loss.see(seen, Instant::now());
        if anew {
            prefixes.store(0, Ordering::SeqCst);
        }
        lost.then(|| Unavailable {
            reason: "something on this host drops connections that begin without a SYN, or a listener's queue is full; \
                     tried again ten minutes after the last one"
                .into(),
            remedy: "rules that accept the served port before they ask for the state, or `connections = \"kernel\"`",
        })
    }

    /// Take over other settings while answers go on. Without any (`wanted`), connections that are open become the kernel's
    /// at their next request. Returns false if these settings take effect at the next load.
    pub fn want(&self, wanted: bool, admission: Admission) -> bool {
        let can = !wanted || self.possible && admission == self.admission;
        if can {
            self.wanted.store(wanted, Ordering::SeqCst);
            if !wanted {
                self.drain();
            }
        }
        can
    }

    /// Whether the settings want connections without a socket.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    /// New connections have sockets for some seconds, because nearly all of the last ones needed one.
    pub fn is_in_vain(&self) -> bool {
        self.vain.load(Ordering::SeqCst)
    }

    /// There are as many connections as there may be: new ones are the kernel's, and those that are open go on.
    pub fn set_full(&self, full: bool) {
        if self.full.swap(full, Ordering::SeqCst) == full {
            return;
        }
        let (full, bit) = (self.begins_none(), u32::from(handshake::FULL));
        let with = |words: u32| match words & u32::from(handshake::ON) {
            0 => None,
            _ if full => Some(words | bit),
            _ => Some(words & !bit),
        };
        // Where no SYN is answered at all, `look_at_tcp` sets it.
        let _ = self.region.handshake().fetch_update(Ordering::SeqCst, Ordering::SeqCst, with);
    }

    /// No SYN is answered from now on, and each connection without a socket becomes one of the kernel's TCP at its next
    /// request.
    pub fn drain(&self) {
        self.region.handshake().store(0, Ordering::SeqCst);
    }

    /// Whether answers to requests that ask for the connection's end are of any use: connections may have no socket.
    pub fn may_close(&self) -> bool {
        self.possible && self.programs
    }

    /// Why only clients are admitted that the kernel's own path knows, although the settings admit others, too. None: the
    /// others are admitted, or the settings do not admit them.
    pub fn admission_refusal(&self) -> Option<String> {
        self.routes.refusal()
    }

    /// Whether SYNs are answered now.
    pub fn answers_handshakes(&self) -> bool {
        self.region.handshake().load(Ordering::SeqCst) != 0
    }
}

fn lacking() -> Unavailable {
    Unavailable {
        reason: "the kernel refused the programs for them".into(),
        remedy: "please report this with the kernel's version",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(files: &[(&str, &str)]) -> TcpSettings {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        TcpSettings::read(root.path())
    }

    #[test]
    fn the_window_is_scaled_as_the_kernel_scales_it() {
        let scale = |rmem: &str, max: &str| {
            settings(&[("ipv4/tcp_rmem", rmem), ("core/rmem_max", max)]).window_scale()
        };
        assert_eq!(scale("4096\t131072\t6291456\n", "212992\n"), 7);
        assert_eq!(scale("4096\t131072\t33554432\n", "212992\n"), 10);
        assert_eq!(scale("4096 4096 4096", "212992\n"), 2);
        assert_eq!(scale("4096 4096 4096", "4096"), 0);
        assert_eq!(scale("1 1 99999999999", "1"), 14);
        assert_eq!(settings(&[]).window_scale(), 7);
    }

    #[test]
    fn what_the_host_switched_off_is_not_agreed_on() {
        let on = [
            ("ipv4/tcp_timestamps", "1\n"),
            ("ipv4/tcp_sack", "1\n"),
            ("ipv4/tcp_window_scaling", "1\n"),
            ("ipv4/tcp_syncookies", "1\n"),
        ];
        assert_eq!(settings(&on).words(), 15);
        assert!(settings(&on).refusal().is_none());
        for (index, bit) in
            [handshake::TIMESTAMPS, handshake::SACK, handshake::SCALING].iter().enumerate()
        {
            let mut files = on;
            files[index].1 = "0\n";
            assert_eq!(settings(&files).words(), 15 & !u32::from(*bit));
        }
        assert!(settings(&on[..3]).refusal().is_some());
    }

    #[test]
    fn what_was_seen_of_tracking_holds_while_nobody_connects() {
        let mut tracking = Tracking::default();
        let seen = [(0, 0), (1, 0), (1, 0), (1, 4), (1, 4), (2, 5), (2, 5)];
        let said = seen.map(|(tracked, answered)| tracking.see(tracked, answered));
        assert_eq!(said, [false, true, true, false, false, true, true]);
    }

    #[test]
    fn kernels_before_6_9_have_none() {
        let kernel = |release: &str| Kernel { release: release.into(), ..Kernel::default() };
        assert!(refusal_of(&kernel("6.8.12-amd64")).is_some());
        assert!(refusal_of(&kernel("6.9.0")).is_none());
        assert!(refusal_of(&kernel("7.0.1")).is_none());
    }
}
