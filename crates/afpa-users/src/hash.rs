//! One password of a file, as its hash, and the check against it.

use std::fmt;

use argon2::password_hash::PasswordVerifier as _;
use argon2::password_hash::phc::PasswordHash as Phc;
use argon2::{Argon2, Params};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha_crypt::{PasswordHash as ShaCryptHash, ShaCrypt};

use crate::file::LineProblem;
use crate::md5_crypt;

/// The hash of a password.
pub struct Hash(Kind);

enum Kind {
    Bcrypt(Box<str>),
    Argon2(Box<str>),
    ShaCrypt(ShaCryptHash),
    Md5 { magic: &'static str, salt: Box<[u8]>, digest: Box<[u8]> },
    Sha1 { digest: Box<[u8]>, salt: Box<[u8]> },
}

/// The most that a check may cost. On a common server these bounds are about two seconds of bcrypt, a second or two of
/// argon2, and less than a second of sha-crypt, but up to seven where the password has 511 bytes.
const MOST_BCRYPT: u32 = 15;
const MOST_ROUNDS: u32 = 1_000_000;
const MOST_KIB: u32 = 256 << 10;
/// The time of argon2 grows with its memory and with its passes: 1 GiB once, or 256 MiB four times.
const MOST_KIB_PASSES: u64 = 1 << 20;

/// Kinds of hashes that other programs have: of crypt(5), and of passlib.
const FOREIGN: &[&str] = &[
    "y",
    "gy",
    "7",
    "sm3",
    "2",
    "2x",
    "3",
    "md5",
    "sha1",
    "scrypt",
    "pbkdf2",
    "pbkdf2-sha256",
    "pbkdf2-sha512",
    "bcrypt-sha256",
    "P",
    "H",
];

/// Bytes of a digest of SHA-1.
const SHA1: usize = 20;

impl Hash {
    /// Reads a hash as `htpasswd` and `crypt` write it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, LineProblem> {
        let begins = |beginnings: &[&str]| beginnings.iter().any(|begin| text.starts_with(begin));
        let kind = match () {
            () if begins(&["$2y$", "$2b$", "$2a$"]) => bcrypt(text)?,
            () if begins(&["$argon2id$", "$argon2i$", "$argon2d$"]) => argon2(text)?,
            () if begins(&["$5$", "$6$"]) => sha_crypt(text)?,
            () if begins(&["$apr1$"]) => md5("$apr1$", text)?,
            () if begins(&["$1$"]) => md5("$1$", text)?,
            () if begins(&["{SHA}"]) => sha1(text, "{SHA}", SHA1..=SHA1)?,
            () if begins(&["{SSHA}"]) => sha1(text, "{SSHA}", SHA1 + 1..=64)?,
            () if begins(&["{PLAIN}"]) => return Err(LineProblem::Plain),
            () if is_old_crypt(text) => return Err(LineProblem::OldCrypt),
            () => return Err(foreign(text).map_or(LineProblem::Plain, LineProblem::Unknown)),
        };
        Ok(Self(kind))
    }

    /// Whether it is the hash of this password. This takes its time, and some kinds take memory.
    pub fn is_of(&self, password: &[u8]) -> bool {
        match &self.0 {
            Kind::Bcrypt(text) => bcrypt::verify(password, text).unwrap_or(false),
            Kind::Argon2(text) => Argon2::default().verify_password(password, &**text).is_ok(),
            Kind::ShaCrypt(hash) => ShaCrypt::default().verify_password(password, hash).is_ok(),
            Kind::Md5 { magic, salt, digest } => {
                let own = md5_crypt::digest(password, magic.as_bytes(), salt);
                verify_slices_are_equal(&own, digest).is_ok()
            }
            Kind::Sha1 { digest, salt } => {
                let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                context.update(password);
                context.update(salt);
                verify_slices_are_equal(context.finish().as_ref(), digest).is_ok()
            }
        }
    }
}

/// The hash is not for logs.
impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}

fn bcrypt(text: &str) -> Result<Kind, LineProblem> {
    let parts: bcrypt::HashParts = text.parse().map_err(|_| LineProblem::Malformed("bcrypt"))?;
    match parts.get_cost() {
        ..4 => Err(LineProblem::Malformed("bcrypt")),
        4..=MOST_BCRYPT => Ok(Kind::Bcrypt(text.into())),
        cost => Err(LineProblem::Dear(format!("a cost of {cost}, at most {MOST_BCRYPT}"))),
    }
}

