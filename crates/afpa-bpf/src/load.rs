//! The fast path over loaded programs: a handle for each part, and the first values of what programs and user mode share.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afpa_abi::{ANSWER_MAX, TICK_SHIFT, program};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::cache::pin::Objects;
use crate::clock::Clock;
use crate::conn::admit::Clients;
use crate::conn::flows::{Flows, Swept};
use crate::conn::listen::Listeners;
use crate::conn::police::Police;
use crate::conn::reports::Reports;
use crate::conn::served::Sockets;
use crate::conn::socketless::{Socketless, refusal_of};
use crate::kernel::Kernel;
use crate::net::attach::Interfaces;
use crate::program::{ProgramStatistics, statistics};
use crate::programs::{Programs, header_blocks};
use crate::region::Region;
use crate::rtx::{Rtx, RtxPrograms};
use crate::settings::Settings;
use crate::stats::Stats;
use crate::unavailable::{Unavailable, explain};

/// The loaded fast path: a handle for each part, which owns the maps of that part. When it is dropped, or its process
/// ends in any way, nothing is answered any more, and everything is detached unless [`Settings::keep_in`] keeps it.
pub struct FastPath {
    tail_calls: TailCalls,
    /// Features that are off, because the kernel refused a program that they need.
    lacks: Vec<String>,
    /// The programs in use, by name.
    in_use: Vec<(&'static str, OwnedFd)>,
    /// The heartbeat.
    pub clock: Clock,
    /// The sockets that are served.
    pub sockets: Sockets,
    /// The addresses and hosts that are served.
    pub listeners: Listeners,
    /// The pinned objects.
    pub objects: Objects,
    /// The connections.
    pub flows: Arc<Flows>,
    /// The connections that begin without a socket.
    pub socketless: Socketless,
    /// The clients that are answered.
    pub clients: Clients,
    /// The rules about clients.
    pub police: Arc<Police>,
    /// Retransmission.
    pub rtx: Rtx,
    /// The counts of the programs.
    pub stats: Arc<Stats>,
    /// Reports of the programs about requests.
    pub reports: Reports,
    /// The interfaces that the programs are on.
    pub interfaces: Interfaces,
    /// Another process has what is kept.
    left: AtomicBool,
}

impl FastPath {
    /// Load programs and maps. Nothing is attached, served or answered yet.
    pub fn load(settings: Settings) -> Result<Self, Unavailable> {
        Self::over(&Programs::load(&settings)?, settings)
    }

    /// The fast path over maps as [`Programs::load`] makes them for these settings: all entries are absent or zero.
    pub fn over(programs: &Programs, mut settings: Settings) -> Result<Self, Unavailable> {
        let region = Region::map(&programs.map(".data.shared")?);
        let region = Arc::new(region.map_err(|error| explain("region cannot be mapped", &error))?);
        let mut optional = Optional::take(programs, &settings);
        if optional.transfer.is_none() {
            for most in [&mut settings.answer_max, &mut settings.last_answer_max] {
                *most = (*most).min(ANSWER_MAX as u32);
            }
        }
        let stats = Arc::new(Stats::over(programs, &region)?);
        let flows = Arc::new(Flows::over(programs, &region, &settings)?);
        let can = optional.socketless.is_some();
        let socketless = Socketless::over(programs, &region, &stats, &settings, can)?;
        let may_close = socketless.may_close();
        let in_use = optional.in_use(programs);
        let objects = Objects::over(programs, &region, &flows, &settings, may_close)?;
        let fast_path = Self {
            clock: Clock::over(&region, &objects),
            sockets: Sockets::over(programs)?,
            listeners: Listeners::over(programs, &region)?,
            objects,
            flows,
            socketless,
            clients: Clients::over(programs, &region, settings.admission)?,
            police: Arc::new(Police::over(programs, &region)?),
            rtx: Rtx::over(programs, &region, optional.rtx.take(), &settings)?,
            reports: Reports::over(programs, &region)?,
            interfaces: Interfaces::over(programs, &region, &stats, &settings)?,
            stats,
            tail_calls: TailCalls::over(programs)?,
            in_use,
            lacks: std::mem::take(&mut optional.lacks),
            left: AtomicBool::new(false),
        };
        let assigned_sets = programs.map("assigned")?.max_entries();
        fast_path
            .configure(&region, &settings, assigned_sets)
            .map_err(|error| explain("no random numbers", &error))?;
        fast_path.clients.begin_with(fast_path.flows.count_without_socket());
        fast_path.tail_calls.join(programs, &optional)?;
        Ok(fast_path)
    }

