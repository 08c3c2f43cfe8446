//! The part that needs privileges: loading the programs and putting them on the interfaces.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use afpa_bpf::preflight::{Finding, Watch};
use afpa_bpf::{
    ANSWER_MAX, Carriers, Change, FastPath, FlowKey, Interface, MORE_PAGE_BYTES,
    MORE_VARIANT_BYTES, PAGE_BYTES, PinDir, PinDirOwner, PinDirRefused, PortClaim, Settings,
    VARIANT_BYTES, carrying, interfaces, longest_answer,
};
use afpa_police::PoliceKernel;
use afpa_server::KernelActivity;
use anyhow::bail;

use crate::NoFastPath;
use crate::eligibility::{Eligibility, eligible_addresses, eligible_of};
use crate::kernel_hosts::MOST_NUMBERS;
use crate::settings::{FastPathSettings, FastPathUse, KernelSite};

/// Programs in the kernel, on their interfaces, with nothing to answer yet.
pub struct AttachedPrograms {
    pub(crate) fast_path: Arc<FastPath>,
    pub(crate) interfaces: Carriers,
    pub(crate) pin_dir: Option<PinDir>,
    pub(crate) claim: PortClaim,
    pub(crate) watch: Watch,
}

/// The fast path, or the line that says why there is none.
pub enum Availability {
    /// It can be started.
    Ready(Box<AttachedPrograms>),
    /// User mode serves alone.
    Without(String),
}

impl AttachedPrograms {
    /// Loads and attaches, if the settings want it, for the TCP addresses that are bound.
    ///
    /// # Errors
    /// With the reason, when the settings demand it and it cannot be.
    pub fn load(
        settings: &FastPathSettings,
        bound: &[SocketAddr],
        owner: Option<PinDirOwner>,
    ) -> anyhow::Result<Availability> {
        if settings.mode == FastPathUse::Off {
            return Ok(Availability::Without("off, as configured".to_owned()));
        }
        match Self::try_load(settings, bound, owner) {
            Ok(programs) => Ok(Availability::Ready(Box::new(programs))),
            Err(why) if settings.mode == FastPathUse::On => bail!("no fast path: {why}"),
            Err(why) => Ok(Availability::Without(format!("not in use: {why}"))),
        }
    }

    /// Whether the process has to keep `CAP_NET_ADMIN`: where the kernel has no tcx, the programs are filters, which only
    /// a process with this right takes off again.
    pub fn needs_net_admin(&self) -> bool {
        self.fast_path.interfaces.needs_net_admin()
    }

    /// The kernel's side of the police.
    pub fn police_kernel(&self) -> Arc<dyn PoliceKernel> {
        Arc::clone(&self.fast_path.police) as Arc<dyn PoliceKernel>
    }

    fn try_load(
        settings: &FastPathSettings,
        bound: &[SocketAddr],
        owner: Option<PinDirOwner>,
    ) -> Result<Self, NoFastPath> {
        let bound = &eligible_of(&settings.sites, bound)[..];
        let all = wanted(settings, bound)?;
        let watch = preflight(bound)?;
        say_limits(&watch.limits().collect::<Vec<_>>());
        let ports: BTreeSet<u16> = bound.iter().map(SocketAddr::port).collect();
        let mut claim = PortClaim::default();
        ports.iter().try_for_each(|port| claim.lock(*port))?;
        let pin_dir = match ports.first().filter(|_| settings.survive_restart) {
            Some(first) => open_pin_dir(*first, owner),
            None => None,
        };
        ports.iter().try_for_each(|port| PortClaim::clear(*port, pin_dir.as_ref()))?;
        let fast_path = load(settings, pin_dir.as_ref())?;
        for lacking in fast_path.lacks() {
            tracing::warn!("the fast path is not whole on this kernel: {lacking}");
        }
        let mut interfaces = Carriers::default();
        for change in interfaces.update(&fast_path.interfaces, bound, &all) {
            if let Change::Refused(name, unavailable) = change {
                let reason = format!("{name}: {}", unavailable.reason);
                return Err(NoFastPath::new(reason, unavailable.remedy));
            }
        }
        if let Err(why) = fast_path.interfaces.guard() {
            tracing::warn!(%why, "a route that changes to a device without programs breaks connections");
        }
        if let Some(Err(error)) = pin_dir.as_ref().map(PinDir::hand_over) {
            tracing::warn!(
                %error,
                "the user of the process does not get the connections that the kernel keeps: they \
                 will not outlive the process"
            );
        }
        Ok(Self { fast_path: Arc::new(fast_path), interfaces, pin_dir, claim, watch })
    }
}

