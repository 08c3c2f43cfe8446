//! Sending files from where they lie, as long as they are the version that was announced.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use afpa_cache::Stamp;
use afpa_cache::root::{fetch, resident};
use afpa_framework::Module;

use super::{Connection, End};
use crate::transport::Transport;

/// What one `sendfile` is asked for. The kernel moves 64 KB at a time by itself, the paper's chunk; one
/// call for many of them was measured to cost less (ARCHITECTURE.md). Between two calls the version of the
/// file is checked, what comes next is made resident, and other connections get their turn.
const CHUNK: u64 = 2 * 1024 * 1024;

/// The end of a file, which is read and not sent from the file: see `send_file`.
const TAIL: u64 = 4096;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Sends a range of a file, as long as the file is the version that was announced.
    ///
    /// The tail is read, then the version is checked, and only then it is sent: a complete
    /// response has been checked as a whole. When the check fails the connection ends, so that the
    /// client sees the response as the fragment that it is.
    pub(super) async fn send_file(
        &mut self,
        file: Arc<File>,
        stamp: Stamp,
        range: Range<u64>,
        more: bool,
    ) -> Result<(), (End, u64)> {
        let start = range.start;
        let tail = range.end.saturating_sub(TAIL).max(start);
        let mut at = start;
        let mut resident_to = start;
        while at < tail {
            let sent = at - start;
            if at >= resident_to {
                resident_to = range.end.min(at + CHUNK);
                self.make_resident(&file, at..resident_to).await;
            }
            verify(&file, &stamp).map_err(|end| (end, sent))?;
            let chunk = CHUNK.min(tail - at) as usize;
            let n = self
                .while_client_reads(|transport, cx| transport.poll_send_file(cx, &file, at, chunk))
                .await
                .map_err(|end| (end, sent))?;
            if n == 0 {
                return Err((End::Aborted, sent));
            }
            at += n as u64;
            tokio::task::consume_budget().await;
        }
        let sent = tail - start;
        let bytes = read_range(&file, tail..range.end).map_err(|_| (End::Aborted, sent))?;
        verify(&file, &stamp).map_err(|end| (end, sent))?;
        self.send_all(&bytes, more).await.map_err(|(end, n)| (end, sent + n))
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
