//! Messages that are signed with a secret that both ends have (TSIG, RFC 8945).
//!
//! The module of the `domain` crate is not used: it needs a second library of cryptography, says FORMERR in place of BADSIG, and
//! signs eight bytes of a time that has six.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::name::{LONGEST_NAME, Name};
use crate::query::{HEADER, SignedAt};
use crate::rtype;

/// Seconds by which two clocks may differ (RFC 8945 section 10).
const FUDGE: u16 = 300;
const ANY_CLASS: u16 = 255;
/// The shortest MAC that may be sent at all (RFC 8945 section 5.2.2.1).
const SHORTEST_MAC: usize = 10;

const BADSIG: u16 = 16;
const BADKEY: u16 = 17;
const BADTIME: u16 = 18;
const BADTRUNC: u16 = 22;

/// How messages are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-256, as all servers have it.
    Sha256,
    /// HMAC with SHA-384.
    Sha384,
    /// HMAC with SHA-512.
    Sha512,
}

impl Algorithm {
    /// Its name in wire form.
    fn name(self) -> &'static [u8] {
        match self {
            Algorithm::Sha256 => b"\x0bhmac-sha256\0",
            Algorithm::Sha384 => b"\x0bhmac-sha384\0",
            Algorithm::Sha512 => b"\x0bhmac-sha512\0",
        }
    }

    /// Its name as files and settings have it.
    pub fn text(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "hmac-sha256",
            Algorithm::Sha384 => "hmac-sha384",
            Algorithm::Sha512 => "hmac-sha512",
        }
    }

    fn hmac(self) -> hmac::Algorithm {
        match self {
            Algorithm::Sha256 => hmac::HMAC_SHA256,
            Algorithm::Sha384 => hmac::HMAC_SHA384,
            Algorithm::Sha512 => hmac::HMAC_SHA512,
        }
    }
}

/// A secret with its name.
#[derive(Clone)]
pub struct Key {
    name: Name,
    algorithm: Algorithm,
    key: hmac::Key,
}

impl Key {
    /// A key of this name.
    pub fn new(name: &Name, algorithm: Algorithm, secret: &[u8]) -> Self {
        Self { name: name.lower(), algorithm, key: hmac::Key::new(algorithm.hmac(), secret) }
    }

    /// Its name, in lower case.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The hash over `prior`, a message, and the variables (RFC 8945 section 4.3.3); of these the time alone in later messages.
    fn tag(&self, prior: &[u8], message: [&[u8]; 2], stamp: &Stamp, is_first: bool) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        if !prior.is_empty() {
            context.update(&length(prior));
            context.update(prior);
        }
        message.iter().for_each(|part| context.update(part));
        if is_first {
            context.update(self.name.wire());
            context.update(&CLASS_AND_TTL);
            context.update(self.algorithm.name());
        }
        context.update(&stamp.time_and_fudge());
        if is_first {
            context.update(&stamp.error.to_be_bytes());
            context.update(&length(&stamp.other));
            context.update(&stamp.other);
        }
        context.sign()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.name)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.algorithm) == (&other.name, other.algorithm)
    }
}

const CLASS_AND_TTL: [u8; 6] = [0, ANY_CLASS as u8, 0, 0, 0, 0];

fn length(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes()
}

/// The variables of a signature besides names.
#[derive(Clone, Debug)]
struct Stamp {
    time: u64,
    fudge: u16,
    error: u16,
    other: Vec<u8>,
}

impl Stamp {
    fn now(time: u64) -> Self {
        Self { time, fudge: FUDGE, error: 0, other: Vec::new() }
    }

