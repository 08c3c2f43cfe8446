//! Downloads by ordinary sockets that let the kernel discard what they receive.
//!
//! A packet generator in TC frees each of the server's packets on its own core. On some machines this takes longer
//! than the server takes to send them. A socket leaves that to the core that made the packets, as a real client does,
//! and with `MSG_TRUNC` nothing is copied, so that the server's core is the one that is full.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use afpa_netlab::pin;
use anyhow::{Context, Result, ensure};
use rustix::net::{RecvFlags, recv};

use super::turn::OnBed;
use crate::bench::Case;

/// More than a response's head takes.
const HEAD: usize = 4096;
/// At most so much is discarded at once.
const PART: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads the first object of a case again and again, on each connection, for so long.
pub(super) fn download(
    on_bed: &OnBed<'_>,
    case: &Case,
    core: usize,
    length: Duration,
) -> Result<()> {
    let (_, object) = case.objects.first().context("an object")?;
    let request = format!("GET {} HTTP/1.1\r\nHost: lab\r\n\r\n", object.path);
    let until = Instant::now() + length;
    let connection = || -> Result<()> {
        let mut stream = TcpStream::connect(on_bed.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut part = vec![0; PART];
        while Instant::now() < until {
            stream.write_all(request.as_bytes())?;
            discard(&mut stream, case.size(), &mut part)?;
        }
        Ok(())
    };
    on_bed.bed.client().run(|| {
        pin(core)?;
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..case.connections).map(|_| scope.spawn(connection)).collect();
            all.into_iter().try_for_each(|one| {
                one.join().map_err(|_| anyhow::anyhow!("a connection panicked"))?
            })
        })
    })?
}

/// Takes a whole response whose content has this length.
fn discard(stream: &mut TcpStream, length: u64, part: &mut [u8]) -> Result<()> {
    let mut head = Vec::new();
    let came = loop {
        let count = stream.read(&mut part[..HEAD])?;
        ensure!(count > 0, "the connection ended");
        head.extend_from_slice(&part[..count]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break head.len() - end - 4;
        }
    };
    ensure!(head.starts_with(b"HTTP/1.1 200 "), "a wrong answer");
    let mut left = (length as usize).checked_sub(came).context("more than was asked for")?;
    while left > 0 {
        let most = left.min(part.len());
        let (_, taken) = recv(&mut *stream, &mut part[..most], RecvFlags::TRUNC)?;
        ensure!(taken > 0, "a response was cut short");
        left -= taken;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const LENGTH: u64 = 3_000_000;

    /// The result of taking two responses, when the server sends this one twice.
    fn taken(response: Vec<u8>) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The client may have closed the connection.
            let _ = stream.write_all(&response).and_then(|()| stream.write_all(&response));
        });
        let mut part = vec![0; PART];
        let taken = (0..2).try_for_each(|_| discard(&mut stream, LENGTH, &mut part));
        drop(stream);
        server.join().unwrap();
        taken
    }

    fn response(status: u16, length: u64) -> Vec<u8> {
        let mut response = format!("HTTP/1.1 {status} X\r\nServer: x\r\n\r\n").into_bytes();
        response.resize(response.len() + length as usize, b'x');
        response
    }

    #[test]
    fn whole_responses_are_taken_and_nothing_else_is() {
        taken(response(200, LENGTH)).unwrap();
        assert_eq!(taken(response(404, LENGTH)).unwrap_err().to_string(), "a wrong answer");
        assert_eq!(taken(response(200, LENGTH + 1)).unwrap_err().to_string(), "a wrong answer");
        let short = taken(response(200, LENGTH - 1)).unwrap_err().to_string();
        assert!(
            ["a response was cut short", "the connection ended", "a wrong answer"]
                .contains(&short.as_str())
        );
    }
}
