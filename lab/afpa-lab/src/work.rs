//! The folder in which servers work: the document root, configurations, logs.
//!
//! It lies below the system's temporary folder, because some servers give up root's rights and must
//! still read it. Its name has the owner's process id, so that the next run finds and removes the
//! folder of a killed one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const PREFIX: &str = "afpa-lab-work-";

/// A folder of this process; removed when dropped.
#[derive(Debug)]
pub struct Work {
    path: PathBuf,
}

impl Work {
    /// Makes it, empty; first removes what dead owners left.
    ///
    /// # Errors
    ///
    /// When the temporary folder cannot be written to.
    pub fn create() -> Result<Self> {
        reap();
        let path = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{}", path.display()))?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("afpa-lab: {}: {error}", self.path.display());
        }
    }
}

/// Removes the folders whose owner is dead; gives back which.
pub fn reap() -> Vec<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    let dead =
        entries.filter(|entry| owner(&entry.file_name().to_string_lossy()).is_some_and(is_dead));
    dead.map(|entry| entry.path()).filter(|path| fs::remove_dir_all(path).is_ok()).collect()
}

fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

fn is_dead(process: u32) -> bool {
    !Path::new(&format!("/proc/{process}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_when_dropped_and_a_dead_ones_goes_with_the_next() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let left = std::env::temp_dir().join(format!("{PREFIX}{}", child.id()));
        child.wait().unwrap();
        fs::create_dir_all(left.join("root")).unwrap();
        let work = Work::create().unwrap();
        assert!(!left.exists() && work.path().is_dir());
        let path = work.path().to_owned();
        drop(work);
        assert!(!path.exists());
    }

    #[test]
    fn only_our_names_are_taken_for_ours() {
        assert_eq!(owner("afpa-lab-work-12"), Some(12));
        assert_eq!(owner("afpa-lab-work-"), None);
        assert_eq!(owner("afpa-lab-work-12x"), None);
        assert_eq!(owner("other-12"), None);
        assert!(!is_dead(std::process::id()));
    }
}
