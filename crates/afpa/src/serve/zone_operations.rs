//! DNS on the control socket: the zones that are served, and orders for them.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afpa_dns::Name;
use afpa_dnstap::Counts;
use afpa_framework::{Arguments, Control, Operation, Refusal, Reply};
use afpa_module_dns::ZoneStore;
use afpa_module_dns::held::Transfers;
use rustix::event::{EventfdFlags, eventfd};
use serde_json::{Value, json};

/// A large zone takes long to read: then the log tells its end.
const PATIENCE: Duration = Duration::from_secs(4);

/// An order for the thread that keeps zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneOrder {
    /// Reads its file again, whether it has changed or not.
    Read,
    /// Tells the secondaries.
    Notify,
}

/// An order, the zone's name in lower case, and where to say what was done.
pub(super) struct Ordered {
    pub(super) order: ZoneOrder,
    pub(super) apex: Box<[u8]>,
    pub(super) done: SyncSender<Result<String, String>>,
}

/// Orders on their way to the thread that keeps zones.
pub(super) struct ZoneOrders {
    waiting: Mutex<Vec<Ordered>>,
    /// Readable while something waits.
    pub(super) wake: OwnedFd,
}

impl ZoneOrders {
    pub(super) fn new() -> std::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { waiting: Mutex::default(), wake })
    }

    fn give(&self, ordered: Ordered) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(ordered);
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// All that wait.
    pub(super) fn take(&self) -> Vec<Ordered> {
        let _ = rustix::io::read(&self.wake, &mut [0_u8; 8]);
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The owner of the operations. It lives as long as the process.
pub(crate) struct ZoneOperations {
    pub(super) store: Arc<ZoneStore>,
    /// Where the thread takes its orders from; a reload replaces it.
    pub(super) orders: Mutex<Option<Arc<ZoneOrders>>>,
    /// The numbers of samples that go to a reader of dnstap.
    pub(super) samples: Mutex<Option<Arc<Counts>>>,
}

const OPERATIONS: &[Operation] = &[
    Operation::look("dns/zones", "", "zones with serial number, end of signatures and transfers"),
    Operation::change(
        "dns/read",
        "zone=NAME|name=NAME",
        "reads the file of a zone again, or of the zone that has a name",
    ),
    Operation::change("dns/notify", "zone=NAME", "tells the secondaries of a zone to look at it"),
];

impl Control for ZoneOperations {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        match name {
            "dns/zones" => Ok(Reply::json(self.zones().to_string())),
            "dns/read" => self.order(ZoneOrder::Read, arguments),
            "dns/notify" => self.order(ZoneOrder::Notify, arguments),
            _ => Err(Refusal::Failed),
        }
    }
}

impl ZoneOperations {
    /// Older versions that transfers hold, their memory, and transfers that were ended for it.
    pub(super) fn held(&self) -> (usize, usize, u64) {
        self.store.held().standing()
    }

    /// Samples that a reader of dnstap has, and those that are lost.
    pub(super) fn samples(&self) -> (u64, u64) {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        samples.as_ref().map_or((0, 0), |counts| (of(&counts.written), of(&counts.lost)))
    }

    /// All zones, by their names.
    pub(super) fn zones(&self) -> Value {
        let mut zones = self.store.zones();
        zones.sort_by_key(|served| served.zone.apex().lower().to_string());
        let held = self.store.held();
        let rows = zones.iter().map(|served| {
            let zone = &served.zone;
            let Transfers { begun, going, versions } = held.of(zone.apex().lower().wire());
            json!({
                "zone": zone.apex().to_string(),
                "serial": zone.serial(),
                "names": zone.names(),
                "signed_until": zone.signed_until(),
                "transfers": begun,
                "transfers_going_on": going,
                "older_versions_held": versions,
            })
        });
        rows.collect()
    }

    fn order(&self, order: ZoneOrder, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let named = |key: &str| arguments.text(key).map(|text| (read_name(&text), text));
        let ((name, text), exact) = match (named("zone"), named("name")) {
            (Some(zone), _) => (zone, true),
            (None, Some(name)) if order == ZoneOrder::Read => (name, false),
            _ => return Err(Refusal::Invalid("zone=NAME is missing".to_owned())),
        };
        let name = name.ok_or_else(|| Refusal::Invalid(format!("{text} is no name")))?;
        let zone = self.store.zone_of(&name).map(|zone| zone.apex().lower());
        let zone = zone.filter(|apex| !exact || apex.wire() == name.lower().wire());
        let absent =
            || Refusal::Absent(format!("no [[zone]] {} {text}", if exact { "is" } else { "has" }));
        let apex = zone.ok_or_else(absent)?;
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (done, outcome) = sync_channel(1);
        orders.ok_or_else(absent)?.give(Ordered { order, apex: apex.wire().into(), done });
        match outcome.recv_timeout(PATIENCE) {
            Ok(Ok(said)) => Ok(Reply::text(said + "\n")),
            Ok(Err(why)) => Err(Refusal::Invalid(why)),
            Err(RecvTimeoutError::Timeout) => {
                Ok(Reply::text("this takes a while: the log tells its end\n"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(Refusal::Absent("zones are being replaced by a reload".to_owned()))
            }
        }
    }
}

/// A name as people write it, with or without a dot at its end.
fn read_name(text: &str) -> Option<Name> {
    let dot = if text.ends_with('.') { "" } else { "." };
    Name::parse(&format!("{text}{dot}"), &Name::root()).ok()
}
