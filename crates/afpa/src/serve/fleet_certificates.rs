//! The other machines of a fleet, for the thread that orders certificates.

use std::sync::Arc;
use std::time::Duration;

use afpa_acme::{Held, Later, Others};
use afpa_fleet::{FleetView, HeldRecord, Records};

use super::observe::Observed;

/// An authority may look at the answers after so long at the latest.
const PATIENCE: Duration = Duration::from_secs(10);

/// The machines of the fleet that this process belongs to at the moment: a reload may begin another fleet.
pub(super) struct Machines(pub(super) Arc<Observed>);

impl Machines {
    fn records(&self) -> Option<Records> {
        self.0.fleet.load_full().as_deref().map(FleetView::records)
    }
}

impl Others for Machines {
    fn are_here(&self) -> bool {
        self.records().is_some_and(|records| records.are_read())
    }

    fn value(&self, key: &str) -> Option<Arc<str>> {
        self.records()?.value(key)
    }

    fn take<'a>(&'a self, key: &'a str) -> Later<'a, Result<Option<Box<dyn Held>>, String>> {
        Box::pin(async move {
            let records = self.records().ok_or("this machine takes part in none")?;
            let taken = records.take(key).await?;
            Ok(taken.map(|held| Box::new(HeldHere(held)) as Box<dyn Held>))
        })
    }

    fn changed(&self) -> Later<'_, ()> {
        Box::pin(async move {
            match self.records() {
                Some(records) => records.changed().await,
                None => std::future::pending().await,
            }
        })
    }
}

/// A record that this process holds.
struct HeldHere(HeldRecord);

impl Held for HeldHere {
    fn value(&self) -> Option<Arc<str>> {
        self.0.value()
    }

    fn holds(&self) -> bool {
        self.0.holds()
    }

    fn put(&mut self, value: String) -> Later<'_, Result<(), String>> {
        Box::pin(self.0.put(value.into()))
    }

    fn seen(&self) -> Later<'_, ()> {
        Box::pin(async move {
            let late = self.0.seen(PATIENCE).await;
            if !late.is_empty() {
                let late = late.join(", ");
                tracing::warn!("these machines may not answer the challenges of an order: {late}");
            }
        })
    }

    fn give_back(self: Box<Self>, value: String) -> Later<'static, Result<(), String>> {
        Box::pin(self.0.give_back(value.into()))
    }
}
