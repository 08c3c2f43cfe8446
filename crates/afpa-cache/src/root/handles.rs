//! Descriptors of document roots that are held once, however many serve from them.

use super::{DocumentRoot, Identity, RootSettings, directory, identity_of, probe};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Weak};

/// Opens document roots. Roots of one directory share a descriptor, also from one configuration to the next.
#[derive(Debug, Default)]
pub struct RootHandles {
    /// By device and inode, which are a directory's own as long as its descriptor is held.
    held: HashMap<Identity, Weak<OwnedFd>>,
    /// The kernel was found to have what is needed.
    is_probed: bool,
}

impl RootHandles {
    /// As [`DocumentRoot::open`].
    ///
    /// # Errors
    /// As there.
    pub fn open(
        &mut self,
        path: impl AsRef<Path>,
        settings: RootSettings,
    ) -> io::Result<DocumentRoot> {
        let opened = directory(path.as_ref())?;
        let identity = identity_of(&opened)?;
        let held = self.held.entry(identity).or_default();
        if let Some(directory) = held.upgrade() {
            return Ok(DocumentRoot { directory, identity, settings });
        }
        // That is the kernel's, whichever directory it is asked with.
        if !self.is_probed {
            probe(&opened)?;
            self.is_probed = true;
        }
        let directory = Arc::new(opened);
        *held = Arc::downgrade(&directory);
        Ok(DocumentRoot { directory, identity, settings })
    }

    /// Forgets the directories that nobody serves from any more.
    pub fn forget_released(&mut self) {
        self.held.retain(|_, held| held.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_directory_is_held_once_and_another_of_its_name_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        std::os::unix::fs::symlink("a", at("b")).unwrap();
        let mut handles = RootHandles::default();
        let settings = RootSettings::default();
        let open = |handles: &mut RootHandles, name| handles.open(at(name), settings).unwrap();
        let (first, second) = (open(&mut handles, "a"), open(&mut handles, "b"));
        assert!(Arc::ptr_eq(&first.directory, &second.directory));
        std::fs::rename(at("a"), at("old")).unwrap();
        std::fs::create_dir(at("a")).unwrap();
        let third = open(&mut handles, "a");
        assert!(!Arc::ptr_eq(&first.directory, &third.directory));
        drop((first, second));
        handles.forget_released();
        assert_eq!(handles.held.len(), 1);
    }
}
