//! The users of a file, and the credentials that were found right before.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
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
    /// The right credentials of each user, by the index of the hash.
    right: Box<[ArcSwapOption<Right>]>,
}

type Digest = [u8; 32];

/// A user whose credentials were right.
struct Right {
    name: Arc<str>,
    /// The newest credentials, and those before. Some hashes fit several passwords, as bcrypt with more than 72 bytes.
    digests: [Digest; 2],
}

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
        let right = hashes.iter().map(|_| ArcSwapOption::empty()).collect();
        Ok(Self { hashes, names, source: bytes.into(), key, right })
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
        let digest = self.digest(credentials.bytes());
        let place = self.right.get(self.names.get(credentials.user()).copied()?)?;
        let right = place.load();
        right
            .as_ref()
            .filter(|right| right.digests.contains(&digest))
            .map(|right| Arc::clone(&right.name))
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
        let is_right = hash.is_of(password);
        known.filter(|_| is_right).map(|index| self.remember(index, credentials))
    }

    /// The index of the hash in the place of that of an unknown user: always the same one for a name.
    fn other(&self, user: &[u8]) -> usize {
        let [a, b, c, d, ..] = self.digest(user);
        u32::from_ne_bytes([a, b, c, d]) as usize % self.hashes.len().max(1)
    }

    fn remember(&self, index: usize, credentials: &Credentials) -> Arc<str> {
        let name: Arc<str> = String::from_utf8_lossy(credentials.user()).into();
        let digest = self.digest(credentials.bytes());
        if let Some(place) = self.right.get(index) {
            place.rcu(|before| match before {
                Some(before) if before.digests.contains(&digest) => Some(Arc::clone(before)),
                before => {
                    let last = before.as_ref().map_or(digest, |before| before.digests[0]);
                    Some(Arc::new(Right { name: Arc::clone(&name), digests: [digest, last] }))
                }
            });
        }
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
        let file = format!("ann:{hash}\nbob:{{SHA}}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
        let users = Users::read(file.as_bytes()).unwrap();
        let bob = credentials("bob", "secret");
        assert_eq!(users.check(&bob).as_deref(), Some("bob"));
        let all: Vec<Credentials> =
            (0..6).map(|more| credentials("ann", &"x".repeat(72 + more))).collect();
        for right in &all {
            // The second time changes nothing.
            assert_eq!(users.check(right).as_deref(), Some("ann"));
            assert_eq!(users.check(right).as_deref(), Some("ann"));
        }
        let known: Vec<bool> = all.iter().map(|one| users.knows(one).is_some()).collect();
        assert_eq!(known, [false, false, false, false, true, true]);
        assert_eq!(users.knows(&bob).as_deref(), Some("bob"), "one user takes no place of another");
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
