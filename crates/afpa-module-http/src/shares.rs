//! What is counted of sites and request sets, one set of counts a core.
//!
//! A request is counted by the core that serves it, in counters that nobody else writes: a hit costs two
//! plain additions, and no lock. Whoever shows the counts adds those of all cores up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use afpa_framework::Counter;
use afpa_proxy::observe::{BUCKETS, Histogram};
use afpa_router::{Action, RequestSetId, SiteId};

use crate::global::Global;

/// The shares that sites and request sets have in the work of one core.
#[derive(Debug, Default)]
pub struct Shares {
    sites: Vec<Arc<Share>>,
    /// By their number; as many as are counted.
    sets: Vec<Arc<Share>>,
}

/// The share of a request set; or of what belongs to none, or to one that is not counted for itself.
#[derive(Debug)]
pub struct Share {
    /// What metrics call the site.
    pub site: String,
    /// What they call the request set.
    pub set: Option<String>,
    own: Counts,
    /// A request of a set is one of its site, too.
    whole: Option<Arc<Share>>,
}

/// The counts of a share at one moment; those of several cores may be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareReport {
    /// Answered requests by the first digit of the status: 1xx to 5xx.
    pub responses: [u64; CLASSES],
    /// Requests that a thread or a server works on.
    pub in_flight: u64,
    /// Microseconds from a distributed request to the last byte of its answer; `None` of a request set
    /// that is not distributed.
    pub duration: Option<Histogram>,
}

const CLASSES: usize = 5;

#[derive(Debug, Default)]
struct Counts {
    responses: [Counter; CLASSES],
    in_flight: Counter,
    /// Only what is distributed has times.
    times: Option<Box<Times>>,
}

#[derive(Debug, Default)]
struct Times {
    buckets: [Counter; BUCKETS],
    sum_us: Counter,
}

impl Shares {
    /// Those of the sites and request sets that there are now. What stays, by name, counts on.
    pub(crate) fn of(global: &Global, previous: &Shares) -> Shares {
        let sets = global.router.as_ref().map_or(&[][..], |router| router.sets());
        let kept: HashMap<_, _> = previous.all().map(|share| (share.name(), share)).collect();
        let mut names = Names::default();
        let sites: Vec<Arc<Share>> = global
            .sites
            .iter()
            .map(|site| Share::new(names.unique(&site.name), None, true).or_kept(&kept))
            .collect();
        let mut names = Names::default();
        let counted = sets.iter().take(global.counted_sets).filter_map(|set| {
            let site = sites.get(set.site.0 as usize)?;
            let times = matches!(set.behaviour.action, Action::Distributed { .. });
            let share = Share::new(site.site.clone(), Some(names.unique(&set.name)), times);
            Some(Share { whole: Some(Arc::clone(site)), ..share }.or_kept(&kept))
        });
        let sets = counted.collect();
        Shares { sites, sets }
    }

    /// The share of a request set, or else of its site.
    #[inline]
    pub(crate) fn get(&self, site: SiteId, set: Option<RequestSetId>) -> Option<&Arc<Share>> {
        let own = set.and_then(|set| self.sets.get(set.0 as usize));
        own.or_else(|| self.sites.get(site.0 as usize))
    }

    /// All of them: sites, in the order of the configuration, then request sets likewise.
    pub fn iter(&self) -> impl Iterator<Item = &Share> {
        self.all().map(|share| &**share)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Share>> {
        self.sites.iter().chain(&self.sets)
    }
}

/// What makes a share the same one after a reload.
type Name<'s> = (&'s str, Option<&'s str>);

impl Share {
    fn new(site: String, set: Option<String>, times: bool) -> Share {
        let own = Counts { times: times.then(Box::default), ..Counts::default() };
        Share { site, set, own, whole: None }
    }

    fn name(&self) -> Name<'_> {
        (&self.site, self.set.as_deref())
    }

