//! File systems that come and go below the root. Each test runs itself once more in a mount
//! namespace of its own.

mod watch_support;

use afpa_cache::watch::{Coverage, Reason};
use std::path::Path;
use std::process::Command;
use watch_support::*;

const MARK: &str = "AFPA_TEST_IN_MOUNT_NAMESPACE";

/// True inside the namespace. Outside, runs the test there and passes its failure on.
fn inside(test: &str) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let unshare = ["--mount", "--propagation", "private", "--"];
    let possible = Command::new("unshare").args(unshare).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("SKIP: no right to make a mount namespace");
        return false;
    }
    let status = Command::new("unshare")
        .args(unshare)
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(MARK, "1")
        .status()
        .unwrap();
    assert!(status.success(), "failed in its namespace");
    false
}

fn run(program: &str, arguments: &[&str], place: &Path) {
    let status = Command::new(program).args(arguments).arg(place).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

#[test]
fn an_unmounted_file_system_is_watched_no_more_and_what_it_hid_is() {
    if !inside("an_unmounted_file_system_is_watched_no_more_and_what_it_hid_is") {
        return;
    }
    let watched = Watched::new(|site| {
        site.make("/disk");
        site.write("/disk/hidden", "below");
        run("mount", &["-t", "tmpfs", "none"], &site.at("/disk"));
        site.make("/disk/a");
    });
    assert_eq!(watched.watcher.coverage(b"/disk/a"), Coverage::Watched);
    run("umount", &[], &watched.site().at("/disk"));
    watched.sink.expect(&[tree("/disk"), written("/disk/hidden")]);
    assert_eq!(watched.watcher.ensure(b"/disk/a"), Coverage::Unwatched(Reason::Missing));
    watched.sink.forget();
    watched.site().write("/disk/page", "heard");
    watched.sink.expect(&[written("/disk/page")]);
}

#[test]
fn a_directory_in_two_places_is_covered_in_one() {
    if !inside("a_directory_in_two_places_is_covered_in_one") {
        return;
    }
    let watched = Watched::new(|site| {
        site.make("/a/below");
        site.make("/loop");
        site.make("/twin");
        run("mount", &["--bind", site.at("/").to_str().unwrap()], &site.at("/loop"));
        run("mount", &["--bind", site.at("/a").to_str().unwrap()], &site.at("/twin"));
    });
    let twice = Coverage::Unwatched(Reason::SeveralPlaces);
    assert_eq!(watched.watcher.ensure(b"/loop"), twice);
    let mut seen = [b"/a/below".as_slice(), b"/twin/below"].map(|dir| watched.watcher.ensure(dir));
    seen.sort_by_key(|coverage| *coverage != Coverage::Watched);
    assert_eq!(seen, [Coverage::Watched, twice]);
    run("umount", &[], &watched.site().at("/loop"));
    run("umount", &[], &watched.site().at("/twin"));
}
