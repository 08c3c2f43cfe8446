//! Clients that were refused.

use std::fmt;

use afpa_police::{Police, Refusal, What};
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Map, Value, json};

use super::families::{by, counters};

/// How often connections and requests were refused, by the reason.
pub(super) struct Refused {
    denied_prefixes: usize,
    /// By the kernel at the SYN, or when they had been accepted.
    connections: [(&'static str, u64); 3],
    /// Requests that the kernel did not answer for such a reason are refused by user mode, and are counted there.
    requests: [(&'static str, u64); 3],
    /// Name, share and refused connections of each class.
    classes: Vec<(String, u8, u64)>,
}

/// The reason by which the kernel dropped a SYN.
fn reason_of(why: Refusal) -> &'static str {
    match why {
        Refusal::Denied => "drop_denied",
        Refusal::ClientRate => "drop_client_rate",
        Refusal::TotalRate => "drop_total_rate",
    }
}

impl Refused {
    /// `packets` are those of the kernel, by reason.
    pub(super) fn look(police: &Police, packets: &[(&'static str, u64)]) -> Self {
        let in_kernel = |why: Refusal| {
            let found = packets.iter().find(|(reason, _)| *reason == reason_of(why));
            found.map_or(0, |(_, count)| *count)
        };
        let counts = police.counts();
        let connections = |why: Refusal| counts.get(What::Connection, why) + in_kernel(why);
        Self {
            denied_prefixes: police.denied().len(),
            connections: Refusal::ALL.map(|why| (why.name(), connections(why))),
            requests: Refusal::ALL.map(|why| (why.name(), counts.get(What::Request, why))),
            classes: police.classes(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let of = |counts: &[(&'static str, u64)]| {
            let counts = counts.iter().map(|(why, count)| ((*why).to_owned(), (*count).into()));
            Value::Object(counts.collect::<Map<_, _>>())
        };
        let classes = self.classes.iter().map(|(name, share, refused)| {
            (name.clone(), json!({ "share_percent": share, "refused_connections": refused }))
        });
        json!({
            "classes": Value::Object(classes.collect()),
            "denied_prefixes": self.denied_prefixes,
            "refused_connections": of(&self.connections),
            "refused_requests": of(&self.requests),
        })
    }

    pub(super) fn encode(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let families = [
            ("police_refused_connections", "Connections that the police refused", self.connections),
            ("police_refused_requests", "Requests that the police refused", self.requests),
        ];
        for (name, help, counts) in families {
            counters(out, (name, help), by("why", counts))?;
        }
        self.encode_classes(out)
    }

    fn encode_classes(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let refused = self.classes.iter().map(|(class, _, count)| (class.as_str(), *count));
        let help = "Connections of a class that were refused because all clients came too often";
        counters(out, ("police_class_refused_connections", help), by("class", refused))
    }
}
