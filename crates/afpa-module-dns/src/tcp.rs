//! Questions on connections (RFC 7766): several may follow each other before the first is answered.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use afpa_dns::transfer::transfer;
use afpa_framework::datagram::walk;
use afpa_framework::{Client, Datagram, State};
use afpa_server::limits::Admission;
use arc_swap::ArcSwap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::module::{Dns, Transfer};
use crate::server::TcpLimits;
use crate::udp::{LONGEST, now};

/// When the system has no descriptors left, the next connection waits for so long.
const PAUSE: Duration = Duration::from_millis(100);
/// Answers are gathered up to this length before they are sent.
const GATHERED: usize = 16 << 10;

/// Takes connections until its task ends.
pub(crate) async fn accept(
    listener: TcpListener,
    limits: Arc<ArcSwap<TcpLimits>>,
    module: impl Fn() -> Dns,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let limits = limits.load_full();
        let TcpLimits { connections, total, per_client, .. } = &*limits;
        let ip = Client::Ip(client.ip());
        let Some(admission) = connections.admit(ip, *total, *per_client) else { continue };
        let module = module();
        tokio::task::spawn_local(async move {
            let connection =
                Connection { stream, client, module, limits, _admission: Rc::new(admission) };
            // Its end is the client's affair.
            let _ = connection.serve().await;
        });
    }
}

struct Connection {
    stream: TcpStream,
    client: SocketAddr,
    module: Dns,
    limits: Arc<TcpLimits>,
    _admission: Rc<Admission>,
}

impl Connection {
    async fn serve(mut self) -> io::Result<()> {
        let mut input = Vec::new();
        let mut out = Vec::new();
        let mut begun = Instant::now();
        loop {
            let mut at = 0;
            while let Some((message, behind)) = message_at(&input, at) {
                at = behind;
                if let Some(wanted) = self.module.transfer(now(), message, self.client.ip()) {
                    self.send(&mut out).await?;
                    self.module.counters().tcp.add(1);
                    let Transfer { query, zone, mut signer } = wanted;
                    let held = self.module.held();
                    let passage =
                        held.begin(&zone.served.zone, self.client, std::time::Instant::now());
                    // One message at a time: a slow client holds no more of a zone.
                    for mut message in transfer(&zone.served.zone, &zone.journal, &query) {
                        if let Some(signer) = &mut signer {
                            signer.sign(&mut message, 0, now().unix());
                        }
                        frame(&mut out, |out| out.extend_from_slice(&message));
                        drop(message);
                        let length = out.len();
                        tokio::select! {
                            sent = self.send(&mut out) => sent?,
                            () = passage.is_ended() => {
                                return Err(io::ErrorKind::ConnectionAborted.into());
                            }
                        }
                        passage.sent(length);
                    }
                    continue;
                }
                let datagram = Datagram { client: self.client, is_connected: true, bytes: message };
                let (mut state, now, begin) = (State::Closed, now(), out.len() + 2);
                frame(&mut out, |out| state = walk(&mut self.module, now, datagram, out));
                self.module.sample(now, datagram, out.get(begin..).unwrap_or_default());
                if state != State::SendResponse {
                    // A connection of somebody who does not ask ends.
                    return self.send(&mut out).await;
                }
                if out.len() >= GATHERED {
                    self.send(&mut out).await?;
                }
            }
            // Somebody who announces more than a question does not ask, and would have us keep 64 KiB for it.
            if length_at(&input, at).is_some_and(|length| length > LONGEST) {
                return self.send(&mut out).await;
            }
            input.drain(..at);
            self.send(&mut out).await?;
            // A question has that long from its first byte: one byte at a time would hold the connection for ever.
            if at > 0 || input.is_empty() {
                begun = Instant::now();
            }
            let until = begun + self.limits.idle;
            let more = timeout_at(until, self.stream.read_buf(&mut input)).await;
            if more.map_or(Ok(0), |read| read)? == 0 {
                return Ok(());
            }
        }
    }

    async fn send(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let sent = timeout(self.limits.write, self.stream.write_all(out)).await;
        out.clear();
        // An idle connection holds no memory for the longest answer that it ever had.
        out.shrink_to(GATHERED);
        sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// The length of the message that begins at `at`, once that has come.
fn length_at(input: &[u8], at: usize) -> Option<usize> {
    let (length, _) = input.get(at..)?.split_first_chunk::<2>()?;
    Some(usize::from(u16::from_be_bytes(*length)))
}

/// The message that begins at `at`, if it may be a question, and where the next one begins.
fn message_at(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = length_at(input, at).filter(|length| *length <= LONGEST)?;
    let end = at + 2 + length;
    Some((input.get(at + 2..end)?, end))
}

/// Writes a message behind its length; none if there is nothing in it.
fn frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 2]);
    // Pointers count from the start of the message, which the writer takes from where the buffer ends.
    write(out);
    let length = u16::try_from(out.len() - begin - 2).unwrap_or(0);
    match out.get_mut(begin..begin + 2) {
        Some(place) if length > 0 => place.copy_from_slice(&length.to_be_bytes()),
        _ => out.truncate(begin),
    }
}
