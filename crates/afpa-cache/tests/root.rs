//! The document root against everything that wants out of it, or in.

use afpa_cache::root::{DocumentRoot, Entry, ListedKind, ResolveError, RootSettings};
use afpa_cache::root::{SymlinkPolicy, Trail};
use rustix::fs::{CWD, Mode, RenameFlags};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const POLICIES: [SymlinkPolicy; 3] =
    [SymlinkPolicy::Never, SymlinkPolicy::OwnerMatch, SymlinkPolicy::Always];

/// A site in `www`, with a secret beside it.
struct TestRoot {
    folder: tempfile::TempDir,
}

impl TestRoot {
    fn new() -> Self {
        let site = TestRoot { folder: tempfile::tempdir().unwrap() };
        for folder in ["www/a/b", "www/.hidden", "www/.well-known", "outside"] {
            fs::create_dir_all(site.folder.path().join(folder)).unwrap();
        }
        site.write("www/index.html", "home");
        site.write("www/a/page", "page");
        site.write("www/a/b/deep", "deep");
        site.write("www/.hidden/config", "secret");
        site.write("www/.well-known/security.txt", "contact");
        site.write("outside/secret", "secret");
        site
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        fs::write(self.path(path), content).unwrap();
    }

    fn link(&self, text: impl AsRef<Path>, path: &str) {
        symlink(text, self.path("www").join(path)).unwrap();
    }

    fn root(&self, symlinks: SymlinkPolicy) -> DocumentRoot {
        let settings = RootSettings { symlinks, dotfiles: false };
        DocumentRoot::open(self.path("www"), settings).unwrap()
    }
}

/// The outcome for a path: content, "directory", or the error.
fn outcome(root: &DocumentRoot, path: &str) -> String {
    describe(root.resolve(path.as_bytes()))
}

fn describe(result: Result<Entry, ResolveError>) -> String {
    match result {
        Ok(Entry::File(mut open)) => {
            let mut content = String::new();
            open.file.read_to_string(&mut content).unwrap();
            assert_eq!(open.stamp.size, content.len() as u64);
            content
        }
        Ok(Entry::Directory(_)) => "directory".into(),
        Err(ResolveError::Forbidden) => "forbidden".into(),
        Err(ResolveError::Denied) => "denied".into(),
        Err(error) => error.to_string(),
    }
}

/// Where a path really is.
fn real(root: &DocumentRoot, path: &str) -> Option<String> {
    let real = match root.resolve(path.as_bytes()).unwrap() {
        Entry::File(file) => file.real,
        Entry::Directory(directory) => directory.real,
    };
    real.map(|path| String::from_utf8(path).unwrap())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `act` in a thread that has no privilege to look past permissions.
fn without_capabilities<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).unwrap();
            act()
        });
        thread.join().unwrap()
    })
}

#[test]
fn only_what_is_absent_is_known_to_be_absent() {
    let site = TestRoot::new();
    site.link("nowhere", "dangling");
    site.link("a", "alias");
    for symlinks in POLICIES {
        let root = site.root(symlinks);
        let paths =
            ["/", "/a", "/a/page", "/a/page/x", "/none", "/a/none", "/none/below", "/dangling"];
        for path in
            paths.into_iter().chain(["/alias/none", "/.hidden/config", "/.none", "/a/../none"])
        {
            let found = outcome(&root, path);
            let known = root.is_known_absent(path.as_bytes());
            assert!(!known || found == "not found", "{path}: {found}");
        }
        assert!(root.is_known_absent(b"/.hidden/config"), "the name alone tells");
        assert!(!root.is_known_absent(b"/dangling"), "a link is left to those who follow it");
        if !root.is_known_absent(b"/none") {
            println!("SKIP: this file system, or this kernel, does not say at once what is absent");
            return;
        }
        site.write("www/none", "new");
        assert!(!root.is_known_absent(b"/none"));
        fs::remove_file(site.path("www/none")).unwrap();
        assert_eq!(outcome(&root, "/none"), "not found");
        assert!(root.is_known_absent(b"/none"));
    }
}