    fn configure(
        &self,
        region: &Region,
        settings: &Settings,
        assigned_sets: u32,
    ) -> std::io::Result<()> {
        let mut random = [0; 8];
        let mut source = std::fs::File::open("/dev/urandom")?;
        let mut secret = || -> std::io::Result<u64> {
            std::io::Read::read_exact(&mut source, &mut random)?;
            Ok(u64::from_ne_bytes(random))
        };
        // Cookies that are on their way are those of the process before us, when the region was kept.
        for word in 0..2 {
            if region.cookie_key(word).load(Ordering::Relaxed) == 0 {
                region.cookie_key(word).store(secret()?, Ordering::Relaxed);
            }
        }
        self.clock.pause();
        region.forget_interfaces();
        region.not_first().store(0, Ordering::Relaxed);
        region.forget_paths(); // of a process before us, when the region was kept
        region.fields_matter().store(0, Ordering::Relaxed);
        region.notes_requests().store(0, Ordering::Relaxed);
        region.police().store(0, Ordering::Relaxed);
        region.next_hops().store(0, Ordering::Relaxed);
        self.listeners.look_anew(); // its listeners, which kept connections remember, may have had our numbers
        region.hash_seed().store(secret()?, Ordering::Relaxed);
        self.flows.set_refresh(settings.refresh);
        self.reports.set_log_every(settings.log_every);
        region.answer_max().store(self.objects.longest_answer() as u32, Ordering::Relaxed);
        self.flows.set_bypass_after(settings.bypass_after);
        let bypass_time = settings.bypass_time.as_nanos() >> TICK_SHIFT;
        region.bypass_time().store(bypass_time as u32, Ordering::Relaxed);
        self.clients.set_firewall_interval(settings.firewall_interval);
        self.clients.set_flood_syns(settings.flood_syns);
        self.clients.set_client_connections(settings.client_connections);
        region.checked_mask().store(header_blocks(settings) - 1, Ordering::Relaxed);
        region.assigned_sets().store(assigned_sets, Ordering::Relaxed);
        self.socketless.drain(); // until `look_at_tcp` is called
        Ok(())
    }

    /// Answers nothing any more, as if this process had been killed, so that another one can take over what
    /// [`Settings::keep_in`] keeps. Open connections are translated on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn leave(&self) -> libbpf_rs::Result<()> {
        self.clock.pause();
        self.left.store(true, Ordering::Relaxed);
        self.tail_calls.alive.delete(&0u32.to_ne_bytes())
    }

    /// Features that are off because this kernel refused a program that they need, a line each.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }

    /// Verifier and run-time figures of each program.
    pub fn program_statistics(&self) -> std::io::Result<Vec<ProgramStatistics>> {
        self.in_use.iter().map(|(name, program)| statistics(name, program)).collect()
    }

    /// Remove flows that nothing was heard of for `idle` and whose socket is gone, and retired objects that take up too
    /// much room or that no client needs any more. Must run in the network namespace of the interfaces.
    pub fn sweep(&self, idle: Duration) -> libbpf_rs::Result<Swept> {
        let swept = self.flows.sweep(idle)?;
        self.objects.keep_within_bounds()?;
        self.objects.forget_retired()?;
        Ok(swept)
    }
}

impl Drop for FastPath {
    fn drop(&mut self) {
        if !self.left.load(Ordering::Relaxed) {
            self.clock.pause();
        }
    }
}

