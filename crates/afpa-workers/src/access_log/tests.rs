//! The whole way of a record, from a worker to a file.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use afpa_framework::Client;
use afpa_http::MOST_CHOSEN;
use afpa_module_http::{AccessRecord, AccessSink};

use super::*;
use afpa_config::{AccessFormat, Level, LogFormat};

/// A record that every test changes to its needs.
pub(super) fn record() -> AccessRecord<'static> {
    AccessRecord {
        time_unix_us: 971_186_136_123_456,
        client: Client::Ip("192.0.2.7".parse().unwrap()),
        method: "GET",
        target: b"/index.html",
        version: "HTTP/1.1",
        status: 200,
        body_bytes: 612,
        duration_us: 250,
        host: b"example.org",
        referer: b"",
        user_agent: b"curl/8",
        user: "",
        request_id: b"",
        trace_id: b"",
        weight: 1,
        source: "hit",
        remote: None,
        tls: None,
        span: None,
        chosen: [b""; MOST_CHOSEN],
    }
}

fn settings(access: AccessTarget, queue: usize) -> Log {
    Log {
        level: Level::Info,
        format: LogFormat::Text,
        access,
        access_format: AccessFormat::Combined,
        access_fields: Vec::new(),
        access_queue: queue,
    }
}

fn to_file(path: &Path) -> Log {
    settings(AccessTarget::File(path.to_owned()), 1 << 20)
}

#[track_caller]
fn within_seconds(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn records_of_all_workers_are_written_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let (log, sinks) = AccessLog::start(&to_file(&path), 3).unwrap();
    let workers: Vec<_> = sinks
        .into_iter()
        .map(|mut sink| {
            std::thread::spawn(move || {
                assert!(sink.enabled());
                for number in 0..1000 {
                    let target = format!("/{number}");
                    sink.record(&AccessRecord { target: target.as_bytes(), ..record() });
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    let counts = Arc::clone(&log.counts);
    drop(log);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3000);
    for number in [0, 500, 999] {
        let request = format!("\"GET /{number} HTTP/1.1\"");
        assert_eq!(text.lines().filter(|line| line.contains(&request)).count(), 3);
    }
    assert_eq!(counts.written.load(Ordering::Relaxed), 3000);
    assert_eq!(counts.overrun.load(Ordering::Relaxed), 0);
}

#[test]
fn a_tick_writes_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let (log, mut sinks) = AccessLog::start(&to_file(&path), 1).unwrap();
    sinks[0].record(&record());
    assert_eq!(log.written(), 0);
    sinks[0].flush();
    within_seconds("the line is written", || log.written() == 1);
    let line = "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET /index.html HTTP/1.1\" 200 612 \"-\" \"curl/8\"\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), line);
}

#[test]
fn reopening_follows_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
    let (log, mut sinks) = AccessLog::start(&to_file(&path), 1).unwrap();
    sinks[0].record(&record());
    sinks[0].flush();
    within_seconds("the first line", || log.written() == 1);
    fs::rename(&path, &moved).unwrap();
    log.reopen();
    within_seconds("a new file", || path.exists());
    sinks[0].record(&record());
    sinks[0].flush();
    within_seconds("the second line", || log.written() == 2);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    assert_eq!(fs::read_to_string(&moved).unwrap().lines().count(), 1);
}

#[test]
fn a_full_disk_is_counted_and_stops_nobody() {
    let full = AccessTarget::File("/dev/full".into());
    let (log, mut sinks) = AccessLog::start(&settings(full, 1 << 20), 1).unwrap();
    for _ in 0..10 {
        sinks[0].record(&record());
    }
    sinks[0].flush();
    within_seconds("ten lines are lost", || log.dropped() == 10);
    assert_eq!(log.written(), 0);
}

#[test]
fn a_writer_that_is_behind_costs_lines_and_no_memory() {
    // Nobody reads the pipe: after its 64 KiB the log thread can write no more.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader_path = path.clone();
    let reader = std::thread::spawn(move || fs::File::open(reader_path).unwrap());
    let queue = settings(AccessTarget::File(path), 128 * 1024);
    let (log, mut sinks) = AccessLog::start(&queue, 1).unwrap();
    let reader = reader.join().unwrap();
    let records = 20_000;
    for _ in 0..records {
        sinks[0].record(&record());
        sinks[0].flush();
    }
    assert!(log.dropped() > records / 2, "{} dropped", log.dropped());
    // The log can end, reader or not.
    drop(reader);
    let before = log.dropped();
    drop(sinks);
    let counts = Arc::clone(&log.counts);
    drop(log);
    let lost = counts.overrun.load(Ordering::Relaxed) + counts.failed.load(Ordering::Relaxed);
    assert!(lost >= before);
    assert_eq!(lost + counts.written.load(Ordering::Relaxed), records);
}

#[test]
fn no_log_wants_no_records() {
    let (log, mut sinks) = AccessLog::start(&settings(AccessTarget::Off, 1 << 20), 2).unwrap();
    assert_eq!(sinks.len(), 2);
    assert!(!sinks[0].enabled());
    sinks[0].record(&record());
    sinks[0].flush();
    log.reopen();
    assert_eq!((log.written(), log.dropped()), (0, 0));
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error() {
    let settings = to_file(Path::new("/nowhere/at/all/access.log"));
    let error = format!("{:#}", AccessLog::start(&settings, 1).unwrap_err());
    let expected = "cannot open the access log /nowhere/at/all/access.log (its directory must be writable): No such file";
    assert!(error.starts_with(expected), "{error}");
}
