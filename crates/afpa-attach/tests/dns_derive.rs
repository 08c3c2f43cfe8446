//! The programs' derivation of DNS keys, and `derive` of this crate: the same key, or the same reason, for any bytes.

#[path = "../../afpa-bpf/tests/compiled/mod.rs"]
#[allow(unreachable_pub)]
mod compiled;

use std::net::IpAddr;

use afpa_attach::dns::key::{Case, Hash, derive, key, query, read};
use afpa_bpf::dns::abi::{DNS_WAYS, DnsSeed, Reason, dns_bit};
use afpa_dns::Secrets;
use compiled::Compiled;

const GENERATED: usize = 200_000;
const SERVER: u32 = 3;

/// A generator of numbers that a seed repeats (xorshift).
struct Chance(u64);

impl Chance {
    fn number(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % below
    }

    fn name(&mut self) -> Vec<u8> {
        let mut name = Vec::new();
        // One of four is longer than names usually are.
        let (labels, most) = if self.number(4) == 0 { (12, 63) } else { (5, 24) };
        for _ in 0..self.number(labels) {
            let length = self.number(most) + 1;
            name.push(length as u8);
            name.extend((0..length).map(|_| b"abcXYZ019-_@[`{\xc0\xe1"[self.number(17)]));
        }
        name.push(0);
        name
    }

    /// A plain query, with up to three changes.
    fn message(&mut self) -> Vec<u8> {
        let name = self.name();
        let kind = [1, 28, 15, 6, 255, 252, 251, 0xffff][self.number(8)];
        let edns = if self.number(2) == 0 { dns_bit::EDNS } else { 0 };
        let bits = self.number(32) as u8 & !dns_bit::EDNS & !dns_bit::DO; // nor a cookie
        let mut if_edns = |bit: u8| if edns != 0 && self.number(2) == 0 { bit } else { 0 };
        let dnssec = if_edns(dns_bit::DO) | if_edns(dns_bit::COOKIE);
        let made = key(&name[..name.len().min(255)], kind, bits | edns | dnssec, SERVER);
        let Some(made) = made else { return name };
        let size = [0, 100, 512, 1232, 4096, 65535][self.number(6)];
        let mut message =
            query(&made, self.number(65536) as u16, size, Case::Mixed(self.0), self.0);
        if made.bits & dns_bit::COOKIE != 0 && self.number(2) == 0 {
            // With the server's part.
            let end = message.len();
            message[end - 13] = 28;
            message[end - 9] = 24;
            message.extend([1; 16]);
        }
        for _ in 0..self.number(4) {
            match self.number(5) {
                0 => message.truncate(self.number(message.len().max(1))),
                1 => message.extend((0..self.number(80)).map(|at| at as u8)),
                2 if message.len() > 12 => message[self.number(12)] ^= 1 << self.number(8),
                _ if !message.is_empty() => {
                    let at = self.number(message.len());
                    message[at] = self.number(256) as u8;
                }
                _ => {}
            }
        }
        message
    }
}

/// The answer of the C program: reason, buffer, mixed, type with length and bits; check and word; the first place.
fn ask(
    compiled: &mut Compiled,
    message: &[u8],
    knows_cookies: bool,
) -> ([u32; 4], [u64; 2], usize) {
    let mut answer = [0; 4 * 4 + 2 * 8 + 4];
    let flag = u32::from(knows_cookies) << 31;
    compiled.write(&(message.len() as u32 | flag).to_ne_bytes());
    compiled.write(message);
    compiled.read(&mut answer);
    let number = |at: usize| u32::from_ne_bytes(answer[at..][..4].try_into().unwrap());
    let word = |at: usize| u64::from_ne_bytes(answer[at..][..8].try_into().unwrap());
    ([0, 4, 8, 12].map(number), [16, 24].map(word), number(32) as usize * DNS_WAYS)
}

fn compare(compiled: &mut Compiled, seed: &DnsSeed, message: &[u8]) -> bool {
    let known = compare_by(compiled, seed, message, true);
    compare_by(compiled, seed, message, false) || known
}

