//! The counters of sites and request sets, one set of counters for each core.
//!
//! Each core counts the requests that it serves, in counters that no other thread writes: a hit costs two plain
//! additions and no lock. Metrics add up the counts of all cores.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use afpa_framework::Counter;
use afpa_proxy::observe::{BUCKETS, Histogram};
use afpa_router::{Action, Reach, RequestSet, RequestSetId, SiteId};

/// The counters of one core, by *scope*: a scope is a site or a request set.
#[derive(Debug, Default)]
pub struct ScopeTable {
    sites: Vec<Arc<ScopeStats>>,
    /// By their number; only those that have counters of their own.
    sets: Vec<Arc<ScopeStats>>,
}

/// The counters of one scope: of a request set, or of a site. A site also counts the requests that belong
/// to no request set, and those of request sets that have no counters of their own.
#[derive(Debug)]
pub struct ScopeStats {
    /// The name of the site in metrics.
    pub site: String,
    /// The name of the request set in metrics; `None`: these are the counters of the site.
    pub set: Option<String>,
    /// The path of a request set in the configuration, as spans name it; `None` for a site.
    pub(crate) route: Option<Box<str>>,
    own: Counts,
    /// The counters of its site, in which a request of a request set is counted, too.
    whole: Option<Arc<ScopeStats>>,
}

/// The counts of a scope at one moment; those of several cores may be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeReport {
    /// Answered requests by the first digit of the status: 1xx to 5xx.
    pub responses: [u64; CLASSES],
    /// Requests in flight: a helper thread or a server works on them.
    pub in_flight: u64,
    /// Microseconds from a distributed request to the last byte of its answer; `None` of a request set
    /// that is not distributed, and of a site without any that is.
    pub duration: Option<Histogram>,
}

const CLASSES: usize = 5;

/// On a line of its own, because the tables of several cores lie side by side.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Counts {
    responses: [Counter; CLASSES],
    in_flight: Counter,
    /// Only scopes with distributed requests have times.
    times: Option<Box<Times>>,
}

#[derive(Debug, Default)]
struct Times {
    buckets: [Counter; BUCKETS],
    sum_us: Counter,
}

impl ScopeTable {
    /// The counters of these sites, and of the first `counted` of these request sets of theirs. A scope that `previous`
    /// has under the same name goes on counting.
    pub(crate) fn new<'n>(
        sites: impl Iterator<Item = &'n str>,
        sets: &[RequestSet],
        counted: usize,
        previous: &ScopeTable,
    ) -> ScopeTable {
        let kept: HashMap<_, _> = previous.all().map(|scope| (scope.name(), scope)).collect();
        let times = |set: &RequestSet| matches!(set.behaviour.action, Action::Distributed { .. });
        let timed: HashSet<SiteId> =
            sets.iter().filter(|set| times(set)).map(|set| set.site).collect();
        let mut names = Names::default();
        let sites: Vec<Arc<ScopeStats>> = sites
            .zip(0..)
            .map(|(site, number)| {
                let times = timed.contains(&SiteId(number));
                ScopeStats::new(names.unique(site), None, times).or_kept(&kept)
            })
            .collect();
        let mut names = Names::default();
        let counted = sets.iter().take(counted).filter_map(|set| {
            let site = sites.get(set.site.0 as usize)?;
            let times = times(set);
            let scope = ScopeStats::new(site.site.clone(), Some(names.unique(&set.name)), times);
            let (route, whole) = (Some(route(set)), Some(Arc::clone(site)));
            Some(ScopeStats { whole, route, ..scope }.or_kept(&kept))
        });
        let sets = counted.collect();
        ScopeTable { sites, sets }
    }

    /// The counters of a request set; those of its site if the set has none of its own.
    #[inline]
    pub(crate) fn get(&self, site: SiteId, set: Option<RequestSetId>) -> Option<&Arc<ScopeStats>> {
        let own = set.and_then(|set| self.sets.get(set.0 as usize));
        own.or_else(|| self.sites.get(site.0 as usize))
    }

    /// All scopes: sites, in the order of the configuration, then request sets likewise.
    pub fn iter(&self) -> impl Iterator<Item = &ScopeStats> {
        self.all().map(|scope| &**scope)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<ScopeStats>> {
        self.sites.iter().chain(&self.sets)
    }
}

