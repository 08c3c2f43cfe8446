//! The operations of an attachment to a name server, by its control socket.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afpa_framework::{Arguments, Control, Operation, Refusal, Reply};
use serde_json::{Map, Value, json};

use super::engine::Engine;
use super::{key, metrics};
use crate::control::{STATS, STOP};

/// An attachment to a name server, with its operations.
pub(super) struct AttachedDns(pub(super) Arc<Engine>);

const OPERATIONS: &[Operation] = &[
    STATS,
    Operation::public("metrics", "", "all numbers, for Prometheus"),
    Operation::change(
        "purge",
        "name=NAME|zone=NAME",
        "drops the pinned answers for a name, or for all names of a zone",
    ),
    Operation::change("pause", "", "answers nothing until /resume"),
    Operation::change("resume", "", "answers again"),
    STOP,
];

impl Control for AttachedDns {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let Self(engine) = self;
        match name {
            "stats" => Ok(Reply::json(statistics(engine).to_string())),
            "metrics" => {
                let page = metrics::page(engine).map_err(|_| Refusal::Failed)?;
                Ok(Reply { content_type: metrics::CONTENT_TYPE, content: page.into_bytes() })
            }
            "purge" => match purged_name(arguments) {
                Some((name, below)) => Ok(Reply::text(dropped(engine.purge(&name, below)))),
                None => Err(Refusal::Invalid("purge needs name=NAME or zone=NAME".to_owned())),
            },
            "pause" => {
                engine.pause(true);
                Ok(Reply::text("paused\n"))
            }
            "resume" => {
                engine.pause(false);
                Ok(Reply::text("answering\n"))
            }
            "stop" => Ok(Reply::text("stopping\n")),
            _ => Err(Refusal::Failed),
        }
    }
}

fn purged_name(arguments: &Arguments<'_>) -> Option<(Vec<u8>, bool)> {
    let (name, below) = match arguments.text("name") {
        Some(name) => (name, false),
        None => (arguments.text("zone")?, true),
    };
    Some((key::read(&name)?, below))
}

fn dropped(count: usize) -> String {
    match count {
        1 => "1 answer was dropped from the kernel\n".to_owned(),
        count => format!("{count} answers were dropped from the kernel\n"),
    }
}

pub(super) fn statistics(engine: &Engine) -> Value {
    let standing = engine.standing();
    let counts = engine.path.counts().unwrap_or_default();
    let reasons: Map<String, Value> =
        counts.reasons().map(|(reason, count)| (reason.text().to_owned(), count.into())).collect();
    let unfit: Map<String, Value> =
        standing.unfit.into_iter().map(|(why, count)| (why, count.into())).collect();
    let paused = engine.paused.load(Ordering::Relaxed);
    json!({
        "state": if paused { "paused: `afpa call resume`" } else { "attached" },
        "protocol": "dns",
        "paused": paused,
        "answered": counts.answered(),
        "nxdomain": counts.nxdomain(),
        "types": metrics::by_type(counts.types()),
        "zones": {
            "watched": standing.zones,
            "current": standing.current,
            "editions_ended": standing.changes,
        },
        "pinned": {
            "questions": standing.keys,
            "tails": standing.tails,
            "of_guessed_names": standing.guesses,
            "confirmed": standing.confirmed,
            "changed": standing.changed,
            "false_alarms": standing.false_alarms,
        },
        "looks_for_questions": engine.looks.load(Ordering::Relaxed),
        "dnstap": engine.samples.as_ref().map(|samples| json!({
            "written": samples.written.load(Ordering::Relaxed),
            "lost": samples.lost.load(Ordering::Relaxed),
        })),
        "questions_asked": engine.asked.load(Ordering::Relaxed),
        "busy": standing.wanted > 0,
        "wanted": standing.wanted,
        "unfit": unfit,
        "reasons": reasons,
    })
}
