//! The bare reflector: an upper bound for any server that answers in the kernel.
//!
//! An answer of several segments leaves at once, and the client's acknowledgements of it are ignored: no server can do
//! less for it. So the answer has to fit the window that a client begins with.

use std::net::{Shutdown, SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::limits;
use crate::object::{Aligned, Attachment, Fields, Loaded, internet_sum, store};

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/reflector.o")));
const BACKLOG: i32 = 65535;

/// The side that opens and closes the connections that the reflector answers on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshakes {
    /// The kernel's TCP; they stay open until the reflector is dropped.
    Kernel,
    /// The program, one request a connection.
    Program,
}

/// A TC program that answers every segment with payload by the same response, and a listener for
/// the handshakes.
pub struct Reflector {
    _attachment: Attachment,
    _object: Loaded,
    listener: TcpListener,
    acceptor: Option<JoinHandle<()>>,
}

impl Reflector {
    /// Answers on `address` and `interface` of the calling thread's namespace, with a body of
    /// `body` bytes. Where the program has the handshakes, the listener only holds the port.
    ///
    /// # Errors
    ///
    /// When the response is longer than the program's answers, or the program cannot be attached.
    pub fn start(
        interface: &str,
        address: SocketAddr,
        body: usize,
        handshakes: Handshakes,
    ) -> Result<Self> {
        let response = response(body);
        let object = Loaded::load("reflector", &OBJECT.0, &[])?;
        let layout = object.layout("answer")?;
        let (mut answer, room) = (layout.zeroed(), layout.field("bytes")?);
        let unit = unit(address);
        let (sums, most) = (layout.field("sums")?, (room - layout.field("sums")?) / 4);
        ensure!(response.len() <= most * unit, "the response has more than {most} segments");
        answer.put_u32(layout.field("port")?, address.port().into());
        answer.put_u32(layout.field("length")?, response.len() as u32);
        answer.put_u32(layout.field("unit")?, unit as u32);
        for (number, segment) in response.chunks(unit).enumerate() {
            answer.put_u32(sums + 4 * number, internet_sum(segment));
        }
        answer.put(room, &response);
        store(&object.map("answers")?, 0, &answer)?;
        limits::use_all_open_files()?;
        // The program before the listener, so that every connection is answered.
        let program = match handshakes {
            Handshakes::Kernel => "reflect",
            Handshakes::Program => "reflect_once",
        };
        let attachment = object.attach(program, interface)?;
        let listener = listen(address)?;
        let accepting = listener.try_clone()?;
        let acceptor = Some(thread::spawn(move || hold_connections(&accepting)));
        Ok(Self { _attachment: attachment, _object: object, listener, acceptor })
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        // Wakes the acceptor: a listener that is shut down accepts no more.
        let _ = SockRef::from(&self.listener).shutdown(Shutdown::Both);
        if let Some(acceptor) = self.acceptor.take() {
            // The thread does not panic, and its connections are closed either way.
            let _ = acceptor.join();
        }
    }
}

/// The sockets' numbers are stale from the first answer on: none of them is ever read.
fn hold_connections(listener: &TcpListener) {
    let mut held = Vec::new();
    while let Ok((connection, _)) = listener.accept() {
        held.push(connection);
    }
}

/// Payload of a full segment, with timestamps: an MTU of 1,500 bytes.
fn unit(address: SocketAddr) -> usize {
    if address.is_ipv4() { 1448 } else { 1428 }
}

/// A response as long as that of a server of static files.
fn response(body: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: reflector\r\n\
         Content-Type: text/plain\r\nContent-Length: {body}\r\n\
         Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nETag: \"0-0\"\r\n\
         Accept-Ranges: bytes\r\n\r\n"
    );
    let mut response = head.into_bytes();
    response.resize(response.len() + body, b'x');
    response
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address)).with_context(|| format!("cannot bind {address}"))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