/// The path of a request set, with a star where it reaches further.
fn route(set: &RequestSet) -> Box<str> {
    let prefix = String::from_utf8_lossy(&set.prefix);
    match set.reach {
        Reach::Exact => prefix.into(),
        Reach::Recursion | Reach::NoRecursion => format!("{prefix}*").into(),
    }
}

/// A scope that has this name after a reload is the same one.
type Name<'s> = (&'s str, Option<&'s str>);

impl ScopeStats {
    fn new(site: String, set: Option<String>, times: bool) -> ScopeStats {
        let own = Counts { times: times.then(Box::default), ..Counts::default() };
        ScopeStats { site, set, route: None, own, whole: None }
    }

    fn name(&self) -> Name<'_> {
        (&self.site, self.set.as_deref())
    }

    /// The counters of before, if they are of the same kind and their site stays, too.
    fn or_kept(self, kept: &HashMap<Name<'_>, &Arc<ScopeStats>>) -> Arc<ScopeStats> {
        let site = |scope: &ScopeStats| scope.whole.as_ref().map(Arc::as_ptr);
        let same = |before: &ScopeStats| {
            before.own.times.is_some() == self.own.times.is_some() && site(before) == site(&self)
        };
        match kept.get(&self.name()).copied() {
            Some(before) if same(before) => Arc::clone(before),
            _ => Arc::new(self),
        }
    }

    /// Counts an answer.
    #[inline]
    pub(crate) fn answered(&self, status: u16) {
        let class = usize::from(status / 100).wrapping_sub(1);
        for scope in self.with_whole() {
            if let Some(counter) = scope.own.responses.get(class) {
                counter.add(1);
            }
        }
    }

    /// Counts how long a distributed request took.
    pub(crate) fn took(&self, us: u32) {
        for scope in self.with_whole() {
            let Some(times) = &scope.own.times else { continue };
            if let Some(counter) = times.buckets.get(Histogram::bucket_of(us)) {
                counter.add(1);
            }
            times.sum_us.add(u64::from(us));
        }
    }

    fn with_whole(&self) -> impl Iterator<Item = &ScopeStats> {
        std::iter::once(self).chain(self.whole.as_deref())
    }

    /// The counts at this moment.
    pub fn report(&self) -> ScopeReport {
        let duration = self.own.times.as_ref().map(|times| {
            Histogram::counted(times.buckets.each_ref().map(Counter::get), times.sum_us.get())
        });
        let responses = self.own.responses.each_ref().map(Counter::get);
        ScopeReport { responses, in_flight: self.own.in_flight.get(), duration }
    }
}

impl ScopeReport {
    /// Adds what another core counted.
    pub fn add(&mut self, other: &ScopeReport) {
        for (sum, count) in self.responses.iter_mut().zip(other.responses) {
            *sum += count;
        }
        self.in_flight += other.in_flight;
        match (&mut self.duration, &other.duration) {
            (Some(sum), Some(more)) => sum.add_all(more),
            (None, Some(more)) => self.duration = Some(more.clone()),
            (_, None) => {}
        }
    }

    /// Answered requests.
    pub fn requests(&self) -> u64 {
        self.responses.iter().sum()
    }
}

/// Counts a request as in flight until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<ScopeStats>);

impl InFlight {
    pub(crate) fn count(scope: &Arc<ScopeStats>) -> Self {
        for scope in scope.with_whole() {
            scope.own.in_flight.add(1);
        }
        Self(Arc::clone(scope))
    }

    pub(crate) fn scope(&self) -> &Arc<ScopeStats> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        for scope in self.0.with_whole() {
            scope.own.in_flight.sub(1);
        }
    }
}

