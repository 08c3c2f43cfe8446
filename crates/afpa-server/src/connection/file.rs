//! Sending files from where they lie, as long as they are the version that was announced.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use afpa_cache::Stamp;
use afpa_cache::root::{fetch, resident};
use afpa_framework::Module;

use super::{Connection, End};
use crate::pipe::HELD;
use crate::transport::Transport;

/// What one `sendfile` is asked for. The kernel moves 64 KB at a time by itself, the paper's chunk; one
/// call for many of them was measured to cost less (ARCHITECTURE.md). Between two calls the version of the
/// file is checked, what comes next is made resident, and other connections get their turn.
const CHUNK: u64 = 2 * 1024 * 1024;

/// The end of a file that is read for a client that does not take all of it at once: see `send_file`.
const TAIL: u64 = 4096;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Sends a range of a file, as long as the file is the version that was announced.
    ///
    /// The end is taken hold of, then the version is checked, and only then it is sent: a complete response
    /// has been checked as a whole. When the check fails the connection ends, so that the client sees the
    /// response as the fragment that it is.
    ///
    /// A client that takes it all gets the end, or all of a file that is no longer, in one burst from the
    /// core's pipe. One that does not must not keep the pipe: its end is a `TAIL` that is read.
    pub(super) async fn send_file(
        &mut self,
        file: Arc<File>,
        stamp: Stamp,
        range: Range<u64>,
        more: bool,
    ) -> Result<(), (End, u64)> {
        let start = range.start;
        let mut at = start;
        let mut resident_to = start;
        let mut takes_all = true;
        while at < range.end {
            let sent = at - start;
            let failed = |end| (end, sent);
            if at >= resident_to {
                resident_to = range.end.min(at + CHUNK);
                self.make_resident(&file, at..resident_to).await;
            }
            let end = if takes_all { HELD } else { TAIL };
            if range.end - at > end {
                verify(&file, &stamp).map_err(failed)?;
                let chunk = CHUNK.min(range.end - at - end) as usize;
                at += self.send_chunk(&file, at, chunk).await.map_err(failed)?;
                tokio::task::consume_budget().await;
            } else if takes_all {
                let rest = at..range.end;
                let n;
                (n, takes_all) = self.send_held(&file, &stamp, rest, more).await.map_err(failed)?;
                at += n;
            } else {
                let bytes = read_range(&file, at..range.end).map_err(|_| (End::Aborted, sent))?;
                verify(&file, &stamp).map_err(failed)?;
                return self.send_all(&bytes, more).await.map_err(|(end, n)| (end, sent + n));
            }
        }
        Ok(())
    }

    /// Sends some of `len` bytes from where they lie: how many.
    async fn send_chunk(&mut self, file: &File, at: u64, len: usize) -> Result<u64, End> {
        let n = self
            .while_client_reads(|transport, cx| transport.poll_send_file(cx, file, at, len))
            .await?;
        if n == 0 { Err(End::Aborted) } else { Ok(n as u64) }
    }

    /// Takes hold of a range, checks the version, and sends what the socket takes without waiting: how much,
    /// and whether that was all that could be held.
    async fn send_held(
        &mut self,
        file: &File,
        stamp: &Stamp,
        range: Range<u64>,
        more: bool,
    ) -> Result<(u64, bool), End> {
        let length = (range.end - range.start) as usize;
        let Some(held) = self.worker.pipe.hold(file, range.start, length) else {
            return Ok((0, false));
        };
        let all = held.len();
        // If it is another one, what is held is let go with the pipe.
        verify(file, stamp)?;
        let more = more || all < length;
        let sent = poll_fn(|cx| {
            Poll::Ready(match self.transport.poll_send_held(cx, held.reader(), all, more) {
                Poll::Ready(sent) => sent.map_err(|_| End::Gone),
                Poll::Pending => Ok(0),
            })
        })
        .await?;
        self.worker.counters.sent_bytes.add(sent as u64);
        self.worker.pipe.release(held, sent);
        Ok((sent as u64, sent == all))
    }

    /// Has a helper thread read what is not in memory, so that sending it cannot block the core.
    async fn make_resident(&mut self, file: &Arc<File>, range: Range<u64>) {
        let length = range.end - range.start;
        if resident(file, range.start, length) {
            return;
        }
        let file = Arc::clone(file);
        // When no helper is free the read happens in sendfile: slower for this core, still right.
        let _ = self.worker.helpers.run(move || fetch(&file, range.start, length)).await;
    }
}

/// Whether the file has still the content that was announced. The change time does not count: it
/// also moves when the file is renamed, or replaced by another one and so unlinked, and then what is
/// being sent is still one whole version.
fn verify(file: &File, announced: &Stamp) -> Result<(), End> {
    let found = rustix::fs::fstat(file).map(|stat| Stamp::from(&stat));
    match found {
        Ok(found) if (found.size, found.mtime_ns) == (announced.size, announced.mtime_ns) => Ok(()),
        _ => Err(End::Aborted),
    }
}

fn read_range(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}
