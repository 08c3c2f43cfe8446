//! Synchronous I/O: one connection from its first byte to its last, with calls that block.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;

use super::arrival::{RECEIVE, is_passing};
use super::send;
use crate::context::ServerContext;
use crate::{Handler, Step};

/// Accepts, serves, closes; then the next one.
pub(super) fn serve(
    listener: &TcpListener,
    mut handler: Handler,
    shared: &ServerContext,
) -> Result<()> {
    let mut room = Room::default();
    loop {
        match listener.accept() {
            // A connection that fails has failed its client: nobody else needs to know.
            Ok((stream, _)) => drop(converse(&stream, &mut handler, &mut room, shared.gather)),
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Buffers of a thread of control.
#[derive(Debug)]
pub(crate) struct Room {
    input: Box<[u8]>,
    head: Vec<u8>,
}

impl Default for Room {
    fn default() -> Self {
        // As long as the longest head that is accepted.
        Self { input: vec![0; 2 * RECEIVE].into(), head: Vec::with_capacity(1024) }
    }
}

/// Answers the requests of one connection, until either side has had enough.
pub(crate) fn converse(
    mut stream: &TcpStream,
    handler: &mut Handler,
    room: &mut Room,
    gather: bool,
) -> io::Result<()> {
    let Room { input, head } = room;
    let mut filled = 0;
    let mut loaded = None;
    loop {
        let arrived = input.get(..filled).unwrap_or_default();
        match handler.answer(arrived, loaded.take(), head) {
            Step::More => match stream.read(input.get_mut(filled..).unwrap_or_default())? {
                0 => return Ok(()),
                count => filled += count,
            },
            Step::Miss(path) => loaded = Some(handler.content().load(&path)),
            Step::Answer(answer) => {
                send::all(stream, head, &answer.body, gather)?;
                if !answer.keep {
                    return Ok(());
                }
                input.copy_within(answer.consumed..filled, 0);
                filled -= answer.consumed;
            }
        }
    }
}
