//! The evidence of a storm that fails: its faults with their times, the ends of all logs, and the state of JetStream. The servers
//! end with the test, so this is written down before they do.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::place::{MONITOR, Node, Place};

/// Lines of each log, and of the faults.
const LINES: usize = 40;

/// A server that has stopped answers nothing.
const PATIENCE: Duration = Duration::from_secs(3);

/// Faults in their order, with the time of day that the logs have.
pub(super) struct Story(Mutex<String>);

impl Story {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(super) fn add(&self, what: std::fmt::Arguments<'_>) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (day, millis) = (since.as_secs() % 86_400, since.subsec_millis());
        let (hour, minute, second) = (day / 3600, day / 60 % 60, day % 60);
        let mut story = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(story, "{hour:02}:{minute:02}:{second:02}.{millis:03} {what}");
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("storm");
        let _none_before = fs::remove_dir_all(&folder);
        let is_kept = fs::create_dir_all(&folder).is_ok();
        for (name, text) in self.evidence() {
            eprintln!("--- {name}\n{}", tail(&text));
            if is_kept {
                let _as_it_can = fs::write(folder.join(&name), text);
            }
        }
        eprintln!("--- all of this is in {}", folder.display());
    }
}

impl Place {
    fn evidence(&self) -> Vec<(String, String)> {
        let mut all = vec![("faults".to_owned(), self.story.text())];
        for (number, server) in self.servers.iter().enumerate() {
            all.push((format!("{}.log", file_name(Node::Server(number))), read(&server.log)));
        }
        for (number, machine) in self.machines.iter().enumerate() {
            let log = machine.server.lock().unwrap_or_else(PoisonError::into_inner).log();
            all.push((format!("{}.log", file_name(Node::Machine(number))), log));
        }
        for (number, server) in self.servers.iter().enumerate() {
            let at = SocketAddr::new(server.address.ip(), MONITOR);
            let state = self.network.nodes[number].run(|| look(at));
            let (shown, whole) = match state.map_err(|error| error.to_string()).and_then(|s| s) {
                Ok(state) => (summary(&state), format!("{state:#}")),
                Err(why) => (format!("no answer: {why}"), String::new()),
            };
            let name = file_name(Node::Server(number));
            all.push((format!("{name}.jetstream"), format!("{whole}\n{shown}")));
        }
        all
    }
}

fn file_name(node: Node) -> String {
    node.to_string().replace(' ', "-")
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// JetStream as a server sees it.
fn look(at: SocketAddr) -> Result<Value, String> {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /jsz?accounts=true&streams=true HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(|error| error.to_string())?;
    let content = answer.split_once("\r\n\r\n").map_or("", |(_, content)| content);
    serde_json::from_str(content).map_err(|error| format!("{error}: {answer}"))
}

/// The leaders, and how far the others are.
fn summary(state: &Value) -> String {
    let mut text = group("the cluster", &state["meta_cluster"]);
    let accounts = state["account_details"].as_array().into_iter().flatten();
    for stream in accounts.flat_map(|one| one["stream_detail"].as_array().into_iter().flatten()) {
        let (name, kept) = (stream["name"].as_str().unwrap_or("?"), &stream["state"]);
        text.push_str(&group(name, &stream["cluster"]));
        let _ = writeln!(
            text,
            "    {} messages, {} to {}, {} consumers",
            kept["messages"], kept["first_seq"], kept["last_seq"], kept["consumer_count"]
        );
    }
    text
}

fn group(name: &str, group: &Value) -> String {
    let leader = group["leader"].as_str().filter(|name| !name.is_empty());
    let others = group["replicas"].as_array().into_iter().flatten().map(|one| {
        let known = if one["current"] == true { "current" } else { "behind" };
        let reached = if one["offline"] == true { ", offline" } else { "" };
        let silent = Duration::from_nanos(one["active"].as_u64().unwrap_or_default());
        let name = one["name"].as_str().unwrap_or("?");
        format!("{name} {known}{reached}, lag {}, heard {silent:.1?} ago", one["lag"])
    });
    let others: Vec<_> = others.collect();
    format!("{name}: led by {}; {}\n", leader.unwrap_or("nobody"), others.join("; "))
}
