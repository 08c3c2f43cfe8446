//! The fast path over loaded programs: handles of all maps, and the first values of what programs and user mode share.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afpa_abi::{ANSWER_MAX, PoliceSet, TICK_SHIFT, program};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::cache::pinned::Pinned;
use crate::conn::admission::RoutesInForce;
use crate::conn::police::InForce;
use crate::conn::reports::Reports;
use crate::conn::served::Server;
use crate::conn::socketless::Tracking;
use crate::net::hooked::Hooks;
use crate::net::links::Attachments;
use crate::programs::{Programs, header_blocks};
use crate::region::{Pages, Region, Slots, Words};
use crate::rtx::Timers;
use crate::settings::{BYPASS_AFTER_MAX, Settings};
use crate::stats::Stats;
use crate::unavailable::{Unavailable, explain};

/// The loaded fast path. When it is dropped, or its process ends in any way, nothing is answered
/// any more, and everything is detached unless [`Settings::keep_in`] keeps it.
pub struct FastPath {
    pub(crate) settings: Settings,
    /// How programs are put on interfaces here.
    pub(crate) hooks: Hooks,
    /// Features that are off, because the kernel refused a program that they need.
    lacks: Vec<String>,
    /// The kernel empties this map when our process is gone, and the programs answer no more.
    alive: MapHandle,
    pub(crate) answer: OwnedFd,
    pub(crate) ingress: OwnedFd,
    pub(crate) egress: OwnedFd,
    pub(crate) probe: OwnedFd,
    pub(crate) served_program: OwnedFd,
    /// The marks of sockets.
    pub(crate) served: MapHandle,
    /// Sockets of our own questions.
    pub(crate) questions: MapHandle,
    pub(crate) served_survey: MapHandle,
    pub(crate) served_inodes: MapHandle,
    pub(crate) servers: Mutex<Vec<Server>>,
    pub(crate) icmp: OwnedFd,
    pub(crate) transfer: Option<OwnedFd>,
    pub(crate) rtx: Option<RtxPrograms>,
    pub(crate) unusual: OwnedFd,
    /// None: all connections are the kernel's.
    pub(crate) socketless: Option<SocketlessPrograms>,
    pub(crate) tracking: Mutex<Tracking>,
    pub(crate) chain: Option<OwnedFd>,
    /// See [`FastPath::guard`].
    pub(crate) guards: [OwnedFd; 2],
    pub(crate) guarding: Mutex<Vec<OwnedFd>>,
    /// The programs that ingress programs reach by tail calls.
    programs: MapHandle,
    pub(crate) rtx_due: MapHandle,
    pub(crate) timers: Mutex<Timers>,
    pub(crate) listeners: MapHandle,
    pub(crate) carriers: MapHandle,
    pub(crate) sites: MapHandle,
    pub(crate) fields: MapHandle,
    pub(crate) objects: MapHandle,
    pub(crate) flows: MapHandle,
    pub(crate) transfers: MapHandle,
    /// The counts of the programs.
    pub stats: Stats,
    /// Reports of the programs about requests.
    pub reports: Reports,
    pub(crate) police_prefixes: MapHandle,
    pub(crate) police_in_force: Mutex<InForce>,
    pub(crate) police_classes: MapHandle,
    pub(crate) client_connections: Words,
    pub(crate) routes: MapHandle,
    pub(crate) routes_in_force: Mutex<RoutesInForce>,
    pub(crate) police_listeners: MapHandle,
    pub(crate) buckets: Words,
    pub(crate) region: Arc<Region>,
    pub(crate) slots: Slots,
    pub(crate) pages: Pages,
    pub(crate) pinned: Mutex<Pinned>,
    pub(crate) attached: Mutex<Attachments>,
}

impl FastPath {
    /// Load programs and maps. Nothing is attached, served or answered yet.
    pub fn load(settings: Settings) -> Result<Self, Unavailable> {
        Self::over(&Programs::load(&settings)?, settings)
    }