/// Whether there is something that the kernel could answer, and may.
pub fn has_work(settings: &FastPathSettings) -> bool {
    let addresses = eligible_addresses(&settings.sites);
    settings.mode != FastPathUse::Off && no_work(settings, &addresses).is_none()
}

/// The message when a reload has brought the first work for the kernel: the programs are loaded while the
/// process starts, because that takes rights which the process then gives up.
pub fn too_late(had_work: bool, now: &FastPathSettings) -> Option<String> {
    let late = !had_work && has_work(now);
    late.then(|| "not in use: what the kernel could answer came with a reload (restart)".to_owned())
}

/// The message of `afpa check`: whether the fast path would be in use, tried by loading it, and for which sites.
pub fn expectation(settings: &FastPathSettings) -> String {
    if settings.mode == FastPathUse::Off {
        return "off, as configured".to_owned();
    }
    let addresses = eligible_addresses(&settings.sites);
    let loaded = wanted(settings, &addresses).and_then(|all| {
        let watch = preflight(&addresses)?;
        load(settings, None).map(|_| (all, watch))
    });
    match loaded {
        Ok((all, watch)) => {
            let names = carrying(&addresses, &all).map(|interface| interface.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            let limits = watch.limits().map(|finding| format!("\n  limited: {finding}"));
            let limits: String = limits.collect();
            format!("would be in use on {names}{}{limits}", line_for_each(&settings.sites))
        }
        Err(why) => format!("would not be in use: {why}{}", line_for_each(&settings.sites)),
    }
}

/// A line for each site, unless there is nothing to tell.
fn line_for_each(sites: &[KernelSite]) -> String {
    let all = Eligibility::of(sites);
    if let [Eligibility::Whole | Eligibility::Not(_)] = &all[..] {
        return String::new();
    }
    let width = sites.iter().map(|site| site.name.len()).max().unwrap_or(0);
    let lines = sites.iter().zip(all);
    lines.map(|(site, eligible)| format!("\n  {:<width$}  {eligible}", site.name)).collect()
}

/// The kernel reports one in this many answers: for the access log, or as a sample from which the cache's
/// policy learns which objects are popular.
pub(crate) fn log_every(settings: &FastPathSettings) -> u32 {
    const SAMPLE: u32 = 64;
    let every = u32::try_from(settings.log_every).unwrap_or(u32::MAX);
    if !settings.access_log || every == 0 { SAMPLE } else { every }
}

/// The kernel's activity on connections: the engine asks for it before it closes one that seems to be idle.
pub(crate) fn kernel_activity(fast_path: &Arc<FastPath>) -> KernelActivity {
    let [of_client, all, fast_path] = [(); 3].map(|()| Arc::clone(fast_path));
    let activity = KernelActivity::new(move |client, server| {
        // If the table cannot be read, nothing is known of the connection.
        fast_path.flows.since_answer(&FlowKey::new(client, server)).ok().flatten()
    });
    match of_client.socketless.may_close() {
        true => activity
            .with_connections(move |client| of_client.clients.connections_of(client) as usize)
            .with_all(move || all.clients.without_socket()),
        false => activity,
    }
}

/// Looks at the host.
fn preflight(addresses: &[SocketAddr]) -> Result<Watch, NoFastPath> {
    let watch = Watch::begin(addresses, true);
    match watch.refusal() {
        Some(Finding { subject, text, remedy, .. }) => {
            Err(NoFastPath::new(format!("{subject}: {text}"), remedy))
        }
        None => Ok(watch),
    }
}

/// All interfaces, if the settings leave anything for the kernel to do; `eligible` are the addresses on
/// which it can.
fn wanted(
    settings: &FastPathSettings,
    eligible: &[SocketAddr],
) -> Result<Vec<Interface>, NoFastPath> {
    if let Some(why) = no_work(settings, eligible) {
        return Err(why);
    }
    interfaces().map_err(|error| {
        NoFastPath::new(
            format!("interfaces cannot be listed: {error}"),
            "netlink sockets must be allowed",
        )
    })
}

/// Why the settings leave nothing for the kernel to do.
fn no_work(settings: &FastPathSettings, eligible: &[SocketAddr]) -> Option<NoFastPath> {
    if eligible.is_empty() {
        return Some(match &Eligibility::of(&settings.sites)[..] {
            [Eligibility::Not(why)] => {
                NoFastPath::new(*why, "the kernel cannot answer for this site")
            }
            _ => NoFastPath::new(
                "there is no site that the kernel could answer for",
                "`afpa check` tells why for each",
            ),
        });
    }
    if !settings.watches_files && !settings.sites.iter().any(|site| site.caches_answers) {
        let remedy = "[coherency] watch = true";
        return Some(NoFastPath::new("changes of files are not watched", remedy));
    }
    if is_stricter_than_the_programs(settings) {
        let remedy = "[limits] head >= 2560";
        return Some(NoFastPath::new("requests are limited more than the programs know", remedy));
    }
    None
}

/// The programs have limits of their own for request lines, heads and numbers of fields, and answer up to
/// them: they must not answer a request that user mode would refuse.
fn is_stricter_than_the_programs(settings: &FastPathSettings) -> bool {
    let limits = &settings.request_limits;
    limits.request_line < 512 || limits.head < 2560 || limits.fields < 63
}

fn open_pin_dir(port: u16, owner: Option<PinDirOwner>) -> Option<PinDir> {
    let name = PinDir::name_of_serve(port).map_err(PinDirRefused::from);
    match name.and_then(|name| PinDir::open(name, owner)) {
        Ok(pin_dir) => Some(pin_dir),
        Err(PinDirRefused::Nowhere(error)) => {
            tracing::debug!(%error, "connections will not outlive the process");
            None
        }
        Err(refused) => {
            tracing::warn!("connections will not outlive the process: {refused}");
            None
        }
    }
}

/// Loads the programs. If the maps that an earlier process kept have other limits, they are removed and its connections end.
fn load(settings: &FastPathSettings, pin_dir: Option<&PinDir>) -> Result<FastPath, NoFastPath> {
    let first = FastPath::load(program_settings(settings, pin_dir.map(PinDir::path)));
    let Some(pin_dir) = pin_dir.filter(|pin_dir| first.is_err() && pin_dir.was_inherited()) else {
        return Ok(first?);
    };
    tracing::warn!(
        "the connections of the afpa before cannot be taken over, and end: limits of [fast_path] may have changed"
    );
    if let Err(error) = pin_dir.clear() {
        tracing::warn!(%error, "the maps that the afpa before kept cannot be removed");
    }
    Ok(FastPath::load(program_settings(settings, Some(pin_dir.path())))?)
}

/// Room for the Host values of all addresses, and for those of the configuration that a reload brings.
fn hosts(sites: &[KernelSite]) -> u32 {
    let names = sites.iter().map(|site| site.hosts.len() * site.addresses.len() * 2).sum::<usize>();
    let wanted = u32::try_from(names).unwrap_or(u32::MAX).saturating_mul(2);
    let numbered = u32::try_from(MOST_NUMBERS).unwrap_or(u32::MAX);
    Settings::default().hosts.max(wanted).saturating_add(numbered)
}

/// Answers of several segments that are under way at a time, 1 KB each. One ends within a few round trips, so these are good
/// for more than fills a link of 10 Gbit/s; user mode sends further ones.
const TRANSFERS: u32 = 4096;

fn program_settings(settings: &FastPathSettings, keep_in: Option<PathBuf>) -> Settings {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let places = Places::of(settings);
    Settings {
        objects: count(places.objects),
        ready_objects: count(places.ready_objects),
        answer_max: count(settings.answer_max),
        last_answer_max: count(settings.last_answer_max),
        pages: count(places.pages),
        ready_pages: count(places.ready_pages),
        more_bytes: places.more_bytes,
        transfers: if places.pages == 0 { 1 } else { TRANSFERS },
        // Old versions of changed objects, for clients that are still being sent them.
        retired_bytes: settings.memory / 4,
        flows: count(settings.flows),
        hosts: hosts(&settings.sites),
        log_every: log_every(settings),
        bypass_after: count(settings.bypass_after),
        bypass_time: bypass_time(settings),
        firewall_interval: settings.firewall_interval,
        socketless: settings.socketless,
        admission: settings.admission,
        client_connections: settings.connections_per_client,
        socketless_idle: settings.idle,
        keep_in,
        ..Settings::default()
    }
}

/// Connections are not bypassed while the answers to their requests are on their way into the kernel: uses of
/// servers' answers are reported once a second, and the last report may just have been made.
fn bypass_time(settings: &FastPathSettings) -> Duration {
    match settings.sites.iter().any(|site| site.caches_answers) {
        true => Duration::from_secs(3),
        false => Settings::default().bypass_time,
    }
}

/// One in so many bytes of the memory is allocated at the start, and no less than [`READY_LEAST`].
const READY_SHARE: usize = 8;
const READY_LEAST: usize = 4 << 20;

/// How many answers, and pages of long ones, the memory is good for.
struct Places {
    objects: usize,
    ready_objects: usize,
    pages: usize,
    ready_pages: usize,
    /// Memory of those that are not ready.
    more_bytes: usize,
}

impl Places {
    /// Where there are long answers, a quarter of what is ready is theirs, and half of it if that is all memory: to look elsewhere
    /// costs a share of the time of a short answer that is twice as large. The rest is for those that come first.
    fn of(settings: &FastPathSettings) -> Self {
        let FastPathSettings { socketless, answer_max, last_answer_max, memory, .. } = *settings;
        let has_pages = longest_answer(socketless, answer_max, last_answer_max) > ANSWER_MAX;
        let ready = memory.min((memory / READY_SHARE).max(READY_LEAST));
        let for_objects = match has_pages {
            true if ready < memory => ready / 4 * 3,
            true => ready / 2,
            false => ready,
        };
        let ready_objects = settings.objects.min(for_objects / VARIANT_BYTES);
        let for_pages = if has_pages { ready - ready_objects * VARIANT_BYTES } else { 0 };
        let ready_pages = for_pages / PAGE_BYTES;
        let more_bytes = memory - ready_objects * VARIANT_BYTES - ready_pages * PAGE_BYTES;
        let more_pages = if has_pages { more_bytes / MORE_PAGE_BYTES } else { 0 };
        Self {
            objects: settings.objects.min(ready_objects + more_bytes / MORE_VARIANT_BYTES),
            ready_objects,
            pages: ready_pages + more_pages,
            ready_pages,
            more_bytes,
        }
    }
}

/// One line, however many there are: `afpa doctor` explains them.
fn say_limits(limits: &[&Finding]) {
    match limits {
        [] => {}
        [one] => tracing::warn!("the fast path is limited: {one}"),
        several => {
            let told = several.iter().map(|limit| format!("{}: {}", limit.subject, limit.text));
            let told = told.collect::<Vec<_>>().join("; ");
            tracing::warn!("the fast path is limited ({told}): `afpa doctor` says what to do");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{sample, sample_site};

    const MIB: usize = 1 << 20;

    #[test]
    fn a_reload_that_brings_work_for_the_kernel_is_told_from_others() {
        let site = || sample_site(&["[::]:80"], &[]);
        let none = sample(vec![KernelSite { caches: false, ..site() }]);
        let some = sample(vec![site()]);
        let off = FastPathSettings { mode: FastPathUse::Off, ..some.clone() };
        let unwatched = FastPathSettings { watches_files: false, ..some.clone() };
        for (before, now, late) in [
            (&none, &some, true),
            (&off, &some, true),
            (&unwatched, &some, true),
            (&some, &some, false),
            (&some, &none, false),
            (&none, &off, false),
            (&none, &unwatched, false),
        ] {
            assert_eq!(too_late(has_work(before), now).is_some(), late);
        }
    }

    #[test]
    fn memory_is_shared_among_answers_and_pages() {
        let mut settings = sample(Vec::new());
        for (objects, answer_max, memory) in [
            (8192, ANSWER_MAX, 64 * MIB),
            (8192, ANSWER_MAX, MIB),
            (8192, 65_536, 64 * MIB),
            (1_000_000, 65_536, 64 * MIB),
            (16, 65_536, MIB),
            (26, 65_536, 128 << 10),
        ] {
            (settings.objects, settings.answer_max, settings.memory) =
                (objects, answer_max, memory);
            let places = Places::of(&settings);
            let ready = places.ready_objects * VARIANT_BYTES + places.ready_pages * PAGE_BYTES;
            assert_eq!(ready + places.more_bytes, memory);
            assert!(ready <= memory.min((memory / 8).max(4 * MIB)));
            assert!(places.ready_objects <= places.objects && places.objects <= settings.objects);
            assert_eq!(places.pages > 0, answer_max > ANSWER_MAX);
            let more_pages = places.pages - places.ready_pages;
            assert!(more_pages * MORE_PAGE_BYTES <= places.more_bytes);
            let more_objects = places.objects - places.ready_objects;
            assert!(more_objects * MORE_VARIANT_BYTES <= places.more_bytes);
            assert!(
                memory > 4 * MIB || places.more_bytes < memory / 8,
                "little is ready as a whole"
            );
        }
    }
}
