//! The I/O strategies: how one thread of control serves the connections of a listener.

pub(crate) mod asynchronous;
mod helpers;
pub(crate) mod reactive;
mod send;
pub(crate) mod sync;

use std::net::TcpListener;

use anyhow::Result;

use crate::serve::ServerContext;
use crate::{Handler, Io};

/// Serves the connections of `listener`, for as long as that goes well.
///
/// # Errors
/// When the listener or the strategy's own means fail. The failure of a connection ends that alone.
pub(crate) fn serve(
    listener: &TcpListener,
    handler: Handler,
    shared: &ServerContext,
) -> Result<()> {
    match shared.architecture.io {
        Io::Sync => sync::serve(listener, handler, shared),
        Io::Reactive => reactive::serve(listener, handler, shared),
        Io::Async => asynchronous::serve(listener, handler, shared),
    }
}

/// Room for what arrives in one read: a request head, or a few.
const RECEIVE: usize = 16 * 1024;

/// Whether an error of `accept` concerns only one connection, or will pass.
pub(crate) fn is_passing(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    let exhausted = matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS));
    if exhausted {
        // No connection can be accepted until another one ends.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    exhausted
        || matches!(errno, Some(Errno::CONNABORTED | Errno::INTR | Errno::AGAIN | Errno::PERM))
}
