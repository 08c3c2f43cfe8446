//! Every request of a workload once, over plain sockets: is the server right, before it is fast?

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::response::{Progress, Reader};
use crate::workload::{Request, Workload};

const PATIENCE: Duration = Duration::from_secs(5);
const BUFFER: usize = 256 << 10;

/// Sends each request of the workload once, and checks the response. The server also loads the files
/// into its cache by this; a file with conditional requests is therefore asked for without conditions
/// first.
///
/// # Errors
///
/// At the first response that is wrong, or when the server cannot be reached.
pub fn fetch_all(to: SocketAddr, workload: &Workload, persistent: bool) -> Result<()> {
    let mut fetcher =
        Fetcher { host: to.to_string(), to, persistent, connection: None, buffer: vec![0; BUFFER] };
    let conditional = |wanted: &&Request| wanted.status == 304;
    let asked: HashSet<&str> =
        workload.all_requests().iter().filter(conditional).map(|r| r.path.as_str()).collect();
    for object in workload.objects().iter().filter(|o| asked.contains(o.path.as_str())) {
        fetcher.fetch(&Request::get(object))?;
    }
    // One absent path is enough: they are all alike.
    let mut absent = 0;
    for wanted in workload.all_requests() {
        absent += usize::from(wanted.status == 404);
        if wanted.status != 404 || absent == 1 {
            fetcher.fetch(wanted)?;
        }
    }
    Ok(())
}

struct Fetcher {
    to: SocketAddr,
    host: String,
    persistent: bool,
    connection: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Fetcher {
    fn fetch(&mut self, wanted: &Request) -> Result<()> {
        let what = || format!("GET {}", wanted.path);
        let mut stream = match self.connection.take() {
            Some(stream) => stream,
            None => connect(self.to)?,
        };
        let request = wanted.bytes(&self.host, self.persistent);
        stream.write_all(&request).with_context(what)?;
        let keep = receive(&mut stream, &mut self.buffer, |reader, bytes| match bytes {
            [] => reader.end(wanted),
            bytes => reader.take(bytes, wanted),
        })
        .with_context(what)?;
        self.connection = (keep && self.persistent).then_some(stream);
        Ok(())
    }
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