    /// The fast path over maps as [`Programs::load`] makes them for these settings: all entries are absent or zero.
    pub fn over(programs: &Programs, mut settings: Settings) -> Result<Self, Unavailable> {
        let map = |name: &str| programs.map(name);
        let program = |name: &str| programs.program(name);
        let region = Region::map(&map(".data.shared")?)
            .map_err(|error| explain("region cannot be mapped", &error))?;
        let region = Arc::new(region);
        let slots = Slots::map(&map("slots")?)
            .map_err(|error| explain("objects cannot be mapped", &error))?;
        let pages = Pages::map(&map("pages")?)
            .map_err(|error| explain("pages of objects cannot be mapped", &error))?;
        let buckets = Words::map(&map("police_buckets")?, size_of::<PoliceSet>())
            .map_err(|error| explain("buckets cannot be mapped", &error))?;
        let marks = Words::map(&map("unsafe_marks")?, size_of::<u64>())
            .map_err(|error| explain("notes of unsafe requests cannot be mapped", &error))?;
        let client_connections = Words::map(&map("client_connections")?, size_of::<u64>())
            .map_err(|error| explain("counts of connections cannot be mapped", &error))?;
        let mut lacks = Vec::new();
        let mut lack = |what: &str, why: Unavailable| lacks.push(format!("{what}: {}", why.reason));
        let rtx = RtxPrograms::take(program)
            .map_err(|why| {
                lack("what is lost of an answer is sent when the client asks again", why)
            })
            .ok();
        // Their losses are repaired by these timers alone.
        let transfer = program("afpa_transfer")
            .map_err(|why| lack("answers of several segments are left to user mode", why))
            .ok()
            .filter(|_| rtx.is_some());
        if transfer.is_none() {
            for most in [&mut settings.answer_max, &mut settings.last_answer_max] {
                *most = (*most).min(ANSWER_MAX as u32);
            }
        }
        let socketless = SocketlessPrograms::take(program)
            .map_err(|why| {
                if settings.socketless {
                    lack("all connections have sockets of the kernel's", why);
                }
            })
            .ok();
        let fast_path = Self {
            hooks: Hooks::of_this_kernel(&settings),
            alive: map("alive")?,
            answer: program("afpa_answer")?,
            ingress: program("afpa_ingress")?,
            egress: program("afpa_egress")?,
            probe: program("afpa_probe")?,
            served_program: program("afpa_served")?,
            served: map("served")?,
            questions: map("questions")?,
            served_survey: map("served_survey")?,
            served_inodes: map("served_inodes")?,
            servers: Mutex::default(),
            icmp: program("afpa_icmp")?,
            transfer,
            rtx,
            unusual: program("afpa_unusual")?,
            socketless,
            tracking: Mutex::default(),
            // Where there is no tcx, there are no chains.
            chain: program("afpa_chain").ok(),
            guards: [program("afpa_guard_egress")?, program("afpa_guard_ingress")?],
            guarding: Mutex::default(),
            programs: map("programs")?,
            rtx_due: map("rtx_due")?,
            timers: Mutex::default(),
            listeners: map("listeners")?,
            carriers: map("carriers")?,
            sites: map("sites")?,
            fields: map("fields")?,
            objects: map("objects")?,
            flows: map("flows")?,
            transfers: map("transfers")?,
            stats: Stats::new(&region, map("counters")?, map("site_counts")?),
            reports: Reports {
                region: Arc::clone(&region),
                events: map("events")?,
                checked: map("checked")?,
                samples: map("samples")?,
                misses: map("misses")?,
                marks,
            },
            pinned: Mutex::new(Pinned::new(&slots, &pages)),
            attached: Mutex::default(),
            police_prefixes: map("police_prefixes")?,
            police_in_force: Mutex::default(),
            police_classes: map("police_classes")?,
            client_connections,
            routes: map("routes")?,
            routes_in_force: Mutex::default(),
            police_listeners: map("police_listeners")?,
            buckets,
            region,
            slots,
            pages,
            lacks,
            settings,
        };
        let assigned_sets = map("assigned")?.max_entries();
        fast_path
            .configure(header_blocks(&fast_path.settings), assigned_sets)
            .map_err(|error| explain("no random numbers", &error))?;
        fast_path.join().map_err(|error| explain("programs cannot be joined", &error))?;
        Ok(fast_path)
    }

