//! Orders and heartbeats as bytes: JSON, because people read it with the tools of NATS. Bytes of others are hostile.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::follower::{Log, Position};
use crate::load::Load;
use crate::owners::Hot;

/// Bytes of a message that are read.
const LONGEST: usize = 64 * 1024;

/// Characters of a name or a word in a heartbeat.
const LONGEST_WORD: usize = 128;

/// Other machines in a heartbeat.
pub(crate) const MOST_MISSED: usize = 64;

/// Bytes of a reason.
const LONGEST_REASON: usize = 1024;

/// An order for every machine of the fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase")]
pub enum Order {
    /// Drops kept answers.
    Purge {
        /// The arguments of the operation `purge`, as it got them: `path=%2Fnews&host=www.example.org`.
        arguments: String,
    },
    /// Denies the clients of a prefix, or lets them in again.
    Deny {
        /// The prefix, as it is listed.
        prefix: String,
        /// Whether they are denied.
        denied: bool,
    },
}

impl Order {
    /// The log that it goes to.
    pub fn log(&self) -> Log {
        match self {
            Self::Purge { .. } => Log::Purges,
            Self::Deny { .. } => Log::Bans,
        }
    }

    /// The last part of its subject. The log of bans keeps the last order for each.
    pub(crate) fn subject(&self) -> String {
        match self {
            Self::Purge { .. } => "purge".to_owned(),
            // A dot would begin another part; the others have no meaning.
            Self::Deny { prefix, .. } => prefix.replace('.', "_"),
        }
    }
}

/// An order, with its sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The name of the machine at which it was given.
    pub by: String,
    /// The sender knows by it that the log has an order to deny whose acknowledgement is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The order.
    #[serde(flatten)]
    pub order: Order,
}

/// A message that a member cannot read. One of another version may be an order all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no message of a fleet of this version")]
pub struct NotUnderstood;

impl Envelope {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From bytes.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotUnderstood> {
        if bytes.len() > LONGEST {
            return Err(NotUnderstood);
        }
        serde_json::from_slice(bytes).map_err(|_| NotUnderstood)
    }
}

/// The words of a member about itself, once a second and after each order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heartbeat {
    /// A random word of its process.
    pub instance: String,
    /// They are numbered: an older one that comes later says nothing.
    pub number: u64,
    /// The name of the machine.
    pub name: String,
    /// Where it stands; empty: nobody says.
    pub region: String,
    /// The version of the program.
    pub version: String,
    /// A check of the configuration in force.
    pub configuration: String,
    /// Its clock, in seconds since the Unix epoch; 0: it does not say.
    pub clock: u64,
    /// Answers a second.
    pub rate: u64,
    /// Answers from its caches, in thousandths of all since the beat before.
    pub hits: u64,
    /// Connections that are open.
    pub connections: u64,
    /// Orders to purge are carried out up to here.
    pub purges: Option<Position>,
    /// Likewise, orders to deny.
    pub bans: Option<Position>,
    /// The turn of the shared keys that it uses; `None`: it has its own.
    pub keys: Option<u64>,
    /// It makes the next shared keys.
    pub turns_keys: bool,
    /// Records of certificates are read up to here; `None`: it takes none.
    pub certificates: Option<Position>,
    /// It has just come, and wants to know who is there.
    pub asks: bool,
    /// This is its last one.
    pub leaves: bool,
    /// Another process of its machine is there, and this one ends.
    pub hands_over: bool,
    /// It takes configurations of the fleet.
    pub takes: bool,
    /// The revision of them that it runs.
    pub revision: Option<u64>,
    /// The one that it could not take.
    pub refused: Option<Refused>,
    /// Its answers since it runs that revision.
    pub load: Load,
    /// Machines of which it misses a heartbeat, and the seconds: one that has just come does not know them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<(String, u64)>,
    /// The words about configurations, sealed: proof.rs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// It answers questions of other machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerWord>,
    /// That, sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed_peer: Option<String>,
    /// They were: a machine with the secret has said them.
    #[serde(skip)]
    pub proven: bool,
    /// Seconds by which its clock was ahead of that of the machine that has heard it.
    #[serde(skip)]
    pub ahead: Option<i64>,
}

/// The words of a machine that answers questions of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerWord {
    /// Where it is asked.
    pub address: SocketAddr,
    /// Questions that it has answered in a second.
    pub rate: u64,
    /// The parts of its keys, of 256, that it gives up.
    pub shed: u8,
    /// Its hot keys.
    pub hot: Vec<Hot>,
}

/// A revision that a machine could not take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its number.
    pub revision: u64,
    /// The reason, in one line.
    pub why: String,
}

