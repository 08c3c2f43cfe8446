//! The cases: title, servers and load of each.

use std::fs;
use std::path::Path;

use afpa_generator::{Object, Workload};
use anyhow::{Context, Result};

use crate::bench::{Case, CaseBed, Method, Metric, TcLoad};

/// AFPA with the kernel's half, AFPA without it, and nginx with AFPA's programs before it.
pub(super) const KERNEL: &str = "afpa kernel";
pub(super) const USER: &str = "afpa user";
pub(super) const ATTACHED: &str = "nginx attached";
pub(super) const NGINX: &str = "nginx";
pub(super) const H2O: &str = "h2o";
/// A program that answers every request by the same bytes: the bound.
pub(super) const REFLECTOR: &str = "reflector";
/// The same as above, but no connection is left to user mode: every request is read.
pub(super) const KERNEL_READING: &str = "afpa kernel, no bypass";
pub(super) const ATTACHED_READING: &str = "nginx attached, no bypass";
/// The same as above, and connections begin without a socket.
pub(super) const KERNEL_SOCKETLESS: &str = "afpa kernel, no socket";
pub(super) const ATTACHED_SOCKETLESS: &str = "nginx attached, no socket";

const ALL: [&str; 6] = [KERNEL, USER, ATTACHED, NGINX, H2O, REFLECTOR];
/// The servers for other sizes than 512 B: all but AFPA's user mode.
const WITHOUT_USER: [&str; 5] = [KERNEL, ATTACHED, NGINX, H2O, REFLECTOR];
/// The servers whose ratios are reported on beds where the work of both sides mixes.
const RIVALS: [&str; 4] = [KERNEL, NGINX, H2O, REFLECTOR];

/// Objects that are answered by one segment.
pub(super) const SIZES: [u64; 3] = [64, 512, 1024];
/// Objects that are answered by several.
pub(super) const LARGER_SIZES: [u64; 5] = [4 << 10, 8 << 10, 14 << 10, 32 << 10, 64 << 10];
/// Objects whose answers are long for one request a connection.
const LONG_SIZES: [u64; 4] = [16 << 10, 24 << 10, 32 << 10, 64 << 10];
/// The longest response that the kernel gives: head and content.
pub(super) const LONGEST_ANSWER: u64 = 68 << 10;
/// ... which has room for a head and this.
const LONGEST_BODY: u64 = 64 << 10;
const DOWNLOAD: u64 = 10 << 20;
/// The largest object that the reflector sends: the client's queue must hold the answers of all connections.
const REFLECTED: u64 = 14 << 10;

/// The file that is changed while the server is busy.
pub(super) const CHANGING: &str = "changing.html";
/// Its length.
pub(super) const CHANGING_LENGTH: usize = 512;

/// A connection is left to user mode after a second of requests that the kernel cannot answer.
const UNTIL_BYPASS: f64 = 1.4;
/// Requests outstanding in both cases of [`flows`], and the connections of the first one.
const FEW_FLOWS: u32 = 64;
/// One address has some 64,000 ports; this leaves room.
const FLOWS_OF_A_SOURCE: u32 = 50_000;

/// The programs are taken away and put back while this case is measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AlternatingCase {
    /// The load.
    pub(super) case: Case,
    /// Programs that do nothing stand in for AFPA's.
    pub(super) passing_on: bool,
    /// The load is made by ordinary sockets, not in TC: receiving long responses in TC would keep the client's core
    /// busier than the server's.
    pub(super) by_sockets: bool,
}

/// Requests per second, and core time of a request, of every server: objects of one segment.
pub(super) fn speed() -> Vec<Case> {
    let sizes = |connections| {
        SIZES.map(|size| Case { quick: size == 512, ..small(size, connections, TcLoad::default()) })
    };
    let browser = |visitors| TcLoad { browser: true, visitors, ..TcLoad::default() };
    let on = |bed| TcLoad { bed, ..TcLoad::default() };
    let mut cases: Vec<Case> = sizes(64).into_iter().chain(sizes(256)).collect();
    cases.extend([
        small(512, 64, browser(1)),
        Case { quick: true, ..small(512, 256, browser(1)) },
        Case { quick: true, ..small(512, 256, browser(256)) },
        small(512, 64, on(CaseBed::Unsteered)),
        small(512, 256, on(CaseBed::Unsteered)),
        Case { quick: true, ..small(512, 64, on(CaseBed::Together)) },
        small(512, 256, on(CaseBed::Together)),
    ]);
    cases
}

