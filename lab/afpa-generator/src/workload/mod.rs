//! Workloads: files, requests with the expected responses, and the order of requests.

mod fixed;
mod mixes;
mod order;
mod replayed;
mod request;

use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::files;

pub use fixed::SEGMENT;
pub use order::{Step, Steps};
pub use replayed::replay;
pub use request::{Object, Request};

use order::Order;

/// One measured point: a set of files and a sequence of requests for them.
#[derive(Debug, Clone, Serialize)]
pub struct Workload {
    /// Of this point, good as a file's name: `webstone-512`.
    pub name: String,
    /// The family it belongs to: one figure each.
    pub family: String,
    /// For people.
    pub title: String,
    /// Where it stands on the family's axis: a file's size in bytes, or a rate.
    pub point: Option<f64>,
    /// A description, with the source and the approximations.
    pub about: String,
    #[serde(skip)]
    objects: Vec<Object>,
    #[serde(skip)]
    requests: Vec<Request>,
    #[serde(skip)]
    order: Order,
}

impl Workload {
    /// Files of the caller's choice, asked for independently of each other in proportion to their weights.
    pub fn given(parts: Vec<(u32, Object)>) -> Self {
        fixed::given(parts)
    }

    /// Makes the files below `root`. Files that are there already are kept.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn make_files(&self, root: &Path) -> Result<()> {
        files::make(&self.objects, root)
    }

    /// The files that a server has to serve.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Bytes of all files: the memory that the working set takes.
    pub fn working_set(&self) -> u64 {
        self.objects.iter().map(|object| object.body.length()).sum()
    }

    /// The different requests; steps refer to them by index.
    pub fn all_requests(&self) -> &[Request] {
        &self.requests
    }

    /// The order of requests, without end. The same seed gives the same order.
    pub fn requests(&self, seed: u64) -> Steps<'_> {
        Steps::new(&self.order, &self.requests, seed)
    }

    /// Requests come independently of each other, in proportion to their weights: no matter
    /// which was asked before.
    pub fn is_mix(&self) -> bool {
        matches!(self.order, Order::Mix)
    }

    /// Connections end where the workload says, whatever the load asks for.
    pub fn has_sessions(&self) -> bool {
        matches!(self.order, Order::Sessions(_))
    }

    /// Bytes of content of the average request.
    pub fn mean_length(&self) -> f64 {
        let total: f64 = self.requests.iter().map(|request| f64::from(request.weight)).sum();
        let length = |request: &Request| request.body.map_or(0, |body| body.length()) as f64;
        let weighted =
            self.requests.iter().map(|request| length(request) * f64::from(request.weight));
        if total > 0.0 { weighted.sum::<f64>() / total } else { 0.0 }
    }
}

/// Before the name of an access log.
const REPLAY: &str = "replay:";

/// Name and description of each family.
pub fn families() -> Vec<(&'static str, &'static str)> {
    vec![
        ("webstone", "files of one size, 64 B to 1 MB"),
        ("specweb96", "SPECweb96's four classes of nine files; grows with the target rate"),
        ("jaws", "JAWS's table: 500 B 35 %, 5 KB 50 %, 50 KB 14 %, 5 MB 1 %"),
        ("segments", "answers of 1 and of 11 full segments, for rates that are held"),
        ("arena", "HttpArena's profiles baseline, limited-conn and static, for servers of files"),
        ("proxy", "a small set of 102-byte files, as in the papers' proxy experiment"),
        ("browser", "one size, asked with a kilobyte of header fields as browsers send them"),
        ("conditional", "If-Modified-Since, nothing has changed: 304"),
        ("absent", "files that do not exist: 404"),
        ("cold", "each of 20,000 files of 4 KB in its turn: at first no cache has them"),
        (
            "replay",
            "a made-up access log, or replay:FILE in common log format or the World Cup's (unpacked); requests \
             of a client within 15 s share a connection",
        ),
    ]
}

