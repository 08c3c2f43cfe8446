//! The control socket of an attachment: `GET /` lists its operations, in HTTP/1.1.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::Reason;
use afpa_framework::{Arguments, Control, Offered, Operation, Refusal, Reply};
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
    owner: impl Control + Send + 'static,
) -> io::Result<()> {
    spawn("control", move || {
        for mut stream in listener.incoming().flatten() {
            let _gone = stream
                .set_read_timeout(Some(TIMEOUT))
                .and_then(|()| stream.set_write_timeout(Some(TIMEOUT)))
                .and_then(|()| converse(&mut stream, &owner, true));
        }
    })?;
    Ok(())
}

/// Answers whoever comes to the metrics: with what everybody may know. Requests that do not come whole hold up no others: so
/// many are answered at a time, and one client leaves places to others (O4 of docs/rules).
pub(crate) fn serve_metrics(
    listener: TcpListener,
    owner: impl Control + Send + Sync + 'static,
) -> io::Result<()> {
    let (listener, owner, places) = (Arc::new(listener), Arc::new(owner), Places::default());
    for _ in 0..METRICS_AT_ONCE {
        let (listener, owner) = (Arc::clone(&listener), Arc::clone(&owner));
        let places = places.clone();
        spawn("metrics", move || {
            for mut stream in listener.incoming().flatten() {
                let Some(_place) = places.enter(&stream) else { continue };
                let _gone = limit(&stream).and_then(|()| converse(&mut stream, &*owner, false));
            }
        })?;
    }
    Ok(())
}

/// Connections to the metrics that are served at a time, and those of one client.
const METRICS_AT_ONCE: usize = 8;
const METRICS_SHARE: usize = 5;

/// How many connections each client has.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One of them; given back when dropped.
struct Place<'p>(&'p Places, IpAddr);

impl Places {
    /// `None`: the client has its share.
    fn enter(&self, stream: &TcpStream) -> Option<Place<'_>> {
        let client = match stream.peer_addr().ok()?.ip().to_canonical() {
            // A host often has a whole /64.
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) & (u128::MAX << 64)).into()),
            address => address,
        };
        let mut places = self.places();
        let held = places.entry(client).or_default();
        if *held >= METRICS_SHARE {
            return None;
        }
        *held += 1;
        Some(Place(self, client))
    }

    fn places(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.0.places();
        if let Some(held) = places.get_mut(&self.1) {
            *held -= 1;
            if *held == 0 {
                places.remove(&self.1);
            }
        }
    }
}

fn limit(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))
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

