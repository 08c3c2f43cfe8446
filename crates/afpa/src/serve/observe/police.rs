//! Clients that were refused.

use std::fmt;

use afpa_police::{Police, Refusal, What};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use serde_json::{Map, Value, json};

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
            (
                "afpa_police_refused_connections",
                "Connections that the police refused",
                self.connections,
            ),
            ("afpa_police_refused_requests", "Requests that the police refused", self.requests),
        ];
        for (name, help, counts) in families {
            let kind = ConstCounter::new(0u64).metric_type();
            let mut family = out.encode_descriptor(name, help, None, kind)?;
            for (why, count) in counts {
                ConstCounter::new(count).encode(family.encode_family(&[("why", why)])?)?;
            }
        }
        self.encode_classes(out)
    }

    fn encode_classes(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = ConstCounter::new(0u64).metric_type();
        let name = "afpa_police_class_refused_connections";
        let help = "Connections of a class that were refused because all clients came too often";
        let mut family = out.encode_descriptor(name, help, None, kind)?;
        for (class, _, count) in &self.classes {
            let labels = [("class", class.as_str())];
            ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
