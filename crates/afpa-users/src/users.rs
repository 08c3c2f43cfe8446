//! The users of a file, and the credentials that were found right before.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use aws_lc_rs::rand;

use crate::credentials::Credentials;
use crate::file::{self, LineFault};
use crate::hash::Hash;

/// The users of one file.
///
/// Right credentials are remembered by a digest with a key that is drawn at random for each file, so that only the first
/// request of a client pays for the check. The digests tell nothing without the key, so their comparison need not take a
/// constant time.
pub struct Users {
    hashes: Vec<Hash>,
    /// The index of each user's hash.
    names: HashMap<Box<[u8]>, usize>,
    /// The bytes that were read.
    source: Box<[u8]>,
    key: Key,
    right: ArcSwap<HashMap<Digest, Arc<str>>>,
}

type Digest = [u8; 32];

/// How many right credentials are remembered beside one for each user: some hashes fit several passwords.
const SPARE: usize = 16;

impl Users {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// With every line that cannot be used.
    pub fn read(bytes: &[u8]) -> Result<Self, Vec<LineFault>> {
        let (hashes, names) = file::read(bytes)?;
        let mut secret = [0; 32];
        // Without randomness there would be no TLS either.
        rand::fill(&mut secret).expect("the system gives random bytes");
        let key = Key::new(HMAC_SHA256, &secret);
        Ok(Self { hashes, names, source: bytes.into(), key, right: ArcSwap::default() })
    }

    /// Whether it was made of these bytes.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        *self.source == *bytes
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.hashes.len()
    }

    /// The name of the user whose credentials were right before. This waits for nothing.
    pub fn knows(&self, credentials: &Credentials) -> Option<Arc<str>> {
        self.right.load().get(&self.digest(credentials.bytes())).cloned()
    }

    /// A digest of credentials, which tells nothing without the key: equal ones of one file have the same.
    pub fn mark(&self, credentials: &Credentials) -> [u8; 32] {
        self.digest(credentials.bytes())
    }

    /// The name of the user, if the credentials are right, which is remembered. For an unknown name the password is compared
    /// with that of somebody else: this takes as long if all hashes have one kind and cost.
    pub fn check(&self, credentials: &Credentials) -> Option<Arc<str>> {
        let (user, password) = (credentials.user(), credentials.password());
        let known = self.names.get(user).copied();
        let hash = self.hashes.get(known.unwrap_or_else(|| self.other(user)))?;
        let is_right = hash.is_of(password) && known.is_some();
        is_right.then(|| self.remember(credentials))
    }

    /// The index of the hash in the place of that of an unknown user: always the same one for a name.
    fn other(&self, user: &[u8]) -> usize {
        let [a, b, c, d, ..] = self.digest(user);
        u32::from_ne_bytes([a, b, c, d]) as usize % self.hashes.len().max(1)
    }

    fn remember(&self, credentials: &Credentials) -> Arc<str> {
        let name: Arc<str> = String::from_utf8_lossy(credentials.user()).into();
        let digest = self.digest(credentials.bytes());
        self.right.rcu(|before| {
            let is_full = before.len() >= self.hashes.len() + SPARE;
            let mut next = if is_full { HashMap::new() } else { HashMap::clone(before) };
            next.insert(digest, Arc::clone(&name));
            next
        });
        name
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let mut digest = Digest::default();
        digest.copy_from_slice(sign(&self.key, bytes).as_ref());
        digest
    }
}

/// Neither names nor hashes are for logs.
impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    fn credentials(user: &str, password: &str) -> Credentials {
        let value = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
        Credentials::of(value.as_bytes()).expect("they are well-formed")
    }

    const FILE: &str = "# staff\r\n\r\nann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\r\n\
        bob:$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0:a comment\nGrün:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";

    #[test]
    fn right_credentials_are_known_after_the_first_check_and_others_never() {
        let users = Users::read(FILE.as_bytes()).unwrap();
        assert_eq!(users.count(), 3);
        for name in ["ann", "bob", "Grün"] {
            let right = credentials(name, "secret");
            assert_eq!(users.knows(&right), None);
            assert_eq!(users.check(&right).as_deref(), Some(name));
            assert_eq!(users.knows(&right).as_deref(), Some(name));
            let wrong = credentials(name, "Secret");
            assert_eq!((users.check(&wrong), users.knows(&wrong)), (None, None));
        }
        for name in ["", "Ann", "ann ", "eve"] {
            let unknown = credentials(name, "secret");
            assert_eq!((users.check(&unknown), users.knows(&unknown)), (None, None), "{name}");
        }
        assert!(users.is_of(FILE.as_bytes()) && !users.is_of(b""));
        let nobody = Users::read(b"").unwrap();
        assert_eq!(nobody.check(&credentials("", "")), None);
        assert!(!format!("{users:?}").contains("ann"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        // Only the first 72 bytes of a password count in bcrypt.
        let hash = bcrypt::hash("x".repeat(72), 4).unwrap();
        let users = Users::read(format!("ann:{hash}").as_bytes()).unwrap();
        for more in 0..40 {
            let right = credentials("ann", &"x".repeat(72 + more));
            assert_eq!(users.check(&right).as_deref(), Some("ann"));
            assert!(users.right.load().len() <= 1 + SPARE);
        }
    }

    #[test]
    fn each_wrong_line_is_named() {
        let file = "ann\n:x\n# x\nbob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\nbob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\neve:secret\n";
        let faults = Users::read(file.as_bytes()).unwrap_err();
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [1, 2, 5, 6]);
        let said = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(said.contains("line 5: the same name is in line 4"), "{said}");
        assert!(said.contains("plain passwords are not accepted"), "{said}");
        assert!(!said.contains("secret"), "{said}");
        let faults = Users::read(b"\xff:x").unwrap_err();
        assert!(faults[0].to_string().contains("UTF-8"));
    }
}
