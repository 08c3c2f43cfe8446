//! The state of the fast path, for metrics and reports.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use afpa_bpf::{Counters, Reason};
use afpa_self_check::SelfCheckCounts;
use arc_swap::ArcSwap;
use serde_json::{Value, json};

use crate::eligibility::Eligibility;
use crate::fast_path_core::FastPathCore;
use crate::running::RunningFastPath;
use crate::site_numbers::AnswerCount;

/// The state of the fast path, as any thread can see it.
pub struct FastPathView(Viewed);

enum Viewed {
    /// There is none, and why.
    Without(ArcSwap<String>),
    /// It runs.
    Running(Arc<FastPathCore>),
}

/// The kernel's part of a site.
#[derive(Clone, Debug, Default)]
pub struct SiteInKernel {
    /// Whether it answers for the site, and why not.
    pub state: String,
    /// The kernel's answers for the site.
    pub count: AnswerCount,
}

/// Its numbers at one time.
pub struct FastPathNumbers {
    /// Whether the kernel answers.
    pub answering: bool,
    /// Whether `afpa pause` has paused its answers.
    pub paused: bool,
    /// Names of the interfaces that have the programs.
    pub interfaces: Vec<String>,
    /// Requests answered, first or again.
    pub answers: u64,
    /// How many of these answers were a 304.
    pub not_modified: u64,
    /// Answers that are missing in the access log, because the ring was full.
    pub lost_log_lines: u64,
    /// Connections in the table, some seconds ago.
    pub flows: usize,
    /// Connections of these whose sequence numbers need translation.
    pub translated: usize,
    /// Connections of these that have no socket.
    pub socketless: usize,
    /// Objects that are pinned.
    pub objects: usize,
    /// Memory of pinned answers, those being retired included.
    pub bytes: usize,
    /// The part of it that is kept for clients that may still need it.
    pub retired_bytes: usize,
    /// Answers of several segments that are under way.
    pub transfers: usize,
    /// Answers that the self-check has compared, by its results.
    pub self_checks: [(&'static str, u64); 3],
    /// Objects left to user mode, by reason.
    pub left: [(&'static str, u64); 4],
    /// Every way out of the programs.
    pub packets: Vec<(&'static str, u64)>,
    /// Ways out of the programs for each interface, as far as they belong to one.
    pub by_interface: Vec<(String, Vec<(&'static str, u64)>)>,
}

impl FastPathView {
    /// Of the one that runs.
    pub fn of(fast_path: &RunningFastPath) -> Self {
        Self(Viewed::Running(Arc::clone(fast_path.core())))
    }

    /// There is none.
    pub fn without(why: String) -> Self {
        Self(Viewed::Without(ArcSwap::from_pointee(why)))
    }

    /// There is none for another reason than before.
    pub fn set_without(&self, why: String) {
        if let Viewed::Without(reason) = &self.0 {
            reason.store(Arc::new(why));
        }
    }

    /// Whether it is in use and where, or why not.
    pub fn line(&self) -> String {
        match &self.0 {
            Viewed::Without(why) => why.load().to_string(),
            Viewed::Running(core) if core.fast_path.clients.is_paused() => {
                "not in use: `afpa pause` stopped it (`afpa resume`)".to_owned()
            }
            Viewed::Running(core) if core.is_answering() => {
                format!("in use on {}", core.interfaces().list())
            }
            Viewed::Running(core) if core.counts.broken.load(Ordering::SeqCst) => {
                "not in use: an object could not be taken back (restart)".to_owned()
            }
            Viewed::Running(core) if core.differs.load(Ordering::SeqCst) => {
                "not in use: the self-check found a wrong answer (see the log)".to_owned()
            }
            Viewed::Running(core) if core.hanging.load(Ordering::Relaxed) => {
                "not in use: a worker hangs".to_owned()
            }
            Viewed::Running(_) => "not in use: paused".to_owned(),
        }
    }

    /// Where connections begin; None: in the kernel's TCP, as the settings say, or without the fast path.
    pub fn sockets(&self) -> Option<String> {
        let Viewed::Running(core) = &self.0 else { return None };
        core.where_connections_begin()
    }

    /// Connections that user mode does not see.
    pub fn without_socket(&self) -> usize {
        let Viewed::Running(core) = &self.0 else { return 0 };
        core.fast_path.clients.without_socket()
    }

    /// The kernel's part of each site, in the order of the configuration; empty without the fast path.
    pub fn sites(&self) -> Vec<SiteInKernel> {
        let Viewed::Running(core) = &self.0 else { return Vec::new() };
        let current = core.current.load();
        let sites = current.iter().flat_map(|current| &current.eligibility);
        let state = |site: &Eligibility| match core.is_answering() {
            true => site.to_string(),
            false => "no: the fast path is not in use".to_owned(),
        };
        let sites = sites.zip(core.site_counts());
        sites.map(|(site, count)| SiteInKernel { state: state(site), count }).collect()
    }

    /// How often the kernel answered with a kept answer of a server.
    pub fn answers_of_servers(&self) -> u64 {
        let Viewed::Running(core) = &self.0 else { return 0 };
        core.fast_path.stats.counters().map_or(0, |counters| counters[Reason::AnsweredShared])
    }

    /// The numbers, if there are any.
    pub fn numbers(&self) -> Option<FastPathNumbers> {
        let Viewed::Running(core) = &self.0 else { return None };
        let counters = core.fast_path.stats.counters().ok()?;
        let usage = core.fast_path.objects.usage();
        let swept = *core.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = &core.counts;
        let interfaces = core.interface_names();
        Some(FastPathNumbers {
            answering: core.is_answering(),
            paused: core.fast_path.clients.is_paused(),
            interfaces,
            answers: counters.answered(),
            not_modified: counters[Reason::AnsweredNotModified],
            lost_log_lines: counters[Reason::EventLost],
            flows: swept.flows - swept.removed,
            translated: swept.translated,
            socketless: core.fast_path.clients.without_socket(),
            objects: usage.objects,
            bytes: usage.bytes,
            retired_bytes: usage.retired_bytes,
            transfers: core.fast_path.flows.transfers().ok()?,
            self_checks: core.self_checks(),
            left: [
                ("full", counts.full.load(Ordering::Relaxed)),
                ("too_long", counts.too_long.load(Ordering::Relaxed)),
                ("failed", counts.failed.load(Ordering::Relaxed)),
                ("put_aside", counts.put_aside.load(Ordering::Relaxed)),
            ],
            packets: by_name(&counters),
            by_interface: core.by_interface(),
        })
    }

    /// The objects in the kernel that save the most time, and likewise of those that are not in it.
    fn most_useful(&self) -> Value {
        const MOST: usize = 10;
        let Viewed::Running(core) = &self.0 else { return Value::Null };
        let current = core.current.load();
        let seen = current.as_ref().map(|current| current.files.kernel_cache.most_useful(MOST));
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

    /// For people, in the order in which they read it.
    pub fn to_json(&self) -> Value {
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
            "sockets": self.sockets(),
            "paused": numbers.paused,
            "answers": numbers.answers,
            "lost_log_lines": numbers.lost_log_lines,
            "flows": numbers.flows,
            "translated": numbers.translated,
            "without_socket": numbers.socketless,
            "objects": numbers.objects,
            "pinned_bytes": numbers.bytes,
            "retired_bytes": numbers.retired_bytes,
            "transfers": numbers.transfers,
            "interfaces": numbers.interfaces,
            "self_checks": seen(&numbers.self_checks),
            "objects_left": seen(&numbers.left),
            "most_useful_objects": self.most_useful(),
            "packets": seen(&numbers.packets),
            "packets_by_interface": Value::Object(by_interface.collect()),
        })
    }
}

impl FastPathCore {
    fn self_checks(&self) -> [(&'static str, u64); 3] {
        let counts = self.self_check.get();
        let read = |count: fn(&SelfCheckCounts) -> &AtomicU64| {
            counts.map_or(0, |counts| count(counts).load(Ordering::Relaxed))
        };
        [
            ("same", read(|counts| &counts.same)),
            ("unknown", read(|counts| &counts.unknown)),
            ("different", read(|counts| &counts.different)),
        ]
    }

    fn interface_names(&self) -> Vec<String> {
        self.interfaces().iter().map(|(_, name)| name.to_owned()).collect()
    }

    fn by_interface(&self) -> Vec<(String, Vec<(&'static str, u64)>)> {
        let counters = self.fast_path.stats.interface_counters().unwrap_or_default();
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
