//! The shield of HTTP/3's sockets: in a flood of first packets the kernel answers them by Retry, and drops what belongs to no
//! connection, before a worker sees any of it (`bpf/programs/quic.bpf.c`).
//!
//! A thread beats once a second: it tells the program the time, the keys of tokens of this period and its neighbours, and the
//! addresses that this host has now; and it puts the program on interfaces that have appeared. 2.5 seconds after the last beat
//! all is the workers' again.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use afpa_bpf::quic::QuicPath;
use afpa_bpf::quic::abi::{QUIC_TOKEN_KEYS, QUIC_WINDOW_SHIFT, QuicConfig, QuicTokenKey};
use afpa_bpf::{Interface, carrying, interfaces, monotonic_ns};
use afpa_police::{PrefixKernel, Rules};
use afpa_server::KernelKeys;
use serde_json::{Map, Value, json};

use crate::fast_path_core::FastPathCore;
use crate::running::RunningFastPath;
use crate::settings::FastPathUse;

/// Initials a second on a processor that are a flood: the workers' handshakes would need about all of it. A connection takes
/// one to three of them.
const FLOOD: u64 = 4_000;
/// Of Initials without a token, so many a second to ids of ours go up in a flood: handshakes that had begun before it.
const KNOWN: u64 = 1_000;
/// Of 0-RTT to ids that a Retry gave, so many packets a second. They have no token, and what is lost is sent again.
const EARLY: u64 = 1_000;

const BEAT: Duration = Duration::from_secs(1);
/// For how long a beat holds.
const HOLDS_NS: u64 = 2_500_000_000;

/// Keeps floods from the sockets of HTTP/3, until it is dropped.
pub struct FloodShield {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The counts of a shield, as any thread can see them.
pub struct ShieldView(Arc<Shared>);

struct Shared {
    path: QuicPath,
    known: Mutex<Known>,
    has_rules: AtomicBool,
    ending: AtomicBool,
    /// `afpa pause` stops its answers as well.
    fast_path: OnceLock<Arc<FastPathCore>>,
}

/// The facts for the program.
#[derive(Default)]
struct Known {
    bound: BTreeSet<SocketAddr>,
    keys: Option<KernelKeys>,
}

impl FloodShield {
    /// Loads the program and puts it on the interfaces that carry these addresses, if the settings want it and there are any.
    /// It does nothing before [`serve`](Self::serve). Where the kernel refuses, the workers are alone with a flood.
    pub fn load(mode: FastPathUse, bound: &[SocketAddr]) -> Option<Self> {
        if mode == FastPathUse::Off || bound.iter().all(|address| address.ip().is_loopback()) {
            return None;
        }
        let loaded = match QuicPath::refusal() {
            Some(why) => Err(why),
            None => QuicPath::load(),
        };
        let loaded = loaded.map_err(|why| format!("{} ({})", why.reason, why.remedy));
        let attached = loaded.and_then(|path| {
            let shared = Shared {
                path,
                known: Mutex::default(),
                has_rules: AtomicBool::new(false),
                ending: AtomicBool::new(false),
                fast_path: OnceLock::new(),
            };
            shared.known().bound = bound.iter().copied().collect();
            let all = interfaces().map_err(|error| error.to_string())?;
            shared.attach(&all).map_err(|error| error.to_string())?;
            Ok(shared)
        });
        match attached {
            Ok(shared) => Some(Self { shared: Arc::new(shared), thread: None }),
            Err(why) if mode == FastPathUse::On => {
                tracing::warn!(
                    "floods of first packets of HTTP/3 are for the workers alone: {why}"
                );
                None
            }
            Err(why) => {
                tracing::debug!(
                    "floods of first packets of HTTP/3 are for the workers alone: {why}"
                );
                None
            }
        }
    }

    /// Pauses with the fast path, a second later at the latest.
    pub fn pause_with(&self, fast_path: &RunningFastPath) {
        let _only_one = self.shared.fast_path.set(Arc::clone(fast_path.core()));
    }

    /// For the police.
    pub fn by_prefix(&self) -> Arc<dyn PrefixKernel> {
        Arc::clone(&self.shared) as Arc<dyn PrefixKernel>
    }

    /// Its counts.
    pub fn view(&self) -> ShieldView {
        ShieldView(Arc::clone(&self.shared))
    }

    /// Shields these sockets from now on, and no others. The first time starts the thread.
    ///
    /// # Errors
    /// Of the system.
    pub fn serve<'a>(
        &mut self,
        keys: KernelKeys,
        sockets: impl Iterator<Item = &'a UdpSocket>,
    ) -> anyhow::Result<()> {
        let mut bound = BTreeSet::new();
        for socket in sockets {
            self.shared.path.own(socket)?;
            bound.insert(socket.local_addr()?);
        }
        *self.shared.known() = Known { bound, keys: Some(keys) };
        self.shared.beat()?;
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("afpa-shield".to_owned());
            self.thread = Some(thread.spawn(move || shared.run())?);
        }
        Ok(())
    }
}

