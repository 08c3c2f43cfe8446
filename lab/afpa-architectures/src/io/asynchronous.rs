//! Asynchronous I/O: reads, writes and accepts are handed to the kernel, which tells when they are
//! done (io_uring). One thread; a task for each connection.
//!
//! Files are opened and pinned in place, once each, as SPED does; those that are not pinned are read
//! through the ring, chunk by chunk.

use std::cell::RefCell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio_uring::buf::BoundedBuf;
use tokio_uring::fs::File;
use tokio_uring::net::{TcpListener as RingListener, TcpStream};

use super::arrival::{RECEIVE, is_passing};
use crate::context::ServerContext;
use crate::{Answer, Body, Handler, Step};

/// Submissions that may wait to be seen by the kernel.
const ENTRIES: u32 = 1024;
/// Bytes of a file that are read and sent at a time.
const CHUNK: usize = 128 * 1024;

/// The reason why io_uring cannot be used here; `None` if it can.
pub(crate) fn lacks() -> Option<String> {
    let attempt = tokio_uring::Runtime::new(tokio_uring::builder().entries(8));
    attempt.err().map(|error| format!("the kernel refuses io_uring: {error}"))
}

/// Serves many connections with one thread.
pub(super) fn serve(
    listener: &TcpListener,
    handler: Handler,
    shared: &ServerContext,
) -> Result<()> {
    let mut builder = tokio_uring::builder();
    let builder = builder.entries(ENTRIES);
    let runtime = tokio_uring::Runtime::new(builder).context("cannot set io_uring up")?;
    let listener = RingListener::from_std(listener.try_clone()?);
    let (handler, gather) = (Rc::new(RefCell::new(handler)), shared.gather);
    let open = Rc::new(());
    let most = shared.connections as usize;
    runtime.block_on(async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) if Rc::strong_count(&open) <= most => {
                    let (handler, open) = (Rc::clone(&handler), Rc::clone(&open));
                    tokio_uring::spawn(async move {
                        // A connection that fails has failed its client: nobody else needs to know.
                        drop(converse(&stream, &handler, gather).await);
                        drop(open);
                    });
                }
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    })
}

/// Answers the requests of one connection, until either side has had enough.
async fn converse(stream: &TcpStream, handler: &RefCell<Handler>, gather: bool) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(RECEIVE);
    let mut carry: Vec<u8> = Vec::new();
    let mut loaded = None;
    loop {
        let mut head = Vec::with_capacity(512);
        // The handler is never borrowed across a wait.
        let step = handler.borrow_mut().answer(&carry, loaded.take(), &mut head);
        match step {
            Step::More => {
                buffer.clear();
                let (count, back) = stream.read(buffer).await;
                buffer = back;
                match count? {
                    0 => return Ok(()),
                    count => carry.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                }
            }
            Step::Miss(path) => {
                let content = handler.borrow().content().clone();
                loaded = Some(content.load(&path));
            }
            Step::Answer(Answer { consumed, body, keep }) => {
                send(stream, head.into(), body, gather).await?;
                if !keep {
                    return Ok(());
                }
                carry.drain(..consumed);
            }
        }
    }
}

async fn send(stream: &TcpStream, head: Bytes, body: Body, gather: bool) -> io::Result<()> {
    match body {
        Body::Memory(bytes) if gather => both(stream, head, bytes).await,
        Body::Memory(bytes) => {
            stream.write_all(head).await.0?;
            stream.write_all(bytes).await.0
        }
        Body::None => stream.write_all(head).await.0,
        Body::File(file, length) => {
            let file = File::from_std(file.try_clone()?);
            let outcome = chunks(stream, head, &file, length, gather).await;
            file.close().await?;
            outcome
        }
    }
}

/// Sends head and content with one call; if that sent only a part, the rest with more calls.
async fn both(stream: &TcpStream, head: Bytes, bytes: Bytes) -> io::Result<()> {
    let (count, pieces) = stream.writev(vec![head, bytes]).await;
    let mut count = count?;
    for piece in pieces {
        let sent = count.min(piece.len());
        count -= sent;
        if sent < piece.len() {
            stream.write_all(piece.slice(sent..)).await.0?;
        }
    }
    Ok(())
}

async fn chunks(
    stream: &TcpStream,
    head: Bytes,
    file: &File,
    length: u64,
    gather: bool,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(head.len() + CHUNK);
    if gather {
        // In front of the first chunk.
        buffer.extend_from_slice(&head);
    } else {
        stream.write_all(head).await.0?;
    }
    let mut offset = 0;
    while offset < length {
        let start = buffer.len();
        let wanted = usize::try_from(length - offset).unwrap_or(CHUNK).min(CHUNK);
        let (count, slice) = file.read_at(buffer.slice(start..start + wanted), offset).await;
        match count? {
            // A file that has become shorter has no answer any more: the connection ends.
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => offset += count as u64,
        }
        let (outcome, back) = stream.write_all(slice.into_inner()).await;
        outcome?;
        buffer = back;
        buffer.clear();
    }
    Ok(())
}