/// Writes all of an answer. A client that takes a byte now and then has not longer than one that takes none: each call ends
/// after [`TIMEOUT`] at the latest, and none begins later than that.
fn write_in_time(stream: &mut impl Write, mut answer: &[u8]) -> io::Result<()> {
    let begun = Instant::now();
    while !answer.is_empty() {
        if begun.elapsed() >= TIMEOUT {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.write(answer) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => answer = answer.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a request, and writes the answer of its operation. A client that sends a byte now and then has not longer than one
/// that sends none.
fn converse(
    stream: &mut (impl Read + Write),
    owner: &dyn Control,
    trusted: bool,
) -> io::Result<()> {
    let begun = Instant::now();
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n")
        && request.len() < 8192
        && begun.elapsed() < TIMEOUT
    {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => request.extend_from_slice(buffer.get(..count).unwrap_or_default()),
        }
    }
    let mut words = request.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut parts = target.splitn(2, |byte| *byte == b'?');
    let name = parts.next().and_then(|path| path.strip_prefix(b"/")).unwrap_or_default();
    let (status, Reply { content_type, content }) =
        answer((owner, trusted), method, name, parts.next());
    let length = content.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    write_in_time(stream, &[head.as_bytes(), &*content].concat())?;
    if name == STOP.name.as_bytes() && status == DONE {
        kill(Pid::this(), Signal::SIGTERM)?;
    }
    Ok(())
}

const DONE: &str = "200 OK";

fn answer(
    (owner, trusted): (&dyn Control, bool),
    method: &[u8],
    name: &[u8],
    query: Option<&[u8]>,
) -> (&'static str, Reply) {
    let offered = Offered::of(&[owner], trusted);
    if (method, name) == (b"GET", b"") {
        return (DONE, Reply::text(offered.list()));
    }
    let done = match offered.find(name) {
        Ok((_, operation)) if operation.method().as_bytes() != method => {
            let remedy = Reply::text(format!("use {}\n", operation.method()));
            return ("405 Method Not Allowed", remedy);
        }
        Ok((owner, operation)) => owner.call(operation.name, &Arguments::new(query)),
        Err(unknown) => Err(unknown),
    };
    match done {
        Ok(reply) => (DONE, reply),
        Err(Refusal::Invalid(why)) => ("400 Bad Request", Reply::text(why + "\n")),
        Err(Refusal::Absent(why)) => ("404 Not Found", Reply::text(why + "\n")),
        Err(Refusal::Failed) => ("500 Internal Server Error", Reply::text("")),
    }
}

/// An attachment to a web server, with its operations.
pub(crate) struct Attached {
    pub(crate) filler: Arc<Filler>,
    pub(crate) health: Arc<Health>,
    pub(crate) self_checks: Option<Arc<SelfCheckCounts>>,
    pub(crate) police: Police,
}

/// Ends the process once its answer is written.
pub(crate) const STOP: Operation = Operation::change("stop", "", "ends the attachment");

pub(crate) const STATS: Operation = Operation::look("stats", "", "all numbers, as JSON");

const OPERATIONS: &[Operation] = &[
    STATS,
    Operation::look("deny", "", "the denied prefixes"),
    Operation::change("deny/add", "prefix=PREFIX", "refuses the clients of a prefix"),
    Operation::change("deny/del", "prefix=PREFIX", "takes such an order back"),
    Operation::change(
        "purge",
        "path=PATH|host=NAME [query=QUERY] [below=yes]",
        "drops kept answers",
    ),
    STOP,
];

impl Control for Attached {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let Self { filler, health, self_checks, police } = self;
        let deny = |denied| {
            let done = police.order(arguments.text("prefix").as_deref(), denied);
            done.map(|done| Reply::text(done + "\n")).map_err(Refusal::Invalid)
        };
        match name {
            "stats" => {
                let statistics = statistics(filler, health, self_checks.as_deref(), police);
                Ok(Reply::json(statistics.to_string()))
            }
            "deny" => Ok(Reply::text(police.list_denied())),
            "deny/add" => deny(true),
            "deny/del" => deny(false),
            "purge" => purge(filler, arguments).map(Reply::text).map_err(Refusal::Invalid),
            "stop" => Ok(Reply::text("stopping\n")),
            _ => Err(Refusal::Failed),
        }
    }
}

/// Drops the answers that the order of `afpa purge` names. Returns the line that `afpa purge` prints.
fn purge(filler: &Filler, arguments: &Arguments<'_>) -> Result<String, String> {
    let which = purge::which(arguments)?;
    match filler.purge(&which) {
        None => Err("nothing is kept but files, which need no purge (--cache)".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    struct Echo;

    impl Control for Echo {
        fn operations(&self) -> &'static [Operation] {
            const { &[STATS, STOP] }
        }

        fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
            match arguments.text("wrong") {
                Some(why) => Err(Refusal::Invalid(why)),
                None => Ok(Reply::text(name)),
            }
        }
    }

    #[test]
    fn strangers_are_offered_nothing_that_is_not_public() {
        for (method, name) in [("GET", "stats"), ("POST", "stop")] {
            let (status, _) = answer((&Echo, false), method.as_bytes(), name.as_bytes(), None);
            assert_eq!(status, "404 Not Found");
        }
    }

    /// A connection from this address of the loopback.
    fn connect_from(own: [u8; 4], to: SocketAddr) -> TcpStream {
        use nix::sys::socket::{
            AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, socket,
        };
        use std::os::fd::AsRawFd;
        let (family, kind) = (AddressFamily::Inet, SockType::Stream);
        let made = socket(family, kind, SockFlag::empty(), None).expect("a socket");
        let own = SockaddrStorage::from(SocketAddr::from((own, 0)));
        bind(made.as_raw_fd(), &own).expect("bound");
        connect(made.as_raw_fd(), &SockaddrStorage::from(to)).expect("connected");
        made.into()
    }

    #[test]
    fn half_requests_of_one_client_hold_up_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        serve_metrics(listener, Echo).expect("served");
        let half: Vec<_> = (0..60)
            .map(|_| {
                let mut stream = connect_from([127, 0, 0, 2], address);
                // Those beyond the share may have been closed.
                let _sent = stream.write_all(b"GET /stats HTTP/1.1\r\n");
                stream
            })
            .collect();
        let mut other = connect_from([127, 0, 0, 1], address);
        // One after another, they would take two seconds each.
        other.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        other.write_all(b"GET /stats HTTP/1.1\r\n\r\n").expect("sent");
        let mut answer = String::new();
        other.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        drop(half);
    }

    /// A client that takes a byte at a time.
    struct Slow(usize);

    impl Write for Slow {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            std::thread::sleep(TIMEOUT / 8);
            self.0 += 1;
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_client_that_takes_its_answer_slowly_has_not_longer_than_others() {
        let mut slow = Slow(0);
        let ended = write_in_time(&mut slow, &[7; 100]);
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert!((1..=8).contains(&slow.0), "{} bytes", slow.0);
        let mut soon = Vec::new();
        assert!(write_in_time(&mut soon, b"whole").is_ok() && soon == b"whole");
    }

    #[test]
    fn operations_are_found_with_and_without_arguments() {
        for (method, name, query, status, content) in [
            (
                "GET",
                "",
                None,
                DONE,
                "GET  /stats: all numbers, as JSON\nPOST /stop: ends the attachment\n",
            ),
            ("GET", "stats", None, DONE, "stats"),
            // `afpa call` sends an empty query.
            ("GET", "stats", Some(""), DONE, "stats"),
            ("POST", "stop", Some(""), DONE, "stop"),
            ("POST", "stop", Some("wrong=a%20b"), "400 Bad Request", "a b\n"),
            ("GET", "stop", None, "405 Method Not Allowed", "use POST\n"),
            (
                "GET",
                "x",
                None,
                "404 Not Found",
                "there is no such operation; there are: stats, stop\n",
            ),
        ] {
            let query = query.map(str::as_bytes);
            let (found, said) = answer((&Echo, true), method.as_bytes(), name.as_bytes(), query);
            let said = (found, &*said.content);
            assert_eq!(said, (status, content.as_bytes()), "{method} {name} {query:?}");
        }
    }
}
