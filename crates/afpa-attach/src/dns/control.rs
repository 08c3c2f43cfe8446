//! The operations of an attachment to a name server, by its control socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_bpf::dns::abi::Reason;
use serde_json::{Map, Value, json};

use super::engine::Engine;
use super::key;

/// As `afpa call` reads them: a line for each, with method and name first.
const OPERATIONS: &str = "\
GET  /stats: all numbers, as JSON
POST /purge name=NAME|zone=NAME: drops the pinned answers for a name, or for all names of a zone
POST /pause: answers nothing until /resume
POST /resume: answers again
POST /stop: ends the attachment
";

/// The status and the content for a request line.
pub(super) fn answer(engine: &Arc<Engine>, method: &str, target: &str) -> (&'static str, String) {
    let refused = |why: String| ("400 Bad Request", why);
    match (method, target) {
        ("GET", "/") => ("200 OK", OPERATIONS.to_owned()),
        ("GET", "/stats") => ("200 OK", statistics(engine).to_string()),
        ("POST", "/stop") => ("200 OK", "stopping\n".to_owned()),
        ("POST", "/pause") => {
            engine.pause(true);
            ("200 OK", "paused\n".to_owned())
        }
        ("POST", "/resume") => {
            engine.pause(false);
            ("200 OK", "answering\n".to_owned())
        }
        ("POST", order) if order.starts_with("/purge") => {
            match order.strip_prefix("/purge?").and_then(purged_name) {
                Some((name, below)) => ("200 OK", dropped(engine.purge(&name, below))),
                None => refused("purge needs ?name=NAME or ?zone=NAME\n".to_owned()),
            }
        }
        _ => ("404 Not Found", format!("there is no such operation; there are:\n{OPERATIONS}")),
    }
}

fn purged_name(order: &str) -> Option<(Vec<u8>, bool)> {
    let (which, name) = order.split_once('=')?;
    let below = match which {
        "name" => false,
        "zone" => true,
        _ => return None,
    };
    Some((key::read(name)?, below))
}

fn dropped(count: usize) -> String {
    match count {
        1 => "1 answer was dropped from the kernel\n".to_owned(),
        count => format!("{count} answers were dropped from the kernel\n"),
    }
}

pub(super) fn statistics(engine: &Engine) -> Value {
    let standing = engine.standing();
    let mut reasons = Map::new();
    let mut answered = 0;
    for (reason, count) in engine.path.counters().unwrap_or_default() {
        if reason == Reason::Answered {
            answered = count;
        }
        reasons.insert(reason.text().to_owned(), count.into());
    }
    let unfit: Map<String, Value> =
        standing.unfit.into_iter().map(|(why, count)| (why, count.into())).collect();
    let paused = engine.paused.load(Ordering::Relaxed);
    json!({
        "state": if paused { "paused: `afpa call resume`" } else { "attached" },
        "protocol": "dns",
        "paused": paused,
        "answered": answered,
        "zones": {
            "watched": standing.zones,
            "current": standing.current,
            "editions_ended": standing.changes,
        },
        "pinned": {
            "questions": standing.keys,
            "tails": standing.tails,
            "of_absent_names": standing.absent,
            "confirmed": standing.confirmed,
            "changed": standing.changed,
        },
        "questions_asked": engine.asked.load(Ordering::Relaxed),
        "busy": standing.wanted > 0,
        "wanted": standing.wanted,
        "unfit": unfit,
        "reasons": reasons,
    })
}