/// Names that were given. Two sites may have their first host on different listeners, and two request
/// sets may differ in conditions alone; no two rows of metrics may have one name.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn unique(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        let mut number = 1;
        while !self.0.insert(unique.clone()) {
            number += 1;
            unique = format!("{name} #{number}");
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use afpa_http::Status;
    use afpa_router::{Affinity, Conditions, Content, ContentGroup, Fixed, GroupId, ListenerId};
    use afpa_router::{PathEntry, Reach, Router, SiteEntry, Table};

    use super::*;

    fn content(action: Action) -> Content {
        let (group, conditions) = (ContentGroup::All, Conditions::default());
        Content { group, conditions, action, rewrite: None }
    }

    /// The counters of sites of one name, each on a listener of its own, with a path for each prefix; those that end in
    /// a slash are distributed.
    fn table(sites: &[&[&str]], counted_sets: usize, previous: &ScopeTable) -> ScopeTable {
        let fixed =
            Fixed { status: Status::OK, content_type: "text/plain".into(), body: Vec::new() };
        let path = |prefix: &&str| PathEntry {
            prefix: prefix.as_bytes().into(),
            reach: Reach::Recursion,
            contents: vec![content(match prefix.ends_with('/') {
                true => Action::Distributed { group: GroupId(0), affinity: Affinity::None },
                false => Action::Fixed(fixed.clone()),
            })],
        };
        let site = |(prefixes, number): (&&[&str], u32)| SiteEntry {
            name: "a".to_owned(),
            listeners: vec![ListenerId(number)],
            hosts: Vec::new(),
            paths: prefixes.iter().map(path).collect(),
        };
        let table = Table { sites: sites.iter().zip(0..).map(site).collect() };
        let router = Router::compile(&table).unwrap();
        let sites = table.sites.iter().map(|site| &*site.name);
        ScopeTable::new(sites, router.sets(), counted_sets, previous)
    }

    fn names(scopes: &ScopeTable) -> Vec<String> {
        let names = scopes.iter().map(|scope| scope.set.clone().unwrap_or(scope.site.clone()));
        names.collect()
    }

    #[test]
    fn a_request_counts_for_its_set_and_its_site() {
        let scopes = table(&[&["/x", "/y/"]], 10, &ScopeTable::default());
        let scope = |set| scopes.get(SiteId(0), set).unwrap();
        scope(Some(RequestSetId(0))).answered(204);
        scope(Some(RequestSetId(1))).answered(503);
        scope(Some(RequestSetId(1))).took(300);
        scope(None).answered(404);
        scope(None).answered(999);
        let held = InFlight::count(scope(Some(RequestSetId(1))));
        let reports: Vec<_> = scopes.iter().map(ScopeStats::report).collect();
        assert_eq!(names(&scopes), ["a", "a /x *", "a /y/ *"]);
        assert_eq!(reports[0].responses, [0, 1, 0, 1, 1]);
        assert_eq!(reports[1].responses, [0, 1, 0, 0, 0]);
        assert_eq!(reports[2].responses, [0, 0, 0, 0, 1]);
        assert_eq!(reports.iter().map(|r| r.in_flight).collect::<Vec<_>>(), [1, 0, 1]);
        let times = |report: &ScopeReport| report.duration.as_ref().map(Histogram::count);
        assert_eq!(reports.iter().map(times).collect::<Vec<_>>(), [Some(1), None, Some(1)]);
        drop(held);
        assert!(scopes.iter().all(|scope| scope.report().in_flight == 0));

        let mut sum = reports[0].clone();
        sum.add(&reports[2]);
        assert_eq!((sum.requests(), sum.in_flight, times(&sum)), (4, 2, Some(2)));
    }

    #[test]
    fn sets_beyond_the_limit_count_for_their_site_alone() {
        let scopes = table(&[&["/x", "/y"]], 1, &ScopeTable::default());
        assert_eq!(names(&scopes), ["a", "a /x *"]);
        scopes.get(SiteId(0), Some(RequestSetId(1))).unwrap().answered(200);
        let requests = scopes.iter().map(|scope| scope.report().requests());
        assert_eq!(requests.collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn no_two_have_one_name() {
        let scopes = table(&[&["/x"], &["/x"]], 10, &ScopeTable::default());
        assert_eq!(names(&scopes), ["a", "a #2", "a /x *", "a /x * #2"]);
    }

    #[test]
    fn what_stays_counts_on_after_a_reload() {
        let before = table(&[&["/gone", "/x", "/y/"]], 10, &ScopeTable::default());
        for set in 0..3 {
            before.get(SiteId(0), Some(RequestSetId(set))).unwrap().answered(200);
        }
        let held = InFlight::count(before.get(SiteId(0), Some(RequestSetId(0))).unwrap());
        let after = table(&[&["/new", "/y/", "/x"]], 10, &before);
        drop(before);
        held.scope().answered(500);
        drop(held);
        let site = after.get(SiteId(0), None).unwrap().report();
        assert_eq!((site.requests(), site.in_flight), (4, 0), "a site loses nothing");
        let requests = after.iter().skip(1).map(|scope| scope.report().requests());
        assert_eq!(names(&after)[1..], ["a /new *", "a /y/ *", "a /x *"]);
        assert_eq!(requests.collect::<Vec<_>>(), [0, 1, 1]);
    }
}
