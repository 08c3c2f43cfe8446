//! Workloads of files of many sizes.

use anyhow::{Result, ensure};

use super::order::Order;
use super::{Object, Request, Workload};

/// Bytes of the smallest file of each class, and the class's share of requests in percent.
pub(super) const CLASSES: [(f64, f64); 4] =
    [(102.4, 35.0), (1024.0, 50.0), (10240.0, 14.0), (102_400.0, 1.0)];
pub(super) const FILES: u32 = 9;
/// Mean of the Poisson distribution that chooses a file within its class: the middle one.
const MIDDLE: f64 = 5.0;
/// Folders' bytes altogether may not be more: some 20 GB.
pub(super) const MOST_FOLDERS: u64 = 4000;

/// Requests of a connection that its clients close.
const SHORT_LIVED: usize = 10;
/// The files of its page: name and bytes. The board gives kinds, names, ranges and the sum; each one's size is ours.
const PAGE: [(&str, u64); 20] = [
    ("reset.css", 8_000),
    ("layout.css", 25_000),
    ("theme.css", 30_000),
    ("components.css", 60_000),
    ("utilities.css", 70_000),
    ("analytics.js", 12_000),
    ("helpers.js", 18_000),
    ("app.js", 90_000),
    ("vendor.js", 150_000),
    ("router.js", 22_000),
    ("header.html", 55_000),
    ("footer.html", 100_000),
    ("regular.woff2", 18_000),
    ("bold.woff2", 22_000),
    ("logo.svg", 15_000),
    ("icon-sprite.svg", 85_000),
    ("hero.webp", 45_000),
    ("thumb1.webp", 8_000),
    ("thumb2.webp", 6_000),
    ("manifest.json", 3_000),
];

/// SPECweb96's files for a target rate in requests per second.
pub(super) fn specweb96(rate: u64) -> Result<Workload> {
    let folders = folders(rate);
    ensure!((1..=MOST_FOLDERS).contains(&folders), "a rate of {rate} needs {folders} folders");
    let (mut objects, mut requests) = (Vec::new(), Vec::new());
    for folder in 0..folders {
        for (class, (smallest, share)) in CLASSES.into_iter().enumerate() {
            for file in 1..=FILES {
                let size = (f64::from(file) * smallest).round() as u64;
                let path = format!("/specweb96/dir{folder:05}/class{class}_{file}.html");
                let object = Object::new(path, size);
                // Exact to a millionth; the largest weight has room for all folders.
                let weight = (share * poisson_share(file) * 1e4).round().max(1.0) as u32;
                requests.push(Request::get(&object).with_weight(weight));
                objects.push(object);
            }
        }
    }
    Ok(Workload {
        name: format!("specweb96-{rate}"),
        family: "specweb96".into(),
        title: format!("SPECweb96 mix, {folders} folders (target {rate}/s)"),
        point: Some(rate as f64),
        about: "Taken from the published description: four classes (below 1 KB 35 %, 1 to 10 KB \
                50 %, 10 to 100 KB 14 %, 100 KB to 1 MB 1 %) of nine files each, whose sizes are \
                1 to 9 times 0.1, 1, 10 and 100 KB; files within a class by a Poisson distribution \
                around the middle one; a working set that grows with the target rate. \
                Approximated: the Poisson distribution has mean 5 and is cut off at 1 and 9; \
                folders of 36 files (5.1 MB) number 10 times the square root of a fifth of the \
                rate, and are chosen alike; sizes are rounded; no warm-up or run rules of SPEC, no \
                result of SPEC."
            .into(),
        objects,
        requests,
        order: Order::Mix,
    })
}

/// JAWS, table 1.
pub(super) fn jaws() -> Workload {
    let table = [(500, 35), (5_000, 50), (50_000, 14), (5_000_000, 1)];
    let object = |(size, _)| Object::new(format!("/jaws/file{size}.html"), size);
    let objects: Vec<Object> = table.into_iter().map(object).collect();
    let request = |(object, (_, share))| Request::get(object).with_weight(share);
    Workload {
        name: "jaws".into(),
        family: "jaws".into(),
        title: "JAWS's mix".into(),
        point: None,
        about: "JAWS, table 1: 500 B 35 %, 5 KB 50 %, 50 KB 14 %, 5 MB 1 %. Taken: sizes and \
                shares. Approximated: K and M are read as thousands and millions; one file of each \
                size; requests are independent draws."
            .into(),
        requests: objects.iter().zip(table).map(request).collect(),
        objects,
        order: Order::Mix,
    }
}

