//! What needs privileges: loading the programs and putting them on the interfaces.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use afpa_bpf::{
    ANSWER_MAX, Carriers, Change, FastPath, FlowKey, Interface, PAGE_BYTES, Settings,
    VARIANT_BYTES, carrying, interfaces,
};
use afpa_server::Elsewhere;
use anyhow::bail;

use super::Missing;
use super::fit::{self, Fit};
use super::keep::{Kept, Refused};
use crate::privileges::Identity;
use afpa_config::{self as config, AccessTarget, Config, FastPathMode, Hierarchy};

/// Programs in the kernel, on their interfaces, with nothing to answer yet.
pub(crate) struct Prepared {
    pub(super) fast_path: Arc<FastPath>,
    pub(super) interfaces: Carriers,
    pub(super) kept: Option<Kept>,
}

/// The fast path, or the line that says why there is none.
pub(crate) enum Outcome {
    /// It can be started.
    Ready(Prepared),
    /// User mode serves alone.
    Without(String),
}

impl Prepared {
    /// Loads and attaches, if `mode` wants it, for the TCP addresses that are bound.
    ///
    /// # Errors
    /// With the reason, when the mode is `on` and it cannot be.
    pub(crate) fn load(
        config: &Config,
        bound: &[SocketAddr],
        owner: Option<&Identity>,
    ) -> anyhow::Result<Outcome> {
        let mode = config.fast_path.mode;
        if mode == FastPathMode::Off {
            return Ok(Outcome::Without("off, as configured".to_owned()));
        }
        match Self::try_load(config, bound, owner) {
            Ok(prepared) => Ok(Outcome::Ready(prepared)),
            Err(missing) if mode == FastPathMode::On => bail!("no fast path: {missing}"),
            Err(missing) => Ok(Outcome::Without(format!("not in use: {missing}"))),
        }
    }

    /// For the engine.
    pub(crate) fn elsewhere(&self) -> Elsewhere {
        elsewhere(&self.fast_path)
    }

    fn try_load(
        config: &Config,
        bound: &[SocketAddr],
        owner: Option<&Identity>,
    ) -> Result<Self, Missing> {
        let bound = &fit::answerable(config, &Fit::of(config), bound)[..];
        let all = wanted(config, bound)?;
        let kept = match bound.iter().min().filter(|_| config.fast_path.survive_restart) {
            Some(first) => open_folder(*first, owner)?,
            None => None,
        };
        let fast_path = load(config, kept.as_ref())?;
        let mut interfaces = Carriers::default();
        for change in interfaces.update(&fast_path, bound, &all) {
            if let Change::Refused(name, unavailable) = change {
                let reason = format!("{name}: {}", unavailable.reason);
                return Err(Missing::new(reason, unavailable.remedy));
            }
        }
        Ok(Self { fast_path: Arc::new(fast_path), interfaces, kept })
    }
}

/// What is to be said when a reload has brought the first work for the kernel: the programs are loaded while
/// the process starts, since that takes rights which it gives up.
pub(crate) fn too_late(before: &Config, now: &Config) -> Option<String> {
    let has_work = |config: &Config| {
        let addresses = fit::addresses(config, &Fit::of(config));
        config.fast_path.mode != FastPathMode::Off && idle(config, &addresses).is_none()
    };
    let late = !has_work(before) && has_work(now);
    late.then(|| "not in use: what the kernel could answer came with a reload (restart)".to_owned())
}