impl Drop for FloodShield {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed.
            let _ = thread.join();
        }
        self.shared.path.detach();
    }
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_paused(&self) -> bool {
        self.fast_path.get().is_some_and(|core| core.fast_path.clients.is_paused())
    }

    fn run(&self) {
        let mut failed = false;
        while !self.ending.load(Ordering::Acquire) {
            std::thread::park_timeout(BEAT);
            let beaten = self.beat();
            if let Err(error) = &beaten
                && !failed
            {
                tracing::warn!(%error, "floods of first packets of HTTP/3 are for the workers alone");
            }
            failed = beaten.is_err();
        }
    }

    /// Tells the program the time, and what has changed on the host.
    fn beat(&self) -> anyhow::Result<()> {
        let Some(config) = self.config() else { return Ok(()) };
        self.path.configure(&config)?;
        let all = interfaces()?;
        self.path.serve(local(&self.known().bound, &all))?;
        Ok(self.attach(&all)?)
    }

    /// Not on `lo`: its packets are the machine's own. Nor where packets have no Ethernet header to go back by.
    fn attach(&self, all: &[Interface]) -> io::Result<()> {
        let bound: Vec<_> = self.known().bound.iter().copied().collect();
        let mut carriers =
            carrying(&bound, all).filter(|interface| !interface.loopback && !interface.bare);
        carriers.try_for_each(|interface| self.path.attach(interface.index).map(drop))
    }

    /// `None`: there is nothing to shield yet.
    fn config(&self) -> Option<QuicConfig> {
        let known = self.known();
        let keys = known.keys.as_ref()?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let now = monotonic_ns();
        let [own, before] = keys.ids().map(words);
        Some(QuicConfig {
            until: if self.is_paused() { 0 } else { now + HOLDS_NS },
            wall: (since_1970.as_nanos() as u64).wrapping_sub(now),
            id_keys: [own[0], own[1], before[0], before[1]],
            retry_key: words(keys.retry_ids()),
            token_keys: token_keys(keys, KernelKeys::period_of(since_1970.as_secs())),
            flood: in_window(FLOOD),
            known: in_window(KNOWN),
            early: in_window(EARLY),
            rules: self.has_rules.load(Ordering::Relaxed).into(),
        })
    }
}

impl PrefixKernel for Shared {
    fn refuse_by(&self, rules: &Rules) -> io::Result<()> {
        // While prefixes change they are all looked at.
        self.has_rules.fetch_or(!rules.is_empty(), Ordering::Relaxed);
        self.tell()?;
        let has_any = self.path.rule(rules).map_err(io::Error::other)?;
        self.has_rules.store(has_any, Ordering::Relaxed);
        self.tell()
    }
}

impl Shared {
    fn tell(&self) -> io::Result<()> {
        let configured = self.config().map(|config| self.path.configure(&config));
        configured.transpose().map(drop).map_err(io::Error::other)
    }
}

impl ShieldView {
    /// How often each way out of the program was taken.
    pub fn packets(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.path.counters().unwrap_or_default();
        counts.into_iter().map(|(reason, count)| (reason.name(), count)).collect()
    }

    /// For reports.
    pub fn to_json(&self) -> Value {
        let packets =
            self.packets().into_iter().map(|(name, count)| (name.to_owned(), count.into()));
        json!({
            "interfaces": self.0.path.attached(),
            "packets": packets.collect::<Map<_, _>>(),
        })
    }
}

/// Of a rate in a second, so many in a window.
fn in_window(rate: u64) -> u32 {
    u32::try_from((rate << QUIC_WINDOW_SHIFT) / 1_000_000_000).unwrap_or(u32::MAX).max(1)
}

/// The two words of a key.
fn words(key: [u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(key);
    [both as u64, (both >> 64) as u64]
}

/// The keys of tokens of the period before, of this one and of the next one.
fn token_keys(keys: &KernelKeys, now: u64) -> [QuicTokenKey; QUIC_TOKEN_KEYS] {
    let mut all = [QuicTokenKey::ZERO; QUIC_TOKEN_KEYS];
    for period in now.saturating_sub(1)..=now + 1 {
        if let Some(slot) = all.get_mut(period as usize % QUIC_TOKEN_KEYS) {
            *slot = QuicTokenKey { period, words: words(keys.token_key(period)) };
        }
    }
    all
}

/// The addresses that this host has among those that are bound: one that is bound for all addresses of its family is each of
/// these. Packets for others are forwarded.
fn local(bound: &BTreeSet<SocketAddr>, all: &[Interface]) -> Vec<SocketAddr> {
    let own = || all.iter().flat_map(|interface| &interface.addresses).copied();
    let of_family = |bound: IpAddr| own().filter(move |own| own.is_ipv4() == bound.is_ipv4());
    let each = bound.iter().map(|address| {
        let port = address.port();
        let ips: Vec<IpAddr> = match address.ip().is_unspecified() {
            true => of_family(address.ip()).collect(),
            false => vec![address.ip()],
        };
        ips.into_iter().map(move |ip| SocketAddr::new(ip, port))
    });
    each.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_the_host_has_are_shielded() {
        let interface = |name: &str, addresses: &[&str]| Interface {
            name: name.into(),
            index: 2,
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            loopback: false,
            bare: false,
        };
        let all =
            [interface("eth0", &["10.0.0.1", "2001:db8::1"]), interface("eth1", &["10.1.0.1"])];
        let of = |bound: &[&str]| {
            let bound = bound.iter().map(|address| address.parse().unwrap()).collect();
            let all: BTreeSet<String> =
                local(&bound, &all).iter().map(SocketAddr::to_string).collect();
            all.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&["0.0.0.0:443"]), ["10.0.0.1:443", "10.1.0.1:443"]);
        assert_eq!(of(&["[::]:443"]), ["[2001:db8::1]:443"]);
        assert_eq!(of(&["10.1.0.1:8443"]), ["10.1.0.1:8443"]);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn a_window_has_its_share_of_a_second() {
        assert_eq!(in_window(1_000), 134);
        assert_eq!(in_window(1), 1);
    }
}
