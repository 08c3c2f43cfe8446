//! The secret of a fleet, which the servers do not have: with it machines seal values that the servers keep, and derive
//! keys that are the same on each machine.
//!
//! ```text
//! sealed:  1 | salt (32) | AES-256-GCM(value) | tag (16)
//! ```
//!
//! Each sealed value has a key of its own, HKDF-SHA256(secret, salt, context), so no count of values wears a key out. The
//! context says the purpose of a value: one that is moved to another place is not opened there.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, MAX_TAG_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use thiserror::Error;

/// The form of a sealed value.
const FORM: u8 = 1;

/// Bytes of a salt.
const SALT: usize = 32;

/// Bytes of a secret at least.
const LEAST: usize = 32;

/// And at most.
const MOST: usize = 4096;

/// The secret of a fleet.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// The content of a file is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotASecret {
    /// It could be guessed.
    #[error("has {0} bytes of at least 32")]
    Short(usize),
    /// It is another file.
    #[error("has more than 4096 bytes")]
    Long,
}

impl Secret {
    /// Of the bytes of a file. A line feed at the end is none of them, as tools write one or not.
    ///
    /// # Errors
    /// When there are too few, or too many.
    pub fn of(bytes: &[u8]) -> Result<Self, NotASecret> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        match bytes.len() {
            short @ ..LEAST => Err(NotASecret::Short(short)),
            LEAST..=MOST => Ok(Self(bytes.to_owned())),
            _ => Err(NotASecret::Long),
        }
    }

    /// Of random bytes that machines share.
    pub(crate) fn of_seed(seed: &[u8; LEAST]) -> Self {
        Self(seed.to_vec())
    }

    /// Seals a value for a purpose. Without random numbers it is empty, and nobody opens that.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        self.try_seal(context, plain).unwrap_or_default()
    }

    /// Opens a value that was sealed for this purpose; `None`: it was not, or by another secret, or was changed.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (&FORM, rest) = sealed.split_first()? else { return None };
        let (salt, sealed) = rest.split_at_checked(SALT)?;
        let mut value = sealed.to_vec();
        let plain = self.key(context, salt)?.open_in_place(nonce(), said(context), &mut value);
        Some(plain.ok()?.to_vec())
    }

    /// A key for a purpose, the same on each machine that has the secret.
    pub fn derive<const N: usize>(&self, context: &str) -> [u8; N] {
        let mut key = [0; N];
        // So short a key can always be had.
        let _ = self.fill(b"afpa fleet derived 1", context, &mut key);
        key
    }

    fn try_seal(&self, context: &str, plain: &[u8]) -> Option<Vec<u8>> {
        let mut salt = [0; SALT];
        rand::fill(&mut salt).ok()?;
        let mut value = plain.to_vec();
        self.key(context, &salt)?
            .seal_in_place_append_tag(nonce(), said(context), &mut value)
            .ok()?;
        let mut sealed = Vec::with_capacity(1 + SALT + plain.len() + MAX_TAG_LEN);
        sealed.push(FORM);
        sealed.extend_from_slice(&salt);
        sealed.append(&mut value);
        Some(sealed)
    }

    /// The key of one value.
    fn key(&self, context: &str, salt: &[u8]) -> Option<LessSafeKey> {
        let mut key = [0; 32];
        self.fill(salt, context, &mut key)?;
        Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).ok()?))
    }

    fn fill(&self, salt: &[u8], context: &str, key: &mut [u8]) -> Option<()> {
        let all = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let info = [&b"afpa fleet 1 "[..], context.as_bytes()];
        all.expand(&info, Length(key.len())).ok()?.fill(key).ok()
    }
}

/// Nobody sees it.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// A key of one value needs no other.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn said(context: &str) -> Aad<&[u8]> {
    Aad::from(context.as_bytes())
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> Secret {
        Secret::of(&[byte; 32]).unwrap()
    }

    #[test]
    fn a_secret_is_long_and_nobody_sees_it() {
        assert_eq!(Secret::of(b""), Err(NotASecret::Short(0)));
        assert_eq!(Secret::of(&[7; 31]), Err(NotASecret::Short(31)));
        assert_eq!(Secret::of(&[&b"\n"[..], &[7; 30], b"\n"].concat()), Err(NotASecret::Short(31)));
        assert_eq!(Secret::of(&[7; 4097]), Err(NotASecret::Long));
        let written = Secret::of(&[&[7; 32][..], b"\n"].concat()).unwrap();
        assert_eq!(written, secret(7));
        assert_eq!(format!("{written:?}"), "Secret");
    }

    #[test]
    fn a_value_is_opened_by_the_same_secret_for_the_same_purpose_alone() {
        for plain in [&b""[..], b"a key", &[9; 100_000]] {
            let sealed = secret(1).seal("keys", plain);
            assert_eq!(secret(1).open("keys", &sealed).as_deref(), Some(plain));
            assert_eq!(secret(2).open("keys", &sealed), None, "another secret");
            assert_eq!(secret(1).open("certificates", &sealed), None, "another purpose");
            assert_eq!(secret(1).open("", &sealed), None, "no purpose");
        }
        assert_ne!(secret(1).seal("keys", b"a"), secret(1).seal("keys", b"a"), "each has its salt");
    }

    #[test]
    fn a_value_that_was_changed_or_cut_is_not_opened() {
        let sealed = secret(1).seal("keys", b"a key of a fleet");
        for at in 0..sealed.len() {
            let mut wrong = sealed.clone();
            wrong[at] ^= 1;
            assert_eq!(secret(1).open("keys", &wrong), None, "byte {at}");
            assert_eq!(secret(1).open("keys", &sealed[..at]), None, "{at} bytes");
        }
        let longer = [&sealed[..], b"x"].concat();
        assert_eq!(secret(1).open("keys", &longer), None);
    }

    #[test]
    fn derived_keys_follow_from_secret_and_purpose() {
        let key: [u8; 32] = secret(1).derive("retry");
        assert_eq!(key, secret(1).derive::<32>("retry"));
        assert_ne!(key, secret(2).derive::<32>("retry"));
        assert_ne!(key, secret(1).derive::<32>("cookies"));
        assert_ne!(key, [0; 32]);
    }
}
