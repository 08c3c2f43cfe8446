//! The evidence of a failure: a storm that failed once may not fail again with the same seed.

use std::fs;
use std::path::Path;
use std::sync::TryLockError;

use serde_json::Value;

use super::place::{NatsServer, Place};

/// Lines of each log that the output of the test has.
const LINES: usize = 25;

/// Keeps all of it in a folder, and prints the folder, the ends of the servers' logs, and their words about themselves. Nothing here
/// may panic: a test fails already.
pub(super) fn keep(place: &Place) {
    let folder = format!("storm-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    if let Err(error) = fs::create_dir_all(&folder) {
        eprintln!("{}: {error}", folder.display());
    }
    let write = |name: String, text: &str| {
        if let Err(error) = fs::write(folder.join(&name), text) {
            eprintln!("{name}: {error}");
        }
    };
    for server in &place.servers {
        let number = server.number;
        let log = fs::read(&server.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        write(format!("nats{number}.log"), &log);
        let all = server.asked("/jsz?accounts=true&streams=true&consumers=true&raft=true");
        write(format!("nats{number}.json"), &all);
        let state = state(server, &all);
        eprintln!("--- server {number}: {state}\n{}", tail(&log));
    }
    for machine in &place.machines {
        let log = match machine.server.try_lock() {
            Ok(server) => server.log(),
            Err(TryLockError::Poisoned(server)) => server.into_inner().log(),
            Err(TryLockError::WouldBlock) => String::new(),
        };
        write(format!("{}.log", machine.name), &log);
    }
    eprintln!("all logs are in {}", folder.display());
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Whether a server runs, whether it is well, and which leader each group has as it knows.
fn state(server: &NatsServer, all: &str) -> String {
    let process = match server.process() {
        Some(process) => format!("process {process}"),
        None => "it has ended".to_owned(),
    };
    let all: Value = serde_json::from_str(all).unwrap_or_default();
    let health = server.asked("/healthz").trim().to_owned();
    let mut said = vec![process, health, group("meta", &all["meta_cluster"])];
    let accounts = all["account_details"].as_array().into_iter().flatten();
    let streams =
        accounts.flat_map(|account| account["stream_detail"].as_array().into_iter().flatten());
    said.extend(streams.map(|stream| {
        let name = stream["name"].as_str().unwrap_or_default();
        format!("{}, last {}", group(name, &stream["cluster"]), stream["state"]["last_seq"])
    }));
    said.join("; ")
}

/// The leader of a group of servers, and the others.
fn group(name: &str, cluster: &Value) -> String {
    let replicas = cluster["replicas"].as_array().into_iter().flatten();
    let replicas = replicas.map(|one| {
        let is = |what: &str| one[what].as_bool().unwrap_or(false);
        let name = one["name"].as_str().unwrap_or_default();
        let behind = if is("current") { "" } else { " behind" };
        let gone = if is("offline") { " gone" } else { "" };
        format!("{name}{behind}{gone}")
    });
    let leader = cluster["leader"].as_str().filter(|leader| !leader.is_empty());
    let others = replicas.collect::<Vec<_>>().join(", ");
    format!("{name}: leader {} of {others}", leader.unwrap_or("none"))
}