/// Profiles of HttpArena, a board of today, as far as servers of files have a part in them.
pub(super) fn arena() -> Vec<Workload> {
    let sum = || Object::new("/arena/baseline11.txt", 2);
    let page =
        || PAGE.map(|(name, bytes)| Object::new(format!("/arena/static/{name}"), bytes)).to_vec();
    let profile = |name: &str, title: &str, about: &str, objects: Vec<Object>, order| Workload {
        name: format!("arena-{name}"),
        family: "arena".into(),
        title: format!("HttpArena's {title}"),
        point: None,
        about: format!("HttpArena, profile {name}. {about}"),
        requests: objects.iter().map(Request::get).collect(),
        objects,
        order,
    };
    vec![
        profile(
            "baseline",
            "baseline",
            "Taken: kept connections, an answer of two bytes. Approximated: the sum of two numbers is a file here, and \
             its share of POST is left out: servers of files do neither.",
            vec![sum()],
            Order::Mix,
        ),
        profile(
            "limited-conn",
            "limited connections",
            "As the baseline; each connection is closed by its client after ten requests.",
            vec![sum()],
            Order::Sessions(vec![vec![0; SHORT_LIVED]]),
        ),
        profile(
            "static",
            "static files",
            "Taken: the names and kinds of twenty files, 842 KB altogether, each as often as the others. Approximated: \
             the size of each; chosen by chance and not in turn; nothing is asked for compressed, which the profile leaves \
             to the server.",
            page(),
            Order::Mix,
        ),
    ]
}

/// Doubles when the rate quadruples.
fn folders(rate: u64) -> u64 {
    (10.0 * (rate as f64 / 5.0).sqrt()).round() as u64
}

/// Share of file number `file`, 1 to 9, within its class.
fn poisson_share(file: u32) -> f64 {
    // Without the factor e^-5, which cancels out.
    let term = |k: u32| (1..=k).map(|i| MIDDLE / f64::from(i)).product::<f64>();
    term(file) / (1..=FILES).map(term).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_their_shares_and_sizes() {
        let workload = specweb96(20).unwrap();
        assert_eq!(workload.objects().len(), 20 * 36);
        let total: u64 = workload.all_requests().iter().map(|r| u64::from(r.weight)).sum();
        for (class, (_, share)) in CLASSES.into_iter().enumerate() {
            let of = workload.all_requests().iter();
            let of = of.filter(|r| r.path.contains(&format!("/class{class}_")));
            let found: u64 = of.map(|request| u64::from(request.weight)).sum();
            assert!((found as f64 / total as f64 * 100.0 - share).abs() < 0.01, "class {class}");
        }
        let length = |path: &str| {
            let found = workload.objects().iter().find(|object| object.path.ends_with(path));
            found.unwrap().body.length()
        };
        assert_eq!(length("dir00000/class0_1.html"), 102);
        assert_eq!(length("dir00000/class0_9.html"), 922);
        assert_eq!(length("dir00019/class3_9.html"), 921_600);
    }

    /// The IBM paper: 14.7 KB on average, half of the requests below 10 KB and more.
    #[test]
    fn the_mean_is_near_the_papers() {
        let mean = specweb96(20).unwrap().mean_length() / 1024.0;
        assert!((mean - 14.7).abs() < 0.8, "{mean} KB");
    }

    #[test]
    fn the_working_set_grows_with_the_root_of_the_rate() {
        assert_eq!([5, 20, 500].map(folders), [10, 20, 100]);
        assert_eq!(specweb96(5).unwrap().working_set() / 10, 5_119_488);
        assert!(specweb96(0).is_err());
        assert!(specweb96(u64::MAX).is_err());
    }

    #[test]
    fn jaws_has_its_table() {
        let workload = jaws();
        let table: Vec<_> =
            workload.all_requests().iter().map(|r| (r.body.unwrap().length(), r.weight)).collect();
        assert_eq!(table, [(500, 35), (5_000, 50), (50_000, 14), (5_000_000, 1)]);
    }

    #[test]
    fn the_page_has_its_files_and_their_sum() {
        let profiles = arena();
        let page = &profiles[2];
        assert_eq!((page.objects().len(), page.working_set() / 1000), (20, 842));
        assert!(profiles.iter().all(|one| one.name.starts_with("arena-")));
    }

    #[test]
    fn a_short_lived_connection_ends_with_its_tenth_request() {
        let limited = &arena()[1];
        let last: Vec<bool> = limited.requests(1).take(20).map(|step| step.last).collect();
        let ends: Vec<usize> = (0..20).filter(|step| last[*step]).collect();
        assert_eq!((limited.has_sessions(), ends), (true, vec![9, 19]));
    }
}
