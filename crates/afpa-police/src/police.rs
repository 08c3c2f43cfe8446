//! The police of a process, shared by its threads.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use afpa_abi::POLICE_CLASSES;
use arc_swap::ArcSwap;

use crate::bucket::ticks;
use crate::current::Current;
use crate::kernel::{PoliceKernel, PrefixKernel};
use crate::lists::{Lists, PoliceSettings};
use crate::rules::Rule;
use crate::table::{Share, What, hash, locate, refused_of, take, words_of_table};

/// Why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its prefix is denied.
    Denied,
    /// It comes too often.
    ClientRate,
    /// All clients together come too often.
    TotalRate,
}

/// The numbers of connections and requests that user mode has refused.
#[derive(Debug, Default)]
pub struct Counts {
    connections: [AtomicU64; 3],
    requests: [AtomicU64; 3],
}

/// Lets clients in, or not. All clones are one.
#[derive(Clone)]
pub struct Police(Arc<Shared>);

struct Shared {
    /// Whether anything is configured: the one word that is read where nothing is.
    armed: AtomicBool,
    current: ArcSwap<Current>,
    lists: Mutex<Lists>,
    kernel: Option<Arc<dyn PoliceKernel>>,
    /// Another program there, which refuses by prefixes.
    by_prefix: OnceLock<Arc<dyn PrefixKernel>>,
    /// User mode's own buckets; those of requests are the kernel's, where there is one.
    own: OnceLock<Box<[AtomicU64]>>,
    seed: u64,
    /// The kernel's clock at the start of the steady clock.
    epoch_ns: u64,
    counts: Counts,
}

impl Refusal {
    /// All kinds of refusals.
    pub const ALL: [Self; 3] = [Refusal::Denied, Refusal::ClientRate, Refusal::TotalRate];

    /// Its name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Denied => "denied",
            Refusal::ClientRate => "client_rate",
            Refusal::TotalRate => "total_rate",
        }
    }
}

impl Counts {
    fn of(&self, what: What) -> &[AtomicU64; 3] {
        match what {
            What::Connection => &self.connections,
            What::Request => &self.requests,
        }
    }