fn compare_by(
    compiled: &mut Compiled,
    seed: &DnsSeed,
    message: &[u8],
    knows_cookies: bool,
) -> bool {
    let ([reason, buffer, mixed, kind], [check, word], place) =
        ask(compiled, message, knows_cookies);
    match derive(message, SERVER, knows_cookies) {
        Err(why) => {
            assert_eq!((reason, buffer), (why as u32, 0), "{message:02x?}");
            false
        }
        Ok(question) => {
            assert_eq!(reason, Reason::Answered as u32, "{message:02x?}");
            assert_eq!((buffer, mixed), (question.buffer.into(), question.mixed.into()));
            let key = question.key;
            let length = key.name.len() as u32;
            let ours = u32::from(key.kind.to_be()) | length << 16 | u32::from(key.bits) << 24;
            assert_eq!(kind, ours, "{message:02x?}");
            let hash = Hash::of(&key, seed);
            assert_eq!((check, word), (hash.check, hash.word(5, 7, 3)), "{message:02x?}");
            assert_eq!(place, hash.places().start);
            true
        }
    }
}

#[test]
fn c_and_rust_derive_the_same_keys() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut compiled) =
        Compiled::start("crates/afpa-attach/tests/dns_derive.c", folder.path())
    else {
        return;
    };
    let seed = std::env::var("AFPA_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut chance = Chance(seed.unwrap_or(0x1234_5678_9abc_def1));
    let seed: Vec<u8> = (0..size_of::<DnsSeed>()).map(|_| chance.number(256) as u8).collect();
    compiled.write(&seed);
    let seed = DnsSeed::from_bytes(&seed).unwrap();
    let plain = key(&read("www.example.org").unwrap(), 1, 0, SERVER).unwrap();
    assert!(compare(&mut compiled, &seed, &query(&plain, 1, 512, Case::Lower, 0)));
    for length in 1..=255 {
        // A byte of each length, whatever it says.
        let name: Vec<u8> = (0..length).map(|at| at as u8 | 0x40).collect();
        let long = key(&name, 1, dns_bit::EDNS, SERVER).unwrap();
        assert!(compare(&mut compiled, &seed, &query(&long, 1, 512, Case::Mixed(0x3c5a), 0)));
    }
    let answerable = (0..GENERATED).filter(|_| {
        let message = chance.message();
        compare(&mut compiled, &seed, &message)
    });
    let count = answerable.count();
    assert!(count > GENERATED / 10, "only {count} were plain queries");
}

#[test]
fn c_and_rust_make_the_same_cookies() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut compiled) =
        Compiled::start("crates/afpa-attach/tests/dns_cookie.c", folder.path())
    else {
        return;
    };
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for turn in 0..5000u32 {
        let secret: [u8; 16] = std::array::from_fn(|_| chance.number(256) as u8);
        let own: [u8; 8] = std::array::from_fn(|_| chance.number(256) as u8);
        let (v4, v6): ([u8; 4], [u8; 16]) = (
            std::array::from_fn(|_| chance.number(256) as u8),
            std::array::from_fn(|_| chance.number(256) as u8),
        );
        let is_v6 = turn % 2 == 1;
        let client: IpAddr = if is_v6 { v6.into() } else { v4.into() };
        let bytes = if is_v6 { v6 } else { [[0; 12].as_slice(), &v4].concat().try_into().unwrap() };
        let secrets = Secrets::new(vec![secret]);
        let (now, age) = (chance.number(1 << 32) as u32, chance.number(4500) as u32);
        let mut cookie =
            secrets.renew(&own, client, now.wrapping_sub(age).wrapping_add(400)).unwrap();
        let changed = chance.number(4);
        if changed == 0 {
            cookie[chance.number(24)] ^= 1 << chance.number(8);
        }
        for part in [&secret[..], &cookie, &bytes, &now.to_ne_bytes()] {
            compiled.write(part);
        }
        compiled.write(&u32::from(is_v6).to_ne_bytes());
        let mut answer = [0; 4 + 28];
        compiled.read(&mut answer);
        let proves = secrets.prove(&cookie, client, now);
        assert_eq!(answer[0] == 1, proves, "{cookie:02x?} at {now}");
        let is_young = age <= 1800 + 400;
        let expected = match proves && is_young {
            true => cookie,
            false => secrets.renew(&cookie, client, now).unwrap(),
        };
        assert_eq!(answer[4..8], [0, 10, 0, 24]);
        // A changed time may be another age; all else is sure.
        if changed != 0 {
            assert_eq!(answer[8..], expected, "{cookie:02x?} at {now}");
        }
    }
}