impl Refused {
    /// With a reason of any length and shape.
    pub fn new(revision: u64, why: &str) -> Self {
        let mut line = why.split_whitespace().collect::<Vec<_>>().join(" ");
        line.retain(|c| !c.is_control());
        let end = (0..=line.len().min(LONGEST_REASON)).rev().find(|at| line.is_char_boundary(*at));
        line.truncate(end.unwrap_or(0));
        Self { revision, why: line }
    }
}

impl Heartbeat {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From bytes.
    ///
    /// # Errors
    /// When they are none, or say more than a line of a table has room for.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotUnderstood> {
        if bytes.len() > LONGEST {
            return Err(NotUnderstood);
        }
        let beat: Self = serde_json::from_slice(bytes).map_err(|_| NotUnderstood)?;
        let words = [&beat.instance, &beat.name, &beat.region, &beat.version, &beat.configuration];
        let fits = |word: &&String| word.len() <= LONGEST_WORD && !word.contains(char::is_control);
        let are_names = beat.missed.len() <= MOST_MISSED
            && beat.missed.iter().all(|(name, _)| !name.is_empty() && fits(&name));
        let reason = beat.refused.as_ref().map_or("", |refused| &refused.why);
        let is_reason = reason.len() <= LONGEST_REASON && !reason.contains(char::is_control);
        match words.iter().all(fits) && are_names && is_reason && !beat.instance.is_empty() {
            true => Ok(beat),
            false => Err(NotUnderstood),
        }
    }

    /// How far it has come in a log.
    pub fn position(&self, log: Log) -> Option<Position> {
        match log {
            Log::Purges => self.purges,
            Log::Bans => self.bans,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let orders = [
            Order::Purge { arguments: "path=%2Fa&soft=yes".to_owned() },
            Order::Deny { prefix: "2001:db8::/32".to_owned(), denied: true },
        ];
        for order in orders {
            for id in [None, Some("a-1".to_owned())] {
                let sent = Envelope { by: "a".to_owned(), id, order: order.clone() };
                assert_eq!(Envelope::decode(&sent.encode()), Ok(sent));
            }
        }
        let at = Position { log: 7, sequence: 9 };
        let beat =
            Heartbeat { instance: "x1".to_owned(), purges: Some(at), ..Heartbeat::default() };
        assert_eq!(Heartbeat::decode(&beat.encode()), Ok(beat));
    }

    #[test]
    fn hostile_bytes_are_refused() {
        for bytes in ["", "{", "[]", "{\"order\":\"format\",\"by\":\"a\"}", "{\"by\":\"a\"}"] {
            assert_eq!(Envelope::decode(bytes.as_bytes()), Err(NotUnderstood), "{bytes}");
        }
        for bytes in [
            "{}".to_owned(),
            "{\"instance\":\"a\",\"name\":\"\\u001b[2J\"}".to_owned(),
            format!("{{\"instance\":\"a\",\"name\":\"{}\"}}", "x".repeat(129)),
            format!("{{\"instance\":\"a\",\"x\":\"{}\"}}", "x".repeat(LONGEST)),
            "{\"instance\":\"a\",\"missed\":[[\"\\u001b[2J\",1]]}".to_owned(),
            format!("{{\"instance\":\"a\",\"missed\":[[\"b\",1]{}]}}", ",[\"c\",2]".repeat(64)),
            "{\"instance\":\"a\",\"refused\":{\"revision\":1,\"why\":\"\\u001b[2J\"}}".to_owned(),
        ] {
            assert_eq!(Heartbeat::decode(bytes.as_bytes()), Err(NotUnderstood), "{bytes:.60}");
        }
    }

    #[test]
    fn a_reason_is_one_line_with_an_end() {
        let refused = Refused::new(3, "afpa.toml:3\n\n   | x\u{1b} ^\n");
        assert_eq!(refused.why, "afpa.toml:3 | x ^");
        let long = Refused::new(3, &"\u{e9}".repeat(2000));
        let beat = Heartbeat {
            instance: "a".to_owned(),
            refused: Some(long.clone()),
            ..Heartbeat::default()
        };
        assert_eq!(long.why.len(), LONGEST_REASON);
        assert_eq!(Heartbeat::decode(&beat.encode()), Ok(beat));
    }

    #[test]
    fn each_prefix_has_a_subject_of_its_own() {
        let subject = |prefix: &str| {
            let subject = Order::Deny { prefix: prefix.to_owned(), denied: true }.subject();
            assert!(!subject.contains(['.', ' ', '*', '>']), "{subject}");
            subject
        };
        assert_eq!(subject("192.0.2.0/24"), "192_0_2_0/24");
        assert_ne!(subject("a::b/8"), subject("a::b:8"));
    }
}