#[test]
fn files_and_directories_are_found() {
    let site = TestRoot::new();
    for policy in POLICIES {
        let root = site.root(policy);
        assert_eq!(outcome(&root, "/index.html"), "home");
        assert_eq!(outcome(&root, "/a/b/deep"), "deep");
        for directory in ["/", "/a", "/a/", "/a/b/"] {
            assert_eq!(outcome(&root, directory), "directory", "{directory}");
        }
        for absent in ["/none", "/none/", "/index.html/", "/index.html/x", "/a/page/"] {
            assert_eq!(outcome(&root, absent), "not found", "{absent}");
        }
        assert_eq!(outcome(&root, &format!("/{}", "x".repeat(300))), "not found");
        assert_eq!(outcome(&root, &"/x".repeat(3000)), "not found");
        assert_eq!(real(&root, "/a/page"), None);
    }
}

#[test]
fn hidden_names_are_served_only_when_allowed() {
    let site = TestRoot::new();
    let root = site.root(SymlinkPolicy::Always);
    assert_eq!(outcome(&root, "/.hidden/config"), "not found");
    assert_eq!(outcome(&root, "/.hidden"), "not found");
    assert_eq!(outcome(&root, "/.well-known/security.txt"), "contact");
    let settings = RootSettings { symlinks: SymlinkPolicy::Never, dotfiles: true };
    let open = DocumentRoot::open(site.path("www"), settings).unwrap();
    assert_eq!(outcome(&open, "/.hidden/config"), "secret");
}

#[test]
fn no_path_and_no_link_leads_outside() {
    let site = TestRoot::new();
    let absolute = site.path("outside/secret");
    site.link(&absolute, "absolute");
    site.link(site.path("www/index.html"), "absolute-inside");
    site.link("../outside/secret", "relative");
    site.link("a/../../outside/secret", "roundabout");
    site.link("relative", "link-to-link");
    site.link("../outside", "folder");
    site.link("../www/index.html", "out-and-in-again");
    site.link("/", "slash");
    site.link("..", "up");
    for policy in POLICIES {
        let root = site.root(policy);
        for path in [
            "/absolute",
            "/absolute-inside",
            "/relative",
            "/roundabout",
            "/link-to-link",
            "/folder/secret",
            "/folder",
            "/folder/",
            "/out-and-in-again",
            "/slash",
            "/up",
            "/up/outside/secret",
            "/slash/etc/passwd",
        ] {
            assert_eq!(outcome(&root, path), "forbidden", "{path} with {policy:?}");
        }
        for path in ["/../outside/secret", "/a/../../outside/secret", "/.."] {
            assert_eq!(outcome(&root, path), "forbidden", "{path}");
        }
    }
}

#[test]
fn links_inside_the_root_are_followed_where_allowed() {
    let site = TestRoot::new();
    site.link("a/page", "page");
    site.link("a", "folder");
    site.link("../folder/b/../page", "a/winding");
    site.link("page", "second");
    site.link("page/", "slashed");
    site.link(".hidden/config", "shown");
    let never = site.root(SymlinkPolicy::Never);
    for path in ["/page", "/folder/page", "/a/winding", "/second", "/folder", "/folder/"] {
        assert_eq!(outcome(&never, path), "forbidden", "{path}");
    }
    for policy in [SymlinkPolicy::OwnerMatch, SymlinkPolicy::Always] {
        let root = site.root(policy);
        for (path, place) in [
            ("/page", "/a/page"),
            ("/second", "/a/page"),
            ("/folder/page", "/a/page"),
            ("/a/winding", "/a/page"),
            ("/folder/winding", "/a/page"),
            ("/folder/b/deep", "/a/b/deep"),
            ("/folder", "/a"),
            ("/folder/b/", "/a/b"),
            ("/shown", "/.hidden/config"),
        ] {
            assert_eq!(real(&root, path).as_deref(), Some(place), "{path}");
        }
        assert_eq!(outcome(&root, "/folder/page"), "page");
        for path in ["/slashed", "/page/", "/folder/none", "/page/x"] {
            assert_eq!(outcome(&root, path), "not found", "{path}");
        }
    }
}

