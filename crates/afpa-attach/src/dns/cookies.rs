//! The server's cookies (RFC 7873, 9018), whose secret the operator has given: the programs make them then, and check them. No I/O
//! but the file of the secret.

use std::net::IpAddr;
use std::path::Path;

use afpa_dns::Secrets;
use afpa_dns::cookie::WHOLE;
use anyhow::{Context as _, bail};

use super::key::{COOKIE, OPT};

/// Bytes of the option with a whole cookie.
pub const OPTION: usize = 4 + WHOLE;

/// The secret of the server's cookies.
#[derive(Clone)]
pub struct Cookies {
    secrets: Secrets,
    secret: [u8; 16],
}

impl Cookies {
    /// Reads the secret: 32 hexadecimal digits, as `cookie-secret` of NSD and BIND has them.
    ///
    /// # Errors
    /// When there is no such file, or none in it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("--cookie-secret {shown} cannot be read"))?;
        match secret(&text) {
            Some(secret) => Ok(Self::new(secret)),
            None => bail!(
                "--cookie-secret {shown} has no 32 hexadecimal digits: write the server's `cookie-secret` there"
            ),
        }
    }

    fn new(secret: [u8; 16]) -> Self {
        Self { secrets: Secrets::new(vec![secret]), secret }
    }

    /// The two words of the key, as the programs have them.
    pub fn words(&self) -> [u64; 2] {
        let (words, _) = self.secret.as_chunks::<8>();
        std::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// Takes the cookie off the end of an answer, if the server has made it with this secret for this client, about now, out of
    /// the one at the end of the query. False: the answer is as it was.
    pub fn strip(&self, query: &[u8], answer: &mut Vec<u8>, client: IpAddr, now: u32) -> bool {
        let Some((begin, cookie)) = cookie_of(query, answer) else { return false };
        if !self.secrets.prove(cookie, client, now) {
            return false;
        }
        answer.truncate(begin + OPT);
        if let Some(length) = answer.last_mut() {
            *length = 0;
        }
        true
    }
}

impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cookies(..)")
    }
}

/// Whether an answer ends with a cookie of the server's, made out of the one at the end of the query.
pub fn has_cookie(query: &[u8], answer: &[u8]) -> bool {
    cookie_of(query, answer).is_some()
}

/// Where the OPT record at the end of an answer begins, and the whole cookie in it.
fn cookie_of<'a>(query: &[u8], answer: &'a [u8]) -> Option<(usize, &'a [u8])> {
    let begin = answer.len().checked_sub(OPT + OPTION)?;
    let (opt, option) = answer.get(begin..)?.split_at_checked(OPT)?;
    let is_opt = opt.starts_with(&[0, 0, 41]) && opt.ends_with(&[0, OPTION as u8]);
    let (&[0, 10, 0, length], cookie) = option.split_first_chunk::<4>()? else { return None };
    let own = query.last_chunk::<8>().filter(|_| query.len() > COOKIE);
    let is_own = usize::from(length) == WHOLE && own.is_some_and(|own| cookie.starts_with(own));
    (is_opt && is_own).then_some((begin, cookie))
}

fn secret(text: &str) -> Option<[u8; 16]> {
    let mut words = text.split(|c: char| !c.is_ascii_hexdigit());
    let digits = words.find(|word| word.len() == 32)?;
    let number = u128::from_str_radix(digits, 16).ok()?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::key::{self, Case};
    use super::*;
    use afpa_bpf::dns::abi::dns_bit;

    #[test]
    fn a_cookie_of_the_servers_is_taken_off() {
        let cookies =
            Cookies::new(secret("cookie-secret: e5e973e5a6b2a43f48e7dc849e37bfcf\n").unwrap());
        let client = "198.51.100.100".parse().unwrap();
        let key = key::key(&key::read("a.example").unwrap(), 1, dns_bit::EDNS | dns_bit::COOKIE, 0);
        let query = key::query(&key.unwrap(), 1, 1232, Case::Lower, 77);
        let mut plain = query[..query.len() - 12].to_vec();
        *plain.last_mut().unwrap() = 0;
        let mut answer = plain.clone();
        *answer.last_mut().unwrap() = OPTION as u8;
        answer.extend([0, 10, 0, 24]);
        answer
            .extend(cookies.secrets.renew(query.last_chunk::<8>().unwrap(), client, 1000).unwrap());
        for (client, now, is_taken) in [
            (client, 1000, true),
            ("198.51.100.101".parse().unwrap(), 1000, false),
            (client, 9000, false),
        ] {
            let mut stripped = answer.clone();
            assert_eq!(cookies.strip(&query, &mut stripped, client, now), is_taken);
            assert_eq!(has_cookie(&query, &stripped), !is_taken);
            assert_eq!(stripped, if is_taken { plain.clone() } else { answer.clone() });
        }
        for cut in 0..answer.len() {
            assert!(!cookies.strip(&query, &mut answer[..cut].to_vec(), client, 1000));
        }
    }

    #[test]
    fn secrets_have_32_digits() {
        assert_eq!(secret("0123456789abcdef0123456789ABCDEF").map(|secret| secret[1]), Some(0x23));
        assert_eq!(secret("0123"), None);
        assert_eq!(secret(""), None);
    }
}
