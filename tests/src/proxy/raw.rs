//! A server that does with its connections what a test says.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_testkit::eventually;
use afpa_testkit::server::free_address;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A server made of a function. Ended when dropped.
#[derive(Debug)]
pub struct Raw {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Raw {
    /// A server that calls `serve` for every connection, on a thread of its own.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::start_at(SocketAddr::new(free_address().ip(), 0), serve)
    }

    /// The same, at this address.
    ///
    /// # Panics
    /// When it cannot listen there.
    pub fn start_at(
        address: SocketAddr,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("bound");
        let address = listener.local_addr().expect("an address");
        let (connections, ended) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over, serve) = (Arc::clone(&connections), Arc::clone(&ended), Arc::new(serve));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                count.fetch_add(1, Ordering::Relaxed);
                stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
                stream.set_nodelay(true).expect("no delay");
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { address, connections, ended, thread: Some(thread) }
    }

    /// A server that answers every request with these bytes after `delay`.
    pub fn answering(response: impl Into<Vec<u8>>, delay: Duration) -> Self {
        let response = response.into();
        Self::start(move |mut stream| {
            while read_head(&mut stream).is_some() {
                std::thread::sleep(delay);
                if stream.write_all(&response).is_err() {
                    return;
                }
            }
        })
    }

    /// A server that answers every request with its name.
    pub fn named(name: &'static str) -> Self {
        Self::named_at(free_address(), name)
    }

    /// The same, at this address.
    pub fn named_at(address: SocketAddr, name: &'static str) -> Self {
        Self::start_at(address, move |mut stream| {
            while read_head(&mut stream).is_some() && answer(&mut stream, 200, name) {}
        })
    }

    /// Its address, as the configuration of a group has it.
    pub fn to(&self) -> String {
        self.address.to_string()
    }

    /// Connections it has had.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Ok(stream) = TcpStream::connect(self.address) {
            let _closed = stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// The head of the next request, or the bytes before the end of the connection; `None` if there are
/// none. The socket keeps the bytes behind the head.
pub fn read_head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut piece) = (Vec::new(), [0; 8192]);
    while !head.ends_with(END_OF_HEAD) && head.len() < 65_536 {
        let Ok(there @ 1..) = stream.peek(&mut piece) else { break };
        let before = head.len();
        head.extend_from_slice(&piece[..there]);
        let from = before.saturating_sub(END_OF_HEAD.len() - 1);
        if let Some(end) =
            head[from..].windows(END_OF_HEAD.len()).position(|four| four == END_OF_HEAD)
        {
            head.truncate(from + end + END_OF_HEAD.len());
        }
        stream.read_exact(&mut head[before..]).expect("what was there a moment ago");
    }
    (!head.is_empty()).then(|| String::from_utf8_lossy(&head).into_owned())
}

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// Closes the server's side, and waits until its end has arrived at the proxy: until the proxy's TCP has acknowledged it
/// (FIN_WAIT2), a request on another connection may overtake it.
///
/// # Panics
/// When it does not arrive.
pub fn end(stream: &TcpStream) {
    const FIN_WAIT2: &str = "05";
    stream.shutdown(Shutdown::Write).expect("its end is sent");
    let own = stream.local_addr().expect("an address").port();
    let peer = stream.peer_addr().expect("an address").port();
    let (own, peer) = (format!(":{own:04X}"), format!(":{peer:04X}"));
    let has_arrived = |line: &str| {
        // "sl local_address rem_address st ..."
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&own))
            && fields.next().is_some_and(|remote| remote.ends_with(&peer))
            && fields.next() == Some(FIN_WAIT2)
    };
    eventually("the end has arrived", || {
        std::fs::read_to_string("/proc/net/tcp").expect("sockets").lines().any(has_arrived)
    });
}

/// The content of the request with this head, as it lies on the wire. A server that answers without having read it would
/// take it for its next request. `None`: it did not come.
///
/// # Panics
/// When the head has a length that is no number.
pub fn read_content(stream: &mut TcpStream, head: &str) -> Option<String> {
    let head = head.to_ascii_lowercase();
    let mut content = Vec::new();
    let length = head.split("\r\ncontent-length: ").nth(1).and_then(|rest| rest.lines().next());
    if let Some(length) = length {
        content.resize(length.trim().parse().expect("a length"), 0);
        stream.read_exact(&mut content).ok()?;
    } else if head.contains("\r\ntransfer-encoding: chunked") {
        while read_chunk(stream, &mut content)? {}
    }
    Some(String::from_utf8_lossy(&content).into_owned())
}

/// Reads a chunk, with its size, or the last one and the trailer section; whether another one follows (RFC 9112 section 7.1).
fn read_chunk(stream: &mut TcpStream, content: &mut Vec<u8>) -> Option<bool> {
    let line = read_line(stream, content)?;
    let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
    if size == 0 {
        while !read_line(stream, content)?.is_empty() {}
        return Some(false);
    }
    let begin = content.len();
    content.resize(begin + size + b"\r\n".len(), 0);
    stream.read_exact(&mut content[begin..]).ok()?;
    Some(true)
}

fn read_line(stream: &mut TcpStream, content: &mut Vec<u8>) -> Option<String> {
    let (begin, mut byte) = (content.len(), [0]);
    while !content[begin..].ends_with(b"\r\n") {
        stream.read_exact(&mut byte).ok()?;
        content.push(byte[0]);
    }
    let line = content[begin..].strip_suffix(b"\r\n")?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// The 101 that opens the WebSocket which the request with this head asks for (RFC 6455 section 4.2.2).
///
/// # Panics
/// When it has no key.
pub fn switched(head: &str) -> String {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let key = lines.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
    let key = key.expect("a key").1.to_owned() + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let accept = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes()));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

/// Writes a whole answer; whether it was taken.
pub fn answer(stream: &mut TcpStream, status: u16, content: &str) -> bool {
    let length = content.len();
    let answer = format!("HTTP/1.1 {status} -\r\nContent-Length: {length}\r\n\r\n{content}");
    stream.write_all(answer.as_bytes()).is_ok()
}
