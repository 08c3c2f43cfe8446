//! Completion I/O for sockets: io_uring behind operations that are safe.
//!
//! With readiness one asks when an operation may succeed, and then does it: at least two system calls for each. With
//! completion one hands the operation to the kernel, which tells when it is done; one call hands over the operations of
//! many sockets, and takes the results of others.
//!
//! A [`Ring`] belongs to one thread. Its [streams](RingStream) queue operations; somebody has to call [`Ring::turn`],
//! which submits them and wakes the tasks whose operations are done, and wait when there is nothing to do:
//! [`Ring::rest`] has the ring's [event](Ring::event) tell of the next completion, so that the ring can be waited for
//! like any descriptor, below an event loop of any kind. While nobody rests, the kernel neither interrupts nor
//! signals (`DEFER_TASKRUN`).
//!
//! Memory that the kernel may touch is owned here for as long: the bytes of a send are moved in and come back, received
//! bytes lie in buffers of the ring. The words are those of `io_uring(7)`. It needs Linux 6.1.

mod buffers;
mod core_ring;
mod kernel;
mod operations;
mod stream;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use kernel::Kernel;

pub use core_ring::CoreRing;
pub use operations::Stop;
pub use stream::RingStream;

/// The sizes of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Operations that can be queued between two turns; with more, turns are shorter. A power of two.
    pub entries: u32,
    /// Buffers for what arrives and is not read yet, of all sockets together. A power of two up to 2^15.
    pub buffers: u16,
    /// Bytes of a buffer.
    pub buffer_size: usize,
}

impl Default for Settings {
    /// 2 MB of buffers: physical memory once they have all been used.
    fn default() -> Self {
        Self { entries: 256, buffers: 512, buffer_size: 4096 }
    }
}

/// Bytes that [`RingStream::poll_send_copy`] copies at most.
pub const LARGEST_COPY: usize = 32 * 1024;

/// The contents of a ring, and counts of its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sockets in the ring, with those that are to be closed.
    pub sockets: usize,
    /// Sockets of which the kernel has an operation.
    pub under_way: usize,
    /// Buffers that hold bytes that were not read yet.
    pub buffers: usize,
    /// Calls of the kernel.
    pub enters: u64,
    /// Completions.
    pub completions: u64,
    /// How often the queue was full before a turn.
    pub full: u64,
    /// Receives that ended because all buffers were in use.
    pub no_buffers: u64,
}

/// A ring that no thread has yet: it can be made while the process has privileges, and sent to its thread.
pub struct PreparedRing(Kernel);

impl PreparedRing {
    /// Makes a ring.
    ///
    /// # Errors
    /// What the kernel says: `ENOSYS` without io_uring, `EPERM` where it is forbidden (`kernel.io_uring_disabled`,
    /// seccomp), `EINVAL` before Linux 6.1.
    pub fn new(settings: &Settings) -> io::Result<Self> {
        Kernel::prepare(settings).map(Self)
    }

    /// Makes the calling thread the owner of the ring.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enable(self) -> io::Result<Ring> {
        self.0.enable()?;
        Ok(Ring { kernel: Rc::new(RefCell::new(self.0)), woken: Rc::default() })
    }
}

/// A ring of the thread that has enabled it. Clones are handles to the same.
#[derive(Clone)]
pub struct Ring {
    kernel: Rc<RefCell<Kernel>>,
    /// Kept from turn to turn for its memory.
    woken: Rc<RefCell<Vec<Waker>>>,
}

impl Ring {
    /// Takes a connected stream socket over. Nothing else may receive from it then.
    pub fn stream(&self, socket: OwnedFd) -> RingStream {
        RingStream::new(Rc::clone(&self.kernel), socket)
    }

    /// Submits the queued operations, and wakes the tasks whose operations are done. Returns how many were done. It
    /// does not wait, and is free when there is nothing to do.
    ///
    /// # Errors
    /// When the kernel refuses the ring itself: no operation that is under way will ever be done.
    pub fn turn(&self) -> io::Result<usize> {
        let mut woken = self.woken.take();
        let done = self.kernel.borrow_mut().turn(&mut woken);
        // A waker may do anything, even use the ring: nothing is borrowed.
        woken.drain(..).for_each(Waker::wake);
        self.woken.replace(woken);
        done
    }

    /// Takes the operations that were done while the ring [rested](Self::rest). So the state of its sockets is as new
    /// as what the event loop that has just woken up knows of others. Free while the ring does not rest, or nothing was
    /// done.
    pub fn catch_up(&self) {
        let mut woken = self.woken.take();
        // The next turn of the ring meets the same error, and ends the ring.
        let _ = self.kernel.borrow_mut().catch_up(&mut woken);
        woken.drain(..).for_each(Waker::wake);
        self.woken.replace(woken);
    }

    /// Has the [event](Self::event) tell of the next completion. False: there is something to do already.
    pub fn rest(&self) -> bool {
        self.kernel.borrow_mut().rest()
    }

    /// Ready when an operation is queued, or another task has [caught up](Self::catch_up). Completions are reported by
    /// the [event](Self::event), once the ring [rests](Self::rest).
    pub fn poll_queued(&self, cx: &Context<'_>) -> Poll<()> {
        let mut kernel = self.kernel.borrow_mut();
        if kernel.caught_up || kernel.has_queued() {
            return Poll::Ready(());
        }
        kernel.wake_to_submit(cx.waker());
        Poll::Pending
    }

    /// An eventfd that is written to when somebody [rests](Self::rest) and an operation is done. It is enough to wait
    /// for its edges; it is never read.
    ///
    /// # Errors
    /// When the process has no descriptor for it.
    pub fn event(&self) -> io::Result<OwnedFd> {
        self.kernel.borrow().event().try_clone()
    }

    /// Calls of the kernel so far.
    pub fn enters(&self) -> u64 {
        self.kernel.borrow().enters()
    }

    /// The contents of the ring, and its counts. It looks at every socket.
    pub fn counts(&self) -> Counts {
        self.kernel.borrow().counts()
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

impl fmt::Debug for PreparedRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedRing").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
