//! The files that outlive the process.
//!
//! ```text
//! STATE/place    how far the orders to purge were carried out, for the snapshot of the shared cache that was written then
//! STATE/queue    orders that wait for the servers, a line each
//! STATE/configuration  the files of the fleet that this machine runs
//! STATE/seen     names of streams that the servers have had
//! STATE/keys     seeds of shared keys, sealed
//! STATE/queue.*  those of a process that has handed over to the next one, which takes them in when the file is not locked
//! ```
//!
//! The place is taken away at the start. A process that is killed leaves none, as it leaves no snapshot.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{Files, KeptFiles};
use crate::follower::Position;
use crate::orders::Queued;

/// The file of streams.
const SEEN: &str = "seen";

/// The file of the configuration.
const CONFIGURATION: &str = "configuration";

/// Bytes of a file that are read.
const LONGEST: u64 = 16 << 20;

/// The folder, which others may not write to.
#[derive(Clone, Debug)]
pub struct FleetFolder(PathBuf);

/// The queue of a process that has handed over. It is locked until the process has ended, however that ends.
#[derive(Debug)]
pub(crate) struct LeftQueue(File);

/// The place of the process before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Orders to purge were carried out up to here.
    pub purges: Position,
    /// When there was the last word of the servers, in seconds since the Unix epoch.
    pub word: u64,
}

impl FleetFolder {
    /// The folder at a path, which is there.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Takes the place of the process before; `None`: it has left none.
    ///
    /// # Errors
    /// When the system refuses. A place that stayed would be that of a cache which is not there any more.
    pub fn take_place(&self) -> io::Result<Option<Kept>> {
        let path = self.0.join("place");
        let text = read(&path)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Leaves the place to the next process.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn leave_place(&self, kept: &Kept) -> io::Result<()> {
        self.replace("place", &serde_json::to_vec(kept)?)
    }

    /// The seeds of shared keys, sealed; `None`: there are none yet.
    pub(crate) fn seeds(&self) -> Option<Vec<u8>> {
        let path = self.0.join("keys");
        let is_short = fs::metadata(&path).is_ok_and(|found| found.len() <= LONGEST);
        fs::read(&path).ok().filter(|_| is_short)
    }

    /// Keeps them.
    pub(crate) fn keep_seeds(&self, sealed: &[u8]) -> io::Result<()> {
        self.replace("keys", sealed)
    }

    /// Whether the servers have had a stream.
    pub(crate) fn has_seen(&self, stream: &str) -> bool {
        let text = read(&self.0.join(SEEN)).ok().flatten().unwrap_or_default();
        text.lines().any(|line| line == stream)
    }

    /// They have.
    pub(crate) fn note_seen(&self, stream: &str) -> io::Result<()> {
        if self.has_seen(stream) {
            return Ok(());
        }
        let text = read(&self.0.join(SEEN))?.unwrap_or_default();
        self.replace(SEEN, format!("{text}{stream}\n").as_bytes())
    }

    /// Orders that wait.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn queue(&self) -> io::Result<Vec<Queued>> {
        Ok(orders(&read(&self.0.join("queue"))?.unwrap_or_default()))
    }

    /// The configuration of the fleet that this machine runs; `None`: none.
    ///
    /// # Errors
    /// When the system refuses, or it is not one.
    pub fn configuration(&self) -> io::Result<Option<KeptFiles>> {
        let Some(text) = read(&self.0.join(CONFIGURATION))? else { return Ok(None) };
        let kept: KeptFiles = serde_json::from_str(&text)?;
        // Its bounds.
        Files::decode(&kept.files.encode()).map_err(io::Error::other)?;
        Ok(Some(kept))
    }

    /// Keeps it for the next start.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep_configuration(&self, kept: Option<&KeptFiles>) -> io::Result<()> {
        let Some(kept) = kept else {
            return match fs::remove_file(self.0.join(CONFIGURATION)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        self.replace(CONFIGURATION, &serde_json::to_vec(kept)?)
    }

    /// The path of its file, for messages.
    pub fn configuration_path(&self) -> PathBuf {
        self.0.join(CONFIGURATION)
    }

    /// A queue for the next process, which has taken `queue` over.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn leave_queue(&self, instance: &str) -> io::Result<LeftQueue> {
        // It has its name when it is locked: nobody takes it in before.
        let next = self.0.join(format!("next.{instance}"));
        let file =
            File::options().create(true).write(true).truncate(true).mode(0o600).open(&next)?;
        file.lock()?;
        fs::rename(&next, self.0.join(format!("queue.{instance}")))?;
        Ok(LeftQueue(file))
    }

