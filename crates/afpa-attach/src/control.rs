//! The control socket of an attachment: `GET /` lists its operations, in HTTP/1.1.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afpa_bpf::Reason;
use afpa_police::Police;
use afpa_self_check::SelfCheckCounts;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};

use crate::filler::{Filler, spawn};
use crate::health::Health;
use crate::police;
use crate::purge;

const TIMEOUT: Duration = Duration::from_secs(2);

/// Listens on `socket`, and replaces a stale one. Only the user who started the process may connect, because a client
/// of this socket may end the attachment.
pub(crate) fn listen(socket: &Path) -> io::Result<UnixListener> {
    let _stale = fs::remove_file(socket);
    let before = umask(Mode::from_bits_truncate(0o177));
    let listener = UnixListener::bind(socket);
    umask(before);
    listener
}

/// Answers until the process ends.
pub(crate) fn serve(
    listener: UnixListener,
    (filler, health): (Arc<Filler>, Arc<Health>),
    self_checks: Option<Arc<SelfCheckCounts>>,
    police: Police,
) -> io::Result<()> {
    spawn("control", move || {
        for stream in listener.incoming().flatten() {
            let statistics = || statistics(&filler, &health, self_checks.as_deref(), &police);
            let purge = |order: &str| purge(&filler, order);
            let _gone = answer(stream, statistics, &police, purge);
        }
    })?;
    Ok(())
}

/// As [`serve`], with operations of another kind: `answer` takes method and target.
pub(crate) fn serve_with(
    listener: UnixListener,
    answer: impl Fn(&str, &str) -> (&'static str, String) + Send + 'static,
) -> io::Result<()> {
    spawn("control", move || {
        for stream in listener.incoming().flatten() {
            let _gone = converse(stream, |method, target| {
                answer(&String::from_utf8_lossy(method), &String::from_utf8_lossy(target))
            });
        }
    })?;
    Ok(())
}

/// Asks the attachment behind `socket` to end.
pub(crate) fn stop(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"POST /stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    match answer.starts_with(b"HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(io::Error::other("the running attachment refuses")),
    }
}

fn answer(
    stream: UnixStream,
    statistics: impl Fn() -> Value,
    police: &Police,
    purge: impl Fn(&str) -> Result<String, String>,
) -> io::Result<()> {
    converse(stream, |method, target| match (method, target) {
        (b"GET", b"/") => ("200 OK", OPERATIONS.to_owned()),
        (b"GET", b"/stats") => ("200 OK", statistics().to_string()),
        (b"POST", b"/stop") => ("200 OK", "stopping\n".to_owned()),
        (b"GET", b"/deny") => ("200 OK", police.list_denied()),
        (b"POST", target) => {
            let target = String::from_utf8_lossy(target);
            let purged = target.strip_prefix("/purge?").map(&purge);
            match purged.or_else(|| police::order(police, &target)) {
                Some(Ok(done)) => ("200 OK", done),
                Some(Err(refused)) => ("400 Bad Request", refused),
                None => ("404 Not Found", unknown()),
            }
        }
        _ => ("404 Not Found", unknown()),
    })
}

/// Reads a request, and writes what `answer` says to its method and target.
fn converse(
    mut stream: UnixStream,
    answer: impl FnOnce(&[u8], &[u8]) -> (&'static str, String),
) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < 8192 {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => request.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
    let mut words = request.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, content) = answer(method, target);
    let length = content.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{content}")?;
    if request.starts_with(b"POST /stop ") {
        kill(Pid::this(), Signal::SIGTERM)?;
    }
    Ok(())
}

/// As `afpa call` reads them: a line for each, with method and name first.
const OPERATIONS: &str = "\
GET  /stats: all numbers, as JSON
GET  /deny: the denied prefixes
POST /deny/add prefix=PREFIX: refuses the clients of a prefix
POST /deny/del prefix=PREFIX: takes such an order back
POST /purge path=PATH|host=NAME [query=QUERY] [below=yes]: drops kept answers
POST /stop: ends the attachment
";

fn unknown() -> String {
    format!("there is no such operation; there are:\n{OPERATIONS}")
}

/// Drops the answers that the order of `afpa purge` names. Returns the line that `afpa purge` prints.
fn purge(filler: &Filler, order: &str) -> Result<String, String> {
    let which = purge::which(order)?;
    match filler.purge(&which) {
        None => Err("nothing is kept but files, which need no purge (--cache)\n".to_owned()),
        Some(1) => Ok("1 answer was dropped from the kernel\n".to_owned()),
        Some(count) => Ok(format!("{count} answers were dropped from the kernel\n")),
    }
}

fn statistics(
    filler: &Filler,
    health: &Health,
    self_checks: Option<&SelfCheckCounts>,
    police: &Police,
) -> Value {
    let state = match (filler.differs(), filler.fast_path.clients.is_paused()) {
        (true, _) => "not in use: the self-check found a wrong answer",
        (false, true) => "paused: `afpa resume`",
        (false, false) => "attached",
    };
    let checks = self_checks.map(|checks| {
        let count = |found: &AtomicU64| found.load(Ordering::Relaxed);
        json!({
            "same": count(&checks.same),
            "unknown": count(&checks.unknown),
            "different": count(&checks.different),
        })
    });
    let standing = filler.standing();
    let usage = filler.fast_path.objects.usage();
    let mut reasons = Map::new();
    let (mut answered, mut refused) = (0, Value::Null);
    let mut passed = Map::new();
    if let Ok(counters) = filler.fast_path.stats.counters() {
        answered = counters.answered();
        refused = json!({
            "denied": counters[Reason::DropDenied],
            "client_rate": counters[Reason::DropClientRate],
            "total_rate": counters[Reason::DropTotalRate],
        });
        for (words, count) in counters.passes() {
            passed.insert(words.to_owned(), count.into());
        }
        reasons.extend(
            counters.iter().map(|(reason, count)| (reason.text().to_owned(), count.into())),
        );
    }
    let unfit: Map<String, Value> =
        standing.unfit.into_iter().map(|(why, count)| (why, count.into())).collect();
    json!({
        "state": state,
        "paused": filler.fast_path.clients.is_paused(),
        "answered": answered,
        "server": { "answers": health.is_well(), "went_away": health.ends() },
        "pinned": {
            "paths": standing.pinned,
            "objects": usage.objects,
            "slots": usage.slots,
            "bytes": usage.bytes,
            "retired_bytes": usage.retired_bytes,
        },
        "kept": filler.kept().map(|(known, kept, counts)| json!({
            "targets": kept,
            "looked_at": known,
            "confirmed": counts.confirmed,
            "changed": counts.changed,
            "outdated_by_unsafe_requests": counts.outdated,
            "purged": counts.purged,
        })),
        "self_checks": checks,
        "police": {
            "denied_prefixes": police.denied().len(),
            "refused_connections": refused,
            "classes": police::classes(police),
        },
        "transfers": filler.fast_path.flows.transfers().ok(),
        "known": standing.known,
        "busy": standing.busy,
        "translated": filler.fast_path.flows.translated_flows().ok(),
        "unfit": unfit,
        "went_to_the_server": passed,
        "reasons": reasons,
    })
}
