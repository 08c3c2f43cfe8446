//! Nothing outside the root is ever sent, for any target and any link.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::{Server, Tree, eventually, exclusive::exclusive};

/// A file beside the root that must never be sent, and ways in the root that lead to it.
fn tree_with_a_secret() -> Tree {
    let tree = Tree::new();
    tree.outside("secret/f.txt", "SECRET");
    tree.file("index.html", "index");
    tree.file("inside/f.txt", "inside");
    tree.link("relative", "../secret");
    tree.link("file.txt", "../secret/f.txt");
    tree.link("absolute", tree.at("../secret"));
    tree.link("by-proc", "/proc/self/root/etc");
    tree.link("by-cwd", "/proc/self/cwd");
    tree.link("etc", "/etc");
    tree.link("up", "..");
    tree.link("chain", "inside/more");
    tree.link("inside/more", "../../secret");
    tree.link("through", "inside/../../secret");
    tree.link("loop", "loop");
    tree
}

#[test]
fn no_target_leads_out_of_the_root() {
    let tree = tree_with_a_secret();
    for policy in ["never", "owner", "always"] {
        let server = Server::start(tree.path(), |launch| {
            launch.arg("--symlinks").arg(policy);
        });
        for target in [
            "/../secret/f.txt",
            "/..%2fsecret/f.txt",
            "/%2e%2e/secret/f.txt",
            "/.%2e/secret/f.txt",
            "/inside/../../secret/f.txt",
            "/inside/%2e%2e/%2e%2e/secret/f.txt",
            "/%252e%252e/secret/f.txt",
            "/..\\secret\\f.txt",
            "/..;/secret/f.txt",
            "//../secret/f.txt",
            "/./../secret/f.txt",
            "/%c0%ae%c0%ae/secret/f.txt",
            "/relative/f.txt",
            "/file.txt",
            "/absolute/f.txt",
            "/by-proc/passwd",
            "/etc/passwd",
            "/by-cwd/Cargo.toml",
            "/up/secret/f.txt",
            "/up/root/inside/f.txt",
            "/chain/f.txt",
            "/inside/more/f.txt",
            "/through/f.txt",
            "/loop",
            "/loop/x",
            "/etc/",
            "/up/",
            "/etc/passwd?x",
            "/relative/../inside/../../secret/f.txt",
            "http://h/../secret/f.txt",
            "/proc/self/environ",
            "/dev/stdin",
            "file:///etc/passwd",
        ] {
            let response = server.get(target);
            let text = String::from_utf8_lossy(&response.body);
            assert!(matches!(response.status, 400 | 403 | 404), "{policy} {target}: {response:?}");
            assert!(!text.contains("SECRET") && !text.contains("root:"), "{policy} {target}");
        }
        assert_eq!(server.get("/inside/f.txt").text(), "inside", "{policy}");
    }
}

#[test]
fn links_within_the_root_follow_the_setting() {
    let tree = Tree::new();
    tree.file("inside/f.txt", "inside");
    tree.link("link.txt", "inside/f.txt");
    tree.link("folder", "inside");
    for (policy, status) in [("never", 404), ("owner", 200), ("always", 200)] {
        let server = Server::start(tree.path(), |launch| {
            launch.arg("--symlinks").arg(policy);
        });
        for target in ["/link.txt", "/folder/f.txt"] {
            let got = server.get(target).status;
            let refused = status != 200 && matches!(got, 403 | 404);
            assert!(got == status || refused, "{policy} {target}: {got}");
        }
    }
}

#[test]
fn a_folder_swapped_for_a_link_under_load_never_leaks() {
    let _alone = exclusive();
    let tree = Tree::new();
    tree.outside("secret/f.txt", "SECRET");
    tree.file("d/f.txt", "inside");
    for policy in ["owner", "always"] {
        let server = Server::start(tree.path(), |launch| {
            launch.arg("--symlinks").arg(policy);
        });
        let stop = AtomicBool::new(false);
        let served = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                let (server, stop, served) = (&server, &stop, &served);
                scope.spawn(move || {
                    let mut client = server.connect();
                    while !stop.load(Ordering::Relaxed) {
                        let response = client.get("/d/f.txt");
                        assert!(!response.body.starts_with(b"SECRET"), "{policy}: leaked");
                        if response.status == 200 {
                            assert_eq!(response.text(), "inside");
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            let end = Instant::now() + Duration::from_secs(1);
            while Instant::now() < end {
                tree.rename("d", "aside");
                std::os::unix::fs::symlink("../secret", tree.at("d")).expect("link");
                thread::sleep(Duration::from_millis(1));
                tree.remove("d");
                tree.rename("aside", "d");
                thread::sleep(Duration::from_millis(1));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(served.into_inner() > 0, "it was there some of the time");
        eventually("the folder is itself again", || server.get("/d/f.txt").status == 200);
    }
}