    /// Fills the places of tail calls; the program that answers comes last.
    fn join(&self) -> libbpf_rs::Result<()> {
        let put = |map: &MapHandle, place: u8, program: &OwnedFd| {
            let program = program.as_raw_fd().to_ne_bytes();
            map.update(&u32::from(place).to_ne_bytes(), &program, MapFlags::ANY)
        };
        if let Some(transfer) = &self.transfer {
            put(&self.programs, program::TRANSFER, transfer)?;
        }
        put(&self.programs, program::INGRESS, &self.ingress)?;
        put(&self.programs, program::ICMP, &self.icmp)?;
        put(&self.programs, program::UNUSUAL, &self.unusual)?;
        if let Some(socketless) = &self.socketless {
            put(&self.programs, program::SOCKETLESS, &socketless.segments)?;
            put(&self.programs, program::HANDSHAKE, &socketless.handshake)?;
        }
        put(&self.alive, 0, &self.answer)
    }

    fn configure(&self, header_blocks: u32, assigned_sets: u32) -> std::io::Result<()> {
        let mut random = [0; 8];
        let mut source = std::fs::File::open("/dev/urandom")?;
        let mut secret = || -> std::io::Result<u64> {
            std::io::Read::read_exact(&mut source, &mut random)?;
            Ok(u64::from_ne_bytes(random))
        };
        // Cookies that are on their way are those of the process before us, when the region was kept.
        for word in 0..2 {
            if self.region.cookie_key(word).load(Ordering::Relaxed) == 0 {
                self.region.cookie_key(word).store(secret()?, Ordering::Relaxed);
            }
        }
        self.region.pulse().store(0, Ordering::SeqCst);
        self.region.forget_interfaces();
        self.region.not_first().store(0, Ordering::Relaxed);
        self.region.forget_paths(); // of a process before us, when the region was kept
        self.region.fields_matter().store(0, Ordering::Relaxed);
        self.region.notes_requests().store(0, Ordering::Relaxed);
        self.region.police().store(0, Ordering::Relaxed);
        self.region.next_hops().store(0, Ordering::Relaxed);
        self.look_anew(); // its listeners, which kept connections remember, may have had our numbers
        self.region.hash_seed().store(secret()?, Ordering::Relaxed);
        self.region.refresh_ns().store(self.settings.refresh.as_nanos() as u64, Ordering::Relaxed);
        self.region.log_every().store(self.settings.log_every, Ordering::Relaxed);
        self.region.answer_max().store(self.longest_answer() as u32, Ordering::Relaxed);
        self.set_bypass_after(self.settings.bypass_after);
        let bypass_time = self.settings.bypass_time.as_nanos() >> TICK_SHIFT;
        self.region.bypass_time().store(bypass_time as u32, Ordering::Relaxed);
        self.set_firewall_interval(self.settings.firewall_interval);
        self.set_flood_syns(self.settings.flood_syns);
        self.set_client_connections(self.settings.client_connections);
        self.region.checked_mask().store(header_blocks - 1, Ordering::Relaxed);
        self.region.assigned_sets().store(assigned_sets, Ordering::Relaxed);
        self.drain(); // until `look_at_tcp` is called
        Ok(())
    }

    /// Features that are off because this kernel refused a program that they need, a line each.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }

    /// Report one in this many answers from now on; 0: none.
    pub fn set_log_every(&self, answers: u32) {
        self.region.log_every().store(answers, Ordering::Relaxed);
    }

    /// Change [`Settings::refresh`].
    pub fn set_refresh(&self, refresh: Duration) {
        self.region.refresh_ns().store(refresh.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Change [`Settings::bypass_after`]. Connections that were left to user mode stay there.
    pub fn set_bypass_after(&self, passes: u32) {
        self.region.bypass_after().store(passes.min(BYPASS_AFTER_MAX), Ordering::Relaxed);
    }
}

/// The programs of connections without a socket.
pub(crate) struct SocketlessPrograms {
    handshake: OwnedFd,
    segments: OwnedFd,
}

impl SocketlessPrograms {
    fn take(program: impl Fn(&str) -> Result<OwnedFd, Unavailable>) -> Result<Self, Unavailable> {
        Ok(Self { handshake: program("afpa_handshake")?, segments: program("afpa_socketless")? })
    }
}

/// The programs that retransmit.
pub(crate) struct RtxPrograms {
    pub(crate) due: OwnedFd,
    pub(crate) timer: OwnedFd,
}

impl RtxPrograms {
    fn take(program: impl Fn(&str) -> Result<OwnedFd, Unavailable>) -> Result<Self, Unavailable> {
        Ok(Self { due: program("afpa_rtx_due")?, timer: program("afpa_rtx_timer")? })
    }
}

impl Drop for FastPath {
    fn drop(&mut self) {
        self.pause();
    }
}
