//! The program's ids, tokens and tags, and those of user mode: the same for any bytes. In an ordinary process and, the tags, in
//! the kernel.

use std::hash::Hasher as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::compiled::Compiled;
use afpa_bpf::quic::tag_table;
use afpa_testkit::Random;
use afpa_tls::quic::{TOKEN_LIFE, make_token, period_of};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use libbpf_rs::{MapCore, MapFlags, ObjectBuilder, ProgramInput};
use siphasher::sip::SipHasher24;

#[path = "../../build/compile.rs"]
mod compile;

const TEXT_MAX: usize = 128;

/// RFC 9001, section 5.8: the tag is AES-GCM's of nothing, with the pseudo-packet beside it.
pub(crate) fn tag_of(pseudo_packet: &[u8]) -> [u8; 16] {
    const KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
    const NONCE: [u8; 12] =
        [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &KEY).expect("a key"));
    let nonce = Nonce::assume_unique_for_key(NONCE);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(pseudo_packet), &mut []);
    tag.expect("sealed").as_ref().try_into().expect("16 bytes")
}

/// RFC 9001, A.4: the id that the first packet was sent to, and the Retry with its tag.
fn vector() -> (Vec<u8>, [u8; 16]) {
    let text = "088394c8f03e515708ff000000010008f067a5502a4262b5746f6b656e";
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("digits");
    let pseudo = (0..text.len()).step_by(2).map(byte).collect();
    (pseudo, 0x04a2_65ba_2eff_4d82_9058_fb3f_0f24_96ba_u128.to_be_bytes())
}

/// A question of `user_space.c`.
struct Asked {
    key: [u8; 16],
    period: u64,
    client: SocketAddr,
    first: Vec<u8>,
    second: u64,
    own: [u8; 8],
    now: u64,
    id: [u32; 2],
    token: Vec<u8>,
    text: Vec<u8>,
}

struct Answer {
    made: Vec<u8>,
    holds: bool,
    id: [u8; 8],
    place: u32,
    of_retry: bool,
    tag: [u8; 16],
}

impl Asked {
    fn by_chance(random: &mut Random) -> Self {
        let key: [u8; 16] = random.bytes(16).try_into().expect("16 bytes");
        let ip: IpAddr = match random.one_in(2) {
            true => <[u8; 4]>::try_from(random.bytes(4)).expect("four").into(),
            false => <[u8; 16]>::try_from(random.bytes(16)).expect("sixteen").into(),
        };
        let client = SocketAddr::new(ip, random.next() as u16);
        let (first, own) = (random.below(21), random.next().to_ne_bytes());
        let first = random.bytes(first);
        let second = 1_700_000_000 + random.below(1 << 30) as u64;
        let token = make_token(&key, client, &first, second, own);
        let text = 16 + random.below(TEXT_MAX - 15);
        let place = if random.one_in(4) { 0 } else { random.below(1 << 14) as u32 };
        Self {
            key,
            period: period_of(second),
            client,
            first,
            second,
            own,
            now: second + random.below(TOKEN_LIFE as usize) as u64,
            id: [random.next() as u32, place],
            token,
            text: random.bytes(text),
        }
    }

    fn ask(&self, compiled: &mut Compiled) -> Answer {
        let mut all = self.key.to_vec();
        let own = u64::from_ne_bytes(self.own);
        for word in [self.period, self.second, own, self.now] {
            all.extend(word.to_ne_bytes());
        }
        all.extend(match self.client.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        });
        let lengths = [self.token.len() as u32, self.text.len() as u32];
        for word in self.id.iter().chain(&lengths) {
            all.extend(word.to_ne_bytes());
        }
        all.extend(self.client.port().to_be_bytes());
        all.push(self.first.len() as u8);
        for (part, room) in [(&self.first, 29), (&self.token, 96), (&self.text, TEXT_MAX)] {
            let mut part = part.clone();
            part.resize(room, 0x55);
            all.extend(part);
        }
        compiled.write(&all);
        let mut answer = [0; 8 + 4 * 4 + 96 + 16];
        compiled.read(&mut answer);
        let word = |at: usize| u32::from_ne_bytes(answer[at..][..4].try_into().expect("four"));
        Answer {
            id: answer[..8].try_into().expect("eight"),
            made: answer[24..][..word(8) as usize].to_vec(),
            holds: word(12) == 1,
            place: word(16),
            of_retry: word(20) == 1,
            tag: answer[120..].try_into().expect("sixteen"),
        }
    }
}

