//! What can be seen of the fast path.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use afpa_bpf::{Counters, Reason};
use arc_swap::ArcSwap;
use serde_json::{Value, json};

use super::fit::Fit;
use super::running::{FastPath, Shared};
use super::tally::Count;

/// A look at the fast path, from any thread.
pub(crate) enum Look {
    /// There is none, and why.
    Without(ArcSwap<String>),
    /// It runs.
    At(Arc<Shared>),
}

/// The kernel's part of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfSite {
    /// Whether it answers for the site, and why not.
    pub(crate) state: String,
    /// What it answered.
    pub(crate) count: Count,
}

/// Its numbers at one time.
pub(crate) struct Numbers {
    pub(crate) answering: bool,
    pub(crate) interfaces: Vec<String>,
    /// Requests answered, first or again.
    pub(crate) answers: u64,
    pub(crate) lost_log_lines: u64,
    /// Connections in the table, and those of them that need translation; seconds old.
    pub(crate) flows: usize,
    pub(crate) drifted: usize,
    pub(crate) objects: usize,
    /// Memory of pinned answers, those being retired included.
    pub(crate) bytes: usize,
    /// The part of it that is kept for clients that may still need it.
    pub(crate) retired_bytes: usize,
    /// Answers of several segments that are under way.
    pub(crate) flights: usize,
    /// Objects left to user mode, by reason.
    pub(crate) left: [(&'static str, u64); 4],
    /// Every way out of the programs.
    pub(crate) packets: Vec<(&'static str, u64)>,
    /// The same for each interface, as far as it belongs to one.
    pub(crate) by_interface: Vec<(String, Vec<(&'static str, u64)>)>,
}

impl Look {
    /// At the one that runs.
    pub(crate) fn at(fast_path: &FastPath) -> Self {
        Look::At(Arc::clone(fast_path.shared()))
    }

    /// At none.
    pub(crate) fn without(why: String) -> Self {
        Look::Without(ArcSwap::from_pointee(why))
    }

    /// There is none for another reason than before.
    pub(crate) fn set_without(&self, why: String) {
        if let Look::Without(reason) = self {
            reason.store(Arc::new(why));
        }
    }

    /// Whether it is in use and where, or why not.
    pub(crate) fn line(&self) -> String {
        match self {
            Look::Without(why) => why.load().to_string(),
            Look::At(shared) if shared.is_answering() => {
                format!("in use on {}", shared.interfaces().list())
            }
            Look::At(shared) if shared.counts.broken.load(Ordering::SeqCst) => {
                "not in use: an object could not be taken back (restart)".to_owned()
            }
            Look::At(shared) if shared.hanging.load(Ordering::Relaxed) => {
                "not in use: a worker hangs".to_owned()
            }
            Look::At(_) => "not in use: paused".to_owned(),
        }
    }

    /// The kernel's part of each site, in the order of the configuration; empty without the fast path.
    pub(crate) fn sites(&self) -> Vec<OfSite> {
        let Look::At(shared) = self else { return Vec::new() };
        let current = shared.current.load();
        let fits = current.iter().flat_map(|current| &current.fits);
        let state = |fit: &Fit| match shared.is_answering() {
            true => fit.to_string(),
            false => "no: the fast path is not in use".to_owned(),
        };
        let sites = fits.zip(shared.site_counts());
        sites.map(|(fit, count)| OfSite { state: state(fit), count }).collect()
    }

    /// The numbers, if there are any.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        let Look::At(shared) = self else { return None };
        let counters = shared.fast_path.counters().ok()?;
        let usage = shared.fast_path.usage();
        let swept = *shared.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = &shared.counts;
        let interfaces = shared.interface_names();
        Some(Numbers {
            answering: shared.is_answering(),
            interfaces,
            answers: counters.answered(),
            lost_log_lines: counters[Reason::EventLost],
            flows: swept.flows - swept.removed,
            drifted: swept.translated,
            objects: usage.objects,
            bytes: usage.bytes,
            retired_bytes: usage.retired_bytes,
            flights: shared.fast_path.transfers().ok()?,
            left: [
                ("full", counts.full.load(Ordering::Relaxed)),
                ("too_long", counts.too_long.load(Ordering::Relaxed)),
                ("failed", counts.failed.load(Ordering::Relaxed)),
                ("put_aside", counts.put_aside.load(Ordering::Relaxed)),
            ],
            packets: by_name(&counters),
            by_interface: shared.by_interface(),
        })
    }

    /// What is worth the most there, and of what is not.
    fn most_useful(&self) -> Value {
        const MOST: usize = 10;
        let Look::At(shared) = self else { return Value::Null };
        let current = shared.current.load();
        let seen = current.as_ref().map(|current| current.resident.most_useful(MOST));
        let lines = seen.unwrap_or_default().into_iter().map(|seen| {
            json!({
                "path": seen.path,
                "in_kernel": seen.pinned,
                "bytes": seen.bytes,
                "hits_in_10_s": seen.hits.round() as u64,
                "saved_for_each_kb_us": seen.benefit.round() as u64,
            })
        });
        Value::Array(lines.collect())
    }

    pub(crate) fn to_json(&self) -> Value {
        let state = self.line();
        let Some(numbers) = self.numbers() else { return json!({ "state": state }) };
        let seen = |pairs: &[(&'static str, u64)]| {
            let seen = pairs.iter().filter(|(_, count)| *count > 0);
            let pairs = seen.map(|(name, count)| ((*name).to_owned(), Value::from(*count)));
            Value::Object(pairs.collect())
        };
        let by_interface = numbers.by_interface.iter();
        let by_interface = by_interface.map(|(name, packets)| (name.clone(), seen(packets)));
        json!({
            "state": state,
            "answers": numbers.answers,
            "lost_log_lines": numbers.lost_log_lines,
            "flows": numbers.flows,
            "drifted_flows": numbers.drifted,
            "objects": numbers.objects,
            "pinned_bytes": numbers.bytes,
            "retired_bytes": numbers.retired_bytes,
            "flights": numbers.flights,
            "interfaces": numbers.interfaces,
            "objects_left": seen(&numbers.left),
            "most_useful_objects": self.most_useful(),
            "packets": seen(&numbers.packets),
            "packets_by_interface": Value::Object(by_interface.collect()),
        })
    }
}

impl Shared {
    fn interface_names(&self) -> Vec<String> {
        self.interfaces().iter().map(|(_, name)| name.to_owned()).collect()
    }

    fn by_interface(&self) -> Vec<(String, Vec<(&'static str, u64)>)> {
        let counters = self.fast_path.interface_counters().unwrap_or_default();
        let names = self.interfaces();
        let named = counters.iter().filter_map(|(index, counters)| {
            let name = names.iter().find(|(known, _)| known == index)?.1;
            Some((name.to_owned(), by_name(counters)))
        });
        named.collect()
    }
}

fn by_name(counters: &Counters) -> Vec<(&'static str, u64)> {
    counters.iter().map(|(reason, count)| (reason.name(), count)).collect()
}
