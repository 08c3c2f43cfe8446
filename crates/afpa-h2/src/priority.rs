//! Extensible priorities (RFC 9218): the client's priority of a stream, and which stream sends next.

/// The priority of a response. The order is that of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Urgency {
    /// From 0, the most urgent, to 7 (RFC 9218 section 4.1).
    pub urgency: u8,
    /// Whether the client can use a part of the response: those of one urgency take turns (section 4.2).
    pub incremental: bool,
}

impl Default for Urgency {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Urgency {
    /// Reads the value of the field `priority`, or of a PRIORITY_UPDATE frame: a dictionary of RFC 8941 section 3.2.
    /// Members that are unknown, malformed or out of range leave the defaults (RFC 9218 section 4).
    pub fn parse(value: &[u8]) -> Urgency {
        let mut said = Urgency::default();
        for member in value.split(|&byte| byte == b',') {
            // Parameters of a member mean nothing here.
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', urgency @ b'0'..=b'7'] => said.urgency = urgency - b'0',
                b"i" | b"i=?1" => said.incremental = true,
                b"i=?0" => said.incremental = false,
                _ => {}
            }
        }
        said
    }
}

/// A stream that has something to send, as the scheduler compares it. The smallest one goes first.
///
/// The more urgent first. Of one urgency, whole responses go before incremental ones, the one with the fewest bytes
/// left first, so that small ones never wait for a long one; incremental ones take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    urgency: u8,
    incremental: bool,
    /// Bytes left of a whole response; of an incremental one, the number of its last turn.
    order: u64,
}

impl Claim {
    pub(crate) fn new(priority: Urgency, bytes_left: u64, last_turn: u64) -> Self {
        let Urgency { urgency, incremental } = priority;
        Self { urgency, incremental, order: if incremental { last_turn } else { bytes_left } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(urgency: u8, incremental: bool) -> Urgency {
        Urgency { urgency, incremental }
    }

    #[test]
    fn the_field_is_read_as_a_dictionary() {
        for (value, priority) in [
            ("", said(3, false)),
            ("u=5, i", said(5, true)),
            ("i=?1,u=0", said(0, true)),
            ("u=1;x=2, i=?0", said(1, false)),
            ("u=8", said(3, false)),
            ("u=-1", said(3, false)),
            ("u=10, i=1", said(3, false)),
            ("U=1", said(3, false)),
            ("unknown, u=7, u=2", said(2, false)),
        ] {
            assert_eq!(Urgency::parse(value.as_bytes()), priority, "{value}");
        }
    }

    #[test]
    fn urgent_then_small_then_by_turns() {
        let claims = [
            Claim::new(said(0, true), 1 << 30, 9),
            Claim::new(said(3, false), 10, 8),
            Claim::new(said(3, false), 11, 0),
            Claim::new(said(3, true), 1 << 30, 1),
            Claim::new(said(3, true), 1, 2),
            Claim::new(said(7, false), 1, 0),
        ];
        assert!(claims.is_sorted());
    }
}
