//! Request sets that no request can reach, because those before them take all of theirs.

use std::collections::HashSet;

use afpa_http::Method;

use crate::conditions::{Conditions, FieldCondition};
use crate::extension::Extension;
use crate::ids::RequestSetId;
use crate::pattern::Pattern;
use crate::router::Router;
use crate::site_paths::CompiledPath;
use crate::table::Reach;

impl Router {
    /// The request sets that no request can reach.
    pub fn unreachable(&self) -> Vec<RequestSetId> {
        let places = self.sites.iter().flat_map(|site| &site.by_prefix);
        let places = places.flat_map(|at_prefix| &at_prefix.places);
        places.flat_map(|place| self.unreachable_at(place)).collect()
    }

    fn unreachable_at(&self, place: &CompiledPath) -> impl Iterator<Item = RequestSetId> {
        let mut reached = HashSet::new();
        for candidates in self.kinds(place) {
            for (at, number) in candidates.iter().enumerate() {
                let before = candidates.get(..at).unwrap_or_default();
                if !before.iter().any(|earlier| self.takes_all_of(*earlier, *number)) {
                    reached.insert(*number);
                }
            }
        }
        place.sets.clone().filter(move |number| !reached.contains(number)).map(RequestSetId)
    }

    /// The request sets that are tried for each kind of file that a path here may name.
    fn kinds<'p>(&self, place: &'p CompiledPath) -> Vec<&'p [u32]> {
        let first = self.sets.get(place.sets.start as usize);
        if let (Reach::Exact, Some(set)) = (place.reach, first) {
            return vec![place.candidates(Extension::of(&set.prefix), &mut ())];
        }
        let named = place.named.values().map(|candidates| &**candidates);
        named.chain([&*place.none, &*place.others]).collect()
    }

    fn takes_all_of(&self, earlier: u32, later: u32) -> bool {
        let conditions = |number: u32| Some(&self.sets.get(number as usize)?.behaviour.conditions);
        conditions(earlier)
            .zip(conditions(later))
            .is_some_and(|(earlier, later)| earlier.hold_whenever(later))
    }
}

impl Conditions {
    /// Whether they hold for every request for which `others` do, as far as that is plain.
    fn hold_whenever(&self, others: &Conditions) -> bool {
        let allowed = |method: &String| self.allows(Method::new(method));
        let methods = self.methods.is_empty()
            || (!others.methods.is_empty() && others.methods.iter().all(allowed));
        let clients = self.clients.is_empty() || self.clients == others.clients;
        let paths = self.paths.is_empty() || self.paths == others.paths;
        methods
            && clients
            && paths
            && self.fields.iter().all(|own| others.fields.iter().any(|other| own.includes(other)))
    }
}

impl FieldCondition {
    fn includes(&self, other: &FieldCondition) -> bool {
        let same = (self.source, &self.name) == (other.source, &other.name);
        same && (self.value == Pattern::Any || self.value == other.value)
    }
}
