//! Under which URLs kept answers of servers may be given by the kernel, and which request fields matter there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use afpa_http::target;
use afpa_module_http::{Global, Guards};
use afpa_router::{Action, Router, SiteId};
use afpa_shared_cache::{KernelPlace, KernelRules};

use crate::scope::certainly;

/// The request sets whose kept answers the kernel may give.
pub(crate) struct AnswerScope {
    router: Arc<Router>,
    /// By the number of the request set.
    sets: HashMap<u32, Set>,
    /// Sites with their rules whose answers say in Cache-Status how long they are fresh.
    telling: HashSet<u32>,
    /// By the number of the site with its rules, which is in keys: the sites.
    sites: HashMap<u32, Vec<SiteId>>,
    /// The class of each field that matters anywhere, by its name in lower case.
    classes: Vec<(String, u32)>,
    /// The parts that not everybody may use.
    guards: Option<Arc<Guards>>,
}

/// A request set whose kept answers the kernel may give.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// The number of the site with its rules.
    scope: u32,
    /// Classes of fields that matter.
    matter: u32,
}

/// A target that leads to an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerTarget {
    /// The place of its site in the configuration.
    pub(crate) site: usize,
    /// As requests spell it.
    pub(crate) target: Vec<u8>,
    /// Classes of fields that matter.
    pub(crate) matter: u32,
}

/// Bits for classes of fields. Names that are more than these share the last.
const CLASSES: usize = 24;

fn class_at(place: usize) -> u32 {
    1 << place.min(CLASSES - 1)
}

impl AnswerScope {
    /// Of a configuration; `None`: the kernel gives no kept answers.
    pub(crate) fn of(global: &Global) -> Option<Self> {
        let router = global.router.clone()?;
        let rules = router.sets().iter().enumerate();
        let rules: Vec<_> = rules
            .filter_map(|(number, set)| {
                Some((u32::try_from(number).ok()?, global.kernel_rules(number, set)?))
            })
            .collect();
        let guards = global.guards.clone();
        (!rules.is_empty()).then(|| Self { guards, ..Self::new(Arc::clone(&router), &rules) })
    }

    fn new(router: Arc<Router>, rules: &[(u32, KernelRules)]) -> Self {
        let names: BTreeSet<&String> = rules.iter().flat_map(|(_, rules)| &rules.fields).collect();
        let classes = names.into_iter().enumerate();
        let classes: Vec<(String, u32)> =
            classes.map(|(number, name)| (name.clone(), class_at(number))).collect();
        let matter = |fields: &[String]| {
            let named = classes.iter().filter(|(name, _)| fields.contains(name));
            named.fold(0, |all, (_, class)| all | class)
        };
        let (mut sets, mut sites) = (HashMap::new(), HashMap::<u32, Vec<SiteId>>::new());
        for (number, rules) in rules {
            let Some(set) = router.sets().get(*number as usize) else { continue };
            let scope = rules.scope;
            sets.insert(*number, Set { scope, matter: matter(&rules.fields) });
            let known = sites.entry(scope).or_default();
            if !known.contains(&set.site) {
                known.push(set.site);
            }
        }
        let telling = rules.iter().filter(|(_, rules)| rules.tells);
        let telling = telling.map(|(_, rules)| rules.scope).collect();
        Self { router, sets, telling, sites, classes, guards: None }
    }

    /// Gives each field the class of its place in `known`, to which new names are added. The programs keep a name for which
    /// another configuration has no use, and answers of that configuration may still be there: no class may become that of
    /// another name.
    pub(crate) fn keep_classes(&mut self, known: &mut Vec<String>) {
        let mut kept = Vec::new();
        for (name, class) in &mut self.classes {
            let place = known.iter().position(|one| one == name).unwrap_or(known.len());
            if place == known.len() {
                known.push(name.clone());
            }
            kept.push((*class, class_at(place)));
            *class = class_at(place);
        }
        for set in self.sets.values_mut() {
            let matter = kept.iter().filter(|(before, _)| set.matter & before != 0);
            set.matter = matter.fold(0, |all, (_, class)| all | class);
        }
    }

    /// The class of each field that matters anywhere.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.classes.iter().map(|(name, class)| (&**name, *class))
    }

    /// Whether the answers of a site with its rules say in Cache-Status how long they are fresh.
    pub(crate) fn tells(&self, scope: u32) -> bool {
        self.telling.contains(&scope)
    }

    /// The targets for which every GET and HEAD, but for the fields that matter, is answered from this place: that of its URL, on
    /// each site that leads there.
    pub(crate) fn targets(&self, place: &KernelPlace<'_>) -> Vec<AnswerTarget> {
        let sites = self.sites.get(&place.scope).into_iter().flatten();
        let targets = sites.filter_map(|&site| {
            let Set { matter, .. } = self.set(site, place)?;
            let mut target = place.url.clone();
            if let Some(query) = place.query {
                target.push(b'?');
                target.extend_from_slice(query);
            }
            Some(AnswerTarget { site: site.0 as usize, target, matter })
        });
        targets.collect()
    }

    /// The request set by which the router certainly leads from the URL of a place to it.
    fn set(&self, site: SiteId, place: &KernelPlace<'_>) -> Option<Set> {
        let (mut url, mut path) = (Vec::new(), Vec::new());
        let url = target::normalise(&place.url, &mut url).ok()?;
        let path = target::normalise(&place.path, &mut path).ok()?;
        // With slashes in its place, the path may lead to a place that is shut.
        if url.contains(&target::ESCAPED_SLASH) {
            return None;
        }
        if self.guards.as_ref().is_some_and(|guards| guards.may_refuse(site, url, &[])) {
            return None;
        }
        let (action, set) = certainly(&self.router, site, url, path)?;
        let set = *self.sets.get(&set.0)?;
        let is_it = matches!(action, Action::Distributed { .. }) && set.scope == place.scope;
        is_it.then_some(set)
    }
}

#[cfg(test)]
mod tests;
