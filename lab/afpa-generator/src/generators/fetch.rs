//! Every request of a workload once, over plain sockets: is the server right, before it is fast?

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::response::{Progress, Reader};
use crate::workload::Workload;

const PATIENCE: Duration = Duration::from_secs(5);
const BUFFER: usize = 256 << 10;

/// Asks for everything that the workload may ask for, once, and holds it to what must come back.
/// It also has the server load what it keeps.
///
/// # Errors
///
/// At the first response that is wrong, or when the server cannot be reached.
pub fn fetch_all(to: SocketAddr, workload: &Workload, persistent: bool) -> Result<()> {
    let (host, mut buffer) = (to.to_string(), vec![0; BUFFER]);
    let mut connection: Option<TcpStream> = None;
    let mut asked = HashSet::new();
    for wanted in workload.all_requests() {
        // Not twice for the same, as when 404s are many.
        if wanted.status == 404 && !asked.insert(wanted.status) {
            continue;
        }
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => connect(to)?,
        };
        let what = || format!("GET {}", wanted.path);
        stream.write_all(&wanted.bytes(&host, persistent)).with_context(what)?;
        let keep = receive(&mut stream, &mut buffer, |reader, bytes| match bytes {
            [] => reader.end(wanted),
            bytes => reader.take(bytes, wanted),
        })
        .with_context(what)?;
        connection = (keep && persistent).then_some(stream);
    }
    Ok(())
}

/// Reads one response; whether the server keeps the connection.
fn receive(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    mut take: impl FnMut(&mut Reader, &[u8]) -> Result<Progress, String>,
) -> Result<bool> {
    let mut reader = Reader::default();
    loop {
        let count = stream.read(buffer)?;
        match take(&mut reader, buffer.get(..count).unwrap_or_default()) {
            Ok(Progress::Done { keep, .. }) => return Ok(keep),
            Ok(Progress::More) => {}
            Err(words) => bail!(words),
        }
    }
}

fn connect(to: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)
        .with_context(|| format!("cannot connect to {to}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
