//! The side that asks.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afpa_config::read_tls_file;

use super::Version;
use super::wire::{self, List, Question};
use crate::privileges::Identity;

/// Longer than small files of a local disk take. After that, serving goes on without the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads files by the rights of this process, and by those of another one where that is not enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyReader(Option<Arc<Helper>>);

#[derive(Debug)]
struct Helper {
    /// The number of each file.
    files: HashMap<PathBuf, u32>,
    /// `None` once it has failed: later bytes could be the answer to an earlier question.
    talk: Mutex<Option<Talk>>,
}

#[derive(Debug)]
struct Talk {
    socket: UnixStream,
    process: Child,
}

impl KeyReader {
    /// Starts the other process, for these files. To be called while this process has its privileges still.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(files: &[PathBuf], identity: &Identity) -> io::Result<Self> {
        let absolute: io::Result<Vec<_>> = files.iter().map(std::path::absolute).collect();
        let (mut socket, theirs) = UnixStream::pair()?;
        let process = Command::new("/proc/self/exe")
            .arg0(super::PROCESS)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // Signals of AFPA's terminal must not reach it: it ends when AFPA does.
            .process_group(0)
            .spawn()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let list = List {
            user: identity.name.clone(),
            uid: identity.uid.as_raw(),
            gid: identity.gid.as_raw(),
            files: absolute?,
        };
        wire::write_list(&mut socket, &list)?;
        let talk = Mutex::new(Some(Talk { socket, process }));
        // A file that is named twice has two numbers: either will do.
        let files = files.iter().cloned().zip(0..).collect();
        Ok(Self(Some(Arc::new(Helper { files, talk }))))
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// As [`read_tls_file`]; when the right is missing, with why the other process does not help.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.or_ask(path, Question::Bytes, read_tls_file(path))
    }

    /// The version of the file; `None`: it cannot be looked at.
    pub(crate) fn version(&self, path: &Path) -> Option<Version> {
        let own = Version::of(path).map(wire::version_to_bytes);
        let bytes = self.or_ask(path, Question::Version, own).ok()?;
        wire::version_from_bytes(&bytes).ok()
    }

    fn or_ask(
        &self,
        path: &Path,
        question: Question,
        own: io::Result<Vec<u8>>,
    ) -> io::Result<Vec<u8>> {
        match (own, &self.0) {
            (Err(error), Some(helper)) if error.kind() == io::ErrorKind::PermissionDenied => {
                helper.ask(path, question).unwrap_or(Err(error))
            }
            (own, _) => own,
        }
    }
}

impl Helper {
    /// `None`: it cannot tell.
    fn ask(&self, path: &Path, question: Question) -> Option<io::Result<Vec<u8>>> {
        let number = *self.files.get(path)?;
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = talk.as_mut()?.ask(question, number);
        match answer {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::error!(
                    "the process that reads keys for this user has ended ({error}): keys that root alone may read \
                     stay as they are until the next start"
                );
                *talk = None;
                None
            }
        }
    }
}

impl Talk {
    fn ask(&mut self, question: Question, number: u32) -> io::Result<io::Result<Vec<u8>>> {
        wire::write_question(&mut self.socket, question, number)?;
        wire::read_answer(&mut self.socket)
    }
}

impl Drop for Talk {
    /// It ends when the socket is closed; until then it would be a child that nobody waits for.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
