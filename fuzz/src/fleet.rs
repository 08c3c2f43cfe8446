//! Targets of afpa-fleet: words of its servers and of other machines. They are in a file of their own, so that an ordinary test
//! of that crate can include it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use afpa_fleet::{
    Envelope, Files, Heartbeat, Keyring, LONGEST_FILES, PeerKey, Position, Question, Secret, Seeds,
    Shelf,
};

/// The longest word of a heartbeat, the longest reason, and the most entries of a list.
const LONGEST: (usize, usize, usize) = (128, 1024, 64);

/// The key of the record that is read.
const KEY: &str = "certificate a.test";

fn secret() -> Secret {
    Secret::of(&[7; 32]).expect("a secret")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A message of the kind that the first byte says. Some are sealed here, so that the readers behind the seal see the bytes, too.
pub fn fleet_messages(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 7 {
        0 => order(bytes),
        1 => heartbeat(bytes),
        2 => sealed_heartbeat("sealed", "heartbeat", bytes),
        3 => sealed_heartbeat("sealed_peer", "peer", bytes),
        4 => record(bytes),
        5 => keys(bytes),
        _ => files(bytes),
    }
}

fn order(bytes: &[u8]) {
    if let Ok(read) = Envelope::decode(bytes) {
        assert_eq!(Envelope::decode(&read.encode()), Ok(read));
    }
}

/// Without a seal a heartbeat proves nothing.
fn heartbeat(bytes: &[u8]) {
    for secret in [None, Some(&secret())] {
        let Ok(beat) = Heartbeat::decode_by(bytes, secret) else { continue };
        assert!(!beat.proven && !beat.takes && beat.peer.is_none());
        assert!(beat.revision.is_none() && beat.refused.is_none());
        has_bounds(&beat);
    }
}

fn sealed_heartbeat(part: &str, purpose: &str, bytes: &[u8]) {
    let sealed = hex(&secret().seal(&format!("{purpose} x 7"), bytes));
    let text =
        format!("{{\"instance\":\"x\",\"number\":7,\"name\":\"a\",\"{part}\":\"{sealed}\"}}");
    if let Ok(beat) = Heartbeat::decode_by(text.as_bytes(), Some(&secret())) {
        assert!(beat.proven && beat.name == "a" && beat.instance == "x");
        has_bounds(&beat);
        let again = Heartbeat::decode_by(&beat.encode_by(Some(&secret())), Some(&secret()));
        assert!(again.is_ok_and(|again| again.peer == beat.peer && again.takes == beat.takes));
    }
    let other = Secret::of(&[8; 32]).expect("a secret");
    let beat = Heartbeat::decode_by(text.as_bytes(), Some(&other));
    assert!(beat.is_ok_and(|beat| !beat.proven) || bytes.len() > 16 * 1024, "of another secret");
}

fn has_bounds(beat: &Heartbeat) {
    let (word, reason, list) = LONGEST;
    for text in [&beat.instance, &beat.name, &beat.region, &beat.version, &beat.configuration] {
        assert!(text.len() <= word && !text.contains(char::is_control));
    }
    assert!(
        beat.missed.len() <= list && beat.peer.as_ref().is_none_or(|peer| peer.hot.len() <= list)
    );
    if let Some(refused) = &beat.refused {
        assert!(refused.why.len() <= reason && !refused.why.contains(char::is_control));
    }
}

/// A record is that of its own key, or none.
fn record(bytes: &[u8]) {
    let mut shelf = Shelf::new("own".to_owned(), secret());
    shelf.begin(7);
    let subject = shelf.subject(KEY);
    let unsealed = shelf.read(&subject, (1, bytes), Duration::ZERO);
    assert!(bytes.is_empty() || unsealed.is_err());
    let sealed = secret().seal(&format!("record 7 {subject}"), bytes);
    if let Ok(Some(changed)) = shelf.read(&subject, (1, &sealed), Duration::ZERO) {
        assert_eq!((&*changed.key, &changed.value), (KEY, &shelf.value(KEY)));
    }
    assert!(shelf.count() <= 1);
}

/// Seeds have a current one and a next one, and those that are not sealed replace nothing.
fn keys(bytes: &[u8]) {
    let mut keyring = Keyring::new("own".to_owned(), secret(), None, Duration::ZERO);
    assert!(keyring.read(Some((1, bytes)), Duration::ZERO).is_err() && keyring.seeds().is_none());
    let sealed = secret().seal("keys", bytes);
    let record = format!("{{\"holder\":\"x\",\"seeds\":\"{}\"}}", hex(&sealed));
    let read = keyring.read(Some((2, record.as_bytes())), Duration::ZERO);
    match Seeds::open(&secret(), &sealed) {
        Some(seeds) => {
            assert!(matches!(seeds.keys("tickets").len(), 2 | 3));
            assert!(
                record.len() > 16 * 1024 || (read == Ok(true) && keyring.seeds() == Some(&seeds))
            );
        }
        None => assert!(read.is_err()),
    }
}

fn files(bytes: &[u8]) {
    if let Ok(files) = Files::decode(bytes) {
        assert!(files.bytes() <= LONGEST_FILES);
        assert_eq!(Files::decode(&files.encode()), Ok(files));
    }
}

/// A head, whose first bytes are the question that is put behind it. It is read as it was asked, by the process that was asked, and
/// not when a bit of it has changed; a head of a stranger is none.
pub fn fleet_questions(data: &[u8]) {
    let key = PeerKey::of(&secret());
    assert!(key.read("own", data).is_none(), "nobody who has the secret has asked it");
    let Some((begin, head)) = data.split_first_chunk::<54>() else { return };
    let (asked, bit) = question(begin);
    let mut head = [head, b"\r\n\r\n"].concat();
    let proof = key.ask("own", &asked, &mut head);
    let (read, own) = key.read("own", &head).expect("it was asked");
    assert!(read == asked && own == proof);
    let line = own.line();
    let value = line.split_once(": ").expect("a line").1.trim_end();
    assert!(proof.is(value.as_bytes()) && !proof.is(data));
    assert!(key.read("other", &head).is_none());
    let at = bit % head.len();
    head[at] ^= 1;
    assert!(key.read("own", &head).is_none(), "byte {at} has changed");
}

fn question(bytes: &[u8; 54]) -> (Question, usize) {
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let place = bytes[..16].try_into().expect("a digest");
    let (key, at) = (number(16), Position { log: number(24), sequence: number(32) });
    let address: [u8; 8] = number(40).to_be_bytes();
    let client = match bytes[48] % 4 {
        0 => None,
        1 => Some(IpAddr::V4(Ipv4Addr::new(address[0], address[1], address[2], address[3]))),
        2 => Some(IpAddr::V6(Ipv4Addr::new(address[0], address[1], 0, 1).to_ipv6_mapped())),
        _ => Some(IpAddr::V6(Ipv6Addr::from(u128::from(number(40)) << 32))),
    };
    let secure = bytes[49].is_multiple_of(2);
    let bit = u32::from_be_bytes(bytes[50..].try_into().expect("four bytes"));
    (Question { place, key, at, client, secure }, bit as usize)
}