fn small(size: u64, connections: u32, load: TcLoad) -> Case {
    let mut title = format!("{size} B, {connections} connections");
    let mut name = format!("{size}-{connections}");
    if load.browser {
        title += ", browser headers";
        name += "-browser";
    }
    if load.visitors > 1 {
        title += &format!(" of {} visitors", load.visitors);
        name += &format!("-{}", load.visitors);
    }
    let servers: &[&str] = match load.bed {
        CaseBed::Steered if size == 512 => &ALL,
        CaseBed::Steered => &WITHOUT_USER,
        CaseBed::Unsteered | CaseBed::Together => &RIVALS,
    };
    match load.bed {
        CaseBed::Steered => {}
        CaseBed::Unsteered => title += ", unsteered",
        CaseBed::Together => title += ", one core for both",
    }
    if load.bed != CaseBed::Steered {
        name += &format!("-{}", load.bed.name());
    }
    let case = Case::new(name, title, servers, one(&format!("/{size}.html"), size));
    Case { connections, method: Method::Tc(load), metrics: SPEED, ..case }
}

const SPEED: &[Metric] =
    &[Metric::RequestsPerCore, Metric::Requests, Metric::CoreTime, Metric::P99];
const COST: &[Metric] = &[Metric::CoreTime];

/// One request a connection, as the papers measured: with a socket for each connection and without, and what a request
/// costs that the kernel does not answer.
pub(super) fn once() -> Vec<Case> {
    let load = TcLoad { once: true, ..TcLoad::default() };
    let case = |name: &str, title: String, servers: &[&str], objects| Case {
        method: Method::Tc(load.clone()),
        metrics: SPEED,
        quick: true,
        ..Case::new(name, title, servers, objects)
    };
    let hits =
        [KERNEL_SOCKETLESS, KERNEL, USER, ATTACHED_SOCKETLESS, ATTACHED, NGINX, H2O, REFLECTOR];
    let of_any_size = &hits[..hits.len() - 1]; // the reflector has one answer
    let misses = [KERNEL_SOCKETLESS, KERNEL, USER, ATTACHED_SOCKETLESS, ATTACHED, NGINX];
    let sizes = [64, 512, 8 << 10];
    let mut cases = sizes
        .map(|size| {
            let title = format!("one request a connection, {size} B");
            case(&format!("once-{size}"), title, &hits, one(&format!("/{size}.html"), size))
        })
        .to_vec();
    let title = "one request a connection that the kernel does not answer, 512 B".to_owned();
    cases.push(case(
        "once-mix",
        "one request a connection, SPECweb96's sizes".to_owned(),
        of_any_size,
        mix(),
    ));
    cases.push(case("once-miss", title, &misses, one("/512.html?query", 512)));
    cases.extend(LONG_SIZES.map(|size| {
        let title = format!("one request a connection, {} KB", size >> 10);
        let long = [KERNEL_SOCKETLESS, KERNEL, USER, NGINX];
        let name = format!("once-{}k", size >> 10);
        Case { quick: false, ..case(&name, title, &long, one(&format!("/{size}.html"), size)) }
    }));
    cases
}

/// Core time of a request by the size of its object, in the kernel, in user mode, and in the reflector,
/// which sends all segments of a constant at once.
pub(super) fn larger() -> Vec<Case> {
    let case = |size: u64| {
        let servers = [KERNEL, USER, ATTACHED, NGINX, REFLECTOR];
        let count = if size <= REFLECTED { 5 } else { 4 };
        let title = format!("{} KB, 64 connections", size >> 10);
        let objects = one(&format!("/{size}.html"), size);
        let case = Case::new(format!("larger-{}k", size >> 10), title, &servers[..count], objects);
        Case { rounds: 0.6, quick: true, metrics: COST, ..case }
    };
    LARGER_SIZES.map(case).to_vec()
}

