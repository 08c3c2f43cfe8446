//! The rates of places, from the configuration.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use afpa_config::{Config, RateOrigin};
use afpa_module_http::{Global, PlaceRates, RatePlace, RateStock, Rates};
use afpa_police::{Quota, SharedQuota};
use afpa_router::{RequestSet, Router};

/// The rates of all places. Clients whose place stays are counted on.
pub(super) fn build(
    config: &Config,
    router: Option<&Router>,
    names: &[String],
    previous: Option<&Global>,
) -> Rates {
    let stock = previous.map(|global| Arc::clone(&global.rates.stock));
    let seed = || RandomState::new().hash_one(0);
    let stock = stock.unwrap_or_else(|| Arc::new(RateStock::new(seed())));
    if !config.sites.iter().any(|site| site.has_rates()) {
        return Rates { stock, ..Rates::default() };
    }
    let mut building = Building { config, names, places: Vec::new(), known: HashMap::new() };
    let sets = router.map_or(&[][..], |router| router.sets());
    let of_set = |set: &RequestSet| (set.site.0 as usize, Some(set.path), Some(set.content));
    let sets = sets.iter().map(|set| building.of(of_set(set))).collect();
    let sites = (0..config.sites.len()).map(|site| building.of((site, None, None))).collect();
    Rates { places: building.places, sets, sites, stock }
}

struct Building<'c> {
    config: &'c Config,
    names: &'c [String],
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
        self.places.push(match of_client {
            true => RatePlace::Client(self.name(site, origin, quota), quota),
            false => RatePlace::All(SharedQuota::new(quota)),
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
