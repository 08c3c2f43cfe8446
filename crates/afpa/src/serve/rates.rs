//! The rates of places, from the configuration.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use afpa_config::{Config, RateOrigin};
use afpa_module_http::{Global, PlaceRates, RatePlace, RateStock, Rates};
use afpa_police::{Quota, SharedQuota};
use afpa_router::{RequestSet, Router};

/// The rates of all places. Where a place stays, its clients are counted on, one by one and all together.
pub(super) fn build(
    config: &Config,
    router: Option<&Router>,
    names: &[String],
    previous: &Global,
) -> Rates {
    let stock = Arc::clone(&previous.rates.stock);
    if !config.sites.iter().any(|site| site.has_rates()) {
        return Rates { stock, ..Rates::default() };
    }
    let buckets = buckets(&previous.rates);
    let (places, known) = (Vec::new(), HashMap::new());
    let mut building = Building { config, names, buckets, places, known };
    let sets = router.map_or(&[][..], |router| router.sets());
    let of_set = |set: &RequestSet| (set.site.0 as usize, Some(set.path), Some(set.content));
    let sets = sets.iter().map(|set| building.of(of_set(set))).collect();
    let sites = (0..config.sites.len()).map(|site| building.of((site, None, None))).collect();
    Rates { places: building.places, sets, sites, stock }
}

/// No rates yet. Clients cannot guess which of them are counted together.
pub(super) fn none() -> Rates {
    let stock = Arc::new(RateStock::new(RandomState::new().hash_one(0)));
    Rates { stock, ..Rates::default() }
}

/// The buckets that all clients of a place share, by the keys of the places.
fn buckets(rates: &Rates) -> HashMap<u64, Vec<Arc<SharedQuota>>> {
    let mut buckets: HashMap<u64, Vec<_>> = HashMap::new();
    for place in rates.places.iter().rev() {
        if let RatePlace::All(name, bucket) = place {
            buckets.entry(*name).or_default().push(Arc::clone(bucket));
        }
    }
    buckets
}

struct Building<'c> {
    config: &'c Config,
    names: &'c [String],
    /// Buckets of the configuration before that no place has taken again.
    buckets: HashMap<u64, Vec<Arc<SharedQuota>>>,
    places: Vec<RatePlace>,
    /// By the site, where it is written, and whether it is that of each client.
    known: HashMap<(usize, RateOrigin, bool), usize>,
}

impl Building<'_> {
    fn of(&mut self, (site, path, content): (usize, Option<usize>, Option<usize>)) -> PlaceRates {
        // Sites behind those of the configuration lead to TLS.
        let Some(settings) = self.config.sites.get(site) else { return PlaceRates::default() };
        let [client, all] = settings.rates_of(path, content);
        PlaceRates {
            client: client.map(|(origin, quota)| self.place(site, origin, (true, quota))),
            all: all.map(|(origin, quota)| self.place(site, origin, (false, quota))),
        }
    }

    fn place(
        &mut self,
        site: usize,
        origin: RateOrigin,
        (of_client, quota): (bool, Quota),
    ) -> usize {
        let key = (site, origin, of_client);
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let name = self.name(site, origin, quota);
        self.places.push(match of_client {
            true => RatePlace::Client(name, quota),
            false => {
                let before = self.buckets.get_mut(&name).and_then(Vec::pop);
                let bucket = before.unwrap_or_else(|| Arc::new(SharedQuota::new(quota)));
                RatePlace::All(name, bucket)
            }
        });
        self.known.insert(key, self.places.len() - 1);
        self.places.len() - 1
    }

    /// A number that a place keeps after a reload: edits elsewhere do not matter.
    fn name(&self, site: usize, origin: RateOrigin, quota: Quota) -> u64 {
        let path = match origin {
            RateOrigin::Site => None,
            RateOrigin::Path(path) | RateOrigin::Content(path, _) => Some(path),
        };
        let settings = self.config.sites.get(site);
        let path = settings.zip(path).and_then(|(site, path)| site.paths.get(path));
        let content = match origin {
            RateOrigin::Content(_, number) => Some(number),
            _ => None,
        };
        let mut hasher = DefaultHasher::new();
        let prefix = path.map(|path| (&path.prefix, path.exact, path.recursion));
        (self.names.get(site), prefix, content, quota).hash(&mut hasher);
        hasher.finish()
    }
}
