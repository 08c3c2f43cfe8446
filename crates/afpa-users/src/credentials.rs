//! The credentials that a client sends.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// A name and a password, decoded. Neither has control characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name, a colon, the password.
    bytes: Vec<u8>,
    colon: usize,
}

/// Bytes of the longest password that is checked. The time of some checks grows with the square of the length.
const LONGEST: usize = 512;

/// Clients differ in what stands behind the last letter.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Credentials {
    /// Reads the value of Authorization (RFC 7617 section 2). `None`: it is of another scheme, or malformed.
    pub fn of(value: &[u8]) -> Option<Self> {
        let (scheme, rest) = value.split_at_checked("Basic".len())?;
        if !scheme.eq_ignore_ascii_case(b"Basic") || rest.first() != Some(&b' ') {
            return None;
        }
        let bytes = BASE64.decode(rest.trim_ascii()).ok()?;
        let colon = bytes.iter().position(|&byte| byte == b':')?;
        let is_control = |byte: &u8| byte.is_ascii_control();
        let too_long = bytes.len() - colon > LONGEST;
        (!too_long && !bytes.iter().any(is_control)).then_some(Self { bytes, colon })
    }

    /// The name.
    pub fn user(&self) -> &[u8] {
        self.bytes.get(..self.colon).unwrap_or_default()
    }

    /// The password.
    pub fn password(&self) -> &[u8] {
        self.bytes.get(self.colon + 1..).unwrap_or_default()
    }

    /// Both, with the colon between them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The password is not for logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = String::from_utf8_lossy(self.user());
        f.debug_struct("Credentials").field("user", &user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_password_are_read_as_clients_send_them() {
        let read = |value: &str| {
            let read = Credentials::of(value.as_bytes())?;
            Some((read.user().to_vec(), read.password().to_vec()))
        };
        let pair = |user: &str, password: &str| Some((user.into(), password.into()));
        assert_eq!(read("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), pair("Aladdin", "open sesame"));
        // The example of RFC 7617 section 2.1: the password has a pound sign.
        assert_eq!(read("basic  dGVzdDoxMjPCow=="), pair("test", "123£"));
        assert_eq!(read("BASIC dGVzdDoxMjPCow"), pair("test", "123£"));
        assert_eq!(read("Basic YTpiOmM="), pair("a", "b:c"));
        assert_eq!(read("Basic Og=="), pair("", ""));
        for none in [
            "",
            "Basic",
            "Basic ",
            "BasicYTpi",
            "Basic\tYTpi",
            "Bearer YTpi",
            "Basic YWI=",
            "Basic Y%Tpi",
            "Basic YTpi, x",
            // Control characters: "a\0:b" and "a:b\n".
            "Basic YQA6Yg==",
            "Basic YTpiCg==",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
        let long = |length: usize| BASE64.encode(format!("a:{}", "x".repeat(length)));
        assert!(read(&format!("Basic {}", long(LONGEST - 1))).is_some());
        assert!(read(&format!("Basic {}", long(LONGEST))).is_none());
        let shown = format!("{:?}", Credentials::of(b"Basic YTpzZWNyZXQ="));
        assert!(shown.contains("\"a\"") && !shown.contains("secret"), "{shown}");
    }
}