/// What `afpa check` says: whether the fast path would be in use, tried by loading it, and for which sites.
pub(crate) fn outlook(config: &Config) -> String {
    if config.fast_path.mode == FastPathMode::Off {
        return "off, as configured".to_owned();
    }
    let fits = Fit::of(config);
    let addresses = fit::addresses(config, &fits);
    match wanted(config, &addresses).and_then(|all| load(config, None).map(|_| all)) {
        Ok(all) => {
            let names = carrying(&addresses, &all).map(|interface| interface.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            format!("would be in use on {names}{}", outlook_of_sites(config, &fits))
        }
        Err(missing) => {
            format!("would not be in use: {missing}{}", outlook_of_sites(config, &fits))
        }
    }
}

/// A line for each site, unless there is nothing to tell.
fn outlook_of_sites(config: &Config, fits: &[Fit]) -> String {
    if let [Fit::Whole | Fit::Not(_)] = fits {
        return String::new();
    }
    let hierarchy = Hierarchy::of(config, &mut |_| 0);
    let names = hierarchy.table.sites.iter().map(|site| site.name.as_str());
    let width = names.clone().map(str::len).max().unwrap_or(0);
    names.zip(fits).map(|(name, fit)| format!("\n  {name:<width$}  {fit}")).collect()
}

/// One in how many answers is reported: for the access log, or, so that the cache's policy knows what
/// is popular, now and then.
pub(super) fn log_every(config: &Config) -> u32 {
    const SAMPLE: u32 = 64;
    let every = u32::try_from(config.fast_path.log_every).unwrap_or(u32::MAX);
    if config.log.access == AccessTarget::Off || every == 0 { SAMPLE } else { every }
}

/// What the engine asks before it closes a connection that seems to be idle.
pub(super) fn elsewhere(fast_path: &Arc<FastPath>) -> Elsewhere {
    let fast_path = Arc::clone(fast_path);
    Elsewhere::new(move |client, server| {
        // A table that cannot be read says nothing of the connection.
        fast_path.since_answer(&FlowKey::new(client, server)).ok().flatten()
    })
}

/// All interfaces, if the configuration leaves anything for the kernel to do; `answerable` are the
/// addresses on which it does.
fn wanted(config: &Config, answerable: &[SocketAddr]) -> Result<Vec<Interface>, Missing> {
    if let Some(missing) = idle(config, answerable) {
        return Err(missing);
    }
    interfaces().map_err(|error| {
        Missing::new(
            format!("interfaces cannot be listed: {error}"),
            "netlink sockets must be allowed",
        )
    })
}

/// Why the configuration leaves nothing for the kernel to do.
fn idle(config: &Config, answerable: &[SocketAddr]) -> Option<Missing> {
    if answerable.is_empty() {
        return Some(match &Fit::of(config)[..] {
            [Fit::Not(why)] => Missing::new(*why, "the kernel cannot answer for this site"),
            _ => Missing::new(
                "there is no site that the kernel could answer for",
                "`afpa check` tells why for each",
            ),
        });
    }
    if !config.coherency.watch {
        let remedy = "[coherency] watch = true";
        return Some(Missing::new("changes of files are not watched", remedy));
    }
    if is_stricter_than_the_programs(config) {
        let remedy = "[limits] request_line >= 512, head >= 2560, fields >= 63";
        return Some(Missing::new("requests are limited more than the programs know", remedy));
    }
    None
}

/// The programs answer request lines, heads and numbers of fields up to limits of their own: what user
/// mode would refuse must not be answered in the kernel.
fn is_stricter_than_the_programs(config: &Config) -> bool {
    let limits = &config.limits;
    limits.request_line < 512 || limits.head < 2560 || limits.fields < 63
}

fn open_folder(address: SocketAddr, owner: Option<&Identity>) -> Result<Option<Kept>, Missing> {
    match Kept::open(address, owner) {
        Ok(kept) => Ok(Some(kept)),
        Err(Refused::InUse(missing)) => Err(missing),
        Err(Refused::Nowhere(error)) => {
            tracing::debug!(%error, "connections will not outlive the process");
            Ok(None)
        }
    }
}

/// What an afpa with other limits left behind cannot be used: then its connections end.
fn load(config: &Config, kept: Option<&Kept>) -> Result<FastPath, Missing> {
    let first = FastPath::load(settings(config, kept.map(Kept::path)));
    let Some(kept) = kept.filter(|kept| first.is_err() && !kept.is_empty()) else {
        return Ok(first?);
    };
    tracing::warn!("the connections of the afpa before cannot be taken over");
    if let Err(error) = kept.clear() {
        tracing::warn!(%error, "what it kept cannot be removed");
    }
    Ok(FastPath::load(settings(config, Some(kept.path())))?)
}

/// Room for the Host values of all addresses, and for those of the configuration that a reload brings.
fn hosts(config: &Config) -> u32 {
    let names =
        config.sites.iter().map(|site| site.hosts.len() * site.listen.len() * 2).sum::<usize>();
    let wanted = u32::try_from(names).unwrap_or(u32::MAX).saturating_mul(2);
    Settings::default().hosts.max(wanted)
}

fn settings(config: &Config, keep_in: Option<PathBuf>) -> Settings {
    let wanted = &config.fast_path;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (objects, pages) = room(wanted);
    Settings {
        objects: count(objects),
        answer_max: count(wanted.answer_max),
        pages: count(pages),
        transfers: if pages == 0 { 1 } else { count(wanted.transfers) },
        retired_bytes: wanted.retired,
        flows: count(wanted.flows),
        hosts: hosts(config),
        log_every: log_every(config),
        bypass_after: count(wanted.bypass_after),
        keep_in,
        ..Settings::default()
    }
}

/// How many answers, and pages of long ones, the memory is good for. Where there are long ones, half of
/// it at least is theirs.
fn room(wanted: &config::FastPath) -> (usize, usize) {
    if wanted.answer_max <= ANSWER_MAX {
        return (wanted.objects.min(wanted.memory / VARIANT_BYTES), 0);
    }
    let objects = wanted.objects.min(wanted.memory / 2 / VARIANT_BYTES);
    (objects, (wanted.memory - objects * VARIANT_BYTES) / PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_config::{MIB, Machine, Overrides, Source, parse_text};

    #[test]
    fn a_reload_that_brings_work_for_the_kernel_is_told_from_others() {
        let parse = |text: &str| {
            let source = Source::new("f", text);
            parse_text(source, &Overrides::default(), &Machine::probe()).unwrap().config
        };
        let none = parse("[[site]]\nto = \"127.0.0.1:3000\"\n");
        let some = parse("[[site]]\nroot = \"/\"\n");
        let off = parse("[fast_path]\nmode = \"off\"\n[[site]]\nroot = \"/\"\n");
        let unwatched = parse("[coherency]\nwatch = false\n[[site]]\nroot = \"/\"\n");
        for (before, now, late) in [
            (&none, &some, true),
            (&off, &some, true),
            (&unwatched, &some, true),
            (&some, &some, false),
            (&some, &none, false),
            (&none, &off, false),
            (&none, &unwatched, false),
        ] {
            assert_eq!(too_late(before, now).is_some(), late);
        }
    }

    #[test]
    fn memory_is_shared_among_answers_and_pages() {
        let source = Source::new("f", "[[site]]\nroot = \"/\"\n");
        let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
        let mut wanted = loaded.config.fast_path;
        for (objects, answer_max, memory) in [
            (8192, ANSWER_MAX, 64 * MIB),
            (8192, ANSWER_MAX, MIB),
            (8192, 65_536, 64 * MIB),
            (1_000_000, 65_536, 64 * MIB),
            (16, 65_536, MIB),
        ] {
            (wanted.objects, wanted.answer_max, wanted.memory) = (objects, answer_max, memory);
            let (objects, pages) = room(&wanted);
            let used = objects * VARIANT_BYTES + pages * PAGE_BYTES;
            assert!(used <= memory && objects <= wanted.objects);
            let long = answer_max > ANSWER_MAX;
            assert_eq!(pages * PAGE_BYTES >= memory / 2 - PAGE_BYTES, long, "{objects} {pages}");
            assert!(objects == wanted.objects || used + VARIANT_BYTES + PAGE_BYTES > memory);
        }
    }
}
