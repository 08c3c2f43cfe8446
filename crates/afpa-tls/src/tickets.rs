//! Session tickets (RFC 5077, RFC 8446 section 4.6.1), whose keys rotate, and may be shared between machines.
//!
//! ```text
//! ticket:  name of the key (8) | salt (16) | AES-256-GCM(last second (8) | state) | tag (16)
//! ```
//!
//! A ticket carries its own expiry, in seconds since the Unix epoch: keys that machines share may stay for years, and
//! the sessions that they open must not (RFC 8446 section 4.6.1: seven days).
//!
//! Each ticket has a key of its own, HKDF-SHA256(key, salt, context), so that no count of tickets wears a key out. The
//! context is the listener's demands on clients: a session that began without a certificate is not resumed where one is
//! required.
//!
//! A client that resumes with a ticket of TLS 1.2 keeps that ticket while its key is still the first one, and half of
//! its time is left. rustls would send a new ticket each time. OpenSSL's clients then resume with neither: they give up
//! the old session, and do not offer the new one to the program, so that every other handshake would be a full one.
//! Tickets of TLS 1.3 are for one handshake each (RFC 8446 appendix C.4).

use std::cell::Cell;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use thiserror::Error;

/// Bytes of a key.
const KEY: usize = 32;
const NAME: usize = 8;
const SALT: usize = 16;
const TAG: usize = 16;
const TIME: usize = 8;

/// Keys that rotate are kept so long that a ticket of any of them has expired before.
const KEPT: usize = 2;

/// Why a file of ticket keys cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TicketFileError {
    /// A line that is no key.
    #[error("line {0} is not a key of 64 hexadecimal digits")]
    Line(usize),
    /// No line at all.
    #[error("there is no key in it")]
    Empty,
}

/// The keys of all listeners, shared by all workers.
#[derive(Default)]
pub struct TicketKeys {
    keys: ArcSwap<Keys>,
}

/// The first key makes tickets; all of them open tickets.
#[derive(Default)]
struct Keys {
    list: Vec<TicketKey>,
    lifetime: u32,
}

#[derive(Clone)]
struct TicketKey {
    name: [u8; NAME],
    secret: [u8; KEY],
}

impl std::fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TicketKeys({})", self.keys.load().list.len())
    }
}

impl TicketKeys {
    /// Makes a new first key; the one before the last is dropped. `lifetime`: seconds between two calls, and for which
    /// tickets are good. Without random numbers the keys stay as they are.
    pub fn rotate(&self, lifetime: u32) {
        let mut secret = [0; KEY];
        if rand::fill(&mut secret).is_err() {
            return;
        }
        let before = self.keys.load();
        let mut list = vec![TicketKey::new(secret)];
        list.extend(before.list.iter().take(KEPT - 1).cloned());
        self.keys.store(Arc::new(Keys { list, lifetime }));
    }

    /// Takes the keys of a file: 64 hexadecimal digits a line; the first makes tickets. Machines that share the file
    /// resume each other's sessions. `lifetime`: seconds for which tickets are good.
    ///
    /// # Errors
    /// With the line; the keys stay as they are.
    pub fn share(&self, text: &str, lifetime: u32) -> Result<(), TicketFileError> {
        let mut list = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            list.push(TicketKey::new(read_hex(line).ok_or(TicketFileError::Line(index + 1))?));
        }
        if list.is_empty() {
            return Err(TicketFileError::Empty);
        }
        self.keys.store(Arc::new(Keys { list, lifetime }));
        Ok(())
    }

    /// Takes keys that machines share: the first makes tickets, and all of them open tickets. `lifetime`: seconds for which
    /// tickets are good.
    pub fn take(&self, secrets: impl IntoIterator<Item = [u8; KEY]>, lifetime: u32) {
        let list = secrets.into_iter().map(TicketKey::new).collect();
        self.keys.store(Arc::new(Keys { list, lifetime }));
    }

    /// Whether there is any key.
    pub fn is_empty(&self) -> bool {
        self.keys.load().list.is_empty()
    }

    /// The tickets of a listener. `context` separates listeners that make different demands on their clients.
    pub fn for_context(self: &Arc<Self>, context: &[u8]) -> Arc<dyn ProducesTickets> {
        self.tickets(context, false)
    }

    /// As [`for_context`](Self::for_context), for a listener whose sessions of TLS 1.3 are in a store.
    pub fn beside_store(self: &Arc<Self>, context: &[u8]) -> Arc<dyn ProducesTickets> {
        self.tickets(context, true)
    }

    fn tickets(self: &Arc<Self>, context: &[u8], beside_store: bool) -> Arc<dyn ProducesTickets> {
        let context = digest(&SHA256, context).as_ref().into();
        Arc::new(Context { keys: Arc::clone(self), context, beside_store })
    }
}

impl TicketKey {
    fn new(secret: [u8; KEY]) -> Self {
        let mut name = [0; NAME];
        let digest = digest(&SHA256, &[b"afpa ticket key name", &secret[..]].concat());
        name.copy_from_slice(digest.as_ref().get(..NAME).unwrap_or(&[0; NAME]));
        Self { name, secret }
    }