    /// How often this was refused for that reason.
    pub fn get(&self, what: What, why: Refusal) -> u64 {
        self.of(what).get(why as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Police {
    /// Police that refuse nothing yet. `seed` is the secret of the hash of clients, where no kernel has one; `epoch_ns`
    /// is the monotonic clock at the start of the steady clock.
    pub fn new(kernel: Option<Arc<dyn PoliceKernel>>, seed: u64, epoch_ns: u64) -> Self {
        let seed = kernel.as_ref().map_or(seed, |kernel| kernel.seed());
        let lists = Lists::default();
        Self(Arc::new(Shared {
            armed: AtomicBool::new(false),
            current: ArcSwap::from_pointee(Current::of(&lists)),
            lists: Mutex::new(lists),
            kernel,
            by_prefix: OnceLock::new(),
            own: OnceLock::new(),
            seed,
            epoch_ns,
            counts: Counts::default(),
        }))
    }

    /// Has this program refuse by prefixes as well, from the next configuration or order on.
    pub fn refuse_by(&self, program: Arc<dyn PrefixKernel>) {
        let _only_one = self.0.by_prefix.set(program);
    }

    /// Whether a connection of the client may begin, at this time of the steady clock. `listener` is the address that
    /// listens, as it was configured.
    ///
    /// # Errors
    /// With the reason, when it is to be closed without a word.
    #[inline]
    pub fn connection(
        &self,
        client: IpAddr,
        listener: Option<SocketAddr>,
        steady_ns: u64,
    ) -> Result<(), Refusal> {
        if !self.0.armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.decide(Asked::Connection, client, listener, steady_ns)
    }

    /// As [`connection`](Self::connection), for one by datagrams. The kernel counts none of these, so it takes its tokens of the
    /// buckets of which the kernel takes those of TCP: a client comes no oftener by both than by one.
    ///
    /// # Errors
    /// With the reason, when it is to be closed without a word.
    pub fn uncounted_connection(
        &self,
        client: IpAddr,
        listener: Option<SocketAddr>,
        steady_ns: u64,
    ) -> Result<(), Refusal> {
        if !self.0.armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.decide(Asked::Uncounted, client, listener, steady_ns)
    }

    /// Whether a connection may begin whose client may be somebody else than its packet says: by the lists alone, so that
    /// no client pays for what others say in its name. True: rates count it, so its address has to be proven first.
    ///
    /// # Errors
    /// With the reason, when it is to be closed without a word.
    pub fn unproven(&self, client: IpAddr) -> Result<bool, Refusal> {
        if !self.0.armed.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let current = self.0.current.load();
        match current.rules.longest(client.to_canonical()) {
            Some(Rule::Allow) => Ok(false),
            Some(Rule::Deny) => {
                self.note(What::Connection, Refusal::Denied);
                Err(Refusal::Denied)
            }
            None => Ok(current.connections.iter().any(|pace| pace.limits())),
        }
    }

    /// Whether a request of the client may be answered.
    ///
    /// # Errors
    /// With the reason.
    #[inline]
    pub fn request(&self, client: IpAddr, steady_ns: u64) -> Result<(), Refusal> {
        if !self.0.armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.decide(Asked::Request, client, None, steady_ns)
    }

    /// Whether a client is named among those that are never refused.
    pub fn allows(&self, client: IpAddr) -> bool {
        self.0.armed.load(Ordering::Relaxed)
            && self.0.current.load().rules.longest(client) == Some(Rule::Allow)
    }

    /// The numbers of connections and requests that user mode has refused.
    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Name and share of each class, and how often a connection of it was refused because all clients together came too
    /// often, since the classes were last changed.
    pub fn classes(&self) -> Vec<(String, u8, u64)> {
        let current = self.0.current.load();
        let counted = |class| refused_of(self.counting_words(), class);
        let counted = |class| counted(class).map_or(0, |count| count.load(Ordering::Relaxed));
        let numbered = (0..).zip(current.classes.iter());
        numbered.map(|(class, (name, share))| (name.to_owned(), share, counted(class))).collect()
    }

    /// Decides by this configuration from now on, and by the orders since the start.
    ///
    /// # Errors
    /// When the kernel does not accept the rules. User mode decides by them all the same.
    pub fn configure(&self, settings: &PoliceSettings) -> std::io::Result<()> {
        let mut lists = self.lists();
        lists.configure(settings);
        self.adopt(&lists)
    }

    /// For tests of the kernel's part: which set of the table has the client's bucket, and under which tag.
    #[doc(hidden)]
    pub fn locate(&self, what: What, client: IpAddr) -> (usize, u64) {
        let client = client.to_canonical();
        locate(what, hash(self.0.seed, client, self.0.current.load().masks))
    }

    pub(crate) fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides by these lists. The kernel gets them first; user mode checks the connections that it lets through, too.
    pub(crate) fn adopt(&self, lists: &Lists) -> std::io::Result<()> {
        let theirs = Current::of(lists);
        let told = match &self.0.kernel {
            Some(kernel) => kernel.enforce(&theirs.enforced()),
            None => Ok(()),
        };
        let told = match self.0.by_prefix.get() {
            Some(program) => told.and(program.refuse_by(&theirs.rules)),
            None => told,
        };
        let mine = match &self.0.kernel {
            Some(_) => theirs.after_the_kernel(lists.limits()),
            None => theirs,
        };
        if self.0.current.load().classes != mine.classes {
            self.forget_refused();
        }
        let armed = !mine.is_idle();
        self.0.current.store(Arc::new(mine));
        self.0.armed.store(armed, Ordering::Relaxed);
        told
    }

    fn decide(
        &self,
        asked: Asked,
        client: IpAddr,
        listener: Option<SocketAddr>,
        steady_ns: u64,
    ) -> Result<(), Refusal> {
        let current = self.0.current.load();
        let client = client.to_canonical();
        let decided = match current.rules.longest(client) {
            Some(Rule::Allow) => return Ok(()),
            Some(Rule::Deny) => Err(Refusal::Denied),
            None => self.take(&current, asked, client, listener, steady_ns),
        };
        if let Err(why) = decided {
            self.note(asked.what(), why);
        }
        decided
    }

    fn note(&self, what: What, why: Refusal) {
        if let Some(count) = self.0.counts.of(what).get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take(
        &self,
        current: &Current,
        asked: Asked,
        client: IpAddr,
        listener: Option<SocketAddr>,
        steady_ns: u64,
    ) -> Result<(), Refusal> {
        let (uncounted, uncounted_shares) = &current.uncounted;
        let (paces, shares) = match asked {
            Asked::Connection => (current.connections, Some(&current.class_paces)),
            Asked::Uncounted => (*uncounted, Some(uncounted_shares)),
            Asked::Request => (current.requests, None),
        };
        if !paces.iter().any(|pace| pace.limits()) {
            return Ok(());
        }
        let table = match (&self.0.kernel, asked) {
            (Some(kernel), Asked::Request | Asked::Uncounted) => kernel.words(),
            _ => self.own_words(),
        };
        let now = ticks(self.0.epoch_ns.wrapping_add(steady_ns));
        let share = shares.and_then(|paces| current.share(client, listener, paces));
        let taken =
            take(table, asked.what(), hash(self.0.seed, client, current.masks), now, paces, share);
        taken.map_err(|own| {
            let count =
                share.and_then(|Share { class, .. }| refused_of(self.counting_words(), class));
            match (own, count) {
                (true, _) => return Refusal::ClientRate,
                (false, Some(count)) => _ = count.fetch_add(1, Ordering::Relaxed),
                (false, None) => {}
            }
            Refusal::TotalRate
        })
    }

    fn own_words(&self) -> &[AtomicU64] {
        self.0.own.get_or_init(|| (0..words_of_table()).map(|_| AtomicU64::new(0)).collect())
    }

    /// The table in which the kernel and user mode both count their refusals of each class.
    fn counting_words(&self) -> &[AtomicU64] {
        match &self.0.kernel {
            Some(kernel) => kernel.words(),
            None => self.own_words(),
        }
    }

    fn forget_refused(&self) {
        for class in 0..POLICE_CLASSES as u32 {
            if let Some(count) = refused_of(self.counting_words(), class) {
                count.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// The subject of a question.
#[derive(Clone, Copy)]
enum Asked {
    /// A connection that the kernel has counted, where it counts.
    Connection,
    /// One that it has not.
    Uncounted,
    Request,
}

impl Asked {
    fn what(self) -> What {
        match self {
            Self::Connection | Self::Uncounted => What::Connection,
            Self::Request => What::Request,
        }
    }
}

impl Default for Police {
    fn default() -> Self {
        Self::new(None, 0, 0)
    }
}

impl fmt::Debug for Police {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Police").field("armed", &self.0.armed).finish_non_exhaustive()
    }
}

impl PartialEq for Police {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Police {}
