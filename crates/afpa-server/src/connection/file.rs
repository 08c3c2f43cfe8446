//! Sends files with `sendfile`, as long as they have the bytes that the head has announced.

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use afpa_cache::Stamp;
use afpa_cache::root::{FileBody, fetch, resident};
use afpa_framework::Module;

use super::{Connection, End};
use crate::pipe::HELD;
use crate::transport::Transport;

/// How much one `sendfile` is asked to send. The kernel itself moves 64 KB at a time, the chunk of the paper;
/// one call for many of these was measured to cost less (docs/decisions/sending-bytes.md). Between two calls the version of
/// the file is checked, the next chunk is made resident, and other connections get their turn.
const CHUNK: u64 = 2 * 1024 * 1024;

/// How much of the end of a file is read into memory for a slow client: see `send_file`.
const TAIL: u64 = 4096;

/// How much of the end of a file is read into memory where its bytes are copied anyway: a record of TLS.
const RECORD: u64 = 16 * 1024;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Sends a range of a file, as long as the file has the bytes that were announced: it may have grown.
    ///
    /// The pages of the end are referenced first, then the version is checked, and only then they are sent. So
    /// a complete response was one version as a whole. If the check fails, the connection ends, and the client
    /// sees that the response is incomplete.
    ///
    /// A client that takes everything at once gets the end (or a whole file that is not longer) in one burst
    /// from the core's pipe. A slow client must not occupy the pipe: for it, the last `TAIL` bytes are read.
    pub(super) async fn send_file(
        &mut self,
        file: Arc<FileBody>,
        mut stamp: Stamp,
        range: Range<u64>,
        more: bool,
    ) -> Result<(), (End, u64)> {
        let start = range.start;
        let mut at = start;
        let mut resident_to = start;
        let mut takes_all = T::SENDS_PAGES;
        self.write_until_ms = None;
        while at < range.end {
            let sent = at - start;
            let failed = |end| (end, sent);
            if at >= resident_to {
                resident_to = range.end.min(at + CHUNK);
                self.make_resident(&file, at..resident_to).await;
            }
            let end = match (takes_all, T::SENDS_PAGES) {
                (true, _) => HELD,
                (false, true) => TAIL,
                (false, false) => RECORD,
            };
            if range.end - at > end {
                check(&file, &mut stamp).map_err(failed)?;
                let chunk = CHUNK.min(range.end - at - end) as usize;
                let left = range.end - at;
                at += self.send_chunk(&file, at, chunk, left).await.map_err(failed)?;
                tokio::task::consume_budget().await;
            } else if takes_all {
                let rest = at..range.end;
                self.turn(rest.end - rest.start).await;
                let n;
                (n, takes_all) =
                    self.send_held(&file, &mut stamp, rest, more).await.map_err(failed)?;
                at += n;
            } else {
                let bytes = read_range(&file, at..range.end).map_err(|_| (End::Aborted, sent))?;
                check(&file, &mut stamp).map_err(failed)?;
                return self.send_all(&bytes, more).await.map_err(|(end, n)| (end, sent + n));
            }
        }
        Ok(())
    }

    /// Sends some of `len` bytes with `sendfile`. Returns how many.
    async fn send_chunk(
        &mut self,
        file: &File,
        at: u64,
        len: usize,
        left: u64,
    ) -> Result<u64, End> {
        let n =
            self.in_turn(left, |transport, cx| transport.poll_send_file(cx, file, at, len)).await?;
        if n == 0 { Err(End::Aborted) } else { Ok(n as u64) }
    }

    /// References the pages of a range, checks the version, and sends what the socket takes without waiting.
    /// Returns how many bytes, and whether these were all that were referenced.
    async fn send_held(
        &mut self,
        file: &FileBody,
        stamp: &mut Stamp,
        range: Range<u64>,
        more: bool,
    ) -> Result<(u64, bool), End> {
        let length = (range.end - range.start) as usize;
        let Some(held) = self.worker.pipe.hold(file, range.start, length) else {
            return Ok((0, false));
        };
        let all = held.len();
        // If the version has changed, the pages are released with the pipe.
        check(file, stamp)?;
        let more = more || all < length;
        let sent = poll_fn(|cx| {
            Poll::Ready(match self.transport.poll_send_held(cx, held.reader(), all, more) {
                Poll::Ready(sent) => sent.map_err(|_| End::Gone),
                Poll::Pending => Ok(0),
            })
        })
        .await?;
        self.worker.turns.sent(sent);
        self.count_sent(sent);
        self.worker.pipe.release(held, sent);
        Ok((sent as u64, sent == all))
    }

    /// Has a helper thread read the range into the page cache, so that sending it cannot block the core.
    async fn make_resident(&mut self, file: &Arc<FileBody>, range: Range<u64>) {
        let length = range.end - range.start;
        if resident(file, range.start, length) {
            return;
        }
        let file = Arc::clone(file);
        // If no helper is free, sendfile reads the file: slower for this core, but correct.
        let helpers = self.worker.helpers.borrow().clone();
        let _ = helpers.run(move || fetch(&file, range.start, length)).await;
    }
}

fn check(file: &FileBody, seen: &mut Stamp) -> Result<(), End> {
    if file.holds(seen) { Ok(()) } else { Err(End::Aborted) }
}

fn read_range(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}
