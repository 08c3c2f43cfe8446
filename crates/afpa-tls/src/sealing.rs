//! Records of TLS 1.3 that are sealed where they lie (RFC 8446, section 5.2).
//!
//! rustls takes application data as a slice, copies it into a vector of its own for each record, seals that, and copies
//! it once more to where its caller wants it. These copies slow long files down. rustls lets its caller bring the
//! cryptography, though: the suites here are those of aws-lc-rs, except that a key for sending is *shared*. rustls
//! seals the records of the protocol with it (handshake, tickets, alerts, updates of keys), and the machine seals
//! application data. The number of the next record is kept with the key, so no number is used twice, whichever of the
//! two seals.
//!
//! ```text
//! record:  23 | 3 3 | length (2) | content | 23 | tag (16)
//!          '----- HEAD -----'               '--- TAIL ---'
//! ```

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, MAX_TAG_LEN,
    Nonce as UsedNonce, UnboundKey,
};
use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, Nonce, OutboundOpaqueMessage,
    OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm, UnsupportedOperationError,
    make_tls13_aad,
};
use rustls::{
    ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion, SupportedCipherSuite,
    Tls13CipherSuite,
};

/// Bytes of a record before its content.
pub const HEAD: usize = 5;

/// Bytes of a record behind its content: its true type, and the tag.
pub const TAIL: usize = 1 + MAX_TAG_LEN;

/// The type of application data.
const APPLICATION_DATA: u8 = 23;

/// A key is given up so many records before its limit.
const RESERVE: u64 = 64;

/// The suites of TLS 1.3, whose keys are shared.
pub(crate) fn suites() -> Vec<SupportedCipherSuite> {
    static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
        let all = [
            (suite::TLS13_AES_128_GCM_SHA256, &AES_128_GCM),
            (suite::TLS13_AES_256_GCM_SHA384, &AES_256_GCM),
            (suite::TLS13_CHACHA20_POLY1305_SHA256, &CHACHA20_POLY1305),
        ];
        all.iter().filter_map(|(base, algorithm)| Some(shared(base.tls13()?, algorithm))).collect()
    });
    SUITES.iter().map(SupportedCipherSuite::Tls13).collect()
}

fn shared(base: &'static Tls13CipherSuite, algorithm: &'static Algorithm) -> Tls13CipherSuite {
    let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = base.common;
    let limit = match cfg!(test) {
        true => 200,
        false => confidentiality_limit,
    };
    let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit };
    // Three of them, for as long as the process lives.
    let aead_alg = Box::leak(Box::new(SharedAead { base: base.aead_alg, algorithm, limit }));
    Tls13CipherSuite { common, hkdf_provider: base.hkdf_provider, aead_alg, quic: None }
}

/// A key for sending.
pub(crate) struct SendingKey {
    key: LessSafeKey,
    iv: Iv,
    /// The number of the next record.
    next: AtomicU64,
    /// Records that it may seal.
    limit: u64,
}

thread_local! {
    /// The last key that rustls has made on this thread. rustls does not report new keys, so they are found here.
    static MADE: RefCell<Option<Arc<SendingKey>>> = const { RefCell::new(None) };
}

/// Does something to a connection of rustls. Returns the key for sending as well, if another one came into use.
pub(crate) fn watch<R>(work: impl FnOnce() -> R) -> (R, Option<Arc<SendingKey>>) {
    MADE.take();
    let done = work();
    (done, MADE.take())
}

/// It was not sealed, and nothing of it may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotSealed;

impl SendingKey {
    /// Whether another key should be used for so many more records.
    pub(crate) fn is_used_up(&self, records: u64) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        next.saturating_add(records).saturating_add(RESERVE) > self.limit
    }

    /// Seals a record of application data: its content is there, between [`HEAD`] and [`TAIL`].
    pub(crate) fn seal(&self, record: &mut [u8]) -> Result<(), NotSealed> {
        let length = record.len().checked_sub(HEAD).ok_or(NotSealed)?;
        let (head, rest) = record.split_at_mut_checked(HEAD).ok_or(NotSealed)?;
        let inner = length.checked_sub(MAX_TAG_LEN).ok_or(NotSealed)?;
        let (inner, place) = rest.split_at_mut_checked(inner).ok_or(NotSealed)?;
        *inner.last_mut().ok_or(NotSealed)? = APPLICATION_DATA;
        let said = make_tls13_aad(length);
        head.copy_from_slice(&said);
        let nonce = self.nonce().ok_or(NotSealed)?;
        let tag = self.key.seal_in_place_separate_tag(nonce, Aad::from(said), inner);
        place.copy_from_slice(tag.map_err(|_| NotSealed)?.as_ref());
        Ok(())
    }

    /// Appends the sealed `content` to `out`.
    pub(crate) fn seal_to(&self, content: &[u8], out: &mut Vec<u8>) -> Result<(), NotSealed> {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        out.extend_from_slice(content);
        out.extend_from_slice(&[0; TAIL]);
        self.seal(out.get_mut(start..).unwrap_or_default()).inspect_err(|_| out.truncate(start))
    }

    /// The nonce of the next record, which uses its number up.
    fn nonce(&self) -> Option<UsedNonce> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let nonce = Nonce::new(&self.iv, number).0;
        // It cannot come to that, but would be the end of all secrets.
        (number < u64::MAX / 2).then(|| UsedNonce::assume_unique_for_key(nonce))
    }
}

/// An algorithm whose keys for sending are shared.
struct SharedAead {
    base: &'static dyn Tls13AeadAlgorithm,
    algorithm: &'static Algorithm,
    limit: u64,
}

impl Tls13AeadAlgorithm for SharedAead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        let Ok(unbound) = UnboundKey::new(self.algorithm, key.as_ref()) else {
            return self.base.encrypter(key, iv);
        };
        let (next, limit) = (AtomicU64::new(0), self.limit);
        let shared = Arc::new(SendingKey { key: LessSafeKey::new(unbound), iv, next, limit });
        MADE.set(Some(Arc::clone(&shared)));
        Box::new(Sealer(shared))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.base.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.base.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.base.extract_keys(key, iv)
    }
}

/// rustls' share of a key.
struct Sealer(Arc<SendingKey>);

impl MessageEncrypter for Sealer {
    /// rustls numbers only its own records, so its number is not asked.
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        _: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let length = self.encrypted_payload_len(message.payload.len());
        let mut payload = PrefixedPayload::with_capacity(length);
        payload.extend_from_chunks(&message.payload);
        payload.extend_from_slice(&[u8::from(message.typ)]);
        let said = Aad::from(make_tls13_aad(length));
        let nonce = self.0.nonce().ok_or(Error::EncryptError)?;
        let sealed = self.0.key.seal_in_place_append_tag(nonce, said, &mut payload);
        sealed.map_err(|_| Error::EncryptError)?;
        let (kind, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
        Ok(OutboundOpaqueMessage::new(kind, version, payload))
    }

    fn encrypted_payload_len(&self, content: usize) -> usize {
        content + TAIL
    }
}

#[cfg(test)]
mod tests;
