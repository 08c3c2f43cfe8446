//! The affinity cookie: its value, and how that is recognised.
//!
//! The value is a keyed hash (SipHash-2-4, 128 bits) of the server's address. A client learns nothing from it:
//! neither the address nor the number of servers. As the key is secret, a client cannot make the value of a
//! server that it was never given. It may send a value that it was given as often as it likes, which is what
//! the cookie is for.

use std::hash::Hasher as _;
use std::time::Duration;

use siphasher::sip128::{Hasher128 as _, SipHasher24};

/// Bytes of a value: 128 bits in hexadecimal digits.
pub(crate) const LENGTH: usize = 32;

/// The attributes of the cookie (RFC 6265, section 4.1, and its revision).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CookieSettings {
    /// Whether it has `Secure`: then it is sent over TLS only.
    pub secure: Secure,
    /// With which requests of other sites it is sent.
    pub same_site: SameSite,
    /// How long it is kept; `None`: as long as the browser's session.
    pub lifetime: Option<Duration>,
}

/// When the cookie has `Secure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Secure {
    /// If the request came over TLS.
    #[default]
    Auto,
    /// Always: something in front speaks TLS.
    Always,
    /// Never.
    Never,
}

/// `SameSite` of a cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameSite {
    /// Only requests of the site itself.
    Strict,
    /// These, and links from other sites.
    #[default]
    Lax,
    /// All. Browsers take this from a cookie with `Secure` only, so without it nothing is said.
    None,
}

/// The value of a Set-Cookie field, over TLS and without it.
#[derive(Debug)]
pub(super) struct SetCookie {
    over_tls: Vec<u8>,
    plainly: Vec<u8>,
}

impl SetCookie {
    /// Of a cookie of this name and value.
    pub(super) fn new(name: &str, value: &[u8; LENGTH], settings: &CookieSettings) -> Self {
        let field = |over_tls| {
            let is_secure = match settings.secure {
                Secure::Auto => over_tls,
                Secure::Always => true,
                Secure::Never => false,
            };
            let same_site: &[u8] = match settings.same_site {
                SameSite::Strict => b"; SameSite=Strict",
                SameSite::Lax => b"; SameSite=Lax",
                SameSite::None if is_secure => b"; SameSite=None",
                SameSite::None => b"",
            };
            let secure: &[u8] = if is_secure { b"; Secure" } else { b"" };
            let lifetime = settings.lifetime.map(|time| format!("; Max-Age={}", time.as_secs()));
            let lifetime = lifetime.unwrap_or_default();
            let parts: [&[u8]; 7] = [
                name.as_bytes(),
                b"=",
                value,
                b"; Path=/; HttpOnly",
                secure,
                same_site,
                lifetime.as_bytes(),
            ];
            parts.concat()
        };
        Self { over_tls: field(true), plainly: field(false) }
    }

    /// For a client that came over TLS, or not.
    pub(super) fn of(&self, over_tls: bool) -> &[u8] {
        if over_tls { &self.over_tls } else { &self.plainly }
    }
}

/// The secret behind the values of a group.
#[derive(Clone)]
pub(crate) struct Secret([u8; 16]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// From a text in the configuration.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(digest(&[0; 16], text.as_bytes()))
    }

    /// A random secret. The system seeds every `RandomState`.
    pub(crate) fn random() -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        let [first, second] = [(); 2].map(|()| RandomState::new().hash_one(()));
        let mut key = [0; 16];
        let (low, high) = key.split_at_mut(8);
        low.copy_from_slice(&first.to_le_bytes());
        high.copy_from_slice(&second.to_le_bytes());
        Self(key)
    }

    /// The value for the server at `address`, in the group of that name.
    pub(crate) fn value(&self, group: &str, address: &str) -> [u8; LENGTH] {
        let text = format!("{group}\0{address}");
        let mut value = [0; LENGTH];
        for (place, byte) in value.chunks_exact_mut(2).zip(digest(&self.0, text.as_bytes())) {
            place.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        value
    }
}

/// Whether `sent` is `value`. The comparison takes equally long wherever they differ.
pub(crate) fn is(sent: &[u8], value: &[u8; LENGTH]) -> bool {
    sent.len() == LENGTH && sent.iter().zip(value).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn digest(key: &[u8; 16], bytes: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}

fn digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + (nibble - 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_after_a_restart_and_another_for_anyone_else() {
        let secret = Secret::from_text("correct horse");
        let value = secret.value("app", "10.0.0.1:80");
        assert_eq!(value, Secret::from_text("correct horse").value("app", "10.0.0.1:80"));
        assert!(value.iter().all(|byte| byte.is_ascii_hexdigit()));
        for other in [
            secret.value("app", "10.0.0.2:80"),
            secret.value("api", "10.0.0.1:80"),
            Secret::from_text("correct horsf").value("app", "10.0.0.1:80"),
            Secret::random().value("app", "10.0.0.1:80"),
        ] {
            assert_ne!(value, other);
        }
    }

    #[test]
    fn browsers_are_told_what_the_settings_say() {
        let value = [b'0'; LENGTH];
        let zeros = "0".repeat(LENGTH);
        let of = |secure, same_site, lifetime: Option<u64>| {
            let lifetime = lifetime.map(Duration::from_secs);
            let settings = CookieSettings { secure, same_site, lifetime };
            let field = SetCookie::new("app", &value, &settings);
            [true, false].map(|tls| {
                let text = str::from_utf8(field.of(tls)).unwrap().to_owned();
                text.strip_prefix(&format!("app={zeros}; Path=/; HttpOnly")).unwrap().to_owned()
            })
        };
        let expected = |tls: &str, plain: &str| [tls.to_owned(), plain.to_owned()];
        assert_eq!(
            of(Secure::Auto, SameSite::Lax, None),
            expected("; Secure; SameSite=Lax", "; SameSite=Lax")
        );
        assert_eq!(
            of(Secure::Always, SameSite::None, Some(3600)),
            expected(
                "; Secure; SameSite=None; Max-Age=3600",
                "; Secure; SameSite=None; Max-Age=3600"
            )
        );
        assert_eq!(
            of(Secure::Never, SameSite::Strict, None),
            expected("; SameSite=Strict", "; SameSite=Strict")
        );
        assert_eq!(of(Secure::Auto, SameSite::None, None), expected("; Secure; SameSite=None", ""));
    }

    #[test]
    fn only_the_whole_value_is_recognised() {
        let value = Secret::random().value("app", "10.0.0.1:80");
        assert!(is(&value, &value));
        assert!(!is(&value[..31], &value) && !is(b"", &value));
        for at in 0..LENGTH {
            let mut wrong = value;
            wrong[at] ^= 1;
            assert!(!is(&wrong, &value));
        }
    }

    #[test]
    fn two_random_secrets_differ() {
        assert_ne!(Secret::random().0, Secret::random().0);
        assert_eq!(format!("{:?}", Secret::random()), "Secret");
    }
}
