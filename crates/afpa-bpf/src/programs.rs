//! Bringing programs and maps into the kernel, or saying why that cannot be.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use afpa_abi::ASSIGNED_WAYS;
use libbpf_rs::{Map, MapCore, MapHandle, Object, OpenObject};

use crate::kernel::Kernel;
use crate::region::Words;
use crate::settings::Settings;
use crate::unavailable::{Unavailable, broken_object, explain, refused};
use crate::verify::{self, Verified};

/// Assigned connections that are remembered, as a multiple of the flows; 8 bytes each.
const ASSIGNED_FOR_EACH_FLOW: u32 = 4;

/// Programs in the kernel, with the maps that they share. Nothing is attached, and the maps are as the kernel made them.
pub struct Programs {
    object: Object,
    verified: Verified,
}

impl Programs {
    /// Loads them, with maps of the sizes that the settings want.
    pub fn load(settings: &Settings) -> Result<Self, Unavailable> {
        if let Some(why) = Kernel::this().refusals().into_iter().next() {
            return Err(why);
        }
        let mut open =
            verify::open_object().map_err(|error| explain("eBPF object cannot be read", &error))?;
        prepare_maps(&mut open, settings)
            .map_err(|error| explain("maps cannot be prepared", &error))?;
        let (object, names) =
            verify::create_maps(open).map_err(|error| explain("maps cannot be created", &error))?;
        let verified = verify::load_programs(&object, names);
        Ok(Self { object, verified })
    }

    /// The maps.
    pub fn maps(&self) -> impl Iterator<Item = Map<'_>> {
        self.object.maps()
    }

    /// A handle of a map.
    pub(crate) fn map(&self, name: &str) -> Result<MapHandle, Unavailable> {
        let found = self.object.maps().find(|map| map.name() == name);
        let found = found.ok_or_else(|| broken_object(name))?;
        MapHandle::try_from(&found).map_err(|error| explain("map cannot be kept", &error))
    }

    /// A map of words, mapped; an entry has so many bytes.
    pub(crate) fn words(&self, name: &str, entry: usize) -> Result<Words, Unavailable> {
        let words = Words::map(&self.map(name)?, entry);
        words.map_err(|error| explain(&format!("{name} cannot be mapped"), &error))
    }

    /// A descriptor of a program, or why the kernel refused it.
    pub(crate) fn program(&self, name: &str) -> Result<OwnedFd, Unavailable> {
        match self.verified.get(name).ok_or_else(|| broken_object(name))? {
            Ok(program) => {
                program.try_clone().map_err(|error| explain("program cannot be kept", &error))
            }
            Err(text) => Err(refused(&format!("kernel refuses {name}"), text)),
        }
    }
}

/// Places in the table of header blocks that were read once.
pub(crate) fn header_blocks(settings: &Settings) -> u32 {
    settings.header_blocks.max(1).next_power_of_two()
}

fn prepare_maps(open: &mut OpenObject, settings: &Settings) -> libbpf_rs::Result<()> {
    let page = 4096;
    for mut map in open.maps_mut() {
        if map.name() == ".rodata.order" {
            let ordered = u32::from(cfg!(any(target_arch = "x86", target_arch = "x86_64")));
            map.set_initial_value(&ordered.to_ne_bytes())?;
            continue;
        }
        if map.name() == ".rodata.cookie" {
            map.set_initial_value(&settings.cookie_ignored.to_ne_bytes())?;
            continue;
        }
        let kept = settings.keep_in.as_ref().zip(kept_as(map.name()));
        if let Some((folder, name)) = kept {
            let path = folder.join(name);
            map.set_pin_path(&path)?;
            if settings.sizes_as_kept && path.exists() {
                map.set_max_entries(MapHandle::from_pinned_path(path)?.max_entries())?;
                continue;
            }
        }
        let entries = match map.name().to_str().unwrap_or_default() {
            "objects" => settings.objects,
            // In each of these, one entry is not used.
            "slots" => settings.objects.min(settings.ready_objects).saturating_add(1),
            "more_slots" => settings.objects.saturating_sub(settings.ready_objects) + 1,
            "pages" => settings.pages.min(settings.ready_pages).saturating_add(1),
            "more_pages" => settings.pages.saturating_sub(settings.ready_pages) + 1,
            "transfers" => settings.transfers,
            "rtx_timers" => settings.rtx_timers,
            "flows" => settings.flows,
            "assigned" => settings.flows.div_ceil(ASSIGNED_WAYS as u32 / ASSIGNED_FOR_EACH_FLOW),
            "sites" => settings.hosts,
            "partials" => settings.partial_heads,
            "checked" => header_blocks(settings),
            "bypass_tables" => map.max_entries() * libbpf_rs::num_possible_cpus()? as u32,
            "events" => settings.event_bytes.max(page).next_power_of_two(),
            _ => continue,
        };
        map.set_max_entries(entries.max(1))?;
    }
    Ok(())
}

/// The maps that connections need when no process answers, by their names in the folder: the connections' state, the
/// answers to repeat or to finish, and their dates.
fn kept_as(map: &OsStr) -> Option<&'static str> {
    match map.to_str()? {
        "flows" => Some("flows"),
        "slots" => Some("slots"),
        "more_slots" => Some("more_slots"),
        "pages" => Some("pages"),
        "more_pages" => Some("more_pages"),
        "transfers" => Some("transfers"),
        "programs" => Some("programs"),
        "assigned" => Some("assigned"),
        "syn_answers" => Some("syn_answers"),
        "cookie_guard" => Some("cookie_guard"),
        ".data.shared" => Some("shared"),
        _ => None,
    }
}
