//! A question of one machine to another for an answer, and the proof in that answer, as lines of HTTP. Bytes of others are hostile.
//!
//! ```text
//! the client's head          as it came, without what is about its connection
//! AFPA-Question: payload mac  the last line, in hexadecimal digits; mac = HMAC(key, "question " | to | 0 | payload | head so far)
//!
//! AFPA-Answer: proof          of the answer; proof = HMAC(key, "answer " | mac)
//! ```
//!
//! A question is for one process, and nothing in its head can be changed. An answer without its proof is none. Both go by TLS
//! between machines that have the secret, so no stranger can repeat one, and no clock is compared.

use std::net::{IpAddr, Ipv6Addr};

use aws_lc_rs::hmac;

use crate::follower::Position;
use crate::keyring::{hex, unhex};
use crate::seal::Secret;

/// The name of the line of a question.
pub const QUESTION: &str = "AFPA-Question";

/// The name of the line of an answer.
pub const ANSWER: &str = "AFPA-Answer";

/// The form of a payload.
const FORM: u8 = 2;

const PAYLOAD: usize = 2 + 16 + 8 + 16 + 16 + 16;

const MAC: usize = 32;

/// The key of all questions and proofs of a fleet.
pub struct PeerKey(hmac::Key);

/// A question of a machine to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The digest of the rules of the place that answers.
    pub place: [u8; 16],
    /// The hash of the key that is asked for.
    pub key: u64,
    /// The place of the machine that asks in the orders to purge.
    pub at: Position,
    /// The client; `None`: one on a unix socket.
    pub client: Option<IpAddr>,
    /// Whether its connection is one of TLS.
    pub secure: bool,
}

/// The proof of the answer to one question.
#[derive(Clone, PartialEq, Eq)]
pub struct Proof([u8; MAC]);

impl PeerKey {
    /// Of a fleet with this secret.
    pub fn of(secret: &Secret) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &secret.derive::<MAC>("peers")))
    }

    /// Puts a question to the process `to` behind a head that is complete. Returns the proof that its answer has.
    pub fn ask(&self, to: &str, question: &Question, head: &mut Vec<u8>) -> Proof {
        head.truncate(head.len().saturating_sub(b"\r\n".len()));
        let payload = question.payload(rand::random());
        let mac = self.mac(to, head, &payload);
        let line = format!("{QUESTION}: {}{}\r\n\r\n", hex(&payload), hex(mac.as_ref()));
        head.extend_from_slice(line.as_bytes());
        self.proof(mac.as_ref())
    }

    /// Reads the question in a head, which is for the process `own`. `None`: it has none, or it is for another process or of
    /// another secret.
    pub fn read(&self, own: &str, head: &[u8]) -> Option<(Question, Proof)> {
        let lines = head.strip_suffix(b"\r\n\r\n")?;
        let begin = lines.iter().rposition(|&byte| byte == b'\n')? + 1;
        let (before, line) = lines.split_at_checked(begin)?;
        let value = line.strip_prefix(QUESTION.as_bytes())?.strip_prefix(b": ")?;
        if value.len() != 2 * (PAYLOAD + MAC) {
            return None;
        }
        let bytes = unhex(std::str::from_utf8(value).ok()?)?;
        let (payload, mac) = bytes.split_at_checked(PAYLOAD)?;
        hmac::verify(&self.0, &signed(own, before, payload), mac).ok()?;
        Some((Question::of(payload)?, self.proof(mac)))
    }

    fn mac(&self, to: &str, head: &[u8], payload: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0, &signed(to, head, payload))
    }

    fn proof(&self, mac: &[u8]) -> Proof {
        let tag = hmac::sign(&self.0, &[&b"answer "[..], mac].concat());
        let mut proof = [0; MAC];
        proof.iter_mut().zip(tag.as_ref()).for_each(|(to, from)| *to = *from);
        Proof(proof)
    }
}

/// No name of a process has a zero byte, and a payload has a fixed length.
fn signed(to: &str, head: &[u8], payload: &[u8]) -> Vec<u8> {
    [&b"question "[..], to.as_bytes(), &[0], payload, head].concat()
}

/// Nobody sees it.
impl std::fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PeerKey")
    }
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Proof")
    }
}

impl Proof {
    /// Its line, for the head of the answer.
    pub fn line(&self) -> String {
        format!("{ANSWER}: {}\r\n", hex(&self.0))
    }

    /// Whether this is the value of its line.
    pub fn is(&self, value: &[u8]) -> bool {
        let value = std::str::from_utf8(value).ok().filter(|value| value.len() == 2 * MAC);
        let Some(value) = value.and_then(unhex) else { return false };
        aws_lc_rs::constant_time::verify_slices_are_equal(&value, &self.0).is_ok()
    }
}

