//! One ring: its queues, its buffers, and what every socket has under way in it.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};
use std::task::Waker;

use io_uring::squeue::{Entry, Flags};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, types::Fd};
use rustix::io::Errno;
use rustix::net::SendFlags;
use slab::Slab;

use crate::buffers::{Buffers, GROUP};
use crate::operations::{End, Operations, Receive, Send};
use crate::{Counts, LARGEST_COPY, Settings};

/// A ring whose operations own the memory that the kernel may touch.
pub(crate) struct Kernel {
    /// Stands before the memory that it may touch: it is dropped first. `drop` leaks both if the kernel does not let
    /// go.
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    sockets: ManuallyDrop<Slab<Operations>>,
    event: OwnedFd,
    /// The waker of the task that submits, while it sleeps.
    submitter: Option<Waker>,
    /// The event tells of the next completion.
    rests: bool,
    /// Another task than the one that submits has turned the ring: the event tells of nothing any more.
    pub(crate) caught_up: bool,
    /// Empty vectors, for bytes that are copied to be sent.
    pub(crate) spare: Vec<Vec<u8>>,
    counts: Counts,
    /// See [`Kernel::is_due`].
    #[cfg(test)]
    pub(crate) keeps_an_old_note: bool,
    /// The kernel refuses the ring itself: nothing that is under way will be done.
    failed: Option<Errno>,
}

/// Vectors that are kept for copies: 4 MB together at most.
const SPARES: usize = 64;

/// All operations of a ring.
pub(crate) const OPERATIONS: [u8; 3] =
    [opcode::AsyncCancel::CODE, opcode::Send::CODE, opcode::RecvMulti::CODE];

/// The kind of an operation, in the lowest bits of its number. The others are the key of its socket.
const RECEIVE: u64 = 0;
const SEND: u64 = 1;
const CANCEL: u64 = 2;
const KIND_BITS: u32 = 2;