#[test]
fn the_trail_names_every_place_on_the_way() {
    let site = TestRoot::new();
    site.link("middle", "first");
    site.link("a/b/..", "middle");
    let root = site.root(SymlinkPolicy::Always);
    let trail_of = |path: &str| {
        let mut trail = Trail::default();
        let outcome = describe(root.resolve_traced(path.as_bytes(), &mut trail));
        let places = trail.places().map(|place| String::from_utf8(place.to_vec()).unwrap());
        (outcome, places.collect::<Vec<_>>())
    };
    let found = ["/first", "/middle", "/a/b", "/a/page"].map(String::from).to_vec();
    assert_eq!(trail_of("/first/page"), ("page".into(), found));
    let absent = ["/first", "/middle", "/a/b", "/a/page.br"].map(String::from).to_vec();
    assert_eq!(trail_of("/first/page.br"), ("not found".into(), absent));
    assert_eq!(trail_of("/a/page"), ("page".into(), vec![]));
}

#[test]
fn endless_and_overlong_links_end() {
    let site = TestRoot::new();
    site.link("loop", "loop");
    site.link("pong", "ping");
    site.link("ping", "pong");
    site.link("grow/x", "grow");
    site.link("a/../".repeat(800), "long");
    site.link("a/page", "chain0");
    for step in 1..=60 {
        site.link(format!("chain{}", step - 1), &format!("chain{step}"));
    }
    let root = site.root(SymlinkPolicy::Always);
    for path in ["/loop", "/ping", "/grow", "/long", "/chain60"] {
        assert_eq!(outcome(&root, path), "forbidden", "{path}");
    }
    assert_eq!(outcome(&root, "/chain39"), "page");
}

#[test]
fn magic_links_are_never_followed() {
    for policy in POLICIES {
        let settings = RootSettings { symlinks: policy, dotfiles: false };
        let root = DocumentRoot::open("/proc/self", settings).unwrap();
        for path in ["/root", "/root/etc/passwd", "/cwd/Cargo.toml", "/exe", "/task/../root"] {
            assert_eq!(outcome(&root, path), "forbidden", "{path} with {policy:?}");
        }
        let descriptor = outcome(&root, "/fd/0");
        assert!(["forbidden", "not found"].contains(&descriptor.as_str()), "{descriptor}");
    }
}