    /// The one of before, if it is of the same kind and its site stays too.
    fn or_kept(self, kept: &HashMap<Name<'_>, &Arc<Share>>) -> Arc<Share> {
        let site = |share: &Share| share.whole.as_ref().map(Arc::as_ptr);
        let same = |before: &Share| {
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
        for share in self.with_whole() {
            if let Some(counter) = share.own.responses.get(class) {
                counter.add(1);
            }
        }
    }

    /// Counts how long a distributed request took.
    pub(crate) fn took(&self, us: u32) {
        for share in self.with_whole() {
            let Some(times) = &share.own.times else { continue };
            if let Some(counter) = times.buckets.get(Histogram::bucket_of(us)) {
                counter.add(1);
            }
            times.sum_us.add(u64::from(us));
        }
    }

    fn with_whole(&self) -> impl Iterator<Item = &Share> {
        std::iter::once(self).chain(self.whole.as_deref())
    }

    /// What was counted.
    pub fn report(&self) -> ShareReport {
        let duration = self.own.times.as_ref().map(|times| {
            Histogram::counted(times.buckets.each_ref().map(Counter::get), times.sum_us.get())
        });
        let responses = self.own.responses.each_ref().map(Counter::get);
        ShareReport { responses, in_flight: self.own.in_flight.get(), duration }
    }
}

impl ShareReport {
    /// Adds what another core counted.
    pub fn add(&mut self, other: &ShareReport) {
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

/// A request that a thread or a server works on.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Share>);

impl InFlight {
    pub(crate) fn count(share: &Arc<Share>) -> Self {
        for share in share.with_whole() {
            share.own.in_flight.add(1);
        }
        Self(Arc::clone(share))
    }

    pub(crate) fn share(&self) -> &Share {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        for share in self.0.with_whole() {
            share.own.in_flight.sub(1);
        }
    }
}

/// Names that were given. Two sites may share their first host on different listeners, and two request
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
    use afpa_proxy::limit::{Gate, LimitSettings};
    use afpa_router::{Affinity, Conditions, Content, ContentGroup, Fixed, GroupId, ListenerId};
    use afpa_router::{PathEntry, Reach, Router, Site, Table};

    use super::*;
    use crate::global::VirtualSite;

    fn content(action: Action) -> Content {
        let (group, conditions) = (ContentGroup::All, Conditions::default());
        Content { group, conditions, action, rewrite: None }
    }

    /// Sites of one name, each on a listener of its own, with a path for each prefix; those that end in
    /// a slash are distributed.
    fn global(sites: &[&[&str]], counted_sets: usize) -> Global {
        let fixed = Fixed { status: 200, content_type: "text/plain".into(), body: Vec::new() };
        let path = |prefix: &&str| PathEntry {
            prefix: prefix.as_bytes().into(),
            reach: Reach::Recursion,
            contents: vec![content(match prefix.ends_with('/') {
                true => Action::Distributed { group: GroupId(0), affinity: Affinity::None },
                false => Action::Fixed(fixed.clone()),
            })],
        };
        let site = |(prefixes, number): (&&[&str], u32)| Site {
            name: "a".to_owned(),
            listeners: vec![ListenerId(number)],
            hosts: Vec::new(),
            paths: prefixes.iter().map(path).collect(),
        };
        let table = Table { sites: sites.iter().zip(0..).map(site).collect() };
        let virtual_site = |site: &Site| VirtualSite {
            name: site.name.clone(),
            gate: Gate::new(LimitSettings::default()),
            forwarded_from: Arc::default(),
        };
        Global {
            sites: table.sites.iter().map(virtual_site).collect(),
            router: Some(Arc::new(Router::compile(&table).unwrap())),
            roots: Vec::new(),
            groups: Vec::new(),
            limits: Default::default(),
            body_limit: 0,
            counted_sets,
        }
    }

    fn names(shares: &Shares) -> Vec<String> {
        let names = shares.iter().map(|share| share.set.clone().unwrap_or(share.site.clone()));
        names.collect()
    }

    #[test]
    fn a_request_counts_for_its_set_and_its_site() {
        let shares = Shares::of(&global(&[&["/x", "/y/"]], 10), &Shares::default());
        let share = |set| shares.get(SiteId(0), set).unwrap();
        share(Some(RequestSetId(0))).answered(204);
        share(Some(RequestSetId(1))).answered(503);
        share(Some(RequestSetId(1))).took(300);
        share(None).answered(404);
        share(None).answered(999);
        let held = InFlight::count(share(Some(RequestSetId(1))));
        let reports: Vec<_> = shares.iter().map(Share::report).collect();
        assert_eq!(names(&shares), ["a", "a /x *", "a /y/ *"]);
        assert_eq!(reports[0].responses, [0, 1, 0, 1, 1]);
        assert_eq!(reports[1].responses, [0, 1, 0, 0, 0]);
        assert_eq!(reports[2].responses, [0, 0, 0, 0, 1]);
        assert_eq!(reports.iter().map(|r| r.in_flight).collect::<Vec<_>>(), [1, 0, 1]);
        let times = |report: &ShareReport| report.duration.as_ref().map(Histogram::count);
        assert_eq!(reports.iter().map(times).collect::<Vec<_>>(), [Some(1), None, Some(1)]);
        drop(held);
        assert!(shares.iter().all(|share| share.report().in_flight == 0));

        let mut sum = reports[0].clone();
        sum.add(&reports[2]);
        assert_eq!((sum.requests(), sum.in_flight, times(&sum)), (4, 2, Some(2)));
    }

    #[test]
    fn sets_beyond_the_limit_count_for_their_site_alone() {
        let shares = Shares::of(&global(&[&["/x", "/y"]], 1), &Shares::default());
        assert_eq!(names(&shares), ["a", "a /x *"]);
        shares.get(SiteId(0), Some(RequestSetId(1))).unwrap().answered(200);
        let requests = shares.iter().map(|share| share.report().requests());
        assert_eq!(requests.collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn no_two_have_one_name() {
        let shares = Shares::of(&global(&[&["/x"], &["/x"]], 10), &Shares::default());
        assert_eq!(names(&shares), ["a", "a #2", "a /x *", "a /x * #2"]);
    }

    #[test]
    fn what_stays_counts_on_after_a_reload() {
        let before = Shares::of(&global(&[&["/gone", "/x", "/y/"]], 10), &Shares::default());
        for set in 0..3 {
            before.get(SiteId(0), Some(RequestSetId(set))).unwrap().answered(200);
        }
        let held = InFlight::count(before.get(SiteId(0), Some(RequestSetId(0))).unwrap());
        let after = Shares::of(&global(&[&["/new", "/y/", "/x"]], 10), &before);
        drop(before);
        held.share().answered(500);
        drop(held);
        let site = after.get(SiteId(0), None).unwrap().report();
        assert_eq!((site.requests(), site.in_flight), (4, 0), "a site loses nothing");
        let requests = after.iter().skip(1).map(|share| share.report().requests());
        assert_eq!(names(&after)[1..], ["a /new *", "a /y/ *", "a /x *"]);
        assert_eq!(requests.collect::<Vec<_>>(), [0, 1, 1]);
    }
}