fn argon2(text: &str) -> Result<Kind, LineProblem> {
    let malformed = || LineProblem::Malformed("argon2");
    let hash = Phc::new(text).map_err(|_| malformed())?;
    let params = Params::try_from(&hash).map_err(|_| malformed())?;
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err(malformed());
    }
    let kib_passes = u64::from(params.m_cost()) * u64::from(params.t_cost());
    if params.m_cost() > MOST_KIB || kib_passes > MOST_KIB_PASSES {
        let most = format!("m at most {MOST_KIB} KiB, m times t at most {MOST_KIB_PASSES}");
        return Err(LineProblem::Dear(most));
    }
    Ok(Kind::Argon2(text.into()))
}

fn sha_crypt(text: &str) -> Result<Kind, LineProblem> {
    let malformed = || LineProblem::Malformed("sha-crypt");
    let fields: Vec<&str> = text.split('$').skip(2).collect();
    let (rounds, salt, digest) = match fields[..] {
        [rounds, salt, digest] => (rounds.strip_prefix("rounds="), salt, digest),
        [salt, digest] => (Some("5000"), salt, digest),
        _ => return Err(malformed()),
    };
    let rounds: u32 = rounds.and_then(|rounds| rounds.parse().ok()).ok_or_else(malformed)?;
    let length = if text.starts_with("$5$") { 43 } else { 86 };
    // No password fits a hash without a salt, or with rounds in its place.
    let has_salt = matches!(salt.len(), 1..=16) && !salt.starts_with("rounds=");
    if !has_salt || digest.len() != length || !is_crypt(digest) || rounds < 1000 {
        return Err(malformed());
    }
    if rounds > MOST_ROUNDS {
        return Err(LineProblem::Dear(format!("{rounds} rounds, at most {MOST_ROUNDS}")));
    }
    ShaCryptHash::new(text).map(Kind::ShaCrypt).map_err(|_| malformed())
}

fn md5(magic: &'static str, text: &str) -> Result<Kind, LineProblem> {
    let rest = text.strip_prefix(magic).and_then(|rest| rest.split_once('$'));
    match rest {
        Some((salt, digest)) if salt.len() <= 8 && digest.len() == 22 && is_crypt(digest) => {
            let (salt, digest) = (salt.as_bytes().into(), digest.as_bytes().into());
            Ok(Kind::Md5 { magic, salt, digest })
        }
        _ => Err(LineProblem::Malformed("MD5")),
    }
}

fn sha1(
    text: &str,
    begin: &str,
    lengths: std::ops::RangeInclusive<usize>,
) -> Result<Kind, LineProblem> {
    let bytes = text.strip_prefix(begin).and_then(|rest| BASE64_STANDARD.decode(rest).ok());
    match bytes.as_ref().and_then(|bytes| bytes.split_at_checked(SHA1)) {
        Some((digest, salt)) if lengths.contains(&(SHA1 + salt.len())) => {
            Ok(Kind::Sha1 { digest: digest.into(), salt: salt.into() })
        }
        _ => Err(LineProblem::Malformed("SHA-1")),
    }
}

/// The kind of a hash that other programs know. Only names of this list are shown: a plain password may begin with `$`.
fn foreign(text: &str) -> Option<&'static str> {
    let (name, _) = text.strip_prefix('$')?.split_once(['$', ','])?;
    FOREIGN.iter().copied().find(|&kind| kind == name)
}

/// Whether a text has only letters of `crypt`.
fn is_crypt(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'))
}

