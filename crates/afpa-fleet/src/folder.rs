//! The files that outlive the process.
//!
//! ```text
//! STATE/place    how far the orders to purge were carried out, for the snapshot of the shared cache that was written then
//! STATE/queue    orders that wait for the servers, a line each
//! ```
//!
//! The place is taken away at the start. A process that is killed leaves none, as it leaves no snapshot.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::follower::Position;
use crate::orders::Queued;

/// Bytes of a file that are read.
const LONGEST: u64 = 16 << 20;

/// The folder, which others may not write to.
#[derive(Clone, Debug)]
pub struct FleetFolder(PathBuf);

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

    /// Orders that wait.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn queue(&self) -> io::Result<Vec<Queued>> {
        let text = read(&self.0.join("queue"))?.unwrap_or_default();
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Keeps them, in their order.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep_queue<'q>(&self, queue: impl IntoIterator<Item = &'q Queued>) -> io::Result<()> {
        let mut text = Vec::new();
        for queued in queue {
            serde_json::to_writer(&mut text, queued)?;
            text.push(b'\n');
        }
        self.replace("queue", &text)
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
    use crate::message::Order;

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
        let queue = [Queued { id: "a-1".to_owned(), order }];
        folder.keep_queue(&queue).unwrap();
        assert_eq!(folder.queue().unwrap(), queue);
        fs::write(temp.path().join("place"), "nonsense").unwrap();
        fs::write(temp.path().join("queue"), "nonsense\n{}\n").unwrap();
        assert_eq!((folder.take_place().unwrap(), folder.queue().unwrap()), (None, Vec::new()));
    }
}