    fn time_and_fudge(&self) -> [u8; 8] {
        let [_, _, a, b, c, d, e, f] = self.time.to_be_bytes();
        let [g, h] = self.fudge.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

/// A TSIG record.
struct Record<'m> {
    name: Name,
    algorithm: &'m [u8],
    stamp: Stamp,
    mac: &'m [u8],
    id: [u8; 2],
}

impl<'m> Record<'m> {
    fn read(message: &'m [u8], at: usize) -> Option<Self> {
        let (name, behind) = name_at(message, at)?;
        let (head, data) = message.get(behind..)?.split_first_chunk::<10>()?;
        let [a, b, c, d, _, _, _, _, e, f] = *head;
        let kind = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        if kind != [rtype::TSIG, ANY_CLASS] || data.len() != usize::from(u16::from_be_bytes([e, f]))
        {
            return None;
        }
        let end = crate::name::wire_length(data)?;
        let (algorithm, rest) = data.split_at_checked(end)?;
        let (times, rest) = rest.split_first_chunk::<8>()?;
        let [t0, t1, t2, t3, t4, t5, f0, f1] = *times;
        let time = u64::from_be_bytes([0, 0, t0, t1, t2, t3, t4, t5]);
        let (mac, rest) = counted(rest)?;
        let (numbers, rest) = rest.split_first_chunk::<4>()?;
        let [i, j, e0, e1] = *numbers;
        let (other, rest) = counted(rest)?;
        let stamp = Stamp {
            time,
            fudge: u16::from_be_bytes([f0, f1]),
            error: u16::from_be_bytes([e0, e1]),
            other: other.to_vec(),
        };
        let record = Self { name: name.lower(), algorithm, stamp, mac, id: [i, j] };
        rest.is_empty().then_some(record)
    }
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// A name of a message, with pointers followed, and where it ends.
fn name_at(message: &[u8], from: usize) -> Option<(Name, usize)> {
    let (mut wire, mut at, mut end) = (Vec::new(), from, None);
    loop {
        let length = *message.get(at)?;
        match length {
            0 => {
                wire.push(0);
                return Some((Name::from_wire(&wire)?, end.unwrap_or(at + 1)));
            }
            1..=63 => {
                let behind = at + 1 + usize::from(length);
                wire.extend_from_slice(message.get(at..behind)?);
                at = behind;
            }
            0xc0.. => {
                let to = usize::from(u16::from_be_bytes([length & 0x3f, *message.get(at + 1)?]));
                end.get_or_insert(at + 2);
                // Pointers lead to the front, so this ends.
                at = Some(to).filter(|to| *to < at)?;
            }
            _ => return None,
        }
        if wire.len() > LONGEST_NAME {
            return None;
        }
    }
}

/// The part of a message before its signature, as it was when it was signed: with its own id, and without that record.
fn unsigned_header(message: &[u8], id: [u8; 2]) -> Option<[u8; HEADER]> {
    let mut header = *message.first_chunk::<HEADER>()?;
    header[..2].copy_from_slice(&id);
    let count = u16::from_be_bytes([header[10], header[11]]).checked_sub(1)?;
    header[10..].copy_from_slice(&count.to_be_bytes());
    Some(header)
}

/// The keys of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys(Vec<Arc<Key>>);

/// The outcome of a check.
#[derive(Debug)]
pub enum Checked {
    /// The message is that of somebody who has the key, with which its answer has to be signed.
    Good(Signer),
    /// It is not: the answer is NOTAUTH, and has to be signed all the same, so as to say why.
    Bad(Signer),
    /// The signature is malformed: FORMERR.
    Malformed,
}

impl Keys {
    /// The key of a name.
    pub fn named(&self, name: &Name) -> Option<&Arc<Key>> {
        self.0.iter().find(|key| key.name == name.lower())
    }