/// Whether a text looks like a hash of the first `crypt`, by DES.
fn is_old_crypt(text: &str) -> bool {
    text.len() == 13 && is_crypt(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_fit_the_hashes_of_other_programs() {
        for (password, hash) in [
            ("secret", "$2y$04$ju80xTrGo5BxZGepAFSUpucw0EQ0mNUntJKogzQTwr4hCAEN5G9vm"),
            ("grün £ Ω 漢字", "$2y$04$HTNp8Lw6Rhc1rO4zziKQD.pfd0aof4WsGaTMfgbVxJozJ9fWOv36y"),
            ("grün £", "$apr1$PuzxtjIb$F4IrPIR1Y9J3RXIAvrcGX/"),
            ("secret", "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0"),
            (
                "grün £",
                "$6$abcdefgh$7xIPB8A2OQUpZkFVkQgReayiZzOuNjkvtFziz21CqvFrS0Cx.pNRn0ls7xWdorkBYwWvsYdH1ngzkPC4sbZ7p1",
            ),
            (
                "secret",
                "$6$rounds=1000$abcdefgh$nhYjN017qxiYztzyUpZtPnUQcnLy62KsunSLHNeLahp2EHPlAKmFFlrjEwSXGo2kgY5hR2.peKEg2VGUqIJJu1",
            ),
            ("secret", "$5$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM."),
            ("secret", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="),
            // The reference implementation's own tests.
            (
                "password",
                "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
            ),
        ] {
            let hash = Hash::parse(hash).unwrap_or_else(|why| panic!("{hash}: {why}"));
            assert!(hash.is_of(password.as_bytes()), "{password}");
            // The same text as Latin-1 has other bytes.
            let latin: Vec<u8> = password.chars().map(|letter| letter as u32 as u8).collect();
            assert_eq!(hash.is_of(&latin), password.is_ascii(), "{password}");
            for wrong in ["", "secreT", "secret ", "passwor", "gr\u{fc}n"] {
                assert!(!hash.is_of(wrong.as_bytes()), "{wrong}");
            }
        }
        let salted = "{SSHA}VZf6d1wgQ6hyT3ZjOF2j6s5dGnBzYWx0";
        assert!(!Hash::parse(salted).unwrap().is_of(b"secret"));
    }

    #[test]
    fn no_part_of_a_plain_password_is_shown() {
        for password in ["$ecret1", "$ecret1$", "$ecret$1", "$$ecret", "$y", "$Y$x", "$", "$$"] {
            let why = Hash::parse(password).map(|_| ()).unwrap_err();
            assert_eq!(why, LineProblem::Plain, "{password}");
        }
        for (hash, kind) in [("$md5,rounds=904$salt$x", "md5"), ("$sha1$1$salt$x", "sha1")] {
            let why = Hash::parse(hash).map(|_| ()).unwrap_err();
            assert_eq!(why, LineProblem::Unknown(kind));
            assert_eq!(why.to_string(), format!("hashes of the kind ${kind}$ are not known"));
        }
    }

    #[test]
    fn a_sha_crypt_that_no_password_fits_is_malformed() {
        let digest = "gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.";
        let parse = |text: &str| Hash::parse(text).map(|_| ());
        assert_eq!(parse(&format!("$5$abcdefgh${digest}")), Ok(()));
        let other = digest.replace('.', "-");
        for text in [
            format!("$5$${digest}"),
            format!("$6$${digest}{digest}"),
            format!("$5$rounds=1000$${digest}"),
            format!("$5$rounds=1000${digest}"),
            format!("$5$abcdefgh${other}"),
        ] {
            assert_eq!(parse(&text), Err(LineProblem::Malformed("sha-crypt")), "{text}");
        }
    }

    #[test]
    fn memory_times_passes_of_argon2_is_bounded() {
        let rest = "p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        for (m, t, is_taken) in [
            (64 << 10, 3, true),
            (256 << 10, 4, true),
            (8, 131_072, true),
            (256 << 10, 5, false),
            (64 << 10, 64, false),
            (8, u32::MAX, false),
            ((256 << 10) + 1, 1, false),
        ] {
            let parsed = Hash::parse(&format!("$argon2id$v=19$m={m},t={t},{rest}")).map(|_| ());
            assert_eq!(parsed.is_ok(), is_taken, "m={m},t={t}");
            if let Err(why) = parsed {
                assert!(matches!(why, LineProblem::Dear(_)), "{why}");
            }
        }
        assert!(LineProblem::Plain.remedy().contains("{SSHA}"));
    }

    #[test]
    fn what_is_no_hash_or_a_dear_one_is_refused() {
        let why = |text: &str| Hash::parse(text).map(|_| ()).unwrap_err().to_string();
        for (text, said) in [
            ("secret", "plain"),
            ("", "plain"),
            ("{PLAIN}secret", "plain"),
            ("rqXexS6ZhobKA", "crypt"),
            ("$y$j9T$abc$def", "$y$"),
            ("$2x$04$ju80xTrGo5BxZGepAFSUpucw0EQ0mNUntJKogzQTwr4hCAEN5G9vm", "$2x$"),
            ("$2y$04$ju80xTrGo5BxZGepAFSUpucw0EQ0mNUntJKogzQTwr4hCAEN5G9v", "bcrypt"),
            ("$2y$16$ju80xTrGo5BxZGepAFSUpucw0EQ0mNUntJKogzQTwr4hCAEN5G9vm", "16"),
            ("$apr1$saltsalt$short", "MD5"),
            ("$5$abcdefgh$short", "sha-crypt"),
            (
                "$5$rounds=1000001$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.",
                "1000001 rounds",
            ),
            ("$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ", "argon2"),
            (
                "$argon2id$v=19$m=1048576,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
                "262144 KiB",
            ),
            ("{SHA}abc", "SHA-1"),
        ] {
            let why = why(text);
            assert!(why.contains(said), "{text}: {why}");
            assert!(text.len() < 6 || !why.contains(text), "a hash is not shown: {why}");
        }
    }
}
