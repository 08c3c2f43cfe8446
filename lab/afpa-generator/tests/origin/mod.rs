//! A small real server of a workload's files, right or wrong in ways that a test chooses.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afpa_generator::Workload;

/// The origin's behaviour.
#[derive(Debug, Clone)]
pub(crate) struct Manners {
    /// The origin closes a connection silently after so many requests.
    pub requests_per_connection: u64,
    /// Every so many responses, the last byte of content is another.
    pub corrupt_every: u64,
    /// Every so many responses, the connection ends in the middle.
    pub cut_every: u64,
    /// Before each response.
    pub delay: Duration,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            requests_per_connection: u64::MAX,
            corrupt_every: u64::MAX,
            cut_every: u64::MAX,
            delay: Duration::ZERO,
        }
    }
}

/// Counts of the requests and connections that the origin has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub requests: AtomicU64,
    pub connections: AtomicU64,
    /// Requests that asked for the connection's end.
    pub closing: AtomicU64,
}

impl Seen {
    pub(crate) fn of(&self, what: impl Fn(&Self) -> &AtomicU64) -> u64 {
        what(self).load(Ordering::Relaxed)
    }
}

/// Listens on a free port of `address` from the calling thread's namespace, until the process
/// ends.
pub(crate) fn start(
    address: IpAddr,
    workload: &Workload,
    manners: Manners,
) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let content = |object: &afpa_generator::Object| {
        let mut bytes = Vec::new();
        object.body.write(&mut bytes).unwrap();
        (object.path.clone(), bytes)
    };
    let files: HashMap<String, Vec<u8>> = workload.objects().iter().map(content).collect();
    let (files, seen) = (Arc::new(files), Arc::new(Seen::default()));
    let shared = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (files, seen, manners) = (files.clone(), shared.clone(), manners.clone());
            std::thread::spawn(move || {
                seen.connections.fetch_add(1, Ordering::Relaxed);
                // The client's end or the chosen behaviour ends the connection.
                let _ = serve(stream.unwrap(), &files, &seen, &manners);
            });
        }
    });
    (to, seen)
}

fn serve(
    mut stream: TcpStream,
    files: &HashMap<String, Vec<u8>>,
    seen: &Seen,
    manners: &Manners,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    for _ in 0..manners.requests_per_connection {
        request.clear();
        while !request.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                count => request.extend_from_slice(&buffer[..count]),
            }
        }
        // Field names have no case, and no value that matters here has one.
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let number = seen.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let mut response = respond(&text, files);
        std::thread::sleep(manners.delay);
        if number.is_multiple_of(manners.corrupt_every) {
            *response.last_mut().unwrap() ^= 1;
        }
        if number.is_multiple_of(manners.cut_every) {
            response.truncate(response.len() - 1);
            return stream.write_all(&response);
        }
        stream.write_all(&response)?;
        if text.contains("connection: close\r\n") {
            seen.closing.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
    }
    Ok(())
}

fn respond(request: &str, files: &HashMap<String, Vec<u8>>) -> Vec<u8> {
    let path = request.split(' ').nth(1).unwrap_or("");
    match files.get(path) {
        None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnone\n".to_vec(),
        Some(_) if request.contains("if-modified-since: mon, 01 jan 2001 00:00:00 gmt\r\n") => {
            b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()
        }
        Some(content) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
            [head.as_bytes(), content].concat()
        }
    }
}
