//! The directories that helper threads may read.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Weak};

use afpa_server::HelperStart;

use super::serving::Serving;
use crate::confine::Confinement;

/// The directories of the helpers that are at work.
#[derive(Default)]
pub(super) struct HelperDirectories(Option<Vec<Weak<OwnedFd>>>);

impl HelperDirectories {
    /// The start of the helpers that load the files of this configuration and of the one before, for which requests
    /// may be in progress. Helpers that may read just these directories go on: then it is the default one.
    pub(super) fn start(
        &mut self,
        confinement: &Confinement,
        serving: &Serving,
        before: &Serving,
    ) -> HelperStart {
        let roots = || serving.roots().chain(before.roots());
        // With `homes` helpers are not confined: a user's home is looked up at a request for it, and this system may
        // keep its users anywhere.
        if roots().any(|root| root.settings().homes.is_some()) {
            self.0 = None;
            return HelperStart::new(|| ());
        }
        let directories = distinct(roots().map(|root| root.directory()));
        match self.replace(&directories) {
            true => confinement.helpers_below(directories.iter().map(|held| held.as_fd())),
            false => HelperStart::default(),
        }
    }

    /// No helper could be started for the directories that were noted last: the next start is one for new directories.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    /// Notes distinct directories. Whether they are others than before.
    fn replace(&mut self, directories: &[Arc<OwnedFd>]) -> bool {
        // The address of a descriptor is its own as long as it is noted here, also when it is closed.
        let known = self.0.iter().flatten().map(Weak::as_ptr);
        let same = self.0.is_some() && known.eq(directories.iter().map(Arc::as_ptr));
        self.0 = Some(directories.iter().map(Arc::downgrade).collect());
        !same
    }
}

/// Each descriptor once, in an order of their own.
fn distinct(directories: impl Iterator<Item = Arc<OwnedFd>>) -> Vec<Arc<OwnedFd>> {
    let mut directories: Vec<Arc<OwnedFd>> = directories.collect();
    directories.sort_unstable_by_key(Arc::as_ptr);
    directories.dedup_by_key(|held| Arc::as_ptr(held));
    directories
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn helpers_go_on_while_the_directories_are_the_same() {
        let open = || Arc::new(OwnedFd::from(File::open("/").unwrap()));
        let (one, two) = (open(), open());
        let mut known = HelperDirectories::default();
        let mut is_new = |held: &[&Arc<OwnedFd>]| {
            known.replace(&distinct(held.iter().map(|held| Arc::clone(held))))
        };
        assert!(is_new(&[]), "there are none yet");
        assert!(is_new(&[&one, &two, &one]));
        assert!(!is_new(&[&two, &one]), "in another order");
        assert!(is_new(&[&two]), "fewer directories are other directories");
        drop(one);
        assert!(is_new(&[&two, &open()]), "another one of the same name");
        assert!(is_new(&[]));
        assert!(!is_new(&[]));
        known.forget();
        assert!(known.replace(&[]), "none was started for these");
    }
}