    /// The key of one ticket.
    fn derive(&self, salt: &[u8], context: &[u8]) -> Option<LessSafeKey> {
        let secret: Prk = Salt::new(HKDF_SHA256, salt).extract(&self.secret);
        let mut key = [0; KEY];
        let info = [&b"afpa ticket"[..], context];
        secret.expand(&info, HKDF_SHA256).ok()?.fill(&mut key).ok()?;
        Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).ok()?))
    }
}

fn read_hex(line: &str) -> Option<[u8; KEY]> {
    let digits = line.as_bytes();
    if digits.len() != KEY * 2 {
        return None;
    }
    let mut key = [0; KEY];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| pair.get(at).and_then(|d| char::from(*d).to_digit(16));
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(key)
}

/// The calls of rustls in this step of a handshake. With TLS 1.2 rustls opens the client's ticket, then asks whether
/// there are tickets, to decide whether the client gets a new one. With TLS 1.3 rustls asks before it opens a ticket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Begun,
    /// It has asked whether there are tickets.
    Asked,
    /// It has opened a ticket before it asked, and the client keeps that.
    Kept,
}

thread_local! {
    static STEP: Cell<Step> = const { Cell::new(Step::Begun) };
    /// The session of this connection is in a store.
    static IN_STORE: Cell<bool> = const { Cell::new(false) };
}

/// To be called before rustls works on arrived bytes. `in_store`: a connection of TLS 1.3, on a listener with a store.
pub(crate) fn begin_step(in_store: bool) {
    STEP.set(Step::Begun);
    IN_STORE.set(in_store);
}

/// The content of a ticket.
#[derive(Debug, PartialEq, Eq)]
struct Opened {
    state: Vec<u8>,
    /// Its client needs no other ticket yet.
    is_young: bool,
}

/// The tickets of a listener.
struct Context {
    keys: Arc<TicketKeys>,
    context: Box<[u8]>,
    /// Only TLS 1.2 has tickets.
    beside_store: bool,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("tickets")
    }
}

impl ProducesTickets for Context {
    fn enabled(&self) -> bool {
        if STEP.get() == Step::Kept || self.beside_store && IN_STORE.get() {
            return false;
        }
        STEP.set(Step::Asked);
        !self.keys.is_empty()
    }

    fn lifetime(&self) -> u32 {
        self.keys.keys.load().lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain, now()?)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let opened = self.open(ticket, now()?)?;
        if opened.is_young && STEP.get() == Step::Begun {
            STEP.set(Step::Kept);
        }
        Some(opened.state)
    }
}

/// Seconds since the Unix epoch. Without a clock there are no tickets.
fn now() -> Option<u64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|time| time.as_secs())
}

impl Context {
    fn seal(&self, plain: &[u8], now: u64) -> Option<Vec<u8>> {
        let keys = self.keys.keys.load();
        let key = keys.list.first()?;
        let mut salt = [0; SALT];
        rand::fill(&mut salt).ok()?;
        let mut ticket = Vec::with_capacity(NAME + SALT + TIME + plain.len() + TAG);
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(&salt);
        let last = now.saturating_add(u64::from(keys.lifetime));
        let mut state = [&last.to_be_bytes(), plain].concat();
        // A key of one ticket needs no other nonce.
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let sealing = key.derive(&salt, &self.context)?;
        sealing.seal_in_place_append_tag(nonce, Aad::from(key.name), &mut state).ok()?;
        ticket.append(&mut state);
        Some(ticket)
    }

