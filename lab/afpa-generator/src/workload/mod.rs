//! Workloads: files, requests with the expected responses, and the order of requests.

mod fixed;
mod mixes;
mod order;
mod point;
mod replayed;
mod request;
mod specweb99;

use anyhow::{Result, bail};

pub use fixed::SEGMENT;
pub use order::{Step, Steps};
pub use point::Workload;
pub use replayed::replay;
pub use request::{Object, Request};

/// Before the name of an access log.
const REPLAY: &str = "replay:";

/// Name and description of each family.
pub fn families() -> Vec<(&'static str, &'static str)> {
    vec![
        ("webstone", "files of one size, 64 B to 1 MB"),
        ("specweb96", "SPECweb96's four classes of nine files; grows with the target rate"),
        ("specweb99", "SPECweb99's mix, 30 % of it by an application; grows with the connections"),
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

/// The points of a family; `replay:FILE` is the family of that access log. `sizes` are file sizes or, for `specweb96` and
/// `specweb99`, target rates and connections; none: the
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
        "specweb99" => {
            return or(&[64], &[1]).into_iter().map(specweb99::specweb99).collect();
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
