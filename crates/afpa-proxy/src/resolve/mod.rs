//! Host names of servers to addresses, and how long these hold.
//!
//! The system's `getaddrinfo` does not tell when an answer expires, which is the one thing that must
//! be known here; resolver libraries bring some sixty crates with them. What is needed is small: the
//! A and AAAA records of a name, from the resolver that the machine uses anyway. So this asks it:
//! `/etc/hosts` first, then the name servers of `/etc/resolv.conf`, over UDP, and over TCP when the
//! answer does not fit (RFC 1035, RFC 7766). Names are taken as complete: no search list.

mod message;
mod system;

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

pub use message::{Answer, MessageError, RecordKind, parse, query};
pub use system::{hosts, name_servers};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// How names are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveSettings {
    /// Name servers; those of `/etc/resolv.conf` when there are none here. At most 8.
    pub name_servers: Vec<SocketAddr>,
    /// How long one of them may take to answer; 50 ms to 1 min.
    pub timeout: Duration,
    /// How often all of them are asked before a look-up fails; 1 to 10.
    pub attempts: u32,
    /// Addresses hold at least so long, whatever the answer says; 100 ms to 1 h.
    pub least_ttl: Duration,
    /// And at most so long; 1 s to 1 d.
    pub most_ttl: Duration,
    /// When a look-up failed, the next one is made so much later, and the old addresses stay;
    /// 100 ms to 1 h.
    pub retry: Duration,
}

impl Default for ResolveSettings {
    fn default() -> Self {
        Self {
            name_servers: Vec::new(),
            timeout: Duration::from_secs(2),
            attempts: 2,
            least_ttl: Duration::from_secs(1),
            most_ttl: Duration::from_secs(3600),
            retry: Duration::from_secs(5),
        }
    }
}

/// Addresses of a name, and how long they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// In no order; at least one.
    pub addresses: Vec<IpAddr>,
    /// Within the bounds of the settings.
    pub ttl: Duration,
}

/// Why a name has no addresses.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The name server says that there is no such name, or that it has no addresses.
    #[error("there is no such name, or it has no address")]
    NoAddress,
    /// No name server is configured, here or in `/etc/resolv.conf`.
    #[error("no name server is configured")]
    NoNameServer,
    /// The name server cannot or will not answer; its code.
    #[error("the name server answered with code {0}")]
    Refused(u8),
    /// What came is no answer to the question.
    #[error("the name server's answer is malformed: {0}")]
    Malformed(#[from] MessageError),
    /// Nothing came.
    #[error("no name server answered: {0}")]
    Io(#[from] io::Error),
}

/// Looks up the addresses of `host`.
pub async fn resolve(host: &str, settings: &ResolveSettings) -> Result<Resolved, ResolveError> {
    let known = hosts(&read_small("/etc/hosts"), host);
    if !known.is_empty() {
        return Ok(Resolved { addresses: known, ttl: settings.most_ttl.min(HOSTS_TTL) });
    }
    let mut servers = settings.name_servers.clone();
    if servers.is_empty() {
        servers = name_servers(&read_small("/etc/resolv.conf"));
    }
    servers.truncate(8);
    let mut last = ResolveError::NoNameServer;
    for _ in 0..settings.attempts.max(1) {
        for server in &servers {
            match ask_both(host, *server, settings).await {
                Ok(resolved) => return Ok(resolved),
                Err(ResolveError::NoAddress) => return Err(ResolveError::NoAddress),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

/// `/etc/hosts` is read again after so long.
const HOSTS_TTL: Duration = Duration::from_secs(10);

/// Bytes of a file, or of an answer over TCP, that are read at most.
const MOST_BYTES: usize = 64 * 1024;

async fn ask_both(
    host: &str,
    server: SocketAddr,
    settings: &ResolveSettings,
) -> Result<Resolved, ResolveError> {
    let (v4, v6) = tokio::join!(
        ask(host, RecordKind::A, server, settings.timeout),
        ask(host, RecordKind::Aaaa, server, settings.timeout),
    );
    let (mut addresses, mut ttl, mut failed) = (Vec::new(), u32::MAX, None);
    for answer in [v4, v6] {
        match answer {
            Ok(answer) if answer.addresses.is_empty() => {}
            Ok(answer) => {
                addresses.extend(answer.addresses);
                ttl = ttl.min(answer.ttl);
            }
            Err(error) => failed = Some(error),
        }
    }
    if addresses.is_empty() {
        return Err(failed.unwrap_or(ResolveError::NoAddress));
    }
    let ttl = Duration::from_secs(u64::from(ttl));
    let ttl = ttl.max(settings.least_ttl).min(settings.most_ttl.max(settings.least_ttl));
    Ok(Resolved { addresses, ttl })
}

async fn ask(
    host: &str,
    kind: RecordKind,
    server: SocketAddr,
    patience: Duration,
) -> Result<Answer, ResolveError> {
    // Unguessable, as the port is, so that nobody who does not see the question can answer it
    // (RFC 5452).
    let id = RandomState::new().hash_one(()) as u16;
    let question = query(id, host, kind)?;
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let answer = timeout(patience, over_udp(&question, id, host, kind, server));
    let mut answer = answer.await.map_err(late)??;
    if answer.truncated {
        let bytes = timeout(patience, over_tcp(&question, server)).await.map_err(late)??;
        answer = parse(&bytes, id, host, kind)?;
    }
    match answer.code {
        0 => Ok(answer),
        NO_SUCH_NAME => Err(ResolveError::NoAddress),
        code => Err(ResolveError::Refused(code)),
    }
}

/// NXDOMAIN (RFC 1035, section 4.1.1).
const NO_SUCH_NAME: u8 = 3;

/// What is no answer to this question is passed over: somebody may be guessing.
async fn over_udp(
    question: &[u8],
    id: u16,
    host: &str,
    kind: RecordKind,
    server: SocketAddr,
) -> io::Result<Answer> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut bytes = [0; 4096];
    loop {
        let length = socket.recv(&mut bytes).await?;
        if let Some(Ok(answer)) = bytes.get(..length).map(|all| parse(all, id, host, kind)) {
            return Ok(answer);
        }
    }
}

async fn over_tcp(question: &[u8], server: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend_from_slice(question);
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Files of the system are small; one that is not there is empty.
fn read_small(path: &'static str) -> String {
    use std::io::Read as _;
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(MOST_BYTES as u64).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}
