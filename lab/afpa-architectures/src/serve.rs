//! From options to a running server.

use std::net::TcpListener;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};

use crate::context::ServerContext;
use crate::{Options, concurrency};

/// Serves until a signal ends the process. Prints its URL on standard output, in a line.
///
/// # Errors
/// When the options make no server, the address or the directory cannot be had, or the server fails.
pub fn serve(options: &Options) -> Result<()> {
    let shared = ServerContext::new(options)?;
    raise_open_files();
    let listener = match concurrency::is_worker() {
        true => concurrency::inherited()?,
        false => {
            let listener = listen(options)?;
            println!("http://{}/", listener.local_addr()?);
            listener
        }
    };
    concurrency::run(&listener, &shared)
}

/// The longest queue of connections that wait to be accepted (JAWS: the listen backlog).
const BACKLOG: i32 = 4096;

fn listen(options: &Options) -> Result<TcpListener> {
    let address = options.listen;
    let about = || format!("cannot listen on {address}");
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Accepted sockets inherit it: a call less for each connection (JAWS: Nagle's algorithm).
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into()).with_context(about)?;
    socket.listen(BACKLOG).with_context(about)?;
    Ok(socket.into())
}

/// Allows a descriptor for each connection and each file that is not pinned.
fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, fewer connections fit, and accept will report that.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
