//! Under which URLs kept answers of servers may be given by the kernel, and which request fields matter there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use afpa_http::target;
use afpa_module_http::{Global, KernelPlace, KernelRules};
use afpa_router::{Action, Router, SiteId};

use crate::scope::{certainly, head};

/// The request sets whose kept answers the kernel may give.
pub(crate) struct AnswerScope {
    router: Arc<Router>,
    /// By the number of the request set: the site with its rules.
    scopes: HashMap<u32, u32>,
    /// Sites with their rules whose answers say in Cache-Status how long they are fresh.
    telling: HashSet<u32>,
    /// By the site with its rules, which keys begin with.
    ways: HashMap<u32, Vec<Way>>,
    /// The class of each field that matters anywhere, by its name in lower case.
    classes: Vec<(String, u32)>,
}

/// From URLs to paths at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    site: SiteId,
    /// What URLs of the site have before the path that the server gets.
    head: Box<[u8]>,
    /// Classes of fields.
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

/// Most ways to the answers of one site.
const MOST_WAYS: usize = 64;

/// Bits for classes of fields. Names that are more than these share the last.
const CLASSES: usize = 24;

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
        (!rules.is_empty()).then(|| Self::new(Arc::clone(&router), &rules))
    }

    fn new(router: Arc<Router>, rules: &[(u32, KernelRules)]) -> Self {
        let names: BTreeSet<&String> = rules.iter().flat_map(|(_, rules)| &rules.fields).collect();
        let class = |number: usize| 1_u32 << number.min(CLASSES - 1);
        let classes = names.into_iter().enumerate();
        let classes: Vec<(String, u32)> =
            classes.map(|(number, name)| (name.clone(), class(number))).collect();
        let matter = |fields: &[String]| {
            let named = classes.iter().filter(|(name, _)| fields.contains(name));
            named.fold(0, |all, (_, class)| all | class)
        };
        let (mut scopes, mut ways) = (HashMap::new(), HashMap::<u32, Vec<Way>>::new());
        for (number, rules) in rules {
            let Some(set) = router.sets().get(*number as usize) else { continue };
            let Some(head) = head(set) else { continue };
            scopes.insert(*number, rules.scope);
            let way = Way { site: set.site, head: head.into(), matter: matter(&rules.fields) };
            let known = ways.entry(rules.scope).or_default();
            if !known.contains(&way) && known.len() < MOST_WAYS {
                known.push(way);
            }
        }
        let telling = rules.iter().filter(|(_, rules)| rules.tells);
        let telling = telling.map(|(_, rules)| rules.scope).collect();
        Self { router, scopes, telling, ways, classes }
    }

    /// The class of each field that matters anywhere.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.classes.iter().map(|(name, class)| (&**name, *class))
    }

    /// Whether the answers of a site with its rules say in Cache-Status how long they are fresh.
    pub(crate) fn tells(&self, scope: u32) -> bool {
        self.telling.contains(&scope)
    }

    /// The targets for which every GET and HEAD, but for the fields that matter, is answered from this place.
    pub(crate) fn targets(&self, place: &KernelPlace<'_>) -> Vec<AnswerTarget> {
        let ways = self.ways.get(&place.scope).into_iter().flatten();
        let targets = ways.filter_map(|way| {
            let url = [&way.head, place.path].concat();
            self.leads(way.site, &url, place).then(|| {
                let mut target = Vec::with_capacity(url.len());
                target::encode(&url, &mut target);
                if let Some(query) = place.query {
                    target.push(b'?');
                    target.extend_from_slice(query);
                }
                AnswerTarget { site: way.site.0 as usize, target, matter: way.matter }
            })
        });
        targets.collect()
    }

    /// Whether the router certainly leads from the URL to the place.
    fn leads(&self, site: SiteId, url: &[u8], place: &KernelPlace<'_>) -> bool {
        certainly(&self.router, site, url, place.path).is_some_and(|(action, set)| {
            matches!(action, Action::Distributed { .. })
                && self.scopes.get(&set.0) == Some(&place.scope)
        })
    }
}

#[cfg(test)]
mod tests;