/// The cost that the programs add to requests that user mode answers: the same request to the same server, with
/// the programs there and not; the second server of a pair is the baseline. A request with a query never gets an
/// answer from the kernel, nor does a request below `/plain`.
///
/// Connections without hits are bypassed before the measurement begins. A connection that has a hit now and then is
/// not bypassed, and each of its requests costs as much as in the `-awake` cases.
pub(super) fn passes() -> Vec<Case> {
    let query = one("/512.html?query", 512);
    let plain = one("/plain/512.html", 512);
    let download = one("/download.bin", DOWNLOAD);
    let mixed = |path: &str| vec![(31, Object::new(path, 512)), (1, Object::new("/512.html", 512))];
    let case = |name: &str, title: &str, servers: [&str; 2], objects| Case {
        seconds: 3.0,
        quick: true,
        metrics: COST,
        ..Case::new(name, title, &servers, objects)
    };
    let (afpa, nginx) = ([KERNEL, USER], [ATTACHED, NGINX]);
    let small = "a small object from user mode";
    let bypassed = |case| Case { warm_up: UNTIL_BYPASS, ..case };
    // With the hit's own gain in it: a hit costs a fraction of what user mode takes.
    let slow = |case| Case { quick: false, ..case };
    let few = |case| Case { connections: 8, ..case };
    vec![
        bypassed(case(
            "pass-afpa",
            &format!("{small}, AFPA, bypassed connections"),
            afpa,
            query.clone(),
        )),
        bypassed(case(
            "pass-nginx",
            &format!("{small}, nginx, bypassed connections"),
            nginx,
            plain.clone(),
        )),
        case(
            "pass-afpa-awake",
            &format!("{small}, AFPA, every request read"),
            [KERNEL_READING, USER],
            query,
        ),
        case(
            "pass-nginx-awake",
            &format!("{small}, nginx, every request read"),
            [ATTACHED_READING, NGINX],
            plain,
        ),
        slow(case(
            "pass-afpa-mixed",
            &format!("{small}, AFPA, every 32nd request a hit"),
            afpa,
            mixed("/512.html?query"),
        )),
        slow(case(
            "pass-nginx-mixed",
            &format!("{small}, nginx, every 32nd request a hit"),
            nginx,
            mixed("/plain/512.html"),
        )),
        few(case("download-afpa", "a download of 10 MB, AFPA", afpa, download.clone())),
        few(case("download-nginx", "a download of 10 MB, nginx", nginx, download)),
    ]
}

/// The cost of the programs alone: they are taken away and put back while nginx is busy. The connections are
/// bypassed before: programs that have missed a part of a connection leave it to user mode in any case.
pub(super) fn alternating() -> Vec<AlternatingCase> {
    let loads = [
        ("download", "a download of 10 MB, nginx", one("/download.bin", DOWNLOAD), 8),
        ("pass", "a small object from user mode, nginx", one("/plain/512.html", 512), 64),
    ];
    let case = |(name, title, objects, connections): (&str, &str, _, u32), passing_on: bool| {
        let (end, programs) = match passing_on {
            true => ("-nothing", "programs that do nothing"),
            false => ("", "AFPA's programs"),
        };
        let (name, title) = (format!("alternating-{name}{end}"), format!("{title}, {programs}"));
        let case = Case {
            connections,
            seconds: 60.0,
            warm_up: UNTIL_BYPASS,
            quick: !passing_on,
            ..Case::new(name, title, &[ATTACHED], objects)
        };
        AlternatingCase { by_sockets: case.size() == DOWNLOAD, case, passing_on }
    };
    loads.into_iter().flat_map(|load| [case(load.clone(), false), case(load, true)]).collect()
}

/// The time of the programs alone, by the kernel's own statistics of them.
pub(super) fn programs() -> Vec<Case> {
    let case = |name: &str, title: &str, server, path: &str, browser| Case {
        seconds: 4.0,
        rounds: 0.6,
        quick: true,
        method: Method::Tc(TcLoad { browser, ..TcLoad::default() }),
        ..Case::new(name, title, &[server], one(path, 512))
    };
    let passed = "a request read and passed on, and its response";
    vec![
        case("program-hit", "a hit", KERNEL, "/512.html", false),
        case("program-browser", "a hit with browser headers", KERNEL, "/512.html", true),
        case("program-pass", passed, KERNEL_READING, "/512.html?query", false),
        case(
            "program-pass-browser",
            "the same with browser headers",
            KERNEL_READING,
            "/512.html?query",
            true,
        ),
    ]
}

/// 64 requests outstanding on 64 connections, each of which asks again at once; and as many on very many
/// connections, which take turns. Acknowledgements leave with requests in both, so that the packets are the same.
pub(super) fn flows(many: u32) -> [Case; 2] {
    [FEW_FLOWS, many].map(|connections| {
        let title = format!("{connections} established connections");
        let name = format!("flows-{connections}");
        let sources = connections.div_ceil(FLOWS_OF_A_SOURCE);
        Case {
            connections,
            method: Method::Tc(TcLoad { active: FEW_FLOWS, sources, ..TcLoad::default() }),
            rounds: 0.6,
            quick: true,
            metrics: COST,
            ..Case::new(name, title, &[KERNEL], one("/512.html", 512))
        }
    })
}

fn one(path: &str, size: u64) -> Vec<(u32, Object)> {
    vec![(1, Object::new(path, size))]
}