    /// Checks a message whose signature is there, at a time in seconds since 1970.
    pub fn check(&self, message: &[u8], signature: SignedAt, now: u64) -> Checked {
        let Some(record) = Record::read(message, signature.at) else { return Checked::Malformed };
        let header = unsigned_header(message, record.id);
        let (Some(header), Some(body)) = (header, message.get(HEADER..signature.at)) else {
            return Checked::Malformed;
        };
        let bad = |error| {
            let stamp = Stamp { error, other: Vec::new(), ..record.stamp.clone() };
            let (name, algorithm) = (record.name.clone(), record.algorithm.into());
            Signer {
                key: None,
                name,
                algorithm,
                prior: Vec::new(),
                error: Some(stamp),
                is_first: true,
            }
        };
        let known = self.named(&record.name);
        let known = known.filter(|key| record.algorithm.eq_ignore_ascii_case(key.algorithm.name()));
        let Some(key) = known else { return Checked::Bad(bad(BADKEY)) };
        let tag = key.tag(&[], [&header, body], &record.stamp, true);
        let (tag, long) = (tag.as_ref(), record.mac.len());
        if long > tag.len() || long < SHORTEST_MAC.max(tag.len() / 2) {
            return Checked::Malformed;
        }
        let right = tag.get(..long).unwrap_or_default();
        if verify_slices_are_equal(right, record.mac).is_err() {
            return Checked::Bad(bad(BADSIG));
        }
        let signer = |error| Signer {
            key: Some(Arc::clone(key)),
            prior: record.mac.to_vec(),
            error,
            ..bad(0)
        };
        if record.stamp.time.abs_diff(now) > u64::from(record.stamp.fudge) {
            let other = now.to_be_bytes()[2..].to_vec();
            let stamp = Stamp { error: BADTIME, other, ..record.stamp.clone() };
            return Checked::Bad(signer(Some(stamp)));
        }
        if long < tag.len() {
            let stamp = Stamp { error: BADTRUNC, ..Stamp::now(now) };
            return Checked::Bad(signer(Some(stamp)));
        }
        Checked::Good(signer(None))
    }
}

impl FromIterator<Key> for Keys {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> Self {
        Self(keys.into_iter().map(Arc::new).collect())
    }
}

/// Signs the messages of an answer, or a question.
#[derive(Clone, Debug)]
pub struct Signer {
    /// None: the client's is not known, or not proven, so that the signature is empty.
    key: Option<Arc<Key>>,
    name: Name,
    algorithm: Box<[u8]>,
    /// The hash of the message before.
    prior: Vec<u8>,
    /// The fault to tell.
    error: Option<Stamp>,
    is_first: bool,
}

impl Signer {
    /// For questions of our own.
    pub fn of(key: &Arc<Key>) -> Self {
        Self {
            key: Some(Arc::clone(key)),
            name: key.name.clone(),
            algorithm: key.algorithm.name().into(),
            prior: Vec::new(),
            error: None,
            is_first: true,
        }
    }

    /// Whether the client has this key.
    pub fn has(&self, key: &Key) -> bool {
        self.error.is_none() && self.key.as_ref().is_some_and(|own| **own == *key)
    }

    /// Signs the message behind `start`, at a time in seconds since 1970.
    pub fn sign(&mut self, out: &mut Vec<u8>, start: usize, now: u64) {
        let stamp = self.error.clone().unwrap_or_else(|| Stamp::now(now));
        let message = out.get(start..).unwrap_or_default();
        let Some(&[i, j]) = message.first_chunk::<2>() else { return };
        let tag = self.key.as_ref();
        let tag = tag.map(|key| key.tag(&self.prior, [message, &[]], &stamp, self.is_first));
        self.prior = tag.map_or(Vec::new(), |tag| tag.as_ref().to_vec());
        self.is_first = false;
        out.extend_from_slice(self.name.wire());
        out.extend_from_slice(&rtype::TSIG.to_be_bytes());
        out.extend_from_slice(&CLASS_AND_TTL);
        let data = [
            &*self.algorithm,
            &stamp.time_and_fudge(),
            &length(&self.prior),
            &self.prior,
            &[i, j],
            &stamp.error.to_be_bytes(),
            &length(&stamp.other),
            &stamp.other,
        ]
        .concat();
        out.extend_from_slice(&length(&data));
        out.extend_from_slice(&data);
        if let Some(count) =
            out.get_mut(start + 10..start + 12).and_then(|two| two.first_chunk_mut::<2>())
        {
            *count = u16::from_be_bytes(*count).wrapping_add(1).to_be_bytes();
        }
    }

    /// Whether an answer to the question that was signed last is signed with the same key.
    pub fn accepts(&self, answer: &[u8], signature: SignedAt, now: u64) -> bool {
        let read = Record::read(answer, signature.at);
        let (Some(key), Some(record)) = (&self.key, read) else { return false };
        let header = unsigned_header(answer, record.id);
        let (Some(header), Some(body)) = (header, answer.get(HEADER..signature.at)) else {
            return false;
        };
        let tag = key.tag(&self.prior, [&header, body], &record.stamp, true);
        record.name == key.name
            && verify_slices_are_equal(tag.as_ref(), record.mac).is_ok()
            && record.stamp.time.abs_diff(now) <= u64::from(record.stamp.fudge)
    }
}

#[cfg(test)]
#[path = "tsig_tests.rs"]
mod tests;
