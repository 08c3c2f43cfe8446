//! The plan of the house: which crate may import which. An arrow that points the wrong way fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Crate -> the crates of ours that it may import. The same table stands in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("afpa-http", &[]),
    ("afpa-arena", &[]),
    ("afpa-abi", &[]),
    ("afpa-police", &["afpa-abi"]),
    ("afpa-say", &[]),
    ("afpa-names", &[]),
    ("afpa-bpf", &["afpa-abi", "afpa-police", "afpa-say"]),
    ("afpa-cache", &["afpa-arena", "afpa-http"]),
    ("afpa-self-check", &["afpa-bpf"]),
    ("afpa-dns", &[]),
    ("afpa-dnstap", &[]),
    (
        "afpa-attach",
        &[
            "afpa-bpf",
            "afpa-cache",
            "afpa-dns",
            "afpa-dnstap",
            "afpa-framework",
            "afpa-http",
            "afpa-police",
            "afpa-say",
            "afpa-self-check",
        ],
    ),
    ("afpa-framework", &["afpa-cache"]),
    ("afpa-fastcgi", &["afpa-http"]),
    ("afpa-h2", &["afpa-http"]),
    ("afpa-h3", &["afpa-h2", "afpa-http"]),
    ("afpa-includes", &["afpa-http"]),
    ("afpa-router", &["afpa-http"]),
    ("afpa-fleet", &[]),
    ("afpa-users", &[]),
    (
        "afpa-proxy",
        &[
            "afpa-fastcgi",
            "afpa-framework",
            "afpa-h2",
            "afpa-http",
            "afpa-names",
            "afpa-ring",
            "afpa-tls",
        ],
    ),
    ("afpa-shared-cache", &["afpa-cache", "afpa-framework", "afpa-h3", "afpa-http", "afpa-proxy"]),
    (
        "afpa-module-dns",
        &["afpa-dns", "afpa-dnstap", "afpa-framework", "afpa-police", "afpa-server"],
    ),
    (
        "afpa-module-http",
        &[
            "afpa-cache",
            "afpa-fastcgi",
            "afpa-framework",
            "afpa-h2",
            "afpa-h3",
            "afpa-http",
            "afpa-includes",
            "afpa-police",
            "afpa-proxy",
            "afpa-router",
            "afpa-shared-cache",
            "afpa-users",
        ],
    ),
    ("afpa-acme", &[]),
    ("afpa-adapt", &[]),
    ("afpa-ring", &[]),
    ("afpa-tls", &[]),
    (
        "afpa-server",
        &[
            "afpa-cache",
            "afpa-framework",
            "afpa-h2",
            "afpa-h3",
            "afpa-police",
            "afpa-ring",
            "afpa-tls",
        ],
    ),
    (
        "afpa-config",
        &[
            "afpa-abi",
            "afpa-acme",
            "afpa-dns",
            "afpa-fleet",
            "afpa-framework",
            "afpa-h2",
            "afpa-http",
            "afpa-names",
            "afpa-police",
            "afpa-proxy",
            "afpa-router",
            "afpa-tls",
            "afpa-users",
        ],
    ),
    (
        "afpa-fast-path",
        &[
            "afpa-bpf",
            "afpa-cache",
            "afpa-framework",
            "afpa-http",
            "afpa-module-http",
            "afpa-police",
            "afpa-proxy",
            "afpa-router",
            "afpa-self-check",
            "afpa-server",
            "afpa-shared-cache",
        ],
    ),
    ("afpa-otlp", &["afpa-framework", "afpa-names"]),
    (
        "afpa-workers",
        &[
            "afpa-config",
            "afpa-framework",
            "afpa-http",
            "afpa-module-http",
            "afpa-say",
            "afpa-server",
        ],
    ),
    (
        "afpa",
        &[
            "afpa-acme",
            "afpa-adapt",
            "afpa-attach",
            "afpa-bpf",
            "afpa-cache",
            "afpa-config",
            "afpa-dns",
            "afpa-dnstap",
            "afpa-fast-path",
            "afpa-fleet",
            "afpa-framework",
            "afpa-http",
            "afpa-module-dns",
            "afpa-module-http",
            "afpa-names",
            "afpa-otlp",
            "afpa-police",
            "afpa-proxy",
            "afpa-router",
            "afpa-say",
            "afpa-server",
            "afpa-shared-cache",
            "afpa-tls",
            "afpa-users",
            "afpa-workers",
        ],
    ),
    ("afpa-testkit", &[]),
    ("afpa-netlab", &["afpa-testkit"]),
    ("afpa-tcp-sim", &[]),
    (
        "afpa-tests",
        &["afpa-acme", "afpa-bpf", "afpa-h2", "afpa-netlab", "afpa-testkit", "afpa-tls"],
    ),
];