impl Kernel {
    /// Makes a ring that is not enabled yet: see [`crate::PreparedRing`].
    pub(crate) fn prepare(settings: &Settings) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(settings.entries.saturating_mul(8))
            .dontfork()
            .build(settings.entries)?;
        let buffers = Buffers::new(settings.buffers, settings.buffer_size)?;
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let event = rustix::event::eventfd(0, flags)?;
        ring.submitter().register_eventfd(event.as_raw_fd())?;
        let kernel = Self {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            sockets: ManuallyDrop::default(),
            event,
            submitter: None,
            rests: false,
            caught_up: false,
            spare: Vec::new(),
            counts: Counts::default(),
            #[cfg(test)]
            keeps_an_old_note: false,
            failed: None,
        };
        kernel.register_buffers()?;
        Ok(kernel)
    }

    #[expect(unsafe_code, reason = "the kernel is given addresses")]
    fn register_buffers(&self) -> io::Result<()> {
        // JUSTIFICATION: only so does the kernel choose buffers.
        // SAFETY: `drop` ends the ring before the buffers.
        unsafe { self.buffers.register(&self.ring.submitter()) }
    }

    /// Makes the calling thread the only one that may use the ring, for the operations of this file alone: not even a
    /// thread that was taken over can have the ring open a file.
    pub(crate) fn enable(&self) -> io::Result<()> {
        match self.restrict(&OPERATIONS) {
            // It was restricted already, which nobody can undo.
            Err(error) if error.raw_os_error() != Some(Errno::BUSY.raw_os_error()) => Err(error),
            _ => self.ring.submitter().register_enable_rings(),
        }
    }

    /// Restricts the ring to these operations. To be called once, before the ring is enabled.
    pub(crate) fn restrict(&self, operations: &[u8]) -> io::Result<()> {
        use io_uring::register::Restriction;
        const ENABLE_RINGS: u8 = 12;
        let mut restrictions = vec![
            Restriction::register_op(ENABLE_RINGS),
            Restriction::sqe_flags_allowed((Flags::BUFFER_SELECT | Flags::SKIP_SUCCESS).bits()),
        ];
        restrictions.extend(operations.iter().map(|&op| Restriction::sqe_op(op)));
        self.ring.submitter().register_restrictions(&mut restrictions)
    }

    /// Whether, and why, nothing that is under way will be done.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.failed.map_or(Ok(()), |error| Err(error.into()))
    }

    pub(crate) fn event(&self) -> &OwnedFd {
        &self.event
    }

    pub(crate) fn enters(&self) -> u64 {
        self.counts.enters
    }

    pub(crate) fn counts(&self) -> Counts {
        let under_way = self.sockets.iter().filter(|(_, socket)| socket.is_under_way());
        Counts {
            sockets: self.sockets.len(),
            under_way: under_way.count(),
            buffers: self.buffers.lent(),
            ..self.counts
        }
    }

    pub(crate) fn enter_socket(&mut self) -> usize {
        self.sockets.insert(Operations::default())
    }

    /// The operations of a socket that has not left.
    pub(crate) fn socket(&mut self, key: usize) -> Option<&mut Operations> {
        self.sockets.get_mut(key)
    }

    /// Forgets a socket that has no operation under way. Returns the bytes that had arrived and were not read.
    pub(crate) fn leave(&mut self, key: usize) -> Vec<u8> {
        let mut unread = Vec::new();
        let Some(mut socket) = self.sockets.try_remove(key) else { return unread };
        assert!(!socket.is_under_way(), "what the kernel has is kept");
        for piece in socket.arrived.drain(..) {
            unread.extend_from_slice(self.buffers.bytes(&piece));
            self.buffers.give_back(piece);
        }
        unread
    }

    /// Reads the oldest bytes that have arrived. `None`: there are none.
    pub(crate) fn read(&mut self, key: usize, room: &mut [u8]) -> Option<usize> {
        let socket = self.sockets.get_mut(key)?;
        let mut read = 0;
        while let Some(piece) = socket.arrived.front_mut().filter(|_| read < room.len()) {
            let bytes = self.buffers.bytes(piece);
            let n = bytes.len().min(room.len() - read);
            room[read..read + n].copy_from_slice(&bytes[..n]);
            read += n;
            piece.advance(n);
            if n == bytes.len()
                && let Some(piece) = socket.arrived.pop_front()
            {
                self.buffers.give_back(piece);
            }
        }
        (read > 0).then_some(read)
    }

    /// Arms the receive of a socket, unless it is armed.
    pub(crate) fn receive(&mut self, key: usize, from: BorrowedFd<'_>) -> io::Result<()> {
        if self.sockets.get(key).is_none_or(|socket| socket.receive != Receive::Idle) {
            return Ok(());
        }
        let entry = opcode::RecvMulti::new(Fd(from.as_raw_fd()), GROUP).build();
        self.push(&entry.user_data(number(key, RECEIVE)))?;
        if let Some(socket) = self.sockets.get_mut(key) {
            socket.receive = Receive::Armed;
            socket.held_back = false;
        }
        Ok(())
    }

    /// Tells the receive of a socket to end, if it is armed.
    pub(crate) fn cancel(&mut self, key: usize) -> io::Result<()> {
        if self.sockets.get(key).is_none_or(|socket| socket.receive != Receive::Armed) {
            return Ok(());
        }
        // Whether it is found does not matter: the receive tells its end itself.
        let entry = opcode::AsyncCancel::new(number(key, RECEIVE)).build();
        self.push(&entry.flags(Flags::SKIP_SUCCESS).user_data(number(key, CANCEL)))?;
        if let Some(socket) = self.sockets.get_mut(key) {
            socket.receive = Receive::Cancelled;
        }
        Ok(())
    }

    /// Lends `bytes` to the kernel to be sent, as far as the socket takes them at once. On an error they are given back.
    pub(crate) fn send(
        &mut self,
        key: usize,
        to: BorrowedFd<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        flags.set(SendFlags::MORE, more);
        let lent = std::mem::take(bytes);
        // A rest that is longer is sent by another operation.
        let len = u32::try_from(lent.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(to.as_raw_fd()), lent.as_ptr(), len)
            .flags(flags.bits().cast_signed())
            .build();
        socket.send = Send::Lent(lent);
        let pushed = self.push(&entry.user_data(number(key, SEND)));
        if pushed.is_err()
            && let Some(socket) = self.sockets.get_mut(key)
            && let Send::Lent(lent) = std::mem::take(&mut socket.send)
        {
            *bytes = lent;
        }
        pushed
    }

    /// A copy of `bytes` in memory that was used for that before, if there is any.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.extend_from_slice(bytes);
        copy
    }

    /// Keeps the memory of a copy for the next one.
    pub(crate) fn give_back_copy(&mut self, mut copy: Vec<u8>) {
        if self.spare.len() < SPARES && (1..=2 * LARGEST_COPY).contains(&copy.capacity()) {
            copy.clear();
            self.spare.push(copy);
        }
    }

    /// Closes the socket when nothing of it is under way.
    pub(crate) fn close(&mut self, key: usize, socket: OwnedFd) {
        let Some(operations) = self.sockets.get_mut(key) else { return };
        operations.closing = Some(socket);
        operations.waker = None;
        if operations.is_under_way() {
            // If there is no room for it now, the next turn tries again.
            let _ = self.cancel(key);
        } else {
            drop(self.leave(key));
        }
    }

    /// Queues an operation. If the queue is full, its operations are submitted first.
    #[expect(unsafe_code, reason = "the kernel is told to use memory of ours")]
    fn push(&mut self, entry: &Entry) -> io::Result<()> {
        self.check()?;
        for _ in 0..2 {
            // JUSTIFICATION: operations name memory.
            // SAFETY: a receive names none, because the kernel chooses from the registered buffers; a send names
            // bytes on the heap that `Send::Lent` owns, untouched until its completion; a cancel names none. All
            // of it outlives the ring, or is leaked: see `drop`.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                if let Some(submitter) = self.submitter.take() {
                    submitter.wake();
                }
                return Ok(());
            }
            self.counts.full += 1;
            self.enter(EnterFlags::empty())?;
        }
        Err(Errno::BUSY.into())
    }

    /// Submits the queued operations, lets the kernel do those that have become possible, and handles those that are
    /// done. Adds the wakers of the tasks that waited for them to `woken`.
    pub(crate) fn turn(&mut self, woken: &mut Vec<Waker>) -> io::Result<usize> {
        if !self.has_work() {
            return Ok(0);
        }
        self.ring.completion().disable_eventfd();
        self.rests = false;
        if let Err(error) = self.enter(EnterFlags::GETEVENTS) {
            self.fail(&error, woken);
            return Err(error);
        }
        let mut done = 0;
        loop {
            let Some(completion) = self.ring.completion().next() else { break };
            done += 1;
            self.complete(&completion, woken);
        }
        self.counts.completions += done as u64;
        Ok(done)
    }

    /// Takes the operations that were done while nobody looked, if the ring rests. It wakes the task that submits,
    /// which has to look again, because the event no longer tells of completions.
    pub(crate) fn catch_up(&mut self, woken: &mut Vec<Waker>) -> io::Result<()> {
        if !self.rests {
            return Ok(());
        }
        let turned = self.turn(woken);
        if !self.rests {
            self.caught_up = true;
            woken.extend(self.submitter.take());
        }
        turned.map(|_| ())
    }

    fn enter(&mut self, flags: EnterFlags) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        self.counts.enters += 1;
        match self.call(queued, flags) {
            Ok(_) => Ok(()),
            // Nothing is lost: operations that were not submitted are still queued.
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOMEM) => Ok(()),
                _ => Err(error),
            },
        }
    }

    #[expect(
        unsafe_code,
        reason = "the raw system call: the safe ones do not always run what is due"
    )]
    fn call(&self, queued: u32, flags: EnterFlags) -> io::Result<usize> {
        // JUSTIFICATION: `Submitter::submit` runs work only if it was due before the call.
        // SAFETY: no argument is passed, so no memory is named.
        unsafe { self.ring.submitter().enter::<()>(queued, 0, flags.bits(), None) }
    }

    fn complete(&mut self, completion: &cqueue::Entry, woken: &mut Vec<Waker>) {
        let (key, kind) = key_and_kind(completion.user_data());
        let flags = completion.flags();
        let result = usize::try_from(completion.result())
            .map_err(|_| Errno::from_raw_os_error(-completion.result()));
        let filled = cqueue::buffer_select(flags);
        let mut piece = filled.map(|buffer| self.buffers.filled(buffer, result.unwrap_or(0)));
        if (result.unwrap_or(0) == 0 || !self.sockets.contains(key))
            && let Some(empty) = piece.take()
        {
            self.buffers.give_back(empty);
        }
        let Some(socket) = self.sockets.get_mut(key) else { return };
        match kind {
            RECEIVE => {
                self.counts.no_buffers += u64::from(result == Err(Errno::NOBUFS));
                if let Some(last) = socket.arrived.back_mut() {
                    // Many short pieces take no more buffers than their bytes do.
                    piece = piece.and_then(|next| self.buffers.join(last, next));
                }
                socket.received(result, piece, (cqueue::more(flags), cqueue::sock_nonempty(flags)));
            }
            SEND => socket.sent(result),
            // The completion of a cancel that found nothing.
            _ => return,
        }
        self.follow(key, woken);
    }

    /// Ends the wait of all tasks with the error.
    fn fail(&mut self, error: &io::Error, woken: &mut Vec<Waker>) {
        let error = Errno::from_io_error(error).unwrap_or(Errno::IO);
        self.failed = Some(error);
        for (_, socket) in self.sockets.iter_mut() {
            socket.end = Some(End::Broken(error));
            woken.extend(socket.waker.take());
        }
    }

    /// Acts on a completion: the task is woken, a client that sends too much is held back, a socket that nobody wants
    /// is closed.
    fn follow(&mut self, key: usize, woken: &mut Vec<Waker>) {
        let Some(socket) = self.sockets.get_mut(key) else { return };
        woken.extend(socket.waker.take());
        let unwanted = socket.closing.is_some();
        if unwanted && !socket.is_under_way() {
            drop(self.leave(key));
        } else if unwanted || socket.is_behind() {
            socket.held_back = true;
            // If there is no room for it now, the next completion tries again.
            let _ = self.cancel(key);
        }
    }

    /// Whether a turn would find anything to do.
    fn has_work(&mut self) -> bool {
        self.has_queued() || self.is_due()
    }

    /// Whether there is an operation to submit, or a completion to take.
    pub(crate) fn has_queued(&mut self) -> bool {
        let queued = self.ring.submission();
        let submit = !queued.is_empty() || queued.cq_overflow();
        drop(queued);
        submit || !self.ring.completion().is_empty()
    }

    /// Whether the kernel has noted that there is work to do for it. The note may be old: another core adds work first
    /// and sets the note afterwards; in between, this core may have done the work and cleared the note. Then the note
    /// stays until the next work.
    fn is_due(&mut self) -> bool {
        #[cfg(test)]
        if self.keeps_an_old_note {
            return true;
        }
        self.ring.submission().taskrun()
    }

    /// Has the event tell of the next completion. False: there is something to do already.
    pub(crate) fn rest(&mut self) -> bool {
        self.ring.completion().enable_eventfd();
        // The kernel notes work that is due, and then looks whether the event is enabled; here the order is the
        // opposite.
        fence(Ordering::SeqCst);
        // This call does the work that is due, and the event tells of later work: so an old note does not keep this
        // core from its rest.
        let is_done =
            self.has_queued() || !self.is_due() || self.enter(EnterFlags::GETEVENTS).is_ok();
        let rests = is_done && !self.has_queued();
        if !rests {
            self.ring.completion().disable_eventfd();
        }
        self.rests = rests;
        self.caught_up = false;
        rests
    }

    /// Sets the task to wake when an operation is queued.
    pub(crate) fn wake_to_submit(&mut self, waker: &Waker) {
        if !self.submitter.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.submitter = Some(waker.clone());
        }
    }
}

