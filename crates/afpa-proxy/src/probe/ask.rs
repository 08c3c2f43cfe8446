//! One probe of one server.

use std::io;

use afpa_fastcgi::put_param;
use afpa_framework::preface;
use tokio::time::timeout;

use crate::health::ProbeKind;
use crate::pool::http2::{MadeFor, Once, Reached, reach};
use crate::pool::{Connector, FastCgiTerms, ServerStream, To};
use crate::select::{Address, ProbeTask};

/// Bytes of a response that a probe waits for: the status line up to the code.
const STATUS_LINE: usize = "HTTP/1.1 200".len();

/// Interim responses that a probe reads before it gives up, and bytes of one.
const MOST_INTERIM: usize = 10;
const LONGEST_INTERIM: usize = 16 * 1024;

/// Whether the server passes the probe within the probe's time-out.
pub async fn probe(task: &ProbeTask) -> bool {
    timeout(task.timeout, attempt(task)).await.is_ok_and(|good| good.unwrap_or(false))
}

async fn attempt(task: &ProbeTask) -> io::Result<bool> {
    // Without a ring: the prober's thread has none.
    let connector = Connector::default();
    let preface = task.preface.map(|version| preface::written(version, None)).unwrap_or_default();
    let (address, name, sources) = (&task.address, &*task.name, &*task.sources);
    let to = To { address, name, sources, preface: &preface, tally: None };
    if task.fastcgi {
        let terms = terms_of_check(task.check.as_ref().map_or("/", |check| &check.path));
        let stream = ServerStream::connect_by_fastcgi(&connector, to, terms).await?;
        return attempt_on(task, stream).await;
    }
    let Some(limits) = task.http2 else {
        let stream = ServerStream::connect(&connector, to, task.tls.as_ref()).await?;
        return attempt_on(task, stream).await;
    };
    let made_for = MadeFor { tls: task.tls.clone(), limits };
    match reach(&connector, to, made_for).await? {
        Reached::Http1(carrier) => attempt_on(task, carrier.into()).await,
        Reached::Http2(connection) => {
            let once = Once(connection);
            let stream = once.0.stream().ok_or(io::ErrorKind::ConnectionRefused)?;
            attempt_on(task, ServerStream::Http2(Box::new(stream))).await
        }
    }
}

/// A check of FastCGI asks for a path that is no script, such as the `ping.path` of PHP-FPM.
fn terms_of_check(target: &str) -> FastCgiTerms {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut params = Vec::new();
    for (name, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SCRIPT_NAME", path),
        ("SCRIPT_FILENAME", path),
        ("REQUEST_URI", target),
        ("QUERY_STRING", query),
    ] {
        put_param(&mut params, name.as_bytes(), &[value.as_bytes()]);
    }
    FastCgiTerms { params: params.into(), keeps: false, head_limit: LONGEST_INTERIM }
}

async fn attempt_on(task: &ProbeTask, stream: ServerStream) -> io::Result<bool> {
    match &task.address {
        Address::Tcp(address) => converse(task, stream, &address.to_string()).await,
        Address::Unix(_) => converse(task, stream, "localhost").await,
    }
}

async fn converse(task: &ProbeTask, mut stream: ServerStream, own_host: &str) -> io::Result<bool> {
    let (method, path, host, expect) = match (task.kind, &task.check) {
        (ProbeKind::Connect, _) => return Ok(true),
        (ProbeKind::Check, Some(check)) => {
            let host = if check.host.is_empty() { own_host } else { &check.host };
            ("GET", check.path.as_str(), host, check.expect)
        }
        (ProbeKind::Check | ProbeKind::Answer, _) => ("HEAD", "/", own_host, (100, 999)),
    };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: afpa-probe\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let status = final_status(&mut stream).await?;
    Ok(status.is_some_and(|status| (expect.0..=expect.1).contains(&status)))
}

/// The status of the response behind any interim ones (RFC 9110 section 15.2).
async fn final_status(stream: &mut ServerStream) -> io::Result<Option<u16>> {
    for _ in 0..MOST_INTERIM {
        let mut line = [0; STATUS_LINE];
        stream.read_exact(&mut line).await?;
        match status(&line) {
            Some(100 | 102..=199) => skip_head(stream).await?,
            status => return Ok(status),
        }
    }
    Ok(None)
}

/// Reads the rest of a head. It is short, and seldom there.
async fn skip_head(stream: &mut ServerStream) -> io::Result<()> {
    let mut last = [0; 4];
    for _ in 0..LONGEST_INTERIM {
        last.rotate_left(1);
        stream.read_exact(&mut last[3..]).await?;
        if last == *b"\r\n\r\n" {
            return Ok(());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The code of `HTTP/1.x NNN`.
fn status(line: &[u8; STATUS_LINE]) -> Option<u16> {
    let (version, code) = line.split_at_checked(9)?;
    let known = matches!(version, b"HTTP/1.0 " | b"HTTP/1.1 ");
    let digits = code.iter().all(u8::is_ascii_digit);
    let code = str::from_utf8(code).ok()?;
    code.parse().ok().filter(|_| known && digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_line_has_a_status() {
        assert_eq!(status(b"HTTP/1.1 204"), Some(204));
        assert_eq!(status(b"HTTP/1.0 503"), Some(503));
        for line in [b"HTTP/2.0 200", b"HTTP/1.1  20", b"HTTP/1.1 +20", b"SSH-2.0-Open"] {
            assert_eq!(status(line), None);
        }
    }
}