/// The programs that ingress programs reach by tail calls.
struct TailCalls {
    /// The kernel empties this map when our process is gone, and the programs answer no more.
    alive: MapHandle,
    others: MapHandle,
}

impl TailCalls {
    fn over(programs: &Programs) -> Result<Self, Unavailable> {
        Ok(Self { alive: programs.map("alive")?, others: programs.map("programs")? })
    }

    /// Fills the places of tail calls; the program that answers comes last.
    fn join(&self, programs: &Programs, optional: &Optional) -> Result<(), Unavailable> {
        let put = |map: &MapHandle, place: u8, program: &OwnedFd| {
            let program = program.as_raw_fd().to_ne_bytes();
            map.update(&u32::from(place).to_ne_bytes(), &program, MapFlags::ANY)
                .map_err(|error| explain("programs cannot be joined", &error))
        };
        if let Some(transfer) = &optional.transfer {
            put(&self.others, program::TRANSFER, transfer)?;
        }
        put(&self.others, program::INGRESS, &programs.program("afpa_ingress")?)?;
        put(&self.others, program::ICMP, &programs.program("afpa_icmp")?)?;
        put(&self.others, program::UNUSUAL, &programs.program("afpa_unusual")?)?;
        if let Some(socketless) = &optional.socketless {
            put(&self.others, program::SOCKETLESS, &socketless.segments)?;
            put(&self.others, program::HANDSHAKE, &socketless.handshake)?;
        }
        put(&self.alive, 0, &programs.program("afpa_answer")?)
    }
}

/// The programs that the kernel may refuse: the features that need them are off then.
struct Optional {
    rtx: Option<RtxPrograms>,
    transfer: Option<OwnedFd>,
    /// None: all connections are the kernel's.
    socketless: Option<SocketlessPrograms>,
    lacks: Vec<String>,
}

impl Optional {
    fn take(programs: &Programs, settings: &Settings) -> Self {
        let mut lacks = Vec::new();
        let mut lack = |what: &str, why: Unavailable| lacks.push(format!("{what}: {}", why.reason));
        let rtx = RtxPrograms::take(programs)
            .map_err(|why| {
                lack("what is lost of an answer is sent when the client asks again", why)
            })
            .ok();
        // Their losses are repaired by these timers alone.
        let transfer = programs
            .program("afpa_transfer")
            .map_err(|why| lack("answers of several segments are left to user mode", why))
            .ok()
            .filter(|_| rtx.is_some());
        let socketless = SocketlessPrograms::take(programs)
            .map_err(|why| {
                // On an older kernel `look_at_tcp` has the reason.
                if settings.socketless && refusal_of(&Kernel::this()).is_none() {
                    lack("all connections have sockets of the kernel's", why);
                }
            })
            .ok();
        Self { rtx, transfer, socketless, lacks }
    }

    /// The programs in use, by name.
    fn in_use(&self, programs: &Programs) -> Vec<(&'static str, OwnedFd)> {
        let always = true;
        let all = [
            ("afpa_answer", always),
            ("afpa_transfer", self.transfer.is_some()),
            ("afpa_icmp", always),
            ("afpa_unusual", always),
            ("afpa_tunnel", always),
            ("afpa_guard_egress", always),
            ("afpa_guard_ingress", always),
            ("afpa_ingress", always),
            ("afpa_egress", always),
            ("afpa_probe", always),
            ("afpa_served", always),
            ("afpa_rtx_due", self.rtx.is_some()),
            ("afpa_rtx_timer", self.rtx.is_some()),
        ];
        let used = all.into_iter().filter(|(_, is_used)| *is_used);
        used.filter_map(|(name, _)| Some((name, programs.program(name).ok()?))).collect()
    }
}

/// The programs of connections without a socket.
struct SocketlessPrograms {
    handshake: OwnedFd,
    segments: OwnedFd,
}

impl SocketlessPrograms {
    fn take(programs: &Programs) -> Result<Self, Unavailable> {
        let program = |name: &str| programs.program(name);
        Ok(Self { handshake: program("afpa_handshake")?, segments: program("afpa_socketless")? })
    }
}