    fn open(&self, ticket: &[u8], now: u64) -> Option<Opened> {
        let (name, rest) = ticket.split_at_checked(NAME)?;
        let (salt, sealed) = rest.split_at_checked(SALT)?;
        let keys = self.keys.keys.load();
        let (index, key) = keys.list.iter().enumerate().find(|(_, key)| key.name == *name)?;
        let mut state = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let opening = key.derive(salt, &self.context)?;
        let state = opening.open_in_place(nonce, Aad::from(key.name), &mut state).ok()?;
        let (last, state) = state.split_first_chunk::<TIME>()?;
        let left = u64::from_be_bytes(*last).checked_sub(now)?;
        let is_young = index == 0 && left >= u64::from(keys.lifetime) / 2;
        Some(Opened { state: state.to_vec(), is_young })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Arc<TicketKeys> {
        let keys = Arc::new(TicketKeys::default());
        keys.rotate(3600);
        keys
    }

    #[test]
    fn a_ticket_is_opened_until_its_key_has_rotated_out() {
        let keys = keys();
        let tickets = keys.for_context(b"");
        let ticket = tickets.encrypt(b"state").unwrap();
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
        assert_ne!(tickets.encrypt(b"state").unwrap(), ticket, "each has a salt of its own");
        keys.rotate(3600);
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
        keys.rotate(3600);
        assert_eq!(tickets.decrypt(&ticket), None);
    }

    #[test]
    fn machines_that_take_the_same_keys_open_each_others_tickets() {
        let [one, other] = [(); 2].map(|()| Arc::new(TicketKeys::default()));
        one.take([[2; KEY], [3; KEY], [1; KEY]], 3600);
        // It has missed the last turn.
        other.take([[1; KEY], [2; KEY]], 3600);
        let (here, there) = (one.for_context(b""), other.for_context(b""));
        let ticket = here.encrypt(b"state").unwrap();
        assert_eq!(there.decrypt(&ticket).as_deref(), Some(&b"state"[..]), "the next key");
        let ticket = there.encrypt(b"state").unwrap();
        assert_eq!(here.decrypt(&ticket).as_deref(), Some(&b"state"[..]), "the previous key");
        one.take([[4; KEY], [5; KEY], [3; KEY]], 3600);
        assert_eq!(here.decrypt(&ticket), None);
    }

    #[test]
    fn a_changed_ticket_is_not_opened_and_none_panics() {
        let tickets = keys().for_context(b"");
        let ticket = tickets.encrypt(b"state").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets.decrypt(&changed), None, "byte {at}");
            assert_eq!(tickets.decrypt(&ticket[..at]), None, "{at} bytes");
        }
    }

    #[test]
    fn a_ticket_of_a_key_that_stays_ends_with_its_lifetime() {
        let keys = Arc::new(TicketKeys::default());
        keys.share(&"0f".repeat(32), 3600).unwrap();
        let context =
            Context { keys: Arc::clone(&keys), context: [][..].into(), beside_store: false };
        let ticket = context.seal(b"state", 1_000_000).unwrap();
        let opened = |is_young| Some(Opened { state: b"state".to_vec(), is_young });
        assert_eq!(context.open(&ticket, 1_001_800), opened(true));
        assert_eq!(context.open(&ticket, 1_001_801), opened(false), "half of its time is over");
        assert_eq!(context.open(&ticket, 1_003_600), opened(false));
        assert_eq!(context.open(&ticket, 1_003_601), None);
        // A machine whose clock is behind opens it, too.
        assert!(context.open(&ticket, 999_000).is_some());
        keys.share(&"0f".repeat(32), u32::MAX).unwrap();
        assert_eq!(context.open(&ticket, 1_003_601), None, "it was made for an hour");
        assert!(context.seal(b"state", u64::MAX).is_some());
    }

    #[test]
    fn a_client_of_version_12_keeps_a_young_ticket_and_one_of_13_has_a_new_one() {
        let keys = keys();
        let tickets = keys.for_context(b"");
        let ticket = tickets.encrypt(b"state").unwrap();
        let renewed = |asked_before: bool| {
            begin_step(false);
            assert!(!asked_before || tickets.enabled());
            assert!(tickets.decrypt(&ticket).is_some());
            tickets.enabled()
        };
        assert!(!renewed(false));
        assert!(renewed(true));
        begin_step(false);
        assert!(tickets.enabled(), "the next handshake has a ticket");
        begin_step(false);
        assert!(tickets.decrypt(&ticket[1..]).is_none() && tickets.enabled());
        keys.rotate(3600);
        assert!(renewed(false), "its key is the second now");
    }

    #[test]
    fn contexts_do_not_open_each_others_tickets() {
        let keys = keys();
        let ticket = keys.for_context(b"open").encrypt(b"state").unwrap();
        assert_eq!(keys.for_context(b"required").decrypt(&ticket), None);
        assert!(keys.for_context(b"open").decrypt(&ticket).is_some());
    }

    #[test]
    fn machines_with_the_same_file_open_each_others_tickets() {
        let (old, new) = ("0f".repeat(32), "A0".repeat(32));
        let (one, other) = (Arc::new(TicketKeys::default()), Arc::new(TicketKeys::default()));
        one.share(&format!("# keys\n{old}\n"), 60).unwrap();
        other.share(&format!("{new}\n\n{old}\n"), 60).unwrap();
        let ticket = one.for_context(b"").encrypt(b"state").unwrap();
        assert!(other.for_context(b"").decrypt(&ticket).is_some());
        let ticket = other.for_context(b"").encrypt(b"state").unwrap();
        assert_eq!(one.for_context(b"").decrypt(&ticket), None, "it does not know the new key yet");
    }

    #[test]
    fn a_file_that_is_wrong_changes_nothing() {
        let keys = keys();
        let ticket = keys.for_context(b"").encrypt(b"state").unwrap();
        assert_eq!(keys.share("\nabc\n", 60), Err(TicketFileError::Line(2)));
        assert_eq!(keys.share(&"é".repeat(32), 60), Err(TicketFileError::Line(1)));
        assert_eq!(keys.share("# none\n", 60), Err(TicketFileError::Empty));
        assert!(keys.for_context(b"").decrypt(&ticket).is_some());
        assert!(!format!("{keys:?}").contains("0x"), "no secret is formatted");
    }

    #[test]
    fn without_keys_there_are_no_tickets() {
        let tickets = Arc::new(TicketKeys::default()).for_context(b"");
        assert!(!tickets.enabled());
        assert_eq!(tickets.encrypt(b"state"), None);
    }
}
