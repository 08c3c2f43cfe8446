//! The programs' derivation of DNS keys, and `derive` of this crate: the same key, or the same reason, for any bytes.

#[path = "../../afpa-bpf/tests/compiled/mod.rs"]
#[allow(unreachable_pub)]
mod compiled;

use afpa_attach::dns::key::{Case, derive, key, query, read, word};
use afpa_bpf::dns::abi::{DnsKey, Reason, dns_bit};
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
        for _ in 0..self.number(5) {
            let length = self.number(24) + 1;
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
        let made = key(&name[..name.len().min(64)], kind, bits | edns | dnssec, SERVER);
        let Some(made) = made else { return name };
        let size = [0, 100, 512, 1232, 4096, 65535][self.number(6)];
        let mut message =
            query(&made, self.number(65536) as u16, size, Case::Mixed(self.0), self.0);
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

/// The answer of the C program.
fn ask(compiled: &mut Compiled, message: &[u8]) -> ([u32; 5], DnsKey) {
    let mut answer = [0; 5 * 4 + size_of::<DnsKey>()];
    compiled.write(&(message.len() as u32).to_ne_bytes());
    compiled.write(message);
    compiled.read(&mut answer);
    let (words, key) = answer.split_at(20);
    let number = |at: usize| u32::from_ne_bytes(words[at * 4..][..4].try_into().unwrap());
    (std::array::from_fn(number), DnsKey::from_bytes(key).unwrap())
}

fn compare(compiled: &mut Compiled, message: &[u8]) -> bool {
    let ([reason, buffer, mixed, low, high], key) = ask(compiled, message);
    match derive(message, SERVER) {
        Err(why) => {
            assert_eq!((reason, buffer), (why as u32, 0), "{message:02x?}");
            false
        }
        Ok(question) => {
            assert_eq!(reason, Reason::Answered as u32, "{message:02x?}");
            assert_eq!(key, question.key, "{message:02x?}");
            assert_eq!((buffer, mixed), (question.buffer.into(), question.mixed.into()));
            let theirs = u64::from(high) << 32 | u64::from(low);
            assert_eq!(theirs, word(&key, 11, 5, 7, 3), "{message:02x?}");
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
    let plain = key(&read("www.example.org").unwrap(), 1, 0, SERVER).unwrap();
    assert!(compare(&mut compiled, &query(&plain, 1, 512, Case::Lower, 0)));
    let answerable = (0..GENERATED).filter(|_| {
        let message = chance.message();
        compare(&mut compiled, &message)
    });
    let count = answerable.count();
    assert!(count > GENERATED / 10, "only {count} were plain queries");
}