/// The same of the lab, a workspace of its own. The table stands in `lab/README.md`.
const LAB: &[(&str, &[&str])] = &[
    ("afpa-architectures", &["afpa-cache", "afpa-http"]),
    ("afpa-generator", &["afpa-h2", "afpa-h3", "afpa-netlab"]),
    ("afpa-lab", &["afpa-architectures", "afpa-bpf", "afpa-generator", "afpa-netlab"]),
];

/// The three crates in which `unsafe` may stand.
const UNSAFE: &[&str] = &["afpa-arena", "afpa-bpf", "afpa-ring"];

fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the house").to_owned()
}

/// Manifests of the product and of the lab, by the name of the crate.
pub(crate) fn manifests() -> BTreeMap<String, (PathBuf, String)> {
    let within = |folder: &str| {
        let entries = fs::read_dir(house().join(folder)).expect("a folder of crates");
        entries.map(|entry| entry.expect("an entry").path())
    };
    let mut folders: Vec<PathBuf> = within("crates").chain(within("lab")).collect();
    folders.push(house().join("tests"));
    folders
        .into_iter()
        .filter_map(|folder| {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
            Some((name.trim_matches('"').to_owned(), (folder, manifest)))
        })
        .collect()
}

/// Our crates among the `[dependencies]` of a manifest; those for tests do not count.
fn imports(manifest: &str) -> Vec<&str> {
    let section = manifest.split("\n[").find_map(|part| part.strip_prefix("dependencies]"));
    let lines = section.unwrap_or_default().lines();
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("afpa")).collect()
}