    /// Queues of processes that have ended.
    pub(crate) fn left_queues(&self) -> Vec<(PathBuf, Vec<Queued>)> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let is_left = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let instance = name.and_then(|name| name.strip_prefix("queue."));
            instance.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit()))
        };
        let paths = entries.flatten().map(|entry| entry.path()).filter(is_left);
        paths
            .filter_map(|path| Some((unlocked(&path)?, path)))
            .map(|(text, path)| (path, orders(&text)))
            .collect()
    }

    /// One of them has been taken in.
    pub(crate) fn forget(&self, left: &Path) {
        if let Err(error) = fs::remove_file(left) {
            tracing::warn!(%error, "{} cannot be removed", left.display());
        }
    }

    /// Keeps them, in their order.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep_queue<'q>(&self, queue: impl IntoIterator<Item = &'q Queued>) -> io::Result<()> {
        self.replace("queue", &lines(queue)?)
    }

    /// All or nothing.
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let next = self.0.join(format!("{name}.next"));
        let mut options = File::options();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&next)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&next, self.0.join(name))?;
        File::open(&self.0)?.sync_all()
    }
}

impl LeftQueue {
    /// Keeps orders, in their order, instead of those that it has.
    pub(crate) fn keep<'q>(&self, queue: impl IntoIterator<Item = &'q Queued>) -> io::Result<()> {
        let text = lines(queue)?;
        self.0.write_all_at(&text, 0)?;
        self.0.set_len(text.len() as u64)?;
        self.0.sync_all()
    }
}

fn lines<'q>(queue: impl IntoIterator<Item = &'q Queued>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for queued in queue {
        serde_json::to_writer(&mut text, queued)?;
        text.push(b'\n');
    }
    Ok(text)
}

fn orders(text: &str) -> Vec<Queued> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The text of a file that no process holds locked.
fn unlocked(path: &Path) -> Option<String> {
    let file = File::options().read(true).open(path).ok()?;
    file.try_lock().ok()?;
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Ok(found) if found.len() > LONGEST => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => fs::read_to_string(path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{NamedText, Revision};
    use crate::message::Order;

    #[test]
    fn a_configuration_stays_until_it_is_taken_away() {
        let temp = tempfile::tempdir().unwrap();
        let folder = FleetFolder::new(temp.path());
        assert_eq!(folder.configuration().unwrap(), None);
        let file = NamedText { name: "a.toml".to_owned(), text: "workers = 1\n".to_owned() };
        let revision = Revision { bucket: 1, number: 7 };
        let kept = KeptFiles { revision, files: Files { files: vec![file] } };
        folder.keep_configuration(Some(&kept)).unwrap();
        assert_eq!(folder.configuration().unwrap(), Some(kept));
        folder.keep_configuration(None).unwrap();
        folder.keep_configuration(None).unwrap();
        assert_eq!(folder.configuration().unwrap(), None);
    }

    #[test]
    fn streams_that_were_seen_are_known_afterwards() {
        let temp = tempfile::tempdir().unwrap();
        let folder = FleetFolder::new(temp.path());
        assert!(!folder.has_seen("a"));
        for stream in ["a", "b", "a"] {
            folder.note_seen(stream).unwrap();
        }
        let again = FleetFolder::new(temp.path());
        assert!(again.has_seen("a") && again.has_seen("b") && !again.has_seen("ab"));
        assert_eq!(fs::read_to_string(temp.path().join("seen")).unwrap(), "a\nb\n");
    }

    #[test]
    fn a_place_is_taken_once_and_a_queue_stays() {
        let temp = tempfile::tempdir().unwrap();
        let folder = FleetFolder::new(temp.path());
        assert_eq!(folder.take_place().unwrap(), None);
        let kept = Kept { purges: Position { log: 1, sequence: 2 }, word: 3 };
        folder.leave_place(&kept).unwrap();
        assert_eq!(folder.take_place().unwrap(), Some(kept));
        assert_eq!(folder.take_place().unwrap(), None);
        let order = Order::Deny { prefix: "192.0.2.1".to_owned(), denied: false };
        let queue = [Queued::new("a-1".to_owned(), order)];
        folder.keep_queue(&queue).unwrap();
        assert_eq!(folder.queue().unwrap(), queue);
        let left = folder.leave_queue("a1").unwrap();
        left.keep(&[&queue[..], &queue].concat()).unwrap();
        left.keep(&queue).unwrap();
        assert!(folder.left_queues().is_empty(), "the process may still send them");
        drop(left);
        let (path, orders) = folder.left_queues().remove(0);
        assert_eq!(orders, queue);
        folder.forget(&path);
        assert!(folder.left_queues().is_empty());
        fs::write(temp.path().join("place"), "nonsense").unwrap();
        fs::write(temp.path().join("configuration"), "nonsense").unwrap();
        assert!(folder.configuration().is_err());
        fs::write(temp.path().join("queue"), "nonsense\n{}\n").unwrap();
        assert_eq!((folder.take_place().unwrap(), folder.queue().unwrap()), (None, Vec::new()));
    }
}
