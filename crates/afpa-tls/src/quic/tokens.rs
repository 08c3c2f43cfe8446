//! Tokens of a Retry that the kernel's program makes and checks without state (`bpf/include/afpa/quic/token.h`), beside those
//! that the transport seals.
//!
//! ```text
//! 0 | 1 | client's address (16) | port (2) | length | first id | seconds since 1970 (8) | own id (8) | SipHash-2-4 of all (8)
//! ```
//!
//! All before the own id is the content of a Retry token as the transport has it, so opening is comparing the hash. The transport
//! keeps the last 16 bytes of a token apart: it asks for a key by them.

use std::hash::Hasher as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey};
use siphasher::sip::SipHasher24;

use super::QuicKeys;

/// Seconds for which a token holds: the kernel's program takes only younger ones. The transport's own, by default.
pub const TOKEN_LIFE: u64 = 15;

/// Each key of tokens has a period of so many seconds, as a shift.
const PERIOD_SHIFT: u32 = 6;

/// The number of the period in which a second since 1970 lies.
pub fn period_of(second: u64) -> u64 {
    second >> PERIOD_SHIFT
}

/// Bytes before the hashed end: without the first id, 29; and own id and hash.
const BARE: usize = 29;
const END: usize = 16;
/// Of an IPv4 address in one of IPv6.
const MAPPED: usize = 12;

/// The token that the kernel's program makes under a key, for tests of both.
pub fn make_token(
    key: &[u8; 16],
    client: SocketAddr,
    first: &[u8],
    second: u64,
    own: [u8; 8],
) -> Vec<u8> {
    let address = match client.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut token = vec![0, 1];
    token.extend(address.octets());
    token.extend(client.port().to_be_bytes());
    token.push(first.len() as u8);
    token.extend(first);
    token.extend(second.to_be_bytes());
    token.extend(own);
    let hash = hash(key, &[&token]);
    token.extend(hash);
    token
}

fn hash(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 8] {
    let mut hasher = SipHasher24::new_with_key(key);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish().to_le_bytes()
}

/// The keys of tokens at one address.
pub(super) struct Tokens {
    keys: QuicKeys,
    /// The socket takes IPv4 alone, whose addresses the transport then has as they are.
    ipv4: bool,
}

impl Tokens {
    pub(super) fn new(keys: QuicKeys, ipv4: bool) -> Self {
        Self { keys, ipv4 }
    }
}

impl HandshakeTokenKey for Tokens {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey> {
        let Self { keys, ipv4 } = self;
        Box::new(Opener { keys: keys.clone(), ipv4: *ipv4, end: random_bytes.to_vec() })
    }
}

/// For one token.
struct Opener {
    keys: QuicKeys,
    ipv4: bool,
    /// The token's last bytes, which are random where it is sealed.
    end: Vec<u8>,
}

impl Opener {
    fn sealed(&self) -> Box<dyn AeadKey> {
        Arc::clone(&self.keys.sealed).aead_from_hkdf(&self.end)
    }

    /// Whether it is a token of the kernel's program, of this time or nearly.
    fn is_plain(&self, data: &[u8], now: u64) -> bool {
        let [0, 1, rest @ ..] = data else { return false };
        let Some((own, said)) = self.end.split_at_checked(END / 2) else { return false };
        let (Some(&length), Some(second)) = (rest.get(18), data.last_chunk()) else { return false };
        if data.len() != BARE + usize::from(length) || length > 20 {
            return false;
        }
        let period = period_of(u64::from_be_bytes(*second));
        if period.abs_diff(period_of(now)) > 1 {
            return false;
        }
        let known = hash(&self.keys.token_key(period), &[data, own]);
        verify_slices_are_equal(&known, said).is_ok()
    }
}

impl AeadKey for Opener {
    fn seal(&self, data: &mut Vec<u8>, additional_data: &[u8]) -> Result<(), CryptoError> {
        self.sealed().seal(data, additional_data)
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        if !self.is_plain(data, now.map_or(0, |now| now.as_secs())) {
            return self.sealed().open(data, additional_data);
        }
        if !self.ipv4 {
            return Ok(data);
        }
        // The address stands at 2: its last four bytes, behind a kind and a family of their own.
        let shorter = data.get_mut(MAPPED..).ok_or(CryptoError)?;
        shorter.get_mut(..2).ok_or(CryptoError)?.fill(0);
        Ok(shorter)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SECRET, Secret};
    use super::*;

    fn now() -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("after 1970").as_secs()
    }

    /// As the transport opens it.
    fn open(keys: &QuicKeys, socket: &str, token: &[u8]) -> Option<Vec<u8>> {
        let (data, end) = token.split_at_checked(token.len().checked_sub(END)?)?;
        let tokens = keys.tokens_at(socket.parse().expect("an address"));
        let mut data = data.to_vec();
        tokens.aead_from_hkdf(end).open(&mut data, &[]).ok().map(|data| data.to_vec())
    }

    fn token(keys: &QuicKeys, client: &str, second: u64) -> Vec<u8> {
        let client = client.parse().expect("an address");
        make_token(&keys.token_key(period_of(second)), client, b"first id", second, *b"own id..")
    }

    #[test]
    fn tokens_are_opened_as_the_transport_has_them() {
        let keys = Secret::of([1; SECRET]).keys();
        let now = now();
        let end = [&[8][..], b"first id", &now.to_be_bytes()].concat();
        let v4 = token(&keys, "192.0.2.7:1234", now);
        let expected = [&[0, 0, 192, 0, 2, 7, 4, 210][..], &end].concat();
        assert_eq!(open(&keys, "0.0.0.0:443", &v4), Some(expected));
        let mapped = [&[0, 1][..], &[0; 10], &[255, 255, 192, 0, 2, 7, 4, 210], &end].concat();
        assert_eq!(open(&keys, "[::]:443", &v4), Some(mapped), "of a socket for both families");
        let v6 = token(&keys, "[2001:db8::7]:1234", now);
        assert_eq!(open(&keys, "[::]:443", &v6).map(|data| data[2..4].to_vec()), Some(vec![32, 1]));
    }

    #[test]
    fn tokens_that_were_changed_or_are_of_another_time_or_key_are_not_opened() {
        let (keys, other) = (Secret::of([1; SECRET]).keys(), Secret::of([2; SECRET]).keys());
        let now = now();
        let whole = token(&keys, "192.0.2.7:1234", now);
        assert!(open(&keys, "0.0.0.0:443", &whole).is_some());
        assert_eq!(open(&other, "0.0.0.0:443", &whole), None);
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 4;
            assert_eq!(open(&keys, "0.0.0.0:443", &wrong), None, "byte {at}");
            assert_eq!(open(&keys, "0.0.0.0:443", &whole[..at]), None, "{at} bytes");
        }
        // Both keys hold where one follows the other; older tokens have none.
        for (age, holds) in [(64, true), (200, false)] {
            let old = token(&keys, "192.0.2.7:1234", now - age);
            assert_eq!(open(&keys, "0.0.0.0:443", &old).is_some(), holds, "{age}");
        }
    }
}
