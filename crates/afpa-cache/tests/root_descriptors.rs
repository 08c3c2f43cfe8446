//! Running out of descriptors. Alone in its process, because the limit holds for all of it.

use afpa_cache::root::{DocumentRoot, Entry, ResolveError, RootSettings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;

#[test]
fn running_out_of_descriptors_is_told_from_other_errors() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page"), "page").unwrap();
    std::os::unix::fs::symlink("page", folder.path().join("link")).unwrap();
    let root = DocumentRoot::open(folder.path(), RootSettings::default()).unwrap();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).unwrap();
    let mut hoard = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        hoard.push(file);
    }
    let outcomes = [root.resolve(b"/page"), root.resolve(b"/link")];
    hoard.clear();
    let after = root.resolve(b"/link");
    setrlimit(Resource::Nofile, before).unwrap();
    for outcome in outcomes {
        assert!(matches!(outcome, Err(ResolveError::TooManyFiles)), "{outcome:?}");
    }
    assert!(matches!(after, Ok(Entry::File(_))));
}