#[test]
fn every_crate_is_in_the_plan_and_every_arrow_is_allowed() {
    let manifests = manifests();
    let planned: BTreeMap<_, _> = ARROWS.iter().chain(LAB).copied().collect();
    for name in planned.keys() {
        assert!(manifests.contains_key(*name), "{name} is planned but not there");
    }
    for (name, (_, manifest)) in &manifests {
        let allowed = planned.get(name.as_str());
        let allowed = allowed.unwrap_or_else(|| panic!("{name} is not in the plan of the house"));
        for import in imports(manifest) {
            assert!(allowed.contains(&import), "{name} must not import {import}");
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_but_in_three_crates() {
    for (name, (folder, manifest)) in manifests() {
        if UNSAFE.contains(&name.as_str()) {
            continue;
        }
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} leaves the lints");
        for file in sources(&folder.join("src")) {
            let text = fs::read_to_string(&file).expect("a source file");
            let allows = text.contains("allow(unsafe_code") || text.contains("expect(unsafe_code");
            assert!(!allows, "{} allows unsafe code", file.display());
        }
    }
}

#[test]
fn architecture_shows_the_same_arrows() {
    for (page, arrows) in [("ARCHITECTURE.md", ARROWS), ("lab/README.md", LAB)] {
        let text = fs::read_to_string(house().join(page)).expect("a page of the house");
        for (name, imports) in arrows {
            let row = text.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("{name} has no row in {page}"));
            for import in *imports {
                let short = import.trim_start_matches("afpa-");
                assert!(row.contains(short), "the row of {name} does not name {short}");
            }
        }
    }
}

/// The lab compares servers, so both are made of the same versions, and compiled alike: all of the lab as the product's
/// crates for requests, which have an `opt-level` of their own.
#[test]
fn the_lab_is_compiled_as_the_product_is() {
    let [product, lab] = ["", "lab"].map(|folder| {
        let read = |name| fs::read_to_string(house().join(folder).join(name)).expect("a file");
        (read("Cargo.toml"), read("Cargo.lock"))
    });
    for section in ["workspace.package]", "profile.release]"] {
        let [product, lab] = [&product.0, &lab.0].map(|manifest| {
            let found = manifest.split("\n[").find_map(|part| part.strip_prefix(section));
            let lines = found.expect("a section").split("\n\n").next().unwrap_or_default().lines();
            lines.filter(|line| !line.starts_with("opt-level")).collect::<Vec<_>>().join("\n")
        });
        assert_eq!(product, lab, "[{section}");
    }
    let names = |lock: &str| {
        let packages = lock.split("\n[[package]]\n").skip(1);
        let lines = packages.map(|package| package.lines().take(2).collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>()
    };
    let (all, mut other) = (names(&product.1), names(&lab.1));
    other.retain(|package| !all.contains(package));
    // Those that only the lab has.
    let own = |package: &String| {
        let name = package.split(" version").next().unwrap_or_default();
        !all.iter().any(|other| other.starts_with(&format!("{name} ")))
    };
    other.retain(|package| !own(package) && !OLDER.iter().any(|old| package.contains(old)));
    assert!(other.is_empty(), "versions that the product has not: {other:?}");
}

/// Crates of which the lab needs an older version as well, for tokio-uring.
const OLDER: [&str; 3] = ["\"bitflags\"", "\"io-uring\"", "\"socket2\""];

/// Standard error and standard output may be a pipe whose reader has gone, or that nobody reads: `println!` and its like
/// panic there, or wait for ever. In the program the lines go through `afpa-say`.
#[test]
fn the_program_prints_nothing_but_by_afpa_say() {
    const FORBIDDEN: [&str; 7] = [
        "print!(",
        "println!(",
        "dbg!(",
        "stderr().lock",
        "stdout().lock",
        "(io::stdout())",
        "(io::stderr())",
    ];
    let manifests = manifests();
    for name in crates_of("afpa") {
        refuse(&FORBIDDEN, &manifests[name].0, "use afpa-say");
    }
}

/// A start and a reload make the hierarchy and the router once, with the checks of the configuration.
#[test]
fn the_program_makes_no_router_of_its_own() {
    let manifests = manifests();
    for name in crates_of("afpa").into_iter().filter(|name| *name != "afpa-config") {
        let made = ["Router::compile(", "Hierarchy::of(", ".hierarchy("];
        refuse(&made, &manifests[name].0, "Loaded::routes has it");
    }
}

/// HTTP is a module (docs/decisions/http-is-a-module.md): the framework has no word of it, comments included, and the
/// engine has none but in the drivers of HTTP/2 and HTTP/3, and for their names.
#[test]
fn framework_and_engine_name_no_http() {
    const WORDS: [&str; 9] =
        ["http", "https", "h2", "h3", "url", "referer", "cookie", "status", "user_agent"];
    const OF_ENGINE: [&str; 3] = ["http", "h2", "h3"];
    let manifests = manifests();
    for (name, allowed) in [("afpa-framework", &[][..]), ("afpa-server", &OF_ENGINE[..])] {
        let folder = manifests[name].0.join("src");
        let drivers = [folder.join("h2"), folder.join("h3")];
        let all = sources(&folder).into_iter();
        for file in all.filter(|file| !drivers.iter().any(|driver| file.starts_with(driver))) {
            let text = fs::read_to_string(&file).expect("a source file");
            for (line, number) in text.lines().zip(1..) {
                // No head of HTTP/1 is made or read here.
                assert!(!line.contains("HTTP/1."), "{}:{number}: {line}", file.display());
                let lower = line.to_ascii_lowercase();
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let mut words = lower.split(|c| !is_part(c));
                let found = words.find(|word| WORDS.contains(word) && !allowed.contains(word));
                assert!(found.is_none(), "{}:{number}: {found:?}: {line}", file.display());
            }
        }
    }
}

/// Fails where the product's part of a crate calls one of these.
fn refuse(forbidden: &[&str], folder: &Path, instead: &str) {
    for file in sources(&folder.join("src")) {
        if file
            .components()
            .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "testing")
            || file.file_stem().is_some_and(|name| name == "tests")
        {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in product.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let found = forbidden.iter().find(|call| line.contains(**call));
            assert!(found.is_none(), "{}: {instead}: {line}", file.display());
        }
    }
}

/// A crate and all that it imports, however far away.
fn crates_of(name: &'static str) -> Vec<&'static str> {
    let planned: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut found = vec![name];
    let mut at = 0;
    while let Some(name) = found.get(at) {
        for import in planned[name] {
            if !found.contains(import) {
                found.push(import);
            }
        }
        at += 1;
    }
    found
}

pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}
