//! Server cookies (RFC 7873, RFC 9018): a client that shows one has got an answer of ours before, so its address is its own.

use std::hash::Hasher as _;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;

/// Bytes of a whole cookie: the client's 8, and the server's 16.
pub const WHOLE: usize = 24;
const CLIENT: usize = 8;
const VERSION: u8 = 1;
/// RFC 9018 section 4.3: a cookie may be an hour old, and five minutes ahead.
const OLDEST: u32 = 3600;
const AHEAD: u32 = 300;

/// The secrets, of which the first one makes cookies and all prove them.
#[derive(Clone, Default)]
pub struct Secrets(Vec<[u8; 16]>);

impl Secrets {
    /// The secret in use, and those before it.
    pub fn new(secrets: Vec<[u8; 16]>) -> Self {
        Self(secrets)
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// The whole cookie for the client part of this one; `None` without a secret.
    pub fn renew(&self, cookie: &[u8], client: IpAddr, now: u32) -> Option<[u8; WHOLE]> {
        let own = cookie.first_chunk::<CLIENT>()?;
        Some(whole(self.0.first()?, own, [VERSION, 0, 0, 0], now, client))
    }

    /// Whether a cookie was made for this client, within the hour.
    pub fn prove(&self, cookie: &[u8], client: IpAddr, now: u32) -> bool {
        let Ok(cookie): Result<&[u8; WHOLE], _> = cookie.try_into() else { return false };
        let Some((c, rest)) = cookie.split_first_chunk::<CLIENT>() else { return false };
        let [version, r0, r1, r2, t0, t1, t2, t3, ..] = *rest else { return false };
        let time = u32::from_be_bytes([t0, t1, t2, t3]);
        // The clock of cookies wraps around (RFC 1982).
        let age = now.wrapping_sub(time) as i32;
        if version != VERSION || age > OLDEST as i32 || age < -(AHEAD as i32) {
            return false;
        }
        let same = |secret| {
            let right = whole(secret, c, [version, r0, r1, r2], time, client);
            right.iter().zip(cookie).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
        };
        self.0.iter().any(same)
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

fn whole(
    secret: &[u8; 16],
    client_part: &[u8; CLIENT],
    head: [u8; 4],
    time: u32,
    client: IpAddr,
) -> [u8; WHOLE] {
    let mut cookie = [0; WHOLE];
    let parts: [&[u8]; 3] = [client_part, &head, &time.to_be_bytes()];
    let mut hasher = SipHasher24::new_with_key(secret);
    let mut at = 0;
    for part in parts {
        hasher.write(part);
        cookie[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    match client {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        IpAddr::V6(address) => hasher.write(&address.octets()),
    }
    // RFC 9018 takes the bytes of the hash as the algorithm gives them, the lowest first.
    cookie[at..].copy_from_slice(&hasher.finish().to_le_bytes());
    cookie
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = [
        0xe5, 0xe9, 0x73, 0xe5, 0xa6, 0xb2, 0xa4, 0x3f, 0x48, 0xe7, 0xdc, 0x84, 0x9e, 0x37, 0xbf,
        0xcf,
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
            .collect()
    }

    /// RFC 9018 appendices A.1 and A.3.
    #[test]
    fn cookies_are_those_of_the_rfc() {
        let secrets = Secrets::new(vec![SECRET]);
        let client = "198.51.100.100".parse().expect("an address");
        let cookie =
            secrets.renew(&bytes("2464c4abcf10c957"), client, 1_559_731_985).expect("a secret");
        assert_eq!(cookie.to_vec(), bytes("2464c4abcf10c957010000005cf79f111f8130c3eee29480"));
        let other = "203.0.113.203".parse().expect("an address");
        let with_reserved = bytes("fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5");
        assert!(secrets.prove(&with_reserved, other, 1_559_727_985));
        assert!(!secrets.prove(&with_reserved, client, 1_559_727_985), "it is another client's");
    }

    /// RFC 9018 appendix A.4: IPv6, and a secret that was replaced.
    #[test]
    fn the_secret_before_still_proves() {
        let old = bytes("dd3bdf9344b678b185a6f5cb60fca715");
        let new = bytes("445536bcd2513298075a5d379663c962");
        let of = |bytes: &[u8]| <[u8; 16]>::try_from(bytes).expect("16 bytes");
        let client = "2001:db8:220:1:59de:d0f4:8769:82b8".parse().expect("an address");
        let cookie = bytes("22681ab97d52c298010000005cf7c57926556bd0934c72f8");
        assert!(Secrets::new(vec![of(&new), of(&old)]).prove(&cookie, client, 1_559_741_961));
        assert!(!Secrets::new(vec![of(&new)]).prove(&cookie, client, 1_559_741_961));
        let renewed = Secrets::new(vec![of(&new), of(&old)]).renew(&cookie, client, 1_559_741_961);
        assert_eq!(
            renewed.map(|c| c.to_vec()),
            Some(bytes("22681ab97d52c298010000005cf7c609a6bb79d16625507a"))
        );
    }

    #[test]
    fn a_cookie_lasts_an_hour() {
        let secrets = Secrets::new(vec![SECRET]);
        let client = "192.0.2.1".parse().expect("an address");
        let cookie = secrets.renew(&[7; 8], client, 10_000).expect("a secret");
        for (now, proves) in
            [(10_000, true), (13_600, true), (13_601, false), (9_700, true), (9_699, false)]
        {
            assert_eq!(secrets.prove(&cookie, client, now), proves, "{now}");
        }
        assert!(!secrets.prove(&cookie[..8], client, 10_000));
        assert!(!Secrets::default().prove(&cookie, client, 10_000));
    }
}