fn started(folder: &Path) -> Option<Compiled> {
    let mut compiled = Compiled::start("crates/afpa-bpf/tests/quic/user_space.c", folder)?;
    compiled.write(&tag_table().to_bytes());
    Some(compiled)
}

#[test]
fn c_and_rust_make_the_same_tokens_ids_and_tags() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut compiled) = started(folder.path()) else { return };
    let mut random = Random::new(Random::seed_or(9001));
    for _ in 0..20_000 {
        let asked = Asked::by_chance(&mut random);
        let answer = asked.ask(&mut compiled);
        assert_eq!(answer.made, asked.token);
        assert!(answer.holds, "{:02x?} at {}", asked.token, asked.now);
        let [chosen, place] = asked.id;
        let mut hasher = SipHasher24::new_with_key(&asked.key);
        hasher.write(&chosen.to_le_bytes());
        let masked = hasher.finish() as u32 ^ place;
        let id = (u64::from(chosen) << 32 | u64::from(masked)).to_be_bytes();
        assert_eq!((answer.id, answer.place, answer.of_retry), (id, place, place == 0));
        assert_eq!(answer.tag, tag_of(&asked.text));
    }
    let (pseudo, tag) = vector();
    assert_eq!(tag_of(&pseudo), tag);
    let asked = Asked { text: pseudo, ..Asked::by_chance(&mut random) };
    assert_eq!(asked.ask(&mut compiled).tag, tag, "RFC 9001, A.4");
}

#[test]
fn only_a_token_that_is_whole_and_young_and_of_its_client_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut compiled) = started(folder.path()) else { return };
    let mut random = Random::new(Random::seed_or(9002));
    for turn in 0..20_000 {
        let mut asked = Asked::by_chance(&mut random);
        match turn % 7 {
            0 => {
                let at = random.below(asked.token.len());
                asked.token[at] ^= 1 << random.below(8);
            }
            1 => asked.token.truncate(random.below(asked.token.len())),
            2 => asked.token.push(0),
            3 => asked.client.set_port(asked.client.port() ^ 1),
            4 => asked.now = asked.second + TOKEN_LIFE + random.below(1000) as u64,
            5 => asked.now = asked.second - 1 - random.below(1000) as u64,
            _ => asked.period += 1 + random.below(8) as u64,
        }
        assert!(!asked.ask(&mut compiled).holds, "{turn}: {:02x?}", asked.token);
    }
}

#[test]
fn the_kernel_computes_the_tags_of_aes_gcm() {
    let folder = tempfile::tempdir().expect("a folder");
    let clang = std::process::Command::new("clang").arg("--version").output();
    if !clang.is_ok_and(|out| out.status.success()) {
        return println!("SKIP: no clang to compile the program of this test for BPF");
    }
    let path = folder.path().join("tag.bpf.o");
    let bpf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/quic/tag.bpf.c");
    compile::compile(
        source,
        &path,
        folder.path(),
        &[&format!("-I{bpf}/include"), &format!("-I{bpf}")],
    );
    let open = ObjectBuilder::default().open_file(&path).expect("an object");
    let object = match open.load() {
        Ok(object) => object,
        Err(error) if !rustix::process::geteuid().is_root() => {
            return println!("SKIP: programs cannot be loaded here: {error:#}");
        }
        Err(error) => panic!("it is loaded: {error:#}"),
    };
    let map = object.maps().find(|map| map.name() == "quic_tables").expect("a map");
    let table = tag_table().to_bytes();
    map.update(&0u32.to_ne_bytes(), &table, MapFlags::ANY).expect("written");
    let program = object.progs_mut().find(|program| program.name() == "tag").expect("a program");
    let tag = |text: &[u8]| -> [u8; 16] {
        let frame = [&[0; 12][..], &[0x88, 0xb5], text].concat();
        let mut packet = vec![0; frame.len()];
        let input = ProgramInput {
            data_in: Some(&frame),
            data_out: Some(&mut packet),
            ..ProgramInput::default()
        };
        let verdict = program.test_run(input).expect("it runs").return_value;
        assert_eq!(verdict, 0);
        packet[14..30].try_into().expect("16 bytes")
    };
    let (pseudo, expected) = vector();
    assert_eq!(tag(&pseudo), expected, "RFC 9001, A.4");
    let mut random = Random::new(Random::seed_or(9003));
    for _ in 0..1_000 {
        let length = 16 + random.below(TEXT_MAX - 15);
        let text = random.bytes(length);
        assert_eq!(tag(&text), tag_of(&text), "{text:02x?}");
    }
}