impl Question {
    fn payload(&self, nonce: u128) -> Vec<u8> {
        let (client, family) = match self.client {
            None => (Ipv6Addr::UNSPECIFIED, 0),
            Some(IpAddr::V4(client)) => (client.to_ipv6_mapped(), 4),
            Some(IpAddr::V6(client)) => (client, 6),
        };
        let flags = family | u8::from(self.secure) << 7;
        let mut bytes = Vec::with_capacity(PAYLOAD);
        bytes.extend_from_slice(&[FORM, flags]);
        bytes.extend_from_slice(&self.place);
        bytes.extend_from_slice(&self.key.to_be_bytes());
        bytes.extend_from_slice(&self.at.log.to_be_bytes());
        bytes.extend_from_slice(&self.at.sequence.to_be_bytes());
        bytes.extend_from_slice(&nonce.to_be_bytes());
        bytes.extend_from_slice(&client.octets());
        bytes
    }

    /// Reads a payload. `None`: it has another form.
    fn of(payload: &[u8]) -> Option<Self> {
        let rest = payload.strip_prefix(&[FORM])?;
        let (&flags, rest) = rest.split_first()?;
        let (place, rest) = rest.split_first_chunk::<16>()?;
        let (key, rest) = rest.split_first_chunk::<8>()?;
        let (log, rest) = rest.split_first_chunk::<8>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (_nonce, rest) = rest.split_first_chunk::<16>()?;
        let client = Ipv6Addr::from(*rest.first_chunk::<16>()?);
        let client = match flags & 0x7f {
            0 => None,
            4 => Some(IpAddr::V4(client.to_ipv4_mapped()?)),
            6 => Some(IpAddr::V6(client)),
            _ => return None,
        };
        let at =
            Position { log: u64::from_be_bytes(*log), sequence: u64::from_be_bytes(*sequence) };
        let (key, secure) = (u64::from_be_bytes(*key), flags >> 7 == 1);
        Some(Self { place: *place, key, at, client, secure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nCookie: c\r\n\r\n";

    fn key(byte: u8) -> PeerKey {
        PeerKey::of(&Secret::of(&[byte; 32]).unwrap())
    }

    fn question(client: Option<&str>) -> Question {
        Question {
            place: [7; 16],
            key: 8,
            at: Position { log: 9, sequence: 10 },
            client: client.map(|client| client.parse().unwrap()),
            secure: client.is_some(),
        }
    }

    #[test]
    fn a_question_is_read_as_it_was_asked_and_its_answer_proven() {
        for client in [None, Some("192.0.2.1"), Some("2001:db8::1"), Some("::ffff:192.0.2.1")] {
            let (asked, mut head) = (question(client), HEAD.to_vec());
            let proof = key(1).ask("b-1", &asked, &mut head);
            let (read, own) = key(1).read("b-1", &head).unwrap();
            assert_eq!(read, asked);
            assert!(own == proof && head.starts_with(&HEAD[..HEAD.len() - 2]));
            let line = own.line();
            let value = line.strip_prefix("AFPA-Answer: ").unwrap().trim_end();
            assert!(proof.is(value.as_bytes()));
            let mut another = HEAD.to_vec();
            let other = key(1).ask("b-1", &asked, &mut another);
            assert!(!other.is(value.as_bytes()), "each question has its own");
            for wrong in [&b""[..], b"00", &value.as_bytes()[..63], b"zz"] {
                assert!(!proof.is(wrong));
            }
        }
    }

    #[test]
    fn a_question_of_a_stranger_a_changed_one_and_one_for_another_process_are_none() {
        let mut head = HEAD.to_vec();
        key(1).ask("b-1", &question(None), &mut head);
        let read = |key: &PeerKey, own, head: &[u8]| key.read(own, head).is_some();
        assert!(read(&key(1), "b-1", &head));
        assert!(!read(&key(2), "b-1", &head), "another secret");
        assert!(!read(&key(1), "b-2", &head), "another process");
        assert!(!read(&key(1), "b-1", HEAD), "no question");
        for at in 0..head.len() {
            let mut wrong = head.clone();
            wrong[at] ^= 1;
            assert!(!read(&key(1), "b-1", &wrong), "byte {at}");
            assert!(!read(&key(1), "b-1", &head[..at]), "{at} bytes");
        }
        let begin = &head[..head.len() - 2];
        let longer = [begin, b"X-More: 1\r\n\r\n"].concat();
        assert!(!read(&key(1), "b-1", &longer), "it is the last line");
    }
}