#[test]
fn special_files_neither_block_nor_pass() {
    let site = TestRoot::new();
    let fifo = site.path("www/fifo");
    rustix::fs::mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(site.path("www/socket")).unwrap();
    site.link("fifo", "link");
    let root = site.root(SymlinkPolicy::Always);
    let begin = Instant::now();
    for path in ["/fifo", "/socket", "/link"] {
        let outcome = root.resolve(path.as_bytes());
        assert!(matches!(outcome, Err(ResolveError::NotAFile)), "{path}: {outcome:?}");
    }
    let devices = DocumentRoot::open("/dev", RootSettings::default()).unwrap();
    for path in ["/null", "/zero"] {
        let outcome = devices.resolve(path.as_bytes());
        assert!(matches!(outcome, Err(ResolveError::NotAFile)), "{path}: {outcome:?}");
    }
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[test]
fn permissions_hold_and_the_root_outlives_the_right_to_search_for_it() {
    let site = TestRoot::new();
    site.write("www/private", "private");
    fs::create_dir_all(site.path("www/closed")).unwrap();
    site.write("www/closed/file", "inside");
    fs::create_dir_all(site.path("www/blind")).unwrap();
    site.write("www/blind/file", "seen");
    let root = site.root(SymlinkPolicy::Always);
    let mode = |path: &str, mode| {
        fs::set_permissions(site.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("www/private", 0o000);
    mode("www/closed", 0o000);
    mode("www/blind", 0o311);
    mode("", 0o000);
    let seen = without_capabilities(|| {
        let paths = ["/index.html", "/private", "/closed/file", "/blind", "/blind/file"];
        paths.map(|path| outcome(&root, path))
    });
    let unlisted = without_capabilities(|| match root.resolve(b"/blind") {
        Ok(Entry::Directory(directory)) => directory.list(false, 10).map(|_| ()),
        other => panic!("{other:?}"),
    });
    mode("", 0o755);
    assert_eq!(seen, ["home", "denied", "denied", "directory", "seen"]);
    assert_eq!(unlisted.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn links_to_the_property_of_others_are_refused() {
    if !is_root() {
        println!("SKIP: only root can give files away");
        return;
    }
    let site = TestRoot::new();
    let own = |path: &str, user| {
        std::os::unix::fs::lchown(site.path("www").join(path), Some(user), None).unwrap();
    };
    site.link("a/page", "ours");
    site.link("a/page", "theirs");
    own("theirs", 1234);
    site.write("www/given", "given");
    own("given", 1234);
    site.link("given", "to-theirs");
    own("to-theirs", 1234);
    site.link("given", "from-ours");
    // The directory between link and target belongs to another: only the two ends count.
    site.link("a/../given", "across");
    own("across", 1234);
    site.link("to-theirs", "chain");
    site.link("a", "folder-theirs");
    own("folder-theirs", 1234);
    let root = site.root(SymlinkPolicy::OwnerMatch);
    let expected = [
        ("/ours", "page"),
        ("/theirs", "forbidden"),
        ("/to-theirs", "given"),
        ("/from-ours", "forbidden"),
        ("/across", "given"),
        ("/chain", "forbidden"),
        ("/folder-theirs/page", "forbidden"),
    ];
    for (path, expected) in expected {
        assert_eq!(outcome(&root, path), expected, "{path}");
    }
    let root = site.root(SymlinkPolicy::Always);
    assert_eq!(outcome(&root, "/folder-theirs/page"), "page");
}

/// A name changes between a directory and a link that leads outside, as fast as the kernel can.
#[test]
fn swapping_a_directory_for_a_link_opens_no_door() {
    let site = TestRoot::new();
    fs::create_dir_all(site.path("www/target")).unwrap();
    site.write("www/target/secret", "public");
    site.link("../outside", "door");
    site.link("a", "harmless");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (target, door) = (site.path("www/target"), site.path("www/door"));
            while !stop.load(Ordering::Relaxed) {
                let exchange = RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, &target, CWD, &door, exchange).unwrap();
            }
        });
        let end = Instant::now() + Duration::from_secs(1);
        let roots = POLICIES.map(|policy| site.root(policy));
        let (mut opened, mut refused) = (0u32, 0u32);
        while Instant::now() < end {
            for root in &roots {
                match outcome(root, "/target/secret").as_str() {
                    "public" => opened += 1,
                    "forbidden" => refused += 1,
                    other => assert!(other.starts_with("cannot open"), "{other}"),
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("while swapping: {opened} opened inside, {refused} refused");
        assert!(opened > 0 && refused > 0, "the race did not take place");
    });
}

#[test]
fn a_root_must_be_a_directory_that_is_there() {
    let site = TestRoot::new();
    for path in ["www/index.html", "nowhere"] {
        assert!(DocumentRoot::open(site.path(path), RootSettings::default()).is_err());
    }
}

#[test]
fn listings_show_what_may_be_served() {
    let site = TestRoot::new();
    site.link("a", "link");
    rustix::fs::mkfifoat(CWD, site.path("www/fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let root = site.root(SymlinkPolicy::Never);
    let Ok(Entry::Directory(directory)) = root.resolve(b"/") else { panic!("no directory") };
    let listed = directory.list(false, 10).unwrap();
    let shown: Vec<_> =
        listed.iter().map(|entry| (String::from_utf8_lossy(&entry.name), entry.kind)).collect();
    let expected = [
        (".well-known".into(), ListedKind::Directory),
        ("a".into(), ListedKind::Directory),
        ("index.html".into(), ListedKind::File(4)),
        ("link".into(), ListedKind::Link),
    ];
    assert_eq!(shown, expected);
    assert!(directory.list(false, 3).is_err());
    assert_eq!(directory.list(true, 10).unwrap().len(), 5);
}
