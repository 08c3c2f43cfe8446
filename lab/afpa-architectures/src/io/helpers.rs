//! AMPED's helpers: threads that wait for the disk, so that the event loop does not (Flash).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use afpa_cache::root::{FileBody, fetch};
use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, eventfd};

use crate::{Content, Loaded};

/// Work for a helper thread.
#[derive(Debug)]
pub(super) enum Job {
    /// Load a path into the cache.
    Load(Vec<u8>),
    /// Read a file that is about to be sent into the page cache.
    Fetch(Arc<FileBody>, u64),
}

/// The result of a [`Job`].
#[derive(Debug)]
pub(super) enum Done {
    /// As [`Content::load`] gave it.
    Loaded(Loaded),
    /// The file can be sent without waiting; or its disk has failed, and sending will report that.
    Fetched,
}

/// The threads, as the event loop sees them.
#[derive(Debug)]
pub(super) struct Helpers {
    jobs: Sender<(u64, Job)>,
    done: Receiver<(u64, Done)>,
    bell: Arc<OwnedFd>,
}

impl Helpers {
    /// Starts `count` threads.
    pub(super) fn start(content: &Arc<Content>, count: u32) -> Result<Self> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let bell = Arc::new(bell);
        let (jobs, waiting) = channel();
        let (finished, done) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for number in 0..count {
            let (waiting, finished) = (Arc::clone(&waiting), finished.clone());
            let (content, bell) = (Arc::clone(content), Arc::clone(&bell));
            std::thread::Builder::new()
                .name(format!("helper-{number}"))
                .spawn(move || help(&content, &waiting, &finished, &bell))
                .context("cannot start a helper thread")?;
        }
        Ok(Self { jobs, done, bell })
    }

    /// Readable when something is done.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Gives a job to a free helper; `number` comes back with its result.
    pub(super) fn ask(&self, number: u64, job: Job) {
        // The helpers live as long as this sender, so there is always one to receive.
        let _ = self.jobs.send((number, job));
    }

    /// All that was done since the last time.
    pub(super) fn collect(&self) -> Vec<(u64, Done)> {
        // The eventfd only wakes the loop; its count says nothing about the number of finished jobs.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.done.try_iter().collect()
    }
}

fn help(
    content: &Arc<Content>,
    waiting: &Mutex<Receiver<(u64, Job)>>,
    finished: &Sender<(u64, Done)>,
    bell: &OwnedFd,
) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, job)) = next else { return };
        let done = match job {
            Job::Load(path) => Done::Loaded(content.load(&path)),
            Job::Fetch(file, length) => {
                let _ = fetch(&file, 0, length);
                Done::Fetched
            }
        };
        if finished.send((number, done)).is_err() {
            return;
        }
        // The write fails only after 2^64 of them without a read.
        let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
    }
}