/// The points of a family; `replay:FILE` is the family of that access log. `sizes` are file sizes or, for `specweb96`, target rates; none: the
/// family's own, fewer when `quick`.
///
/// # Errors
///
/// When there is no such family, or it does not come in sizes.
pub fn family(name: &str, sizes: &[u64], quick: bool) -> Result<Vec<Workload>> {
    let or = |full: &[u64], few: &[u64]| match (sizes, quick) {
        ([], true) => few.to_vec(),
        ([], false) => full.to_vec(),
        (sizes, _) => sizes.to_vec(),
    };
    let points = match name {
        "webstone" => {
            let full = [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
            or(&full, &[512, 8 << 10, 1 << 20]).into_iter().map(fixed::webstone).collect()
        }
        "segments" => or(&[1, 11], &[1]).into_iter().map(fixed::segments).collect(),
        "browser" => or(&[512, 8 << 10], &[512]).into_iter().map(fixed::browser).collect(),
        "conditional" => or(&[4 << 10], &[4 << 10]).into_iter().map(fixed::conditional).collect(),
        "specweb96" => {
            return or(&[20, 100, 500], &[20]).into_iter().map(mixes::specweb96).collect();
        }
        _ if !sizes.is_empty() => bail!("{name} does not come in sizes"),
        "jaws" => vec![mixes::jaws()],
        "arena" => mixes::arena(),
        "proxy" => vec![fixed::proxy()],
        "absent" => vec![fixed::absent()],
        "cold" => fixed::cold(),
        "replay" => vec![replayed::synthetic()?],
        _ if name.starts_with(REPLAY) => vec![replayed::of_file(name.trim_start_matches(REPLAY))?],
        _ => {
            let names: Vec<&str> = families().into_iter().map(|(name, _)| name).collect();
            bail!("there is no workload {name}; there are {}", names.join(", "))
        }
    };
    Ok(points)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn every_point() -> Vec<Workload> {
        let points = |(name, _): (&str, &str)| {
            [family(name, &[], true).unwrap(), family(name, &[], false).unwrap()].concat()
        };
        families().into_iter().flat_map(points).collect()
    }

    #[test]
    fn each_family_has_points_with_names_of_their_own() {
        let mut names = HashSet::new();
        for (name, _) in families() {
            let points = family(name, &[], false).unwrap();
            assert!(!points.is_empty());
            for point in points {
                assert_eq!(point.family, name);
                assert!(point.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
                assert!(names.insert(point.name.clone()), "{} twice", point.name);
                assert!(!point.about.is_empty() && !point.title.is_empty());
            }
        }
    }

    #[test]
    fn what_is_asked_for_is_made_but_what_must_be_absent() {
        for point in every_point() {
            let made: HashSet<&str> = point.objects().iter().map(|o| o.path.as_str()).collect();
            assert_eq!(made.len(), point.objects().len(), "{}: a file twice", point.name);
            for request in point.all_requests() {
                let there = made.contains(request.path.as_str());
                assert_eq!(there, request.status != 404, "{}: {}", point.name, request.path);
                assert_eq!(request.body.is_some(), request.status == 200, "{}", point.name);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        for point in every_point() {
            let first: Vec<Step> = point.requests(3).take(500).collect();
            assert_eq!(first, point.requests(3).take(500).collect::<Vec<_>>(), "{}", point.name);
            assert!(first.iter().all(|step| step.request < point.all_requests().len()));
        }
        let specweb = &family("specweb96", &[20], true).unwrap()[0];
        assert!(specweb.requests(1).take(50).ne(specweb.requests(2).take(50)));
    }

    #[test]
    fn given_files_are_asked_by_their_weights() {
        let parts = [(4, "/small.html", 512), (1, "/app/tiny", 102)];
        let parts = parts.map(|(weight, path, size)| (weight, Object::new(path, size)));
        let workload = Workload::given(parts.to_vec());
        assert!(workload.is_mix() && workload.objects().len() == 2);
        let first = workload.requests(1).take(10_000).filter(|step| step.request == 0).count();
        assert!((7_800..8_200).contains(&first), "{first}");
    }

    #[test]
    fn unknown_names_and_sizes_are_refused() {
        assert!(family("nothing", &[], true).is_err());
        assert!(family("jaws", &[5], true).is_err());
        assert!(family("replay:/no/such/log", &[], true).is_err());
        assert_eq!(family("webstone", &[7, 9], true).unwrap().len(), 2);
    }
}