/// A folder of SPECweb96: four classes of nine files, in steps of 0.1, 1, 10 and 100 KB. The weights are the classes' shares
/// times a Poisson distribution around the fifth file, as in the generator's `specweb96`.
pub(crate) fn mix() -> Vec<(u32, Object)> {
    const CLASSES: [(f64, u32); 4] = [(102.4, 35), (1024.0, 50), (10_240.0, 14), (102_400.0, 1)];
    const POISSON: [u32; 9] = [34, 84, 140, 175, 175, 146, 104, 65, 36]; // in 1000, of 5^k / k!
    let class = |(class, (step, share)): (usize, (f64, u32))| {
        (1..).zip(POISSON).map(move |(file, weight)| {
            let size = (f64::from(file) * step).round() as u64;
            (share * weight, Object::new(format!("/mix/class{class}_{file}.html"), size))
        })
    };
    CLASSES.into_iter().enumerate().flat_map(class).collect()
}

/// The sizes of single objects, each once.
fn sizes() -> impl Iterator<Item = u64> {
    let long = LONG_SIZES.into_iter().filter(|size| !LARGER_SIZES.contains(size));
    SIZES.into_iter().chain(LARGER_SIZES).chain(long)
}

/// Paths of all objects that the kernel may answer.
pub(super) fn kernel_paths() -> Vec<String> {
    let sizes = sizes().map(|size| format!("/{size}.html"));
    let mix = mix().into_iter().map(|(_, object)| object);
    let mix = mix.filter(|object| object.body.length() <= LONGEST_BODY);
    sizes.chain(mix.map(|object| object.path)).collect()
}

/// Writes the document root. The bytes are the same at every run, and do not compress.
///
/// # Errors
///
/// When a file cannot be written.
pub(super) fn write_files(root: &Path) -> Result<()> {
    let mut objects: Vec<(u32, Object)> =
        sizes().map(|size| (1, Object::new(format!("/{size}.html"), size))).collect();
    objects.extend(mix());
    objects.push((1, Object::new("/plain/512.html", 512)));
    objects.push((1, Object::new("/download.bin", DOWNLOAD)));
    Workload::given(objects).make_files(root)?;
    let changing = root.join(CHANGING);
    fs::write(&changing, [b'0'; CHANGING_LENGTH]).with_context(|| format!("{}", changing.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_and_the_promised_ones_are_there() {
        let alternating = alternating().into_iter().map(|one| one.case);
        let all = [
            speed(),
            larger(),
            once(),
            passes(),
            alternating.collect(),
            programs(),
            flows(200_000).to_vec(),
        ];
        let mut names: Vec<String> = all.concat().into_iter().map(|case| case.name).collect();
        let count = names.len();
        let promised = [
            "64-64",
            "512-64",
            "1024-64",
            "512-256",
            "512-64-browser",
            "512-256-browser",
            "512-256-browser-256",
            "512-64-none",
            "512-256-none",
            "512-64-together",
            "512-256-together",
            "larger-4k",
            "once-64",
            "once-mix",
            "once-miss",
            "once-16k",
            "once-64k",
            "larger-64k",
            "pass-afpa",
            "pass-nginx-awake",
            "pass-afpa-mixed",
            "download-nginx",
            "alternating-download",
            "alternating-pass-nothing",
            "program-hit",
            "program-pass-browser",
            "flows-64",
            "flows-200000",
        ];
        for name in promised {
            assert!(names.iter().any(|other| other == name), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), count), (45, 45));
    }

    #[test]
    fn few_and_very_many_connections_are_asked_alike() {
        let to = "10.77.0.1:8080".parse().unwrap();
        let [few, many] = flows(200_000)
            .map(|case| (case.tc().unwrap().options(to, &case.objects, case.connections), case));
        assert!(few.0.late_acks && many.0.late_acks);
        assert_eq!((few.0.active, many.0.active), (64, 64));
        assert_eq!((few.0.connections, many.0.connections), (64, 200_000));
        assert_eq!((few.0.sources, many.0.sources), (1, 4));
        assert_eq!(few.1.objects, many.1.objects);
    }

    #[test]
    fn a_browser_is_asked_for_with_its_cookies() {
        let cases = speed();
        let case = cases.iter().find(|case| case.name == "512-256-browser-256").unwrap();
        assert_eq!(case.title, "512 B, 256 connections, browser headers of 256 visitors");
        let to = "10.77.0.1:8080".parse().unwrap();
        let options = case.tc().unwrap().options(to, &case.objects, case.connections);
        assert_eq!(options.targets.len(), 256);
        assert!(!options.late_acks);
    }

    #[test]
    fn the_reflector_gives_no_objects_that_the_clients_queue_does_not_take() {
        let last = larger().pop().unwrap();
        assert!(!last.servers.iter().any(|server| server == REFLECTOR));
        assert_eq!(last.size(), 64 << 10);
    }
}
