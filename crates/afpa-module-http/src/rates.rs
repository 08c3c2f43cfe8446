//! How often the clients of a place may ask. A request counts where the router sends it, whatever answers it, and once in
//! each place, however often its response is derived.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afpa_http::Status;
use afpa_police::{Quota, QuotaTable, SharedQuota};
use afpa_router::{RequestSetId, SiteId};

use crate::learnt::Learnt;

/// The rates of all places.
#[derive(Debug, Default)]
pub struct Rates {
    /// The places that were configured.
    pub places: Vec<RatePlace>,
    /// The rates of each request set, by its number; empty: there are none.
    pub sets: Vec<PlaceRates>,
    /// By the number of the site, for requests that belong to no set.
    pub sites: Vec<PlaceRates>,
    /// A reload keeps it.
    pub stock: Arc<RateStock>,
}

/// The rates of a place, as numbers in the list of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceRates {
    /// That of each client.
    pub client: Option<usize>,
    /// That of all clients together.
    pub all: Option<usize>,
}

/// A rate that was configured.
#[derive(Debug)]
pub enum RatePlace {
    /// Of each client. A key tells places apart, also after a reload.
    Client(u64, Quota),
    /// Of all together. By its key a reload finds the bucket again.
    All(u64, Arc<SharedQuota>),
}

/// The buckets of clients, and how many requests were refused.
#[derive(Debug, Default)]
pub struct RateStock {
    table: QuotaTable,
    clients: AtomicU64,
    all: AtomicU64,
}

impl RateStock {
    /// Empty. `seed` is the secret of the hash of clients.
    pub fn new(seed: u64) -> Self {
        Self { table: QuotaTable::new(seed), ..Self::default() }
    }

    /// How many requests were refused by the rates of clients, and by those of all.
    pub fn refused(&self) -> [u64; 2] {
        [&self.clients, &self.all].map(|count| count.load(Ordering::Relaxed))
    }
}

/// A request beyond a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limited {
    pub(crate) status: Status,
    pub(crate) retry_after_s: u64,
}

impl PlaceRates {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Rates {
    /// The rates that count a request.
    #[inline]
    pub(crate) fn of(&self, scope: Option<(SiteId, Option<RequestSetId>)>) -> PlaceRates {
        if self.places.is_empty() {
            return PlaceRates::default();
        }
        let own = match scope {
            Some((_, Some(set))) => self.sets.get(set.0 as usize),
            Some((site, None)) => self.sites.get(site.0 as usize),
            None => None,
        };
        own.copied().unwrap_or_default()
    }

    /// Whether there is none at all.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether requests of a request set are counted.
    pub fn counts(&self, set: usize) -> bool {
        self.sets.get(set).is_some_and(|rates| !rates.is_empty())
    }

    /// Counts a request of a client, which no rate has counted before. A client without an address has no rate of its own.
    /// Rates of clients come first: one beyond it costs others nothing. `read_as`: those of the places to which other readings
    /// of the path lead.
    #[cold]
    pub(crate) fn charge(
        &self,
        (rates, read_as): (PlaceRates, &[PlaceRates]),
        client: Option<IpAddr>,
        learnt: Option<&Learnt>,
        steady_us: u64,
    ) -> Result<(), Limited> {
        let now = steady_us.saturating_mul(1000);
        let each = || std::iter::once(&rates).chain(read_as);
        let of_clients = each().map(|rates| rates.client);
        let numbers = of_clients.chain(each().map(|rates| rates.all)).enumerate();
        let is_new = |number: &usize| learnt.is_none_or(|learnt| !learnt.charged.contains(number));
        for (place, number) in numbers.clone() {
            let mut before = numbers.clone().take(place);
            let Some(number) = number.filter(is_new) else { continue };
            if before.any(|(_, earlier)| earlier == Some(number)) {
                continue;
            }
            let (taken, status, count) = match (self.places.get(number), client) {
                (Some(RatePlace::Client(place, quota)), Some(client)) => {
                    let taken = self.stock.table.take(*place, client, *quota, now);
                    (taken, Status::TOO_MANY_REQUESTS, &self.stock.clients)
                }
                (Some(RatePlace::All(_, quota)), _) => {
                    (quota.take(now), Status::SERVICE_UNAVAILABLE, &self.stock.all)
                }
                _ => continue,
            };
            if let Err(retry_after_s) = taken {
                count.fetch_add(1, Ordering::Relaxed);
                return Err(Limited { status, retry_after_s });
            }
        }
        Ok(())
    }
}
