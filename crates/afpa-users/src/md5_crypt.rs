//! The hash of `htpasswd -m` (`$apr1$`), and the same of other systems (`$1$`): MD5, a thousand times.
//!
//! No library that is kept up has it with passwords of any bytes. It is the algorithm of FreeBSD's `crypt` of 1994, as
//! Apache's `apr_md5_encode` has it.

use md5::{Digest, Md5};

/// The letters of the digest, by six bits, the lowest first.
const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The digest of a password as the file has it. `magic`: `$apr1$` or `$1$`.
pub(crate) fn digest(password: &[u8], magic: &[u8], salt: &[u8]) -> [u8; 22] {
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let inner = inner.finalize();
    let mut outer = Md5::new().chain_update(password).chain_update(magic).chain_update(salt);
    for part in password.chunks(inner.len()) {
        outer.update(inner.get(..part.len()).unwrap_or_default());
    }
    let mut bits = password.len();
    while bits > 0 {
        match bits & 1 {
            1 => outer.update([0]),
            _ => outer.update(password.get(..1).unwrap_or_default()),
        }
        bits >>= 1;
    }
    let mut sum: [u8; 16] = outer.finalize().into();
    for round in 0..1000 {
        let is_odd = round & 1 == 1;
        let mut next = Md5::new();
        next.update(if is_odd { password } else { &sum });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if is_odd { &sum } else { password });
        sum = next.finalize().into();
    }
    letters(&sum)
}

/// Three bytes each become four letters, in the order of `crypt`.
fn letters(sum: &[u8; 16]) -> [u8; 22] {
    const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
    let mut out = [0; 22];
    let letter = |bits: u32| LETTERS[(bits & 63) as usize];
    for (part, places) in out.chunks_mut(4).zip(ORDER) {
        let [high, middle, low] = places.map(|place| u32::from(sum[place]));
        let bits = high << 16 | middle << 8 | low;
        for (place, to) in part.iter_mut().enumerate() {
            *to = letter(bits >> (6 * place));
        }
    }
    let last = u32::from(sum[11]);
    (out[20], out[21]) = (letter(last), letter(last >> 6));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_apache_and_openssl() {
        for (password, magic, salt, wanted) in [
            ("secret", "$apr1$", "saltsalt", "LrttParrLPdxvgutaSXWJ0"),
            ("grün £ Ω 漢字", "$apr1$", "saltsalt", "/d7n5DUnJrG15e0cNNpt5/"),
            ("", "$apr1$", "x", "tMwYqBfQwi3FYAr0aJc8M/"),
            ("a password of more than sixteen bytes", "$1$", "abcdefgh", "3/L9AqmLN1Gt0flWzcFyU."),
        ] {
            let digest = digest(password.as_bytes(), magic.as_bytes(), salt.as_bytes());
            assert_eq!(String::from_utf8_lossy(&digest), wanted, "{password}");
        }
    }
}
