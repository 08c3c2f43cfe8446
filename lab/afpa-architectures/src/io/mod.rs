//! The I/O strategies: how one thread of control serves the connections of a listener.

mod arrival;
pub(crate) mod asynchronous;
mod helpers;
pub(crate) mod reactive;
mod send;
pub(crate) mod sync;

use std::net::TcpListener;

use anyhow::Result;

pub(crate) use arrival::is_passing;

use crate::context::ServerContext;
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
