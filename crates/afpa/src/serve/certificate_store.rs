//! Certificates with the versions of their files: each is read and checked once, however often a configuration names it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use afpa_config::{CertificateFiles, TlsFileError, read_certificate_by};
use afpa_tls::Certificate;

use crate::keys::{KeyReader, Version};

/// A file that is written twice within a tick of the kernel's clock may have one version for both.
const SETTLED: Duration = Duration::from_secs(1);

/// Certificates that were read. Each is handed out as long as its files are the same.
#[derive(Default)]
pub(super) struct CertificateStore {
    reader: KeyReader,
    known: RefCell<HashMap<Files, Known>>,
}

/// Chain, key and staple.
type Files = (PathBuf, PathBuf, Option<PathBuf>);

type Outcome = Result<Certificate, TlsFileError>;

/// Of chain, key and staple; `None`: that file cannot be looked at.
pub(super) type Versions = Vec<Option<Version>>;

struct Known {
    versions: Versions,
    certificate: Certificate,
}

impl CertificateStore {
    /// The reader of files that this process may not read.
    pub(super) fn reader(&self) -> &KeyReader {
        &self.reader
    }

    /// Reads with it from now on.
    pub(super) fn read_with(&mut self, reader: KeyReader) {
        self.reader = reader;
    }

    /// The certificate of these files as they are now.
    ///
    /// # Errors
    /// With the file at fault.
    pub(super) fn read(&self, files: &CertificateFiles) -> Outcome {
        self.read_version(files).1
    }

    /// Reads a certificate, and returns the versions of its files as they were before: a change meanwhile makes others.
    pub(super) fn read_version(&self, files: &CertificateFiles) -> (Versions, Outcome) {
        let read = || read_certificate_by(&|path| self.reader.read(path), files);
        let (now, versions) = (SystemTime::now(), self.versions(files));
        let outcome = self.known_or(files, &versions, now, read);
        (versions, outcome)
    }

    fn known_or(
        &self,
        files: &CertificateFiles,
        versions: &Versions,
        now: SystemTime,
        read: impl FnOnce() -> Outcome,
    ) -> Outcome {
        let name = name(files);
        if let Some(known) = self.known.borrow().get(&name).filter(|it| it.versions == *versions) {
            return Ok(known.certificate.clone());
        }
        let certificate = read()?;
        let is_settled = |version: &Option<Version>| {
            version.is_some_and(|version| version.is_older_than(SETTLED, now))
        };
        if versions.iter().all(is_settled) {
            let known = Known { versions: versions.clone(), certificate: certificate.clone() };
            self.known.borrow_mut().insert(name, known);
        }
        Ok(certificate)
    }

    /// The versions of these files.
    pub(super) fn versions(&self, files: &CertificateFiles) -> Versions {
        files_of(files).map(|path| self.reader.version(path)).collect()
    }

    /// Forgets all others.
    pub(super) fn keep<'a>(&mut self, used: impl Iterator<Item = &'a CertificateFiles>) {
        let used: HashSet<Files> = used.map(name).collect();
        self.known.get_mut().retain(|files, _| used.contains(files));
    }
}

fn name(files: &CertificateFiles) -> Files {
    (files.chain.clone(), files.key.clone(), files.staple.clone())
}

/// Chain, key and staple.
pub(super) fn files_of(files: &CertificateFiles) -> impl Iterator<Item = &Path> {
    let staple = files.staple.as_deref();
    [Some(&*files.chain), Some(&*files.key), staple].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use afpa_config::Location;

    use super::*;

    fn issue(files: &CertificateFiles, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        fs::write(&files.chain, made.cert.pem()).unwrap();
        fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn a_certificate_is_read_once_while_its_files_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let files = CertificateFiles {
            chain: folder.path().join("chain.pem"),
            key: folder.path().join("key.pem"),
            staple: None,
            instance: [0; 4],
            location: Location::Nowhere,
        };
        issue(&files, "old.test");
        let mut store = CertificateStore::default();
        let reads = Cell::new(0);
        // `read` at a time so long after the files were written.
        let read = |store: &CertificateStore, after: Duration| {
            let (now, versions) = (SystemTime::now() + after, store.versions(&files));
            let read = || {
                reads.set(reads.get() + 1);
                read_certificate_by(&|path| store.reader.read(path), &files)
            };
            let certificate = store.known_or(&files, &versions, now, read).unwrap();
            (certificate.names().next().map(str::to_owned).unwrap(), reads.get())
        };
        let later = Duration::from_secs(60);
        assert_eq!(read(&store, Duration::ZERO), ("old.test".to_owned(), 1));
        assert_eq!(read(&store, later).1, 2, "it might have been changing still");
        assert_eq!(read(&store, later).1, 2);
        store.keep([&files].into_iter());
        assert_eq!(read(&store, later).1, 2);
        issue(&files, "new.test");
        assert_eq!(read(&store, later), ("new.test".to_owned(), 3));
        store.keep(std::iter::empty());
        assert!(store.known.borrow().is_empty());
    }
}