impl Drop for Kernel {
    /// Ends the operations under way. Memory that the kernel might still use is leaked.
    #[expect(unsafe_code, reason = "the order of what is dropped, and whether it is")]
    fn drop(&mut self) {
        let keys: Vec<usize> = self.sockets.iter().map(|(key, _)| key).collect();
        let mut woken = Vec::new();
        for _ in 0..MOST_LAST_TURNS {
            for key in &keys {
                let _ = self.cancel(*key);
            }
            let failed = self.turn(&mut woken).is_err();
            if failed || !self.sockets.iter().any(|(_, socket)| socket.is_under_way()) {
                break;
            }
        }
        for (_, socket) in self.sockets.iter_mut() {
            drop(socket.closing.take());
        }
        let is_done = !self.sockets.iter().any(|(_, socket)| socket.is_under_way());
        // JUSTIFICATION: fields would be dropped in any case, and the kernel may use them until the ring is gone.
        // SAFETY: none of them is used afterwards.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            if is_done {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.sockets);
            }
        }
    }
}

/// Each turn ends what the one before has cancelled.
const MOST_LAST_TURNS: usize = 16;

const fn number(key: usize, kind: u64) -> u64 {
    (key as u64) << KIND_BITS | kind
}

const fn key_and_kind(number: u64) -> (usize, u64) {
    ((number >> KIND_BITS) as usize, number & ((1 << KIND_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enabled_ring_does_nothing_but_its_operations() {
        let mut kernel = match Kernel::prepare(&Settings::default()) {
            Ok(kernel) => kernel,
            Err(error) => return println!("SKIP: the kernel refuses io_uring: {error}"),
        };
        kernel.enable().expect("this thread owns it");
        assert!(kernel.restrict(&[opcode::Nop::CODE]).is_err(), "nobody makes it wider");
        kernel.push(&opcode::Nop::new().build()).expect("queued");
        kernel.ring.submit_and_wait(1).expect("done");
        let done = kernel.ring.completion().next().expect("it is done");
        assert_eq!(Errno::from_raw_os_error(-done.result()), Errno::ACCESS);
    }
}
