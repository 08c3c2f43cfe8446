//! The places of rates: which rate a request set has, and where it is written.

use afpa_police::Quota;

use crate::rates::{RateLimit, Rates};
use crate::site_settings::SiteSettings;

/// Where a rate is written. All requests that it applies to count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateOrigin {
    /// At the site.
    Site,
    /// At a path, by its number.
    Path(usize),
    /// At a content group of a path.
    Content(usize, usize),
}

/// A rate, and where it is written.
type Found = Option<(RateOrigin, Quota)>;

impl SiteSettings {
    /// The rates of each client and of all, in a content group of a path by their numbers in the router's table, and
    /// where each is written.
    pub fn rates_of(&self, path: Option<usize>, content: Option<usize>) -> [Found; 2] {
        let at_site = Some((RateOrigin::Site, self.rates));
        let at_path = path.and_then(|number| {
            Some((RateOrigin::Path(number), self.paths.get(number)?.behaviour.rates))
        });
        let at_content = path.zip(content).and_then(|(path, number)| {
            let content = self.paths.get(path)?.contents.get(number)?;
            Some((RateOrigin::Content(path, number), content.behaviour.rates))
        });
        let own = |of: fn(&Rates) -> Option<RateLimit>| {
            let mut all = [at_content, at_path, at_site].into_iter().flatten();
            match all.find_map(|(origin, rates)| Some((origin, of(&rates)?)))? {
                (_, RateLimit::None) => None,
                (origin, RateLimit::Most(quota)) => Some((origin, quota)),
            }
        };
        [own(|rates| rates.client), own(|rates| rates.all)]
    }

    /// Whether some place of it has a rate.
    pub fn has_rates(&self) -> bool {
        let places = self.places().map(|place| place.behaviour.rates);
        std::iter::once(self.rates).chain(places).any(|rates| !rates.is_empty())
    }
}
