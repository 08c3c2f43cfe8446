//! After a change of protocol (RFC 9110 section 7.8): passes bytes both ways until both sides have ended.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use afpa_framework::ClientStream;

use super::download::{LEAST_READ, MOST_COPIED};
use crate::pool::{Buffer, Pool, ServerStream};

/// The traffic of a tunnel.
pub(super) struct Moved {
    /// Bytes that went to the client.
    pub(super) to_client: u64,
    /// The server's direction broke off.
    pub(super) broken: bool,
}

/// Moves bytes until both directions have ended, one of them breaks, or none moves for `idle_ms`. `first` are bytes of the
/// server that have arrived already.
pub(super) async fn run<C: ClientStream + ?Sized>(
    client: &mut C,
    server: &mut ServerStream,
    first: &[u8],
    idle_ms: u64,
    pool: &Pool,
) -> Moved {
    let mut down = Lane::new(first);
    let mut up = Lane::new(client.arrived());
    client.consume(up.text.len());
    let mut armed = false;
    let mut moved = Moved { to_client: 0, broken: false };
    poll_fn(|cx| {
        let before = (down.moved, up.moved);
        let downward = down.poll(
            cx,
            pool,
            &mut (&mut *client, &mut *server),
            |(client, server), cx, room| {
                let most = room.len().min(client.appetite().max(LEAST_READ));
                server.poll_read(cx, room.get_mut(..most).unwrap_or_default())
            },
            |(client, _), cx, bytes| client.poll_send(cx, bytes, false),
            |(client, _), cx| client.poll_shutdown(cx),
        );
        let upward = up.poll(
            cx,
            pool,
            &mut (&mut *client, &mut *server),
            |(client, _), cx, room| client.poll_receive(cx, room),
            |(_, server), cx, bytes| server.poll_write(cx, bytes),
            |(_, server), cx| server.poll_shutdown(cx),
        );
        moved.to_client = down.moved;
        moved.broken = matches!(downward, Poll::Ready(Err(_)));
        match (downward, upward) {
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(()),
            (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => return Poll::Ready(()),
            _ => {}
        }
        if before != (down.moved, up.moved) || !armed {
            armed = true;
            let deadline = client.cached_now().steady_ms() + idle_ms;
            client.wait_until(Some(deadline));
        }
        match client.is_over(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    down.end(pool);
    up.end(pool);
    moved
}

/// One direction.
struct Lane {
    /// Bytes that had arrived before the tunnel began.
    text: Vec<u8>,
    buffer: Option<Buffer>,
    filled: usize,
    sent: usize,
    moved: u64,
    ended: Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    No,
    /// The sender has ended; the end was not passed on to the reader yet.
    Source,
    Both,
}

impl Lane {
    fn new(first: &[u8]) -> Self {
        Self { text: first.to_vec(), buffer: None, filled: 0, sent: 0, moved: 0, ended: Ended::No }
    }

    /// While the reader is waited for, only the bytes that wait stay in memory, not the buffer that they were read
    /// into.
    fn hold_little(&mut self, pool: &Pool) {
        let waiting = self.sent..self.filled;
        let Some(buffer) = self.buffer.take_if(|_| waiting.len() <= MOST_COPIED) else { return };
        self.text = buffer.get(waiting).unwrap_or_default().to_vec();
        (self.sent, self.filled) = (0, 0);
        pool.give_back(buffer);
    }

    fn end(self, pool: &Pool) {
        if let Some(buffer) = self.buffer {
            pool.give_back(buffer);
        }
    }

    /// Ready when this direction has ended and the end was passed on to its reader.
    fn poll<S>(
        &mut self,
        cx: &mut Context<'_>,
        pool: &Pool,
        sides: &mut S,
        mut receive: impl FnMut(&mut S, &mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
        mut send: impl FnMut(&mut S, &mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
        mut shutdown: impl FnMut(&mut S, &mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        loop {
            let waiting = match (&self.text[..], &self.buffer) {
                ([], Some(buffer)) => buffer.get(self.sent..self.filled).unwrap_or_default(),
                ([], None) => &[],
                (text, _) => text.get(self.sent..).unwrap_or_default(),
            };
            if !waiting.is_empty() {
                let Poll::Ready(sent) = send(sides, cx, waiting) else {
                    self.hold_little(pool);
                    return Poll::Pending;
                };
                let n = sent?;
                if n == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.sent += n;
                self.moved += n as u64;
                continue;
            }
            self.text = Vec::new();
            (self.sent, self.filled) = (0, 0);
            match self.ended {
                Ended::Both => return Poll::Ready(Ok(())),
                Ended::Source => {
                    ready!(shutdown(sides, cx))?;
                    self.ended = Ended::Both;
                }
                Ended::No => {
                    let buffer = self.buffer.get_or_insert_with(|| pool.buffer());
                    match receive(sides, cx, buffer) {
                        Poll::Ready(Ok(0)) => self.ended = Ended::Source,
                        Poll::Ready(Ok(n)) => self.filled = n,
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                        Poll::Pending => {
                            if let Some(buffer) = self.buffer.take() {
                                pool.give_back(buffer);
                            }
                            return Poll::Pending;
                        }
                    }
                }
            }
        }
    }
}
