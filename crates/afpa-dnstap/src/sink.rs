//! The queue of samples, and the thread that brings them to a reader's socket. A reader that is slow or gone costs samples, and
//! nothing else.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::frames::{self, Control};
use crate::message::{Sample, encode};

/// Samples that wait at most.
const WAITING: usize = 1024;
/// How long the reader may take to answer or to take bytes, and the pause before it is looked for again.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(1);
/// Frames are written together up to this length.
const GATHERED: usize = 32 << 10;

/// Numbers of a tap.
#[derive(Debug, Default)]
pub struct Counts {
    /// Samples that the reader has taken.
    pub written: AtomicU64,
    /// Samples that found no room, or no reader.
    pub lost: AtomicU64,
}

/// Takes samples.
#[derive(Clone, Debug)]
pub struct Tap {
    queue: SyncSender<Vec<u8>>,
    counts: Arc<Counts>,
    /// Of so many answers one is taken.
    pub one_in: u32,
}

impl Tap {
    /// Takes a sample, if there is room.
    pub fn take(&self, version: &str, sample: &Sample<'_>) {
        if self.queue.try_send(encode(version, sample)).is_err() {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread. When this and all of its taps are dropped, it tells the reader that this was all, and ends.
#[derive(Debug)]
pub struct Sink {
    tap: Option<Tap>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    /// Starts the thread, which connects to the socket at `path` when there is a reader, and counts in `counts`.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(path: &Path, one_in: u32, counts: Arc<Counts>) -> io::Result<Self> {
        let (queue, samples) = sync_channel(WAITING);
        let tap = Tap { queue, counts: Arc::clone(&counts), one_in: one_in.max(1) };
        let mut work = Work { path: path.to_owned(), samples, counts: Arc::clone(&counts) };
        let thread = std::thread::Builder::new().name("afpa-dnstap".to_owned());
        let thread = thread.spawn(move || work.go_on())?;
        Ok(Self { tap: Some(tap), counts, thread: Some(thread) })
    }

    /// Where samples are put.
    pub fn tap(&self) -> Option<Tap> {
        self.tap.clone()
    }

    /// Waits until the reader has all samples. There is no other tap any more, or this waits for its end.
    pub fn close(mut self) {
        self.tap = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Its numbers.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }
}

struct Work {
    path: PathBuf,
    samples: Receiver<Vec<u8>>,
    counts: Arc<Counts>,
}

enum End {
    /// The reader has gone.
    Reader,
    /// There is nobody who gives samples.
    Givers,
}

impl Work {
    fn go_on(&mut self) {
        loop {
            let end = match self.connect() {
                Ok(stream) => self.write_all(stream),
                Err(_) => self.pass(PAUSE),
            };
            if matches!(end, End::Givers) {
                return;
            }
        }
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&Control::Ready.bytes())?;
        expect(&mut stream, Control::Accept)?;
        stream.write_all(&Control::Start.bytes())?;
        Ok(stream)
    }

    /// Without a reader samples are lost, and not those of long ago when one comes.
    fn pass(&self, time: Duration) -> End {
        let until = std::time::Instant::now() + time;
        loop {
            match self
                .samples
                .recv_timeout(until.saturating_duration_since(std::time::Instant::now()))
            {
                Ok(_) => {
                    self.counts.lost.fetch_add(1, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => return End::Reader,
                Err(RecvTimeoutError::Disconnected) => return End::Givers,
            }
        }
    }

    fn write_all(&self, mut stream: UnixStream) -> End {
        let mut out = Vec::new();
        while let Ok(first) = self.samples.recv() {
            out.clear();
            frames::frame(&first, &mut out);
            let mut count = 1;
            while out.len() < GATHERED
                && let Ok(sample) = self.samples.try_recv()
            {
                frames::frame(&sample, &mut out);
                count += 1;
            }
            if stream.write_all(&out).is_err() {
                self.counts.lost.fetch_add(count, Ordering::Relaxed);
                return End::Reader;
            }
            self.counts.written.fetch_add(count, Ordering::Relaxed);
        }
        let told = stream.write_all(&Control::Stop.bytes());
        let _reader_has_gone = told.and_then(|()| expect(&mut stream, Control::Finish));
        End::Givers
    }
}

fn expect(stream: &mut UnixStream, control: Control) -> io::Result<()> {
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    let strange = || io::Error::other("the reader speaks another protocol");
    let mut payload = vec![0; frames::control_length(head).ok_or_else(strange)?];
    stream.read_exact(&mut payload)?;
    if frames::is(control, &payload) { Ok(()) } else { Err(strange()) }
}
